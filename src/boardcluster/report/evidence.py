"""What the telemetry of every run gave, condensed run by run, so that no samples stay in memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from boardcluster.analysis.cells import Cell
from boardcluster.records import PowerModel, PowerSamples, Result, Telemetry

if TYPE_CHECKING:
    from boardcluster.analysis.advice import RunFacts
    from boardcluster.analysis.bottleneck import Diagnosis
    from boardcluster.plan.expected import ExpectedRun
    from boardcluster.report.plots import Figure

__all__ = [
    "Condensed",
    "Evidence",
    "Gatherer",
    "Key",
    "by_distance",
    "condense",
    "key_of",
    "representatives",
    "work_parameters_of",
]

_STAND_INS = 5

Key: TypeAlias = "tuple[str, int]"
"""A run: the id of its trial and the number of its attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What telemetry, the model and the workloads say of the runs.

    Telemetry says something only of those that have samples.
    """

    diagnoses: Mapping[Key, Diagnosis] = field(default_factory=dict)
    """What bound each run and its phases."""
    facts: Mapping[Key, RunFacts] = field(default_factory=dict)
    """What rules of advice need of each run."""
    curves: Mapping[Key, tuple[Figure, ...]] = field(default_factory=dict)
    """Figures over time of some runs, see ``representatives``."""
    damaged: tuple[tuple[str, str], ...] = ()
    """Runs whose samples cannot be read, as they are named, and why."""
    missing: tuple[str, ...] = ()
    """Measured runs without samples, as they are named."""
    expected: tuple[ExpectedRun, ...] = ()
    """Cells beside what is predicted without them, and configurations untried."""
    unusable_watches: tuple[str, ...] = ()
    """Why records of watches cannot be used, each with its file."""
    work_parameters: Collection[str] = ()
    """Parameters, as ``workload.parameter``, of which another value is other work."""


def work_parameters_of(
    results: Iterable[Result], changes_work: Callable[[str], bool]
) -> frozenset[str]:
    """Return the parameters of runs of which another value is other work, see ``Evidence``.

    Args:
        results: the runs.
        changes_work: whether another value of ``workload.parameter`` is other work.
    """
    return frozenset(filter(changes_work, {key for row in results for key in row.trial.parameters}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Condensed:
    """What is kept of the samples of one run."""

    diagnosis: Diagnosis
    """What bound it."""
    facts: RunFacts | None
    """What rules of advice need; None where they can say nothing."""


def condense(result: Result, telemetry: Telemetry | None) -> Condensed | None:
    """Condense the samples of a measured run; None where it has none."""
    # They load numpy, which an empty report does not need.
    from boardcluster.analysis.advice import run_facts  # noqa: PLC0415
    from boardcluster.analysis.bottleneck import diagnose  # noqa: PLC0415

    if telemetry is None or not telemetry.nodes:
        return None
    return Condensed(diagnosis=diagnose(result, telemetry), facts=run_facts(result, telemetry))


class Gatherer:
    """Takes what telemetry gave of one run after the other."""

    def __init__(self, models: Sequence[PowerModel] = ()) -> None:
        """Begin without any run.

        Args:
            models: what nodes draw, for nodes without a meter.
        """
        self._models = tuple(models)
        self._diagnoses: dict[Key, Diagnosis] = {}
        self._facts: dict[Key, RunFacts] = {}
        self._curves: dict[Key, tuple[Figure, ...]] = {}
        self._damaged: dict[tuple[str, str], None] = {}
        self._missing: list[str] = []

    def shows(self, result: Result) -> bool:
        """Whether a run has curves."""
        return key_of(result) in self._curves

    def add(self, result: Result, condensed: Condensed | None) -> None:
        """Take a measured run.

        Args:
            result: the run.
            condensed: what its samples gave; None where it has none.
        """
        if condensed is None:
            self._missing.append(_name(result))
            return
        key = key_of(result)
        self._diagnoses[key] = condensed.diagnosis
        if condensed.facts is not None:
            self._facts[key] = condensed.facts

    def add_curves(
        self, result: Result, telemetry: Telemetry, power: Sequence[PowerSamples]
    ) -> None:
        """Take a run that is shown over time; nothing is kept where there is nothing to show.

        Args:
            result: the run.
            telemetry: its samples.
            power: readings of its meters.
        """
        from boardcluster.report.plots.runs import telemetry_curves  # noqa: PLC0415

        figures = telemetry_curves(result, telemetry, power=power, models=self._models)
        if figures:
            self._curves[key_of(result)] = figures

    def add_damaged(self, result: Result, why: str) -> None:
        """Take a run whose samples cannot be read."""
        self._damaged[_name(result), why] = None

    def evidence(self) -> Evidence:
        """All that was taken, in the order of names where there is one."""
        return Evidence(
            diagnoses=self._diagnoses,
            facts=self._facts,
            curves=self._curves,
            damaged=tuple(sorted(self._damaged)),
            missing=tuple(sorted(self._missing)),
        )


def _name(result: Result) -> str:
    return result.attempt.name if result.attempt else result.trial.id


def key_of(result: Result) -> Key:
    """The key of a run that has an attempt."""
    return (result.trial.id, result.attempt.number if result.attempt else 0)


def representatives(cells: Iterable[Cell]) -> tuple[tuple[Result, ...], ...]:
    """Runs to show over time, for each workload and engine: of the slowest cell, nearest first.

    The slowest cell is where there is most to see, and its runs are in the order of their distance
    to the median, of equal ones the earlier first, so that the next one can stand in for a run
    without samples.
    """
    slowest: dict[tuple[str, str], Cell] = {}
    for cell in cells:
        known = slowest.get((cell.workload, cell.engine))
        if known is None or cell.mean_seconds > known.mean_seconds:
            slowest[cell.workload, cell.engine] = cell
    return tuple(by_distance(cell)[:_STAND_INS] for cell in slowest.values())


def by_distance(cell: Cell) -> tuple[Result, ...]:
    """The runs of a cell by the distance of their duration to the median."""
    pairs = zip(cell.durations_seconds, cell.results, strict=True)
    ordered = sorted(pairs, key=lambda row: abs(row[0] - cell.median_seconds))
    return tuple(result for _, result in ordered)
