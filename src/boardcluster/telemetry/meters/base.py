"""What a power meter is: a driver with a statement of what it covers and how well it measures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from boardcluster.records import Coverage
from boardcluster.remote.base import Remote

__all__ = ["Batched", "Meter", "MeterKind", "Option", "Reading", "Recorded"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One look at a meter."""

    seconds: float
    """The driver's monotonic clock, halfway between question and answer."""
    watts: float | None
    """Active power; None for a meter that only counts energy."""
    energy_joules: float | None = None
    """The meter's own running count of energy; None if it keeps none."""
    wraps_at_joules: float | None = None
    """Where that count starts again at zero; None if it does not."""


class Meter(Protocol):
    """An open meter. A kind's own derives from this class; most hold nothing open between reads."""

    def read(self) -> Reading:
        """Ask once.

        Raises:
            MeterError: it does not answer, or with something that is no reading.
        """
        ...

    def close(self) -> None:
        """Release what is held open; safe to repeat."""
        return


@runtime_checkable
class Batched(Protocol):
    """A meter for which asking once costs its node so much that several readings are fetched."""

    def read_for(self, span_seconds: float, *, interval_seconds: float) -> tuple[Reading, ...]:
        """Take readings at an interval over a span and return them at its end.

        Raises:
            MeterError: as ``Meter.read``.
        """
        ...


@runtime_checkable
class Recorded(Protocol):
    """A meter that something else reads into a file; it is read when the run has ended."""

    def between(self, started_seconds: float, ended_seconds: float) -> tuple[Reading, ...]:
        """Return what was recorded in a span and next to its ends, in order.

        Args:
            started_seconds: the driver's monotonic clock.
            ended_seconds: likewise.

        Raises:
            MeterError: there is no such file, or it holds something else.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A setting of a driver in ``cluster.toml``."""

    name: str
    """Its key."""
    help: str
    """One line."""
    default: str | None = None
    """What it is when not given; None makes it required."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeterKind:
    """A kind of meter: one file of this folder, its module-level ``KIND``."""

    name: str
    """As in ``cluster.toml``."""
    summary: str
    """One line."""
    coverage: Coverage
    """What it sees."""
    accuracy: str
    """As its maker states it, with the source."""
    open: Callable[[Mapping[str, str], Remote | None], Meter]
    """Opens it without asking it anything; ``remote`` is the covered node for meters that are read
    there, else None. A ``SpecError`` says which option has a wrong value."""
    options: tuple[Option, ...] = ()
    """Its settings."""
    interval_seconds: float = 1.0
    """How often asking it makes sense."""
    integrates: bool = False
    """Whether its energy count is integrated by the device itself (EE HPC WG level 3)."""
    on_node: bool = False
    """Whether it is read on the node that it measures (RAPL, PMIC, I2C), by ``Remote``."""
    accuracy_percent: float | None = None
    """The same as a number, of the reading; None where the maker states none. A meter whose own
    option says it has the option ``accuracy_percent``."""
