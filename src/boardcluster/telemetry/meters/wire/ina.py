"""Texas Instruments' power monitors on an I2C bus: register arithmetic, and reading them on nodes.

Power is computed from the voltage registers, so that nothing is written to the chip: its
calibration register only scales results that it computes itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from boardcluster.errors import MeterError, RemoteError, SpecError
from boardcluster.records import Coverage
from boardcluster.remote.base import Remote
from boardcluster.remote.node_rpc import node_program
from boardcluster.telemetry.meters.base import Meter, MeterKind, Option, Reading
from boardcluster.telemetry.meters.wire.options import number, whole

__all__ = [
    "Chip",
    "ina_kind",
    "parse_readings",
    "signed",
]

_SAMPLES_PER_SECOND = 10.0
_ONE_READING_SECONDS = 0.3
_GRACE_SECONDS = 5.0

_COMMON_OPTIONS = (
    Option(name="bus", help="number of the bus: N of /dev/i2c-N", default="1"),
    Option(name="address", help="address of the chip on the bus", default="0x40"),
    Option(name="accuracy_percent", help="of chip and shunt together", default=""),
)
_SHUNT_OPTION = Option(name="shunt_ohms", help="resistance of the shunt", default="0.1")


def signed(word: int) -> int:
    """Return a 16-bit word in two's complement as a number."""
    return word - 0x10000 if word & 0x8000 else word


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """What distinguishes one chip from another."""

    name: str
    """Of the chip."""
    identity: Mapping[int, int]
    """Registers that identify it, with what they hold; empty if it has none."""
    watts: Callable[[int, int, float], float]
    """Registers 01h and 02h and the shunt in ohms to watts; raises ValueError with the reason."""
    shunt: bool
    """Whether the shunt is outside of it."""


def parse_readings(
    text: str, chip: Chip, *, shunt_ohms: float, ended_seconds: float, where: str
) -> list[tuple[float, float]]:
    """Read what the node-side program printed.

    Args:
        text: its output.
        chip: which chip it asked.
        shunt_ohms: resistance of the shunt.
        ended_seconds: driver's monotonic clock when the program had ended.
        where: for messages.

    Returns:
        The driver's monotonic clock and watts of each sample.

    Raises:
        MeterError: another chip is there, the output is cut, or a value is out of range.
    """
    try:
        first, *rows, last = [line.split() for line in text.splitlines()]
        identity = [int(word, 16) for word in first[1:]]
        samples = [(float(row[0]), int(row[1], 16), int(row[2], 16)) for row in rows]
        late = ended_seconds - float(last[1])
    except (ValueError, IndexError) as error:
        raise MeterError(f"{where}: no readings: {text[:80]!r}") from error
    if first[0] != "id" or last[0] != "end" or not samples:
        raise MeterError(f"{where}: no readings: {text[:80]!r}")
    if identity != list(chip.identity.values()):
        found = " ".join(f"{word:04x}" for word in identity)
        raise MeterError(
            f"{where}: the chip is not an {chip.name}: it says {found}",
            hint="correct kind, bus or address in cluster.toml",
        )
    try:
        return [(at + late, chip.watts(one, two, shunt_ohms)) for at, one, two in samples]
    except ValueError as error:
        raise MeterError(f"{where}: {error}") from error


class _InaMeter(Meter):
    """One chip of a node."""

    def __init__(
        self, remote: Remote, chip: Chip, *, bus: int, address: int, shunt_ohms: float
    ) -> None:
        self._remote, self._chip = remote, chip
        self._bus, self._address, self._shunt_ohms = bus, address, shunt_ohms

    def read(self) -> Reading:
        return self.read_for(_ONE_READING_SECONDS, interval_seconds=_ONE_READING_SECONDS)[0]

    def read_for(self, span_seconds: float, *, interval_seconds: float) -> tuple[Reading, ...]:
        # A reading is the mean of the samples of its interval.
        count = max(2, round(span_seconds * _SAMPLES_PER_SECOND))
        per_reading = max(1, round(interval_seconds * _SAMPLES_PER_SECOND))
        samples = self._samples(count)
        parts = [samples[at : at + per_reading] for at in range(0, len(samples), per_reading)]
        return tuple(_mean(part) for part in parts)

    def _samples(self, count: int) -> list[tuple[float, float]]:
        where = f"{self._remote.name}: {self._chip.name} at {self._address:#04x} of bus {self._bus}"
        program = node_program("i2c_node", package=__package__).encode()
        argv = [
            *("python3", "-I", "-S", "-", str(self._bus), str(self._address)),
            ",".join(map(str, self._chip.identity)),
            *("1,2", str(count), str(1 / _SAMPLES_PER_SECOND)),
        ]
        span_seconds = count / _SAMPLES_PER_SECOND
        try:
            done = self._remote.run(
                argv, stdin=program, timeout_seconds=span_seconds + _GRACE_SECONDS, check=False
            )
        except RemoteError as error:
            raise MeterError(f"{where} cannot be read: {error.message}") from error
        ended = time.monotonic()
        if done.returncode != 0:
            last = done.stderr.decode(errors="replace").strip().rpartition("\n")[2][:120]
            raise MeterError(
                f"{where} cannot be read: {last}",
                hint="enable I2C, check bus and address with `i2cdetect`, and who may use the bus",
            )
        return parse_readings(
            done.text, self._chip, shunt_ohms=self._shunt_ohms, ended_seconds=ended, where=where
        )


def _mean(samples: Sequence[tuple[float, float]]) -> Reading:
    seconds, watts = zip(*samples, strict=True)
    return Reading(seconds=sum(seconds) / len(seconds), watts=sum(watts) / len(watts))


def ina_kind(chip: Chip, *, summary: str, accuracy: str, accuracy_percent: float) -> MeterKind:
    """Return the kind of meter that a chip is.

    Args:
        chip: which one.
        summary: one line.
        accuracy: as the data sheet states it.
        accuracy_percent: the same as a number, with a shunt of 1 % where it is outside.
    """
    return MeterKind(
        name=chip.name.lower(),
        summary=summary,
        coverage=Coverage.NODE,
        accuracy=accuracy,
        options=(*_COMMON_OPTIONS, *((_SHUNT_OPTION,) if chip.shunt else ())),
        on_node=True,
        open=partial(_open, chip),
        accuracy_percent=accuracy_percent,
    )


def _open(chip: Chip, settings: Mapping[str, str], remote: Remote | None) -> Meter:
    """Open a chip.

    Raises:
        SpecError: an option has a wrong value.
    """
    if remote is None:
        raise SpecError(
            f"a meter of the kind {chip.name.lower()} is read on a node",
            hint="name the node that it is wired to in nodes",
        )
    shunt_ohms = number(settings, "shunt_ohms", least=1e-5, most=10.0) if chip.shunt else 0.0
    return _InaMeter(
        remote,
        chip,
        bus=whole(settings, "bus", least=0, most=255),
        address=whole(settings, "address", least=0x08, most=0x77),
        shunt_ohms=shunt_ohms,
    )
