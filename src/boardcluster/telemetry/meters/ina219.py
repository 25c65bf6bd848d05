"""Texas Instruments INA219 on an I2C bus of the node that it measures, or of another one.

Source: data sheet SBOS448G, sections 7.5 (accuracy) and 8.6 (registers).
"""

from __future__ import annotations

from boardcluster.telemetry.meters.wire.ina import Chip, ina_kind, signed

__all__ = ["CHIP", "KIND", "watts_of"]

_SHUNT_VOLTS_PER_BIT = 10e-6
_BUS_VOLTS_PER_BIT = 4e-3
_BUS_SHIFT = 3
_OVERFLOW = 0x0001
_SHUNT_END = 32_000
"""320 mV, the widest range and that after switching on."""


def watts_of(shunt: int, bus: int, shunt_ohms: float) -> float:
    """Return the power from shunt voltage register 01h and bus voltage register 02h.

    Raises:
        ValueError: the shunt voltage is at the end of its range, or arithmetic overflowed.
    """
    if abs(signed(shunt)) >= _SHUNT_END:
        raise ValueError("the INA219 is at the end of its range: the shunt is too large")
    if bus & _OVERFLOW:
        raise ValueError("the INA219 reports an overflow: the shunt is too large for the current")
    amperes = signed(shunt) * _SHUNT_VOLTS_PER_BIT / shunt_ohms
    return amperes * (bus >> _BUS_SHIFT) * _BUS_VOLTS_PER_BIT


CHIP = Chip(name="INA219", identity={}, watts=watts_of, shunt=True)

KIND = ina_kind(
    CHIP,
    summary="INA219 on I2C with a shunt in the supply line of a node",
    accuracy="current 0.5 % and voltage 0.5 % at 25 C (data sheet SBOS448G, 7.5), with a shunt of "
    "1 % together 2 %",
    accuracy_percent=2.0,
)
