"""RAPL: the energy count of Intel and AMD processors, read on the node from the kernel.

Source: Linux, Documentation/power/powercap/powercap.rst. The count wraps at
``max_energy_range_uj``. Since November 2020 (CVE-2020-8694) only root may read it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping

from boardcluster.errors import MeterError, RemoteError, SpecError
from boardcluster.records import Coverage
from boardcluster.remote.base import Remote
from boardcluster.telemetry.meters.base import Meter, MeterKind, Option, Reading

__all__ = ["KIND", "read_counts"]

_BASE = "/sys/class/powercap"
_ZONE = re.compile(r"[a-z-]+(:\d+){1,2}")
_TIMEOUT_SECONDS = 5.0
_NONE_HINT = "only Intel and AMD processors have it, and few virtual machines"
_JOULES_PER_MICROJOULE = 1e-6


def read_counts(text: str, *, where: str) -> tuple[float, float]:
    """Read ``energy_uj`` and ``max_energy_range_uj``, one a line.

    Returns:
        Joules counted, and joules at which the count wraps.

    Raises:
        MeterError: these are not two such numbers.
    """
    words = text.split()
    if len(words) != 2 or not all(word.isascii() and word.isdecimal() for word in words):
        raise MeterError(f"{where}: RAPL did not return two counts: {text[:80]!r}")
    counted, most = (int(word) * _JOULES_PER_MICROJOULE for word in words)
    if most <= 0 or counted > most:
        raise MeterError(f"{where}: RAPL counts {counted:g} J of at most {most:g} J")
    return counted, most


class _RaplMeter(Meter):
    """The count of one zone of a node."""

    def __init__(self, remote: Remote, zone: str) -> None:
        self._remote, self._zone = remote, zone

    def read(self) -> Reading:
        files = [f"{_BASE}/{self._zone}/{name}" for name in ("energy_uj", "max_energy_range_uj")]
        asked = time.monotonic()
        try:
            done = self._remote.run(["cat", *files], timeout_seconds=_TIMEOUT_SECONDS, check=False)
        except RemoteError as error:
            raise MeterError(
                f"{self._remote.name}: RAPL cannot be read: {error.message}"
            ) from error
        halfway = (asked + time.monotonic()) / 2
        if done.returncode != 0:
            denied = b"Permission denied" in done.stderr
            why = "only root may read it" if denied else f"there is no {_BASE}/{self._zone}"
            raise MeterError(
                f"{self._remote.name}: RAPL cannot be read: {why}",
                hint="run boardcluster as root" if denied else _NONE_HINT,
            )
        counted, most = read_counts(done.text, where=self._remote.name)
        return Reading(seconds=halfway, watts=None, energy_joules=counted, wraps_at_joules=most)


def _open(settings: Mapping[str, str], remote: Remote | None) -> Meter:
    zone = settings["zone"]
    if not _ZONE.fullmatch(zone):
        raise SpecError(
            f'the option "zone" of a meter is "{zone}"; allowed: a folder of {_BASE}',
            hint='correct zone in cluster.toml; the first package is "intel-rapl:0"',
        )
    if remote is None:
        raise SpecError("a meter of the kind rapl is read on a node", hint="name the node in nodes")
    return _RaplMeter(remote, zone)


KIND = MeterKind(
    name="rapl",
    summary="energy count of an Intel or AMD processor (RAPL); its package only",
    coverage=Coverage.PACKAGE,
    accuracy="none stated by the makers; the count is a model on some processors, a measurement on "
    "others",
    integrates=True,
    options=(Option(name="zone", help="folder of /sys/class/powercap", default="intel-rapl:0"),),
    on_node=True,
    open=_open,
)
