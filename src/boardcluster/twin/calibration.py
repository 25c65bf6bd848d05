"""How long emulated boards take to start and to work, against one published time each. Pure.

A run has two rates. Until its first task it starts: JVMs, contexts and containers, however large
the input. From then on it works, by the size of its input. Java on an ARM board compares with Java
on this machine otherwise than ``sysbench cpu`` does, which sets the quotas, and code that sorts
otherwise than code that counts. So for each class of workloads one published time of one node is
taken. The start is that of the twin's own runs, by their timelines, and what is left of the
published time is the board's work: its seconds per GB over the twin's are the class's factor.

Quotas do not follow it: a share of the quota would slow down the start as much as the work. What it
changes are calibrated times, and only where they are asked for. The published cell of a class
proves nothing of it, and counts in no comparison: ``calibrated_with`` tells.

``calibration.toml`` has the cells and the runs, docs/explanation/fidelity.md what came of them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from statistics import fmean

from boardcluster.records import Engine

__all__ = ["Calibration", "TimedRun", "calibrated_with", "calibration_of", "calibrations"]

_FILE = "calibration.toml"
_GB = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedRun:
    """One run of a class's cell on a twin, in the board's seconds."""

    start_seconds: float
    """From the submission to the begin of the first task."""
    seconds: float
    """From the submission to its end."""
    machine: str
    """The processor of the machine that the emulated boards ran on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """One class of workloads."""

    name: str
    """Of the class."""
    engine: Engine
    """What its workloads run on."""
    workloads: tuple[str, ...]
    """By name."""
    board: str
    """Whose published time it is from."""
    table: str
    """The published table, by the name of its file."""
    cell: dict[str, str]
    """Keys of the row that was taken."""
    size_bytes: int
    """Input of that cell."""
    published_seconds: float
    """What that row says; a test compares it with the file."""
    runs: tuple[TimedRun, ...]
    """Runs of the same; none before anybody ran it."""

    @property
    def start_seconds(self) -> float | None:
        """How long a run starts; None without runs."""
        return fmean(run.start_seconds for run in self.runs) if self.runs else None

    @property
    def work_seconds_per_gb(self) -> float | None:
        """How long the twin works on a GB; None without runs."""
        if not self.runs:
            return None
        return fmean(run.seconds - run.start_seconds for run in self.runs) * _GB / self.size_bytes

    @property
    def published_work_seconds_per_gb(self) -> float | None:
        """How long the board works on a GB, if it starts as the twin does; None without runs."""
        start = self.start_seconds
        if start is None:
            return None
        return (self.published_seconds - start) * _GB / self.size_bytes

    @property
    def factor(self) -> float | None:
        """How many times as long as the twin the board works.

        None without runs, and where the twin alone starts longer than the board took.
        """
        ours, published = self.work_seconds_per_gb, self.published_work_seconds_per_gb
        if ours is None or published is None or ours <= 0 or published <= 0:
            return None
        return published / ours

    def calibrated_seconds(self, *, start_seconds: float, seconds: float) -> float | None:
        """Return how long a run would take with the board's work; None without a factor.

        Args:
            start_seconds: of the run, to the begin of its first task.
            seconds: of the run as a whole.
        """
        factor = self.factor
        return None if factor is None else start_seconds + (seconds - start_seconds) * factor


@cache
def calibrations() -> tuple[Calibration, ...]:
    """Return all classes."""
    text = resources.files("boardcluster.twin").joinpath(_FILE).read_text(encoding="utf-8")
    return tuple(
        Calibration(
            **{
                **row,
                "engine": Engine(row["engine"]),
                "workloads": tuple(row["workloads"]),
                "runs": tuple(TimedRun(**run) for run in row["runs"]),
            }
        )
        for row in tomllib.loads(text)["class"]
    )


def calibration_of(workload: str, engine: Engine) -> Calibration | None:
    """Return the class of a workload on an engine; None if it is in none."""
    return next(
        (row for row in calibrations() if row.engine is engine and workload in row.workloads), None
    )


def calibrated_with(table: str, keys: Mapping[str, str]) -> str:
    """Return the name of the class that a published cell calibrates; empty if it does none.

    Args:
        table: the published table, by the name of its file.
        keys: what the cell is found by; more than the class names, or the same.
    """
    return next(
        (
            row.name
            for row in calibrations()
            if row.table == table and row.cell.items() <= keys.items()
        ),
        "",
    )
