"""Texas Instruments INA226 on an I2C bus of the node that it measures.

Source: data sheet SBOS547B, sections 5.5 (accuracy) and 7.1 (registers).
"""

from __future__ import annotations

from boardcluster.telemetry.meters.wire.ina import Chip, ina_kind, signed

__all__ = ["CHIP", "KIND", "watts_of"]

_SHUNT_VOLTS_PER_BIT = 2.5e-6
_BUS_VOLTS_PER_BIT = 1.25e-3


def watts_of(shunt: int, bus: int, shunt_ohms: float) -> float:
    """Return the power from shunt voltage register 01h and bus voltage register 02h.

    Raises:
        ValueError: the shunt voltage is at the end of its range.
    """
    if shunt in (0x7FFF, 0x8000):
        raise ValueError("the INA226 is at the end of its range: the shunt is too large")
    amperes = signed(shunt) * _SHUNT_VOLTS_PER_BIT / shunt_ohms
    return amperes * bus * _BUS_VOLTS_PER_BIT


CHIP = Chip(name="INA226", identity={0xFE: 0x5449, 0xFF: 0x2260}, watts=watts_of, shunt=True)

KIND = ina_kind(
    CHIP,
    summary="INA226 on I2C with a shunt in the supply line of a node",
    accuracy="shunt voltage 0.1 % and bus voltage 0.1 % at 25 C (data sheet SBOS547B, 5.5), with a "
    "shunt of 1 % together 1.2 %",
    accuracy_percent=1.2,
)
