"""What a run wrote to and read from the nodes' storage: the kernel's account and the engines'."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from boardcluster.cluster.each_node import each_node
from boardcluster.records import Engine
from boardcluster.remote.node_rpc import StorageTotals, storage
from boardcluster.services.operation import LiveCluster

__all__ = [
    "NO_STORAGE",
    "StorageTotals",
    "intermediate_bytes",
    "left_out_between",
    "read_between",
    "storage_totals",
    "written_between",
]

_MAPREDUCE_LOCAL = "org.apache.hadoop.mapreduce.FileSystemCounter/FILE_BYTES_WRITTEN"
_SPARK_LOCAL = ("spark/shuffleWriteBytes", "spark/diskBytesSpilled")
NO_STORAGE = (
    "storage is not accounted for: the kernel counts by process, and those of the service end with "
    "the run"
)
"""Of runs with a service, in the place of what the functions below would leave out of it."""


def storage_totals(live: LiveCluster) -> dict[str, StorageTotals]:
    """Return the totals of every node that answers."""
    return each_node(live.remotes, lambda name: storage(live.remotes[name]))[0]


def _fell(earlier: StorageTotals, later: StorageTotals) -> bool:
    return later.written_bytes < earlier.written_bytes or later.read_bytes < earlier.read_bytes


def _between(
    before: Mapping[str, StorageTotals],
    after: Mapping[str, StorageTotals],
    count: Callable[[StorageTotals], int],
) -> dict[str, int]:
    return {
        name: count(after[name]) - count(earlier)
        for name, earlier in before.items()
        if name in after and not _fell(earlier, after[name])
    }


def written_between(
    before: Mapping[str, StorageTotals], after: Mapping[str, StorageTotals]
) -> dict[str, int]:
    """Return, per node, the bytes that its processes wrote for storage.

    Counted when a page of a file becomes dirty: also what was deleted before it got to the
    device, so that the number does not depend on when the kernel wrote back. Of each process no
    more counts than it passed to write calls. Nodes without a sound difference are left out;
    ``left_out_between`` names them.
    """
    return _between(before, after, lambda totals: totals.written_bytes)


def read_between(
    before: Mapping[str, StorageTotals], after: Mapping[str, StorageTotals]
) -> dict[str, int]:
    """Return, per node, the bytes fetched from storage, which were not in the page cache.

    Nodes without a sound difference are left out, as by ``written_between``.
    """
    return _between(before, after, lambda totals: totals.read_bytes)


def left_out_between(
    before: Mapping[str, StorageTotals], after: Mapping[str, StorageTotals]
) -> tuple[str, ...]:
    """Say, one line each, which nodes the two functions above leave out, and why."""
    remarks = []
    for name in sorted({*before, *after}):
        if name not in before or name not in after:
            remarks.append(f"storage of {name} is not accounted for: the node did not answer")
        elif _fell(before[name], after[name]):
            remarks.append(
                f"storage of {name} is not accounted for: its counters fell, as they do when a "
                "daemon ends"
            )
    return tuple(remarks)


def intermediate_bytes(engine: Engine, counters: Mapping[str, int]) -> int | None:
    """Return what an engine says it wrote to local storage that is not final output.

    MapReduce: spills, merges and shuffled map output that went to disk (FILE_BYTES_WRITTEN).
    Spark: shuffle files and spills. MPI keeps no such count. None where the counters are missing.
    Lee and Park 2026, Tables 11 to 15, give this quantity as ``fstrim`` measures it, which differs:
    see docs/explanation/what-a-run-records.md.
    """
    if engine is Engine.MAPREDUCE:
        return counters.get(_MAPREDUCE_LOCAL)
    if engine is Engine.SPARK and all(name in counters for name in _SPARK_LOCAL):
        return sum(counters[name] for name in _SPARK_LOCAL)
    return None
