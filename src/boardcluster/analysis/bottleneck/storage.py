"""For how much of each step a node waited for its disk or for memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from boardcluster.analysis.bottleneck.limits import NodeLimit
from boardcluster.analysis.bottleneck.model import Array
from boardcluster.analysis.bottleneck.readings import NodeReading
from boardcluster.analysis.trust.window import Flags

__all__ = ["knows_storage", "memory_of", "memory_pressure", "shared_storage", "storage_of"]

_UNWRITTEN_SHARE = 0.14  # of available memory: the kernel's is 15 %, vm.dirty_*_ratio at 10 and 20
_WRITING_SHARE = 0.5  # of a device's own limit: vm.dirty_background_ratio over vm.dirty_ratio
_HELD_SHARE = 0.75  # midway between that and the limit
_REACHED_SHARE = 0.95  # of a disk's limit: its journal takes some; who writes so much is held
_WRITE_BACK_BYTES = 65536  # larger requests are of writing back; our choice
_KEPT_SECONDS = 30.0  # vm.dirty_expire_centisecs
_TINY = 1e-9


def knows_storage(reading: NodeReading) -> bool:
    """Whether the kernel says anything of waiting for disks."""
    names = ("pressure_io_seconds", "cpu_iowait_seconds", "disk_busy_seconds")
    return any(reading.most(name) is not None for name in names)


def storage_of(
    reading: NodeReading, *, cpu: Array, network: Array, memory: Array
) -> tuple[Array, Array, Array]:
    """For how much of each step something waited for a disk, and how much of that beside a program.

    As third, which part of what the disks did was not the writing back of what is in memory. The
    kernel's pressure says both. Without it, I/O wait says for how long nothing else ran, and a
    busy disk may have been waited for while others ran.

    Args:
        reading: of a board, or of the machine below emulated nodes.
        cpu: for how much of each step a program was on a core.
        network: for how much of it the link was carrying data.
        memory: for how much of it something waited for memory.
    """
    zeros = np.zeros(len(reading.known))
    some, full = (reading.sum(f"pressure_{kind}_seconds") for kind in ("io", "io_full"))
    alone, busy = reading.sum("cpu_iowait_seconds"), reading.most("disk_busy_seconds")
    if some is not None:
        waited = np.minimum(some, 1.0)
        beside = zeros if full is None else np.clip(waited - full, 0.0, cpu)
    elif alone is None:
        waited, beside = (zeros if busy is None else np.minimum(busy, 1.0)), zeros
    else:
        alone = np.minimum(alone, 1.0)
        beside = zeros if busy is None else np.clip(np.minimum(busy, 1.0) - alone, 0.0, cpu)
        waited = alone + beside
    read = reading.or_zeros(reading.sum("disk_read_bytes"))
    written = reading.or_zeros(reading.sum("disk_written_bytes"))
    requests = reading.or_zeros(reading.sum("disk_writes"))
    small = written < _WRITE_BACK_BYTES * requests
    at_once = _at_once(read, np.where(small | _held_writers(reading), 0.0, written))
    # Reading back from swap counts as waiting for a disk, too.
    waited = np.maximum(waited - memory, 0.0)
    storage = _blocked(waited, at_once, cpu + network)
    return storage, np.minimum(beside * at_once, storage), at_once


def shared_storage(
    own: Sequence[NodeReading],
    host: NodeReading | None,
    limits: Mapping[str, NodeLimit],
    others: Sequence[Array],
) -> tuple[list[Array], tuple[str, ...]]:
    """For how much of each step each emulated node waited for its disk.

    The kernel below says for how long any of them did; the node whose disk has the most to do is
    taken to have waited for all of that, the others in proportion. Where the kernel does not say
    it, a disk at its limit is taken to have been waited for.

    Args:
        own: of each node.
        host: of the machine below; None if it is not known.
        limits: by node.
        others: for how much of each step CPU and link of each node were busy.

    Returns:
        One row for each node, and what is not known, in words.
    """
    their = [limits.get(row.window.node, NodeLimit()) for row in own]
    times = [_disk_times(row, limit) for row, limit in zip(own, their, strict=True)]
    totals = [read + written for read, written in times]
    pressure = None if host is None else host.sum("pressure_io_seconds")
    missing: tuple[str, ...] = ()
    if pressure is not None:
        most = np.max(totals, axis=0)
        parts = [np.divide(row, most, out=np.zeros_like(row), where=most > _TINY) for row in totals]
        waits = [np.minimum(pressure, 1.0) * part for part in parts]
    elif all(row.window.node in limits for row in own):
        missing = ("waiting for storage is not known: disks at their limit count as waited for",)
        waits = [np.minimum(row, 1.0) for row in totals]
    else:
        missing = ("waiting for storage is not known",)
        waits = [np.zeros_like(row) for row in totals]
    every = _held_writers(host)
    helds = [every | _held_by_disk(row, limit) for row, limit in zip(own, their, strict=True)]
    found = [
        _blocked(wait, _at_once(read, np.where(held, 0.0, written)), busy)
        for wait, (read, written), held, busy in zip(waits, times, helds, others, strict=True)
    ]
    return found, missing


def _at_once(read: Array, written_back: Array) -> Array:
    """How much of what a disk does, 0 to 1, is not the writing back of what is in memory."""
    total = read + written_back
    return np.divide(read, total, out=np.ones_like(total), where=total > _TINY)


def _blocked(waited: Array, at_once: Array, others: Array) -> Array:
    """How much of the waiting for a disk held programs up.

    What programs write goes to memory, and from there to the disk later. Threads of the kernel wait
    for that, and they count like programs. So waiting while a disk writes back counts only where
    CPU and link were idle: then somebody waits until what was written is on the disk (``fsync``,
    at the end of TeraSort for instance).
    """
    return waited * at_once + np.maximum(waited * (1 - at_once) - others, 0.0)


def _held_writers(reading: NodeReading | None) -> Flags:
    """Steps in which so much is unwritten that the kernel makes programs wait that write."""
    if reading is None:
        return np.zeros(1, dtype=np.bool_)
    unwritten, available = (reading.held(f"memory_{kind}_bytes") for kind in ("dirty", "available"))
    if unwritten is None or available is None:
        return np.zeros(len(reading.known), dtype=np.bool_)
    return np.asarray(unwritten > _UNWRITTEN_SHARE * available)


def _held_by_disk(reading: NodeReading, limit: NodeLimit) -> Flags:
    """Steps in which so much is unwritten of an emulated node that its disk's own limit is near.

    What waits there is worked out from what the node wrote. The kernel is taken to begin to write
    at half of the limit, or what has been there for long, and from three quarters on it makes
    programs wait that write (balance_dirty_pages in Linux, mm/page-writeback.c). Never, where there
    is no such limit.
    """
    if not limit.unwritten_bytes or not limit.write_bytes_per_second:
        return np.zeros(len(reading.known), dtype=np.bool_)
    ends = reading.edges[1:]
    given = reading.or_zeros(reading.sum("storage_written_bytes")) * np.diff(reading.edges)
    made = np.cumsum(given)
    old = np.interp(ends - _KEPT_SECONDS, reading.edges, np.concatenate(([0.0], made)))
    due = np.maximum(np.maximum(old, made - _WRITING_SHARE * limit.unwritten_bytes), 0.0)
    # What is on the disk: as much as its rate allowed since it last had all that was due.
    could = _REACHED_SHARE * limit.write_bytes_per_second * ends
    done = np.minimum(np.minimum.accumulate(due - could), 0.0) + could
    return np.asarray(made - done > _HELD_SHARE * limit.unwritten_bytes)


def _disk_times(reading: NodeReading, limit: NodeLimit) -> tuple[Array, Array]:
    """What a disk needs of each step for reading and for writing; without limits, their bytes.

    What is written stays in memory until the disk gets to it: at least until its rate allows, and
    for as long as the kernel may leave it there.
    """
    read = reading.or_zeros(reading.sum("storage_read_bytes"))
    written = reading.or_zeros(reading.sum("storage_written_bytes"))
    if limit.read_bytes_per_second is None or limit.write_bytes_per_second is None:
        return read, _lately(written, reading.edges)
    read, written = read / limit.read_bytes_per_second, written / limit.write_bytes_per_second
    # Lindley's recursion: what is left over is the sum so far above its least value so far.
    lengths = np.diff(reading.edges)
    surplus = np.cumsum((written - 1) * lengths)
    left = surplus - np.minimum(np.minimum.accumulate(surplus), 0.0)
    drained = np.clip(written - np.diff(left, prepend=0.0) / lengths, 0.0, None)
    return read, np.maximum(drained, _lately(written, reading.edges))


def _lately(row: Array, edges: Array) -> Array:
    """The mean of an amount per second over the time for which the kernel keeps what is written."""
    steps = max(1, round(_KEPT_SECONDS / float(edges[1] - edges[0])))
    sums = np.concatenate((np.zeros(steps), np.cumsum(row)))
    return np.asarray((sums[steps:] - sums[:-steps]) / steps)


def memory_pressure(reading: NodeReading) -> Array | None:
    """For how much of each step the kernel says that something waited for memory."""
    found = reading.sum("pressure_memory_seconds")
    return None if found is None else np.minimum(found, 1.0)


def memory_of(reading: NodeReading) -> Array:
    """For how much of each step something waited for memory.

    Where the kernel does not say it, the disk's time for swap is, by its share of what disks moved.
    """
    pressure = memory_pressure(reading)
    if pressure is not None:
        return pressure
    swapped = reading.or_zeros(reading.sum("swap_in_bytes", "swap_out_bytes"))
    moved = reading.or_zeros(reading.sum("disk_read_bytes", "disk_written_bytes"))
    busy = reading.most("disk_busy_seconds", "cpu_iowait_seconds")
    share = np.divide(swapped, moved, out=np.zeros_like(moved), where=moved > _TINY)
    return np.minimum(reading.or_zeros(busy) * np.minimum(share, 1.0), 1.0)
