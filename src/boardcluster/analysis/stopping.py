"""How precise a campaign is by now, and how many runs it needs. Pure.

What counts is what the campaign declares to compare: the ratio of two cells' times for each
declared comparison. Without one it is each cell's mean time. Both come from ``inference``, as in
the report: the same cells, so that setups which can change the number are never pooled, the same
pairs, and the same adjustment. Only the quantile differs: it is of intervals that hold under
looking (``inference.sequential``).

Where a campaign has several starts of the cluster, the starts are the values, because cells of one
start share what it drew by chance (T. Kalibera and R. Jones, "Rigorous Benchmarking in Reasonable
Time", ISMM 2013). Where it plans one start, the blocks are the values, and what is found holds for
that start, or for the ones that an interruption made of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from boardcluster.analysis.cells import Cell, summarise
from boardcluster.analysis.fingerprints import OF_NODES
from boardcluster.analysis.inference import Precision, RunValue, observe, precision_of
from boardcluster.analysis.inference.sequential import anytime_quantile, observations_needed
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
    """The ratio, or the mean time in seconds. 0 without a value."""
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
    """Standard deviation of earlier values, as a share; None where nothing is stored."""
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

    Where runs of an aim were measured on setups that differ in what can change the number, those of
    the setup that ran last count: on it the next ones will run.

    Args:
        aims: what is to be measured.
        results: the runs of one campaign, with every attempt.
        by_start: whether starts of the cluster are the values, instead of blocks.
    """
    rows = tuple(results)
    measured = _by_levels(rows)
    verified = {
        levels(row.trial)
        for row in rows
        if row.attempt is not None and row.attempt.state is AttemptState.OK
    }
    found = []
    for aim in aims:
        setups = _setups(aim, measured)
        known = _precision(setups[-1], by_start=by_start) if setups else None
        found.append(
            AimPrecision(
                aim=aim,
                result=known.result if known else 0.0,
                half_width=known.half_width(anytime_quantile) if known else math.inf,
                count=known.count if known else 0,
                is_verified=verified.issuperset(aim.cells),
            )
        )
    return tuple(found)


def _by_levels(results: Iterable[Result]) -> dict[_Levels, list[Cell]]:
    """Return the cells of runs by their levels: several where setups differ."""
    found: dict[_Levels, list[Cell]] = {}
    for cell in summarise(results):
        found.setdefault(levels(cell.trial), []).append(cell)
    return found


def _setups(aim: Aim, measured: Mapping[_Levels, Sequence[Cell]]) -> list[tuple[Cell, ...]]:
    """Return the cells of an aim on each setup that has all of them, the one that ran last last."""
    first, *others = (measured.get(cell, ()) for cell in reversed(aim.cells))
    rows = [(cell,) for cell in first]
    found: list[tuple[Cell, ...]] = [
        (*row, other)
        for row in rows
        for other in (others[0] if others else ())
        if _are_alike(row[0], other)
    ]
    return sorted(found if others else rows, key=lambda row: min(cell.last_utc for cell in row))


def _are_alike(one: Cell, other: Cell) -> bool:
    """Whether two cells were measured on one setup, but for what follows from their factors."""
    alike = replace(one.configuration, setup=()) == replace(other.configuration, setup=())
    apart = () if alike else OF_NODES
    setups = [[row for row in cell.setup if row[0] not in apart] for cell in (one, other)]
    return setups[0] == setups[1] and one.security is other.security


def _precision(cells: Sequence[Cell], *, by_start: bool) -> Precision:
    """Return how precise the mean of a cell is, or the ratio of the first to the second."""
    found = precision_of(*(_values(cell, by_start=by_start) for cell in cells))
    if by_start and found.starts == 1:  # its blocks say nothing of other starts
        return replace(found, standard_error=None, count=1)
    return found


def _values(cell: Cell, *, by_start: bool) -> tuple[RunValue, ...]:
    rows = observe(cell.results)
    if by_start:
        return rows
    return tuple(replace(row, start=(row.start[0], 1), daemons="") for row in rows)


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
        campaigns: the runs of each earlier campaign, with every attempt.
        precision: how far an interval may reach, as a share of the result.
        by_start: whether starts of the cluster are the values, instead of blocks.
        blocks: blocks of each start, where starts are the values.
    """
    earlier = [_by_levels(results) for results in campaigns]
    found = []
    for aim in aims:
        setups = [cells for measured in earlier for cells in _setups(aim, measured)]
        deviation = _pooled(_precision(cells, by_start=by_start) for cells in setups)
        from_starts = by_start and deviation is not None
        if by_start and deviation is None:
            within = _pooled(_precision(cells, by_start=False) for cells in setups)
            deviation = None if within is None else within / math.sqrt(blocks)
        reach = precision if aim.base is None else math.log1p(precision)
        found.append(
            Forecast(
                aim=aim,
                deviation=deviation,
                from_starts=from_starts,
                needed=None if deviation is None else observations_needed(deviation, reach),
            )
        )
    return tuple(found)


def _pooled(series: Iterable[Precision]) -> float | None:
    """Return the standard deviation within several series of values; None if no series has two."""
    known = [(row.count - 1, row.deviation) for row in series if row.deviation is not None]
    degrees = sum(free for free, _ in known)
    squares = math.fsum(free * deviation**2 for free, deviation in known)
    return math.sqrt(squares / degrees) if degrees else None
