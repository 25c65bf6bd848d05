"""The power management chip of a Raspberry Pi 5, read on the node with ``vcgencmd pmic_read_adc``.

It measures voltage and current of the rails that the chip itself supplies. What hangs on the 5 V
rail directly (USB devices, HATs, NVMe drives, a fan) and the chip's own losses are not in it.
Source: Raspberry Pi documentation, vcgencmd, pmic_read_adc.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping

from boardcluster.errors import MeterError, RemoteError, SpecError
from boardcluster.records import Coverage
from boardcluster.remote.base import Remote
from boardcluster.telemetry.meters.base import Meter, MeterKind, Reading

__all__ = ["KIND", "read_rails"]

_ROW = re.compile(r"\s*(\w+)_([VA]) (?:volt|current)\(\d+\)=(\d+\.\d+)([VA])\s*")
_TIMEOUT_SECONDS = 5.0


def read_rails(text: str, *, where: str) -> float:
    """Sum voltage times current over the rails for which both are given.

    ``EXT5V`` and ``BATT`` have a voltage only and are left out.

    Returns:
        Watts.

    Raises:
        MeterError: a line is not such a value, a current has no voltage, or there is no rail.
    """
    volts: dict[str, float] = {}
    amperes: dict[str, float] = {}
    for line in text.splitlines():
        if not line.strip():
            continue
        row = _ROW.fullmatch(line)
        if row is None or row[2] != row[4]:
            raise MeterError(
                f"{where}: pmic_read_adc printed a line that is not a value: {line[:80]!r}"
            )
        (volts if row[2] == "V" else amperes)[row[1]] = float(row[3])
    if not amperes:
        raise MeterError(f"{where}: pmic_read_adc printed no currents")
    if missing := sorted(set(amperes) - set(volts)):
        raise MeterError(f"{where}: pmic_read_adc printed no voltage for {', '.join(missing)}")
    return sum(amperes[rail] * volts[rail] for rail in amperes)


class _PmicMeter(Meter):
    """The chip of one board."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote

    def read(self) -> Reading:
        name = self._remote.name
        asked = time.monotonic()
        try:
            done = self._remote.run(
                ["vcgencmd", "pmic_read_adc"], timeout_seconds=_TIMEOUT_SECONDS, check=False
            )
        except RemoteError as error:
            raise MeterError(f"{name}: vcgencmd cannot be run: {error.message}") from error
        halfway = (asked + time.monotonic()) / 2
        if done.returncode != 0 or "error=" in done.text:
            raise MeterError(
                f"{name}: vcgencmd pmic_read_adc failed: {(done.text or '')[:80]!r}",
                hint="only a Raspberry Pi 5 or Compute Module 5 has this chip",
            )
        return Reading(seconds=halfway, watts=read_rails(done.text, where=name))


def _open(_: Mapping[str, str], remote: Remote | None) -> Meter:
    if remote is None:
        raise SpecError(
            "a meter of the kind raspberry-pi-pmic is read on a node", hint="name the node in nodes"
        )
    return _PmicMeter(remote)


KIND = MeterKind(
    name="raspberry-pi-pmic",
    summary="power management chip of a Raspberry Pi 5; without USB, HAT, NVMe and fan",
    coverage=Coverage.BOARD,
    accuracy="none stated by the maker",
    on_node=True,
    open=_open,
)
