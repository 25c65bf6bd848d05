"""What fio and the programs on the nodes say about a volume, read once at the edge."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from boardcluster.errors import VerificationError

__all__ = [
    "BrickFiles",
    "FioRun",
    "HealTimes",
    "WatchedClient",
    "read_audit",
    "read_fio",
    "read_heal",
    "read_watch",
]

_HINT = "see the attempt's folder"
_PERCENTILES = {"p50": "50.000000", "p99": "99.000000", "p999": "99.900000"}
_Found = TypeVar("_Found")

BrickFiles = Mapping[str, tuple[int, str]]
"""Files of a brick: size and SHA-256 by path."""


def _parse(text: str, what: str, read: Callable[[Any], _Found]) -> _Found:
    try:
        return read(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise VerificationError(f"{what} cannot be read: {error!r}", hint=_HINT) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class FioRun:
    """What one job of fio came to."""

    moved_bytes: int
    """Bytes that it wrote or read."""
    operations: int
    """Writes or reads that it made."""
    seconds: float
    """How long it took, flushing at the end included."""
    errors: int
    """Operations that failed."""
    latency_nanoseconds: Mapping[str, float]
    """Percentiles of the time of an operation: ``p50``, ``p99``, ``p999``."""
    longest_nanoseconds: float
    """The longest of them."""

    @property
    def bytes_per_second(self) -> float:
        """Its rate."""
        return self.moved_bytes / self.seconds

    @property
    def operations_per_second(self) -> float:
        """Its rate in operations."""
        return self.operations / self.seconds


def _job(row: Mapping[str, Any]) -> FioRun:
    way = row["write"] if row["write"]["total_ios"] else row["read"]
    latency = way["clat_ns"]
    return FioRun(
        moved_bytes=int(way["io_bytes"]),
        operations=int(way["total_ios"]),
        # Whole milliseconds: fio's clock of a run, which ends after `end_fsync`.
        seconds=max(1, int(way["runtime"])) / 1000,
        errors=int(row["total_err"]) if row["error"] else 0,
        latency_nanoseconds={
            name: float(latency["percentile"][key]) for name, key in _PERCENTILES.items()
        },
        longest_nanoseconds=float(latency["max"]),
    )


def read_fio(text: str, *, phase: str) -> dict[str, FioRun]:
    """Read fio's JSON; return its jobs by name.

    Raises:
        VerificationError: it is not whole.
    """
    return _parse(
        text,
        f"{phase}: what fio wrote",
        lambda found: {str(row["jobname"]): _job(row) for row in found["jobs"]},
    )


def read_audit(text: str, *, worker: str) -> dict[str, BrickFiles]:
    """Read what ``auditing.py`` wrote; return the files of each brick by the brick's name.

    Raises:
        VerificationError: it is not whole.
    """
    return _parse(
        text,
        f"the files on the bricks of {worker}",
        lambda found: {
            str(brick): {str(path): (int(row[0]), str(row[1])) for path, row in files.items()}
            for brick, files in found.items()
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HealTimes:
    """What ``faulting.py`` wrote, by the clock of its worker."""

    healed: bool
    """Whether no copy of any file was behind another in the end."""
    healed_unix: float
    """When that was seen."""
    seen: str
    """The last state, in words."""
    down_unix: float | None
    """When the worker was taken out; None if it was not."""
    up_unix: float | None
    """When it was brought back."""
    ended: int
    """Processes that were killed."""


def read_heal(text: str, *, what: str) -> HealTimes:
    """Read what ``faulting.py`` wrote.

    Raises:
        VerificationError: it is not whole.
    """
    return _parse(
        text,
        what,
        lambda row: HealTimes(
            healed=bool(row["healed"]),
            healed_unix=float(row["healed_unix"]),
            seen=str(row["seen"]),
            down_unix=float(row["down_unix"]) if "down_unix" in row else None,
            up_unix=float(row["up_unix"]) if "up_unix" in row else None,
            ended=int(row.get("ended", 0)),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedClient:
    """How many bricks the client was connected to, by the clock of the master."""

    bricks: int
    """Bricks that were watched."""
    changes: tuple[tuple[float, int], ...]
    """When that changed, and to how many."""

    @property
    def lost_unix(self) -> float | None:
        """When the client first lost one; None if it never did."""
        return next((when for when, count in self.changes if count < self.bricks), None)

    @property
    def back_unix(self) -> float | None:
        """When it had all of them for good; None if it never lost one, or lacks one still."""
        if self.lost_unix is None or self.changes[-1][1] != self.bricks:
            return None
        return self.changes[-1][0]


def read_watch(text: str) -> WatchedClient:
    """Read what ``watching.py`` wrote.

    Raises:
        VerificationError: it is not whole.
    """
    return _parse(
        text,
        "what the client saw of its bricks",
        lambda row: WatchedClient(
            bricks=int(row["bricks"]),
            changes=tuple((float(when), int(count)) for when, count in row["changes"]),
        ),
    )
