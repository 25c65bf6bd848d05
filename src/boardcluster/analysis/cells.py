"""Results grouped into cells: records in, records out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from statistics import median
from typing import Any, TypeAlias

from boardcluster.analysis.fingerprints import setups_among
from boardcluster.analysis.inference import RunValue, estimate, observe, run_value
from boardcluster.analysis.statistics import (
    Interval,
    coefficient_of_variation,
    mean,
    outliers,
    standard_deviation,
)
from boardcluster.analysis.twins import node_words
from boardcluster.factors import FACTORS, later_levels
from boardcluster.records import (
    AttemptState,
    Checksum,
    Engine,
    Fingerprint,
    MasterPlacement,
    Result,
    Security,
    Trial,
    Verdict,
    in_cell,
)

__all__ = [
    "Cell",
    "Configuration",
    "MeasuredFigure",
    "Untrusted",
    "label_of",
    "security_of",
    "settings",
    "summarise",
    "untrusted",
    "verdict_if_ok",
    "verdict_of",
]

_OWN_PROGRAM = "submit"
_SHOWN_APART = ("workload", "engine", "profile", "size_bytes", "workers", "concurrency")
"""Factors that labels leave to columns and titles, or say in a way of their own."""
_MIX = "+"
_BOARDS = ("hardware", "limits", "twin")
"""Fields of a setup that are boards and media."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Configuration:
    """All of a cell except its engine: what engines can be compared at. Sorts as it reads."""

    workload: str
    """Name of the workload, or names joined by ``+``."""
    input: str
    """The text that it reads: a path; empty for the flights."""
    parameters: tuple[tuple[str, str], ...]
    """``workload.parameter`` and value, sorted; only what was set."""
    size_bytes: int
    """Input size."""
    workers: int
    """Number of workers."""
    profile: str
    """The engine configuration."""
    replication: int
    """Copies of each HDFS block; 0 is the profile's own number."""
    checksum: Checksum
    """Block checksums."""
    master: MasterPlacement
    """Where the master runs."""
    concurrency: int
    """Jobs of a mix at once; 1 is one after the other."""
    security: Security
    """Who could reach the cluster."""
    levels: tuple[tuple[str, Any], ...] = ()
    """What is set of the factors that came later (factors.py), by name."""
    setup: tuple[tuple[str, str], ...] = ()
    """What else it was measured on, where runs of the same were measured on different setups: field
    of ``Fingerprint`` and words. Such runs are cells of their own."""

    @property
    def boards(self) -> str:
        """Words for the boards, media and limits, as far as they tell setups apart."""
        return ", ".join(said for name, said in self.setup if name in _BOARDS)

    @property
    def software(self) -> str:
        """Words for what else tells setups apart."""
        return ", ".join(said for name, said in self.setup if name not in _BOARDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredFigure:
    """What the workload itself measured, over the runs of a cell."""

    mean: float
    """Arithmetic mean, in the unit that the figure's name ends with."""
    interval: Interval | None
    """95 % confidence interval of the mean; None for one run."""
    count: int
    """Number of runs that gave it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell(Configuration):
    """All verified and measured runs of one configuration on one engine, without warm-ups.

    Of a trial that was tried several times one try counts. Of tainted runs it has those that a
    model can adjust for, and all if they were asked for.
    """

    engine: Engine
    """The engine."""
    results: tuple[Result, ...]
    """The runs, in run order; each ok and measured."""
    durations_seconds: tuple[float, ...]
    """Their durations, in the same order."""
    mean_seconds: float
    """Mean duration."""
    median_seconds: float
    """Median duration."""
    minimum_seconds: float
    """Shortest duration."""
    maximum_seconds: float
    """Longest duration."""
    deviation_seconds: float | None
    """Sample standard deviation; None for one run."""
    variation: float | None
    """Coefficient of variation, a fraction; None for one run."""
    interval_seconds: Interval | None
    """95 % confidence interval of the mean by Student's t, of the means of starts of the cluster
    where there are several; None for one run."""
    starts: int
    """Starts of the cluster that its runs are from."""
    within_share: float | None
    """Standard deviation within a start as a share of the mean; None without two runs of one."""
    between_share: float | None
    """That between starts, beyond what runs within them explain; None for one start."""
    outliers: tuple[int, ...]
    """Places in ``results`` of runs beyond Tukey's fences; they count all the same."""
    left_out: tuple[Result, ...]
    """Verified runs of the same that are not in it: disturbed, or replaced by another try."""
    throughput_bytes_per_second: float | None
    """Input of all runs over the time of all runs; None without a known input."""
    figures: dict[str, MeasuredFigure]
    """What the workload itself measures, by name, in its own order."""
    mean_intermediate_bytes: float | None
    """Mean of what engines wrote to local storage besides the final output; None unless every run
    says it."""
    fingerprints: tuple[Fingerprint, ...]
    """The setups it was measured on; they differ in nothing that can change the number."""

    @property
    def count(self) -> int:
        """Number of runs."""
        return len(self.results)

    def counted(self, verdict: Verdict) -> int:
        """Number of runs in it with a verdict; unjudged ones are of before there were verdicts."""
        return sum(verdict_of(result) is verdict for result in self.results)

    @property
    def last_utc(self) -> str:
        """When its last run began: ISO 8601 with offset."""
        return max(row.attempt.started_utc if row.attempt else "" for row in self.results)

    @property
    def trial(self) -> Trial:
        """Its first trial: every other one has the same levels of all factors."""
        return self.results[0].trial

    @property
    def configuration(self) -> Configuration:
        """What engines can be compared at."""
        return Configuration(**{row.name: getattr(self, row.name) for row in fields(Configuration)})

    @property
    def is_mix(self) -> bool:
        """Whether it is several jobs that are timed as a whole."""
        return _MIX in self.workload

    @property
    def label(self) -> str:
        """Short words for what is not the default, and for its setup: see ``label_of``."""
        return _label(self.results, self.setup)


@dataclass(frozen=True, slots=True, kw_only=True)
class Untrusted:
    """Verified runs of one configuration on one engine, none of which counts: no statistics."""

    configuration: Configuration
    """Everything but the engine."""
    engine: Engine
    """The engine."""
    results: tuple[Result, ...]
    """The runs, in run order."""

    @property
    def label(self) -> str:
        """Short words for what is not the default, and for its setup: see ``label_of``."""
        return _label(self.results, self.configuration.setup)


def _label(results: Sequence[Result], setup: Sequence[tuple[str, str]]) -> str:
    parts = (label_of(results), *(said for _, said in setup))
    return ", ".join(part for part in parts if part)


def verdict_of(result: Result) -> Verdict:
    """Return whether a result can be trusted; of one without a measurement nothing is known."""
    return result.measurement.verdict if result.measurement else Verdict.UNJUDGED


def verdict_if_ok(result: Result) -> Verdict | None:
    """Return the verdict of a run that ended well; None of any other, which is no result."""
    ok = result.attempt is not None and result.attempt.state is AttemptState.OK
    return verdict_of(result) if ok and result.measurement else None


def security_of(result: Result) -> Security:
    """Return who could reach the cluster that a result was measured on."""
    return result.attempt.fingerprint.security if result.attempt else Security.EMULATED


def label_of(results: Sequence[Result]) -> str:
    """Short words for what is not the default in results of one configuration: see ``settings``."""
    first = results[0]
    return settings(first.trial, security=security_of(first), twin=node_words(results))


def settings(trial: Trial, *, security: Security, twin: str = "") -> str:
    """Short words for what is not the default in a trial, e.g. ``replication 1, checksum null``.

    Size, number of workers and profile are not in it. Empty where all is default. ``twin`` is of
    ``node_words``; empty where nodes stand for no boards.
    """
    mix = _MIX in trial.workload
    parts = ["INSECURE LAB"] if security is Security.INSECURE_LAB else []
    parts += [twin] if twin else []
    if mix or trial.concurrency != 1:
        at_once = f"{trial.concurrency} at once"
        parts.append("one after the other" if trial.concurrency == 1 else at_once)
    for factor in FACTORS:
        if factor.name == "parameters":
            prefix = "" if mix else f"{trial.workload}."
            shown = sorted((key.removeprefix(prefix), row) for key, row in trial.parameters.items())
            parts += [f"{name} {value}" for name, value in shown]
        elif factor.name not in _SHOWN_APART and not factor.is_default(trial):
            parts.append(factor.words(factor.level(trial)))
    return ", ".join(parts)


def summarise(results: Iterable[Result], *, tainted: bool = False) -> tuple[Cell, ...]:
    """Group the ok attempts into cells, ordered by configuration and engine.

    Failed and invalid attempts, warm-ups and the user's own programs stay out, and so do tainted
    runs that nothing can adjust (``records.in_cell``), unless they are asked for. Of several tries
    of a trial the last one that is not tainted counts, else the last. Runs of setups that differ in
    what can change the number are never in one cell: see ``Configuration.setup``. Configurations
    without a run that counts have no cell; see ``untrusted``.
    """
    return tuple(
        _cell(at, counting, left_out)
        for (at, _), counting, left_out in _groups(results, tainted=tainted)
        if counting
    )


def untrusted(results: Iterable[Result], *, tainted: bool = False) -> tuple[Untrusted, ...]:
    """Return what ``summarise`` leaves out as a whole: configurations without a run that counts."""
    return tuple(
        Untrusted(configuration=configuration, engine=engine, results=left_out)
        for (configuration, engine), counting, left_out in _groups(results, tainted=tainted)
        if not counting
    )


_Key: TypeAlias = "tuple[Configuration, Engine]"


def _groups(
    results: Iterable[Result], *, tainted: bool
) -> Iterator[tuple[_Key, tuple[Result, ...], tuple[Result, ...]]]:
    """Yield each configuration and engine with its runs that count and those that do not."""
    measured = [row for row in results if _is_measured(row)]
    alike: dict[Configuration, list[Fingerprint]] = {}
    for row in measured:
        if row.attempt is not None:
            alike.setdefault(_configuration(row), []).append(row.attempt.fingerprint)
    setups = setups_among(alike)
    groups: dict[_Key, list[Result]] = {}
    for row in measured:
        if row.attempt is not None:
            plain = _configuration(row)
            at = replace(plain, setup=setups[plain, row.attempt.fingerprint])
            groups.setdefault((at, row.trial.engine), []).append(row)
    for key in sorted(groups):
        ordered = sorted(groups[key], key=_run_order)
        chosen: dict[str, Result] = {}
        for row in ordered:
            if _counts(row, tainted=tainted):
                kept = chosen.get(row.trial.id)
                if (
                    kept is None
                    or verdict_of(row) is not Verdict.TAINTED
                    or (verdict_of(kept) is Verdict.TAINTED)
                ):
                    chosen[row.trial.id] = row
        counting = {id(row) for row in chosen.values()}
        yield (
            key,
            tuple(row for row in ordered if id(row) in counting),
            tuple(row for row in ordered if id(row) not in counting),
        )


def _is_measured(result: Result) -> bool:
    attempt, trial = result.attempt, result.trial
    ended_well = attempt is not None and attempt.state is AttemptState.OK
    counts = trial.workload != _OWN_PROGRAM and not trial.warm_up
    return ended_well and result.measurement is not None and counts


def _counts(result: Result, *, tainted: bool) -> bool:
    found = result.measurement
    asked_for = tainted and verdict_of(result) is Verdict.TAINTED
    return found is not None and (in_cell(found) or asked_for)


def _configuration(result: Result) -> Configuration:
    trial = result.trial
    return Configuration(
        workload=trial.workload,
        input=trial.input,
        parameters=tuple(sorted(trial.parameters.items())),
        size_bytes=trial.size_bytes,
        workers=trial.workers,
        profile=trial.profile,
        replication=trial.replication,
        checksum=trial.checksum,
        master=trial.master,
        concurrency=trial.concurrency,
        security=security_of(result),
        levels=later_levels(trial),
    )


def _run_order(result: Result) -> tuple[str, str, int, int]:
    started_utc = result.attempt.started_utc if result.attempt else ""
    number = result.attempt.number if result.attempt else 0
    return (started_utc, result.trial.campaign_id, result.trial.position, number)


def _cell(at: Configuration, ordered: tuple[Result, ...], left_out: tuple[Result, ...]) -> Cell:
    measurements = [result.measurement for result in ordered if result.measurement is not None]
    seconds = tuple(measurement.duration_seconds for measurement in measurements)
    sizes = [measurement.input_bytes for measurement in measurements]
    attempts = [result.attempt for result in ordered if result.attempt is not None]
    intermediate = [found for row in measurements if (found := row.intermediate_bytes) is not None]
    fingerprints = tuple(dict.fromkeys(attempt.fingerprint for attempt in attempts))
    known = estimate(observe(ordered))
    return Cell(
        **{row.name: getattr(at, row.name) for row in fields(at)},
        engine=ordered[0].trial.engine,
        results=ordered,
        durations_seconds=seconds,
        mean_seconds=mean(seconds),
        median_seconds=median(seconds),
        minimum_seconds=min(seconds),
        maximum_seconds=max(seconds),
        deviation_seconds=standard_deviation(seconds),
        variation=coefficient_of_variation(seconds),
        interval_seconds=known.interval,
        starts=known.starts,
        within_share=known.within_share,
        between_share=known.between_share,
        outliers=outliers(seconds),
        left_out=left_out,
        throughput_bytes_per_second=sum(sizes) / math.fsum(seconds) if all(sizes) else None,
        figures=_figures(ordered),
        mean_intermediate_bytes=mean(intermediate) if len(intermediate) == len(ordered) else None,
        fingerprints=fingerprints,
    )


def _figures(ordered: Sequence[Result]) -> dict[str, MeasuredFigure]:
    values: dict[str, list[RunValue]] = {}
    for row in ordered:
        if row.measurement is not None:
            for name, value in row.measurement.figures.items():
                values.setdefault(name, []).append(run_value(row, value))
    return {name: _figure(series) for name, series in values.items()}


def _figure(series: Sequence[RunValue]) -> MeasuredFigure:
    found = estimate(series)
    return MeasuredFigure(mean=found.mean, interval=found.interval, count=found.runs)
