"""What sets one run apart from another, as columns of every table that says it."""

from __future__ import annotations

from boardcluster.records import Trial
from boardcluster.report.export.frames import Field, Kind, Value

__all__ = ["SETTINGS", "settings_values"]

SETTINGS = (
    Field("workload", Kind.TEXT, "name of the workload; several joined by + are a mix"),
    Field("engine", Kind.TEXT, "the engine"),
    Field("profile", Kind.TEXT, "the engine configuration"),
    Field("size_bytes", Kind.INTEGER, "size of the input; 0 where there is none"),
    Field("workers", Kind.INTEGER, "number of workers"),
    Field("concurrency", Kind.INTEGER, "jobs of a mix at once"),
    Field("replication", Kind.INTEGER, "copies of each block; 0 is the profile's own number"),
    Field("checksum", Kind.TEXT, "checksums of blocks"),
    Field("master", Kind.TEXT, "where the master runs"),
)


def settings_values(trial: Trial) -> tuple[Value, ...]:
    """The values of ``SETTINGS`` for a trial."""
    return (
        trial.workload,
        str(trial.engine),
        trial.profile,
        trial.size_bytes,
        trial.workers,
        trial.concurrency,
        trial.replication,
        str(trial.checksum),
        str(trial.master),
    )
