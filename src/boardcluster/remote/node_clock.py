"""The clocks of a node beside the driver's, and whether the driver slept meanwhile."""

from __future__ import annotations

import time
from dataclasses import dataclass

from boardcluster.remote.base import Remote
from boardcluster.remote.node_rpc import rpc

__all__ = ["CLOCK_ERROR_MOST_SECONDS", "ClockReading", "ahead_seconds", "compare_clocks",
           "slept_seconds"]  # fmt: skip

CLOCK_ERROR_MOST_SECONDS = 0.5
"""A clock that is known worse than this is not known: two such hide a difference of a second."""

_GOOD_ERROR_SECONDS = 0.05
_ROUND_TRIPS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockReading:
    """The clocks of a node, by one round trip."""

    monotonic_offset_seconds: float
    """The node's monotonic clock minus the driver's."""
    wall_offset_seconds: float
    """How far the node's wall clock is ahead of the driver's."""
    error_seconds: float
    """How wrong both may be: half of the round trip."""
    boot_id: str
    """The boot of the kernel that the node runs on."""
    free_bytes: int
    """What is free in the folder that was asked for."""


def compare_clocks(remote: Remote, *, folder: str = "/", own_boot: str = "") -> ClockReading:
    """Read a node's clocks, by the shortest of several round trips (RFC 5905, section 10).

    The answer is of some moment of a round trip, so it may be wrong by half of that. A first one
    that is short is enough, and so is any from the driver's own kernel, whose clocks are the same.

    Args:
        remote: the node.
        folder: a folder there of which the free space is asked, too.
        own_boot: the boot of the driver's kernel, if the caller takes its clocks for the same.

    Raises:
        RemoteError: the node cannot be asked.
    """
    best = _ask(remote, folder)
    for _ in range(_ROUND_TRIPS - 1):
        if best.error_seconds <= _GOOD_ERROR_SECONDS or best.boot_id == own_boot:
            break
        best = min(best, _ask(remote, folder), key=lambda row: row.error_seconds)
    return best


def ahead_seconds(remote: Remote, other: Remote) -> float:
    """Return how far a node's wall clock is ahead of another's; 0 where they share a kernel.

    Raises:
        RemoteError: one of them cannot be asked.
    """
    here, there = compare_clocks(remote), compare_clocks(other)
    if here.boot_id == there.boot_id:
        return 0.0
    return here.wall_offset_seconds - there.wall_offset_seconds


def _ask(remote: Remote, folder: str) -> ClockReading:
    before, wall_before = time.monotonic(), time.time()
    there = rpc(remote, {"do": "moment", "folder": folder})
    after, wall_after = time.monotonic(), time.time()
    return ClockReading(
        monotonic_offset_seconds=there["monotonic_seconds"] - (before + after) / 2,
        wall_offset_seconds=there["wall_seconds"] - (wall_before + wall_after) / 2,
        error_seconds=(after - before) / 2,
        boot_id=there["boot_id"],
        free_bytes=int(there["free_bytes"]),
    )


def slept_seconds() -> float:
    """Return for how long this machine was suspended since it booted.

    CLOCK_BOOTTIME counts that and CLOCK_MONOTONIC does not (clock_gettime(2)). Of several readings
    the one counts that was interrupted least.
    """
    found = []
    for _ in range(3):
        before = time.monotonic()
        boot_seconds = time.clock_gettime(time.CLOCK_BOOTTIME)
        after = time.monotonic()
        found.append((after - before, boot_seconds - (before + after) / 2))
    return min(found)[1]
