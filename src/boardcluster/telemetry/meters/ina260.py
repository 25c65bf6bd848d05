"""Texas Instruments INA260, with a shunt of its own, on an I2C bus of the node that it measures.

Source: data sheet SBOS656C, sections 7.5 (accuracy) and 8.6 (registers).
"""

from __future__ import annotations

from boardcluster.telemetry.meters.wire.ina import Chip, ina_kind, signed

__all__ = ["CHIP", "KIND", "watts_of"]

_AMPERES_PER_BIT = 1.25e-3
_BUS_VOLTS_PER_BIT = 1.25e-3


def watts_of(current: int, bus: int, shunt_ohms: float) -> float:
    """Return the power from current register 01h and bus voltage register 02h.

    Raises:
        ValueError: the current is at the end of its range.
    """
    del shunt_ohms  # it has its own, and the current register knows it
    if current in (0x7FFF, 0x8000):
        raise ValueError("the INA260 is at the end of its range: the current is too large")
    return signed(current) * _AMPERES_PER_BIT * bus * _BUS_VOLTS_PER_BIT


CHIP = Chip(name="INA260", identity={0xFE: 0x5449, 0xFF: 0x2270}, watts=watts_of, shunt=False)

KIND = ina_kind(
    CHIP,
    summary="INA260 on I2C, with its own shunt, in the supply line of a node",
    accuracy="current 0.15 % and 5 mA, voltage 0.1 % at 25 C (data sheet SBOS656C, 7.5); at 1 A "
    "together 0.75 %",
    accuracy_percent=0.75,
)
