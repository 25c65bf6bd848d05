"""Which engine counters the report shows, and what each of them counts.

Sources: Hadoop's ``FileSystemCounter`` and ``TaskCounter`` and their property files; Spark's
``TaskMetrics`` as its REST API documents them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from boardcluster.records import Engine
from boardcluster.units import format_bytes, format_seconds

__all__ = ["COUNTERS", "Counter", "Unit", "format_value"]


class Unit(StrEnum):
    """Unit of a counter's value."""

    BYTES = "bytes"
    RECORDS = "records"
    TASKS = "tasks"
    MILLISECONDS = "milliseconds"
    NANOSECONDS = "nanoseconds"


@dataclass(frozen=True, slots=True)
class Counter:
    """One counter of one engine."""

    engine: Engine
    """Whose counter it is."""
    name: str
    """As stored in a measurement."""
    meaning: str
    """What it counts, in a few words."""
    unit: Unit
    """Unit of its value."""


_LOCAL = "intermediate:"
_FILES = "org.apache.hadoop.mapreduce.FileSystemCounter/"
_TASK = "org.apache.hadoop.mapreduce.TaskCounter/"
_MAPREDUCE = {
    f"{_FILES}HDFS_BYTES_READ": ("read from HDFS", Unit.BYTES),
    f"{_FILES}HDFS_BYTES_WRITTEN": ("written to HDFS, before replication", Unit.BYTES),
    f"{_FILES}FILE_BYTES_WRITTEN": (
        f"{_LOCAL} written to local disks (spills, merges)",
        Unit.BYTES,
    ),
    f"{_FILES}FILE_BYTES_READ": (f"{_LOCAL} read from local disks (merges)", Unit.BYTES),
    f"{_TASK}REDUCE_SHUFFLE_BYTES": ("fetched by reducers from maps", Unit.BYTES),
    f"{_TASK}SPILLED_RECORDS": ("records written to disk, once per spill or merge", Unit.RECORDS),
    f"{_TASK}CPU_MILLISECONDS": ("CPU time of all tasks", Unit.MILLISECONDS),
    f"{_TASK}GC_TIME_MILLIS": ("garbage collection of all tasks", Unit.MILLISECONDS),
}
_SPARK = {
    "spark/inputBytes": ("read by input stages", Unit.BYTES),
    "spark/outputBytes": ("written by output stages", Unit.BYTES),
    "spark/shuffleWriteBytes": (f"{_LOCAL} shuffle data written, as stored", Unit.BYTES),
    "spark/shuffleReadBytes": (f"{_LOCAL} shuffle data read, local and remote", Unit.BYTES),
    "spark/memoryBytesSpilled": ("spilled, size in memory", Unit.BYTES),
    "spark/diskBytesSpilled": ("spilled, size on disk", Unit.BYTES),
    "spark/executorRunTime": ("run time of all tasks", Unit.MILLISECONDS),
    "spark/executorCpuTime": ("CPU time of all tasks", Unit.NANOSECONDS),
    "spark/jvmGCTime": ("garbage collection during tasks", Unit.MILLISECONDS),
    "spark/tasks": ("tasks", Unit.TASKS),
}

COUNTERS: tuple[Counter, ...] = tuple(
    Counter(engine, name, meaning, unit)
    for engine, counters in ((Engine.MAPREDUCE, _MAPREDUCE), (Engine.SPARK, _SPARK))
    for name, (meaning, unit) in counters.items()
)


def format_value(value: float, unit: Unit) -> str:
    """Write a counter's value for a person."""
    if unit is Unit.BYTES:
        return format_bytes(value)
    if unit is Unit.MILLISECONDS:
        return format_seconds(value / 1e3)
    if unit is Unit.NANOSECONDS:
        return format_seconds(value / 1e9)
    return f"{value:,.0f}"
