"""Results grouped into cells, and engines compared. Takes records, gives records."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from boardcluster.analysis.statistics import (
    Interval,
    coefficient_of_variation,
    difference_interval,
    mean,
    mean_interval,
    median,
    standard_deviation,
)
from boardcluster.records import AttemptState, Engine, Fingerprint, Result

__all__ = ["Cell", "Comparison", "compare_engines", "summarise"]

_OWN_PROGRAM = "submit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """All verified runs of one workload, engine, profile, size and number of workers.

    Attributes:
        workload: name of the workload.
        engine: the engine.
        profile: the engine configuration.
        size_bytes: input size of the trial.
        workers: number of workers.
        results: the runs, in run order; each ok and measured.
        durations_seconds: their durations, in the same order.
        mean_seconds: mean duration.
        median_seconds: median duration.
        minimum_seconds: shortest duration.
        maximum_seconds: longest duration.
        deviation_seconds: sample standard deviation; None for one run.
        variation: coefficient of variation, a fraction; None for one run.
        interval_seconds: 95 % confidence interval of the mean; None for one run.
        throughput_bytes_per_second: input of all runs over the time of all runs; None without a
            known input.
        fingerprints: the different setups it was measured on; more than one is worth a remark.
    """

    workload: str
    engine: Engine
    profile: str
    size_bytes: int
    workers: int
    results: tuple[Result, ...]
    durations_seconds: tuple[float, ...]
    mean_seconds: float
    median_seconds: float
    minimum_seconds: float
    maximum_seconds: float
    deviation_seconds: float | None
    variation: float | None
    interval_seconds: Interval | None
    throughput_bytes_per_second: float | None
    fingerprints: tuple[Fingerprint, ...]

    @property
    def count(self) -> int:
        """Number of runs."""
        return len(self.results)

    @property
    def configuration(self) -> tuple[str, int, int, str]:
        """What engines can be compared at: workload, size in bytes, workers, profile."""
        return (self.workload, self.size_bytes, self.workers, self.profile)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two engines at the same workload, size, number of workers and profile.

    Attributes:
        faster: the cell with the smaller mean.
        slower: the other one.
        ratio: mean of the slower over mean of the faster, at least 1.
        difference_interval_seconds: 95 % interval (Welch) of slower minus faster mean; None if
            either ran once.
        same_setup: whether all runs of both share one fingerprint.
    """

    faster: Cell
    slower: Cell
    ratio: float
    difference_interval_seconds: Interval | None
    same_setup: bool

    @property
    def is_shown(self) -> bool:
        """Whether the runs show a difference: its interval exists and leaves out zero."""
        interval = self.difference_interval_seconds
        return interval is not None and interval.low > 0


def summarise(results: Iterable[Result]) -> tuple[Cell, ...]:
    """Group the ok attempts into cells, ordered by workload, size, workers, profile and engine.

    Failed and invalid attempts and the user's own programs stay out.
    """
    groups: dict[tuple[str, int, int, str, str], list[Result]] = {}
    for result in results:
        attempt, trial = result.attempt, result.trial
        if attempt is None or attempt.state is not AttemptState.OK or result.measurement is None:
            continue
        if trial.workload != _OWN_PROGRAM:
            key = (trial.workload, trial.size_bytes, trial.workers, trial.profile, trial.engine)
            groups.setdefault(key, []).append(result)
    return tuple(_cell(groups[key]) for key in sorted(groups))


def _run_order(result: Result) -> tuple[str, str, int, int]:
    started_utc = result.attempt.started_utc if result.attempt else ""
    number = result.attempt.number if result.attempt else 0
    return (started_utc, result.trial.campaign_id, result.trial.position, number)


def _cell(group: Sequence[Result]) -> Cell:
    ordered = tuple(sorted(group, key=_run_order))
    measurements = [result.measurement for result in ordered if result.measurement is not None]
    seconds = tuple(measurement.duration_seconds for measurement in measurements)
    sizes = [measurement.input_bytes for measurement in measurements]
    attempts = [result.attempt for result in ordered if result.attempt is not None]
    trial = ordered[0].trial
    return Cell(
        workload=trial.workload,
        engine=trial.engine,
        profile=trial.profile,
        size_bytes=trial.size_bytes,
        workers=trial.workers,
        results=ordered,
        durations_seconds=seconds,
        mean_seconds=mean(seconds),
        median_seconds=median(seconds),
        minimum_seconds=min(seconds),
        maximum_seconds=max(seconds),
        deviation_seconds=standard_deviation(seconds),
        variation=coefficient_of_variation(seconds),
        interval_seconds=mean_interval(seconds),
        throughput_bytes_per_second=sum(sizes) / math.fsum(seconds) if all(sizes) else None,
        fingerprints=tuple(dict.fromkeys(attempt.fingerprint for attempt in attempts)),
    )


def compare_engines(cells: Iterable[Cell]) -> tuple[Comparison, ...]:
    """Compare every two engines that ran the same configuration, in the order of the cells."""
    groups: dict[tuple[str, int, int, str], list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.configuration, []).append(cell)
    return tuple(
        _comparison(first, second)
        for group in groups.values()
        for index, first in enumerate(group)
        for second in group[index + 1 :]
    )


def _comparison(first: Cell, second: Cell) -> Comparison:
    faster, slower = sorted((first, second), key=lambda cell: cell.mean_seconds)
    return Comparison(
        faster=faster,
        slower=slower,
        ratio=slower.mean_seconds / faster.mean_seconds,
        difference_interval_seconds=difference_interval(
            slower.durations_seconds, faster.durations_seconds
        ),
        same_setup=len({*faster.fingerprints, *slower.fingerprints}) == 1,
    )
