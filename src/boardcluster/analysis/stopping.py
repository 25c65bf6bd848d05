"""How precise a campaign is by now, and how many runs it needs. Pure.

What counts is what the campaign declares to compare: the ratio of two cells' times for each
declared comparison. Without one it is each cell's mean time. Both are judged on logarithms, so that
their interval is a share of the result, by intervals that hold under looking
(``inference.sequential``).

Cells are compared within blocks: what slows down a whole block slows down both. Where a campaign
has several starts of the cluster, each start gives one value, the mean over its blocks, because
cells of one start share what it drew by chance (T. Kalibera and R. Jones, "Rigorous Benchmarking in
Reasonable Time", ISMM 2013). With one start the blocks are the values, and what is found holds for
that start.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from boardcluster.analysis.inference.sequential import (
    anytime_interval,
    observations_needed,
)
from boardcluster.factors import (
    FACTORS,
    FACTORS_BY_NAME,
    hashable,
    levels,
    levels_without,
    setting_words,
)
from boardcluster.records import (
    AttemptState,
    DeclaredComparison,
    Result,
    Trial,
    in_cell,
)

__all__ = [
    "Aim",
    "AimPrecision",
    "Forecast",
    "aims_of",
    "compared_level",
    "forecast",
    "is_declared",
    "reached",
]

_Levels: TypeAlias = "tuple[Any, ...]"
"""A cell: the levels of every factor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """What a campaign is to measure: the ratio of two cells' times, or one cell's time."""

    label: str
    """What it is, in words."""
    cell: _Levels
    """The cell."""
    base: _Levels | None
    """The cell that its time is divided by; None where its own time is the aim."""

    @property
    def cells(self) -> tuple[_Levels, ...]:
        """Its cells."""
        return (self.cell,) if self.base is None else (self.base, self.cell)


@dataclass(frozen=True, slots=True, kw_only=True)
class AimPrecision:
    """How precise an aim is."""

    aim: Aim
    """The aim."""
    result: float
    """The ratio, or the mean time in seconds; geometric means. 0 without a value."""
    half_width: float
    """How far the 95 % interval reaches, as a share of the result; infinite with too few values."""
    count: int
    """Number of values: blocks, or starts where there are several."""
    is_verified: bool
    """Whether each of its cells has a verified run, be it one that does not count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What an aim needs, from how earlier runs of it varied."""

    aim: Aim
    """The aim."""
    deviation: float | None
    """Standard deviation of earlier values' logarithms; None where nothing is stored."""
    from_starts: bool
    """Whether it is known how starts of the cluster differ, where there are several."""
    needed: int | None
    """Values that give the precision; None where it is unknown, or more than 100,000."""


def aims_of(comparisons: Sequence[DeclaredComparison], trials: Sequence[Trial]) -> tuple[Aim, ...]:
    """Return what a campaign is to measure: declared comparisons, else the mean of every cell.

    Args:
        comparisons: what the campaign declares.
        trials: its trials.
    """
    cells = {levels(trial): trial for trial in trials if not trial.warm_up}
    varied = [
        row.name
        for row in FACTORS
        if len({hashable(row.level(trial)) for trial in cells.values()}) > 1
    ]
    if not comparisons:
        return tuple(
            Aim(label=_cell_words(trial, varied), cell=cell, base=None)
            for cell, trial in cells.items()
        )
    found = (aim for row in comparisons for aim in _aims_of(row, cells, varied))
    return tuple({(aim.cell, aim.base): aim for aim in found}.values())


def _aims_of(
    comparison: DeclaredComparison, cells: Mapping[_Levels, Trial], varied: Sequence[str]
) -> Iterator[Aim]:
    """Yield the ratios of a comparison: every other level to the first, all else being equal."""
    factor = comparison.factor
    alike: dict[_Levels, dict[Any, Trial]] = {}
    for trial in cells.values():
        if all(
            compared_level(trial, name) in allowed for name, allowed in comparison.where.items()
        ):
            rest = levels_without(trial, factor)
            alike.setdefault(rest, {})[compared_level(trial, factor)] = trial
    for found in alike.values():
        base = found.get(comparison.levels[0])
        for level in comparison.levels[1:]:
            if base is not None and (other := found.get(level)) is not None:
                words = f"{_level_words(other, factor)} against {_level_words(base, factor)}"
                rest_words = _cell_words(base, [name for name in varied if name != factor], factor)
                yield Aim(label=f"{rest_words}: {words}", cell=levels(other), base=levels(base))


def is_declared(comparisons: Iterable[DeclaredComparison], one: Trial, other: Trial) -> bool:
    """Whether one of the comparisons is of the cells of these two trials."""
    for row in comparisons:
        found = {compared_level(trial, row.factor) for trial in (one, other)}
        if (
            len(found) == 2
            and row.levels[0] in found <= set(row.levels)
            and levels_without(one, row.factor) == levels_without(other, row.factor)
            and all(compared_level(one, name) in allowed for name, allowed in row.where.items())
        ):
            return True
    return False


def compared_level(trial: Trial, name: str) -> Any:
    """Return a trial's level of a factor, or of a property of the engines; "" where it is unset."""
    return trial.settings.get(name, "") if "." in name else FACTORS_BY_NAME[name].level(trial)


def _level_words(trial: Trial, name: str) -> str:
    if "." in name:
        value = trial.settings.get(name, "")
        return setting_words(name, value) if value else f"{name} unset"
    factor = FACTORS_BY_NAME[name]
    if name in {"workload", "engine"}:
        return str(factor.level(trial))
    return factor.words(factor.level(trial))


def _cell_words(trial: Trial, varied: Sequence[str], without: str = "") -> str:
    """Name a cell by its workload, and by what else differs among the campaign's cells."""
    parts = [trial.workload]
    if without != "engine":
        parts.append(f"on {trial.engine}")
    words = " ".join(parts)
    for name in varied:
        factor = FACTORS_BY_NAME[name]
        if name in {"workload", "engine"} or factor.is_default(trial):
            continue
        if name == "settings" and "." in without:
            rest = {key: value for key, value in trial.settings.items() if key != without}
            words += f", {factor.words(rest)}" if rest else ""
        else:
            words += f", {factor.words(factor.level(trial))}"
    return words


def reached(
    aims: Sequence[Aim], results: Iterable[Result], *, by_start: bool
) -> tuple[AimPrecision, ...]:
    """Return how precise each aim is.

    Args:
        aims: what is to be measured.
        results: the runs of one campaign, each trial with its latest attempt.
        by_start: whether starts of the cluster are the values, instead of blocks.
    """
    rows = tuple(results)
    runs = _logarithms(rows)
    verified = {
        levels(row.trial)
        for row in rows
        if row.attempt is not None and row.attempt.state is AttemptState.OK
    }
    found = []
    for aim in aims:
        values = _values(aim, runs, by_start=by_start)
        interval = anytime_interval(values) if values else None
        found.append(
            AimPrecision(
                aim=aim,
                result=math.exp(interval.mean) if interval else 0.0,
                half_width=_share(interval.half_width) if interval else math.inf,
                count=len(values),
                is_verified=verified.issuperset(aim.cells),
            )
        )
    return tuple(found)


def _share(half_width: float) -> float:
    """Return how far an interval of logarithms reaches, as a share of the result."""
    return math.expm1(half_width) if half_width < 700 else math.inf


_Runs: TypeAlias = "dict[_Levels, dict[tuple[int, int], float]]"
"""Of each cell: start and block to the logarithm of the time in seconds."""


def _logarithms(results: Iterable[Result]) -> _Runs:
    """Return the times of the runs that count."""
    found: _Runs = {}
    for row in results:
        ended, trial = row.measurement, row.trial
        if trial.warm_up or ended is None or row.attempt is None:
            continue
        if row.attempt.state is AttemptState.OK and in_cell(ended):
            block = (trial.start, trial.repetition)
            found.setdefault(levels(trial), {})[block] = math.log(ended.duration_seconds)
    return found


def _values(aim: Aim, runs: _Runs, *, by_start: bool) -> list[float]:
    """Return an aim's values in the order of starts and blocks; incomplete blocks give none."""
    own = [runs.get(cell, {}) for cell in aim.cells]
    blocks = sorted(set(own[0]).intersection(*own[1:]))
    by_block = {
        block: own[-1][block] - (own[0][block] if aim.base is not None else 0.0) for block in blocks
    }
    if not by_start:
        return list(by_block.values())
    starts: dict[int, list[float]] = {}
    for (start, _), value in by_block.items():
        starts.setdefault(start, []).append(value)
    return [math.fsum(values) / len(values) for values in starts.values()]


def forecast(
    aims: Sequence[Aim],
    campaigns: Sequence[Sequence[Result]],
    *,
    precision: float,
    by_start: bool,
    blocks: int,
) -> tuple[Forecast, ...]:
    """Say how many values each aim needs, from how they varied within earlier campaigns.

    Args:
        aims: what is to be measured.
        campaigns: the runs of each earlier campaign, each trial with its latest attempt.
        precision: how far an interval may reach, as a share of the result.
        by_start: whether starts of the cluster are the values, instead of blocks.
        blocks: blocks of each start, where starts are the values.
    """
    earlier = [_logarithms(results) for results in campaigns]
    found = []
    for aim in aims:
        deviation = _pooled(_values(aim, runs, by_start=by_start) for runs in earlier)
        from_starts = by_start and deviation is not None
        if by_start and deviation is None:
            within = _pooled(_values(aim, runs, by_start=False) for runs in earlier)
            deviation = None if within is None else within / math.sqrt(blocks)
        found.append(
            Forecast(
                aim=aim,
                deviation=deviation,
                from_starts=from_starts,
                needed=None
                if deviation is None
                else observations_needed(deviation, math.log1p(precision)),
            )
        )
    return tuple(found)


def _pooled(series: Iterable[Sequence[float]]) -> float | None:
    """Return the standard deviation within several series of values; None if no series has two."""
    squares, degrees = 0.0, 0
    for values in series:
        if len(values) > 1:
            mean = math.fsum(values) / len(values)
            squares += math.fsum((value - mean) ** 2 for value in values)
            degrees += len(values) - 1
    return math.sqrt(squares / degrees) if degrees else None
