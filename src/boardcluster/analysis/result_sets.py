"""Two sides compared cell by cell: own results, or what a paper printed. Pure.

A side is a set of points, each one number with the conditions that it was measured under. Two
points are a match if they are of the same quantity and equal in every condition that both know.
What tells the sides apart as a whole is no condition of a match: a profile, say, of which one side
has one throughout and the other side another. It is named instead.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from boardcluster.analysis.cells import Cell
from boardcluster.analysis.efficiency import uncertainty_share, watts_of, widened
from boardcluster.analysis.fingerprints import compared, differences_among
from boardcluster.analysis.inference import (
    ComparisonMethod,
    EffectVerdict,
    MeasuredRatio,
    RunValue,
    compare,
    estimate,
    family,
    observe,
)
from boardcluster.analysis.statistics import Interval, mean
from boardcluster.analysis.twins import node_words
from boardcluster.factors import FACTORS, engine_of_setting, setting_value
from boardcluster.records import Engine, Fingerprint, Result

__all__ = [
    "DURATION",
    "ENERGY",
    "INTERMEDIATE",
    "POWER",
    "PUBLISHED_REASON",
    "Condition",
    "Match",
    "MatchOutcome",
    "ResultPoint",
    "ResultSet",
    "ResultSetComparison",
    "SetDifference",
    "compare_result_sets",
    "nearest_points",
    "own_result_set",
]

DURATION = "duration_seconds"
"""The quantity that every cell has: seconds of a run."""

ENERGY = "energy_joules"
INTERMEDIATE = "intermediate_bytes"
POWER = "power_mean_watts"

PUBLISHED_REASON = "published without an interval"

_APART = (*(factor.name for factor in FACTORS if not factor.changes_work), "security")
"""Conditions by which whole sides may differ; of different work no ratio would mean anything."""
_SETTING = "setting "
"""Begins the name of the condition that is an engine setting; its key follows."""
_RATE = "_per_second"
_SHARE_MOST = 0.99

Condition = str | int
"""What a point was measured under, by name: a factor, ``security``, ``workload.parameter`` or
``setting KEY``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultPoint:
    """One quantity at one set of conditions."""

    quantity: str
    """Our name of it, unit last: ``duration_seconds``."""
    conditions: Mapping[str, Condition]
    """What it was measured under; what is not known is not in it."""
    machine: Mapping[str, str] = field(default_factory=dict)
    """What a paper, or a twin, says of the machine: ``storage`` to ``ssd``. It decides only between
    several points that match otherwise."""
    values: tuple[float, ...]
    """One for each run, in run order; of a paper the printed one."""
    label: str = ""
    """Short words for what the conditions do not say; may be empty."""
    source: str = ""
    """Paper, table and cell; empty for results of one's own."""
    doubt: str = ""
    """What contradicts a published number, in one line; empty if nothing does."""
    cell: Cell | None = None
    """The runs; None for a published one."""

    @property
    def mean(self) -> float:
        """Arithmetic mean, in the unit that the quantity's name ends with."""
        return mean(self.values)

    @property
    def interval(self) -> Interval | None:
        """95 % interval of the mean by Student's t; None for one run and for published numbers.

        Of energy and power it is widened by what the meters may be wrong by.
        """
        if self.cell is None:
            return None
        found = estimate(self.runs).interval
        if self.quantity not in (ENERGY, POWER):
            return found
        measured = (row.measurement for row in self.cell.results)
        energies = [row.energy for row in measured if row is not None and row.energy]
        return widened(found, max(map(uncertainty_share, energies), default=0.0))

    @property
    def runs(self) -> tuple[RunValue, ...]:
        """The runs with their values; none of a published number."""
        if self.cell is None:
            return ()
        rows = observe(self.cell.results)
        return tuple(
            replace(row, value=value, disturbed=_disturbed(self.quantity, row.disturbed))
            for row, value in zip(rows, self.values, strict=True)
        )

    @property
    def is_published(self) -> bool:
        """Whether it is a paper's number."""
        return self.cell is None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultSet:
    """One side."""

    name: str
    """As it was asked for: ``profile:default``."""
    title: str
    """What it is in words."""
    points: tuple[ResultPoint, ...]
    """Its points."""
    fingerprints: tuple[Fingerprint, ...] = ()
    """The setups of its runs; none for published numbers."""
    results: tuple[Result, ...] = ()
    """The runs in its cells; none for published numbers."""
    emulated: bool = False
    """Whether any of its numbers is of nodes that are no boards."""
    notes: tuple[str, ...] = ()
    """What a reader must know of it, one line each."""
    chosen: frozenset[str] = frozenset()
    """Conditions that a published table was narrowed by, so that sides may differ in them."""

    @property
    def is_published(self) -> bool:
        """Whether it is a paper's table."""
        return bool(self.points) and all(point.is_published for point in self.points)

    @property
    def twins(self) -> str:
        """What its nodes are, see ``node_words``; may be empty."""
        return node_words(self.results)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetDifference:
    """What tells the sides apart as a whole."""

    name: str
    """The condition."""
    first: Condition
    """Its value on the first side."""
    second: Condition
    """Its value on the second side."""


class MatchOutcome(StrEnum):
    """What a match says.

    HIGHER, LOWER, NOT_WORTHWHILE and NOT_SHOWN: see ``EffectVerdict``. NO_INTERVAL: there is none,
    so that nothing is shown either way. INSIDE and OUTSIDE: the published number lies in the 95 %
    interval of our mean, or not.
    """

    HIGHER = "higher"
    LOWER = "lower"
    NOT_WORTHWHILE = "no worthwhile difference"
    NOT_SHOWN = "no difference shown"
    NO_INTERVAL = "no interval"
    INSIDE = "inside the interval"
    OUTSIDE = "outside the interval"


_OUTCOMES = {
    EffectVerdict.HIGHER: MatchOutcome.HIGHER,
    EffectVerdict.LOWER: MatchOutcome.LOWER,
    EffectVerdict.NOT_WORTHWHILE: MatchOutcome.NOT_WORTHWHILE,
    EffectVerdict.NOT_SHOWN: MatchOutcome.NOT_SHOWN,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A point of the first side and one of the second that are alike."""

    first: ResultPoint
    """Of the first side."""
    second: ResultPoint
    """Of the second side."""
    ratio: MeasuredRatio | None
    """The first over the second, corrected for the number of matches; None where a value is 0."""

    @property
    def quantity(self) -> str:
        """What both are."""
        return self.first.quantity

    @property
    def outcome(self) -> MatchOutcome:
        """What it shows."""
        if self.first.is_published != self.second.is_published:
            own, said = self.first, self.second
            if own.is_published:
                own, said = said, own
            if own.interval is None:
                return MatchOutcome.NO_INTERVAL
            inside = own.interval.low <= said.mean <= own.interval.high
            return MatchOutcome.INSIDE if inside else MatchOutcome.OUTSIDE
        if self.ratio is None or self.ratio.interval is None:
            return MatchOutcome.NO_INTERVAL
        return _OUTCOMES[self.ratio.verdict]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultSetComparison:
    """Two sides."""

    first: ResultSet
    """One."""
    second: ResultSet
    """The other one."""
    apart: tuple[SetDifference, ...]
    """What tells them apart as a whole."""
    matches: tuple[Match, ...]
    """Points that are alike, durations first."""
    only_first: tuple[ResultPoint, ...]
    """Points of the first side without a match, of quantities that both sides have."""
    only_second: tuple[ResultPoint, ...]
    """The same of the second side."""
    machines: tuple[str, ...]
    """What differs among the setups of both sides, one line each."""


def _points(
    cell: Cell, defaults: Mapping[str, str], machine: Mapping[str, str]
) -> tuple[ResultPoint, ...]:
    """Return what a cell has to compare: its durations, rates, energy and intermediate data."""
    conditions: dict[str, Condition] = {**defaults, **dict(cell.parameters)}
    for factor in FACTORS:
        level = factor.level(cell.trial)
        if factor.name == "settings":
            conditions |= {
                f"{_SETTING}{key}": setting_value(key, value) for key, value in level.items()
            }
        elif factor.kind is dict:
            conditions[factor.name] = "" if factor.is_default(cell.trial) else factor.words(level)
        else:
            conditions[factor.name] = level if isinstance(level, int) else str(level)
    conditions["security"] = str(cell.security)
    return tuple(
        ResultPoint(
            quantity=quantity,
            conditions=conditions,
            machine=machine,
            values=values,
            label=cell.label,
            cell=cell,
        )
        for quantity, values in _quantities(cell).items()
    )


def _disturbed(quantity: str, shares: Mapping[str, float]) -> Mapping[str, float]:
    """Return what shares of a run's duration are of one of its quantities.

    What lengthens a run makes its rates smaller: 1 - s of them is left. Mean power and the bytes
    that are written do not follow it.
    """
    if quantity in {POWER, INTERMEDIATE}:
        return {}
    if not quantity.endswith(_RATE):
        return shares
    return {name: -share / (1 - min(share, _SHARE_MOST)) for name, share in shares.items()}


def _quantities(cell: Cell) -> dict[str, tuple[float, ...]]:
    """What every run of a cell has. Mean power is energy over its span."""
    found = [row.measurement for row in cell.results if row.measurement is not None]
    values: dict[str, tuple[float, ...]] = {DURATION: cell.durations_seconds}
    for name, figure in cell.figures.items():
        if name.endswith((_RATE, "_seconds")) and figure.count == len(found):
            values[name] = tuple(row.figures[name] for row in found)
    joules = [row.energy.energy_joules for row in found if row.energy is not None]
    known = [each for each in joules if each is not None]
    if len(known) == len(found):
        values[ENERGY] = tuple(known)
        watts = [watts_of(row.energy, row.duration_seconds) for row in found if row.energy]
        values[POWER] = tuple(each for each in watts if each is not None)
    written = [row.intermediate_bytes for row in found if row.intermediate_bytes is not None]
    if len(written) == len(found):
        values[INTERMEDIATE] = tuple(float(each) for each in written)
    return values


def own_result_set(
    name: str,
    title: str,
    cells: Sequence[Cell],
    *,
    defaults: Mapping[str, Mapping[str, str]] | None = None,
    machine_of: Callable[[Fingerprint], Mapping[str, str]] | None = None,
    notes: Sequence[str] = (),
) -> ResultSet:
    """Return the side of one's own cells.

    Args:
        name: as it was asked for.
        title: what it is in words.
        cells: its cells.
        defaults: by workload, ``workload.parameter`` to its value where a trial does not set it;
            needed to compare with papers, which name them one by one.
        machine_of: what a setup's machine is, see ``ResultPoint.machine``.
        notes: see ``ResultSet.notes``.
    """
    fingerprints = dict.fromkeys(found for cell in cells for found in cell.fingerprints)
    return ResultSet(
        name=name,
        title=title,
        points=tuple(
            point
            for cell in cells
            for point in _points(
                cell,
                (defaults or {}).get(cell.workload, {}),
                machine_of(cell.fingerprints[0]) if machine_of else {},
            )
        ),
        fingerprints=tuple(fingerprints),
        results=tuple(row for cell in cells for row in cell.results),
        emulated=any(bool(found.mark) for found in fingerprints),
        notes=tuple(notes),
    )


# Matching


def compare_result_sets(first: ResultSet, second: ResultSet) -> ResultSetComparison:
    """Match the points of two sides and compare those that are alike.

    All matches are one family: see ``inference.family``. Published numbers have no interval, and
    nothing is made up for them: the match then says whether the number lies in the interval of our
    mean.
    """
    first, second = _with_every_setting(first, second)
    apart = _apart(first, second)
    pairs = _matched(first.points, second.points, {row.name for row in apart})
    common = {point.quantity for point in first.points} & {
        point.quantity for point in second.points
    }
    taken = {id(point) for pair in pairs for point in pair}
    ratios = [_ratio(*pair) for pair in pairs]
    corrected = iter(family([ratio for ratio in ratios if ratio is not None]))
    matches = tuple(
        Match(first=one, second=other, ratio=None if ratio is None else next(corrected))
        for (one, other), ratio in zip(pairs, ratios, strict=True)
    )
    return ResultSetComparison(
        first=first,
        second=second,
        apart=apart,
        matches=tuple(sorted(matches, key=lambda row: row.quantity != DURATION)),
        only_first=_alone(first.points, taken, common),
        only_second=_alone(second.points, taken, common),
        machines=differences_among(
            dict.fromkeys((*first.fingerprints, *second.fingerprints))
            if first.fingerprints and second.fingerprints
            else ()
        ),
    )


def _with_every_setting(*sides: ResultSet) -> Iterator[ResultSet]:
    """Let every own point say what it has of each setting of either side that its engine reads."""
    names = {
        name: engine_of_setting(name.removeprefix(_SETTING))
        for side in sides
        for point in side.points
        for name in point.conditions
        if name.startswith(_SETTING)
    }
    for side in sides:
        points = [point if point.is_published else _told(point, names) for point in side.points]
        yield replace(side, points=tuple(points), chosen=side.chosen | names.keys())


def _told(point: ResultPoint, names: Mapping[str, Engine | None]) -> ResultPoint:
    left = {
        name: "as the profile"
        for name, engine in names.items()
        if engine in (None, point.conditions["engine"])
    }
    return replace(point, conditions={**left, **point.conditions})


def _apart(first: ResultSet, second: ResultSet) -> tuple[SetDifference, ...]:
    """Return the conditions of which each side has one value, and not the same."""
    if first.is_published != second.is_published:
        return ()  # a paper is matched by all that it says
    found = []
    for name in dict.fromkeys((*_APART, *sorted(first.chosen | second.chosen))):
        ones, others = (
            {point.conditions[name] for point in side.points if name in point.conditions}
            for side in (first, second)
        )
        if len(ones) == len(others) == 1 and ones != others:
            found.append(SetDifference(name=name, first=ones.pop(), second=others.pop()))
    return tuple(found)


def _matched(
    ones: Sequence[ResultPoint], others: Sequence[ResultPoint], left: Collection[str]
) -> list[tuple[ResultPoint, ResultPoint]]:
    """Return the pairs that are alike in all that both know but ``left``."""
    by_names: dict[tuple[str, frozenset[str]], list[ResultPoint]] = {}
    for other in others:
        names = frozenset(other.conditions) - frozenset(left)
        by_names.setdefault((other.quantity, names), []).append(other)
    indices: dict[tuple[str, frozenset[str], frozenset[str]], dict[object, list[ResultPoint]]] = {}
    pairs = []
    picked: dict[int, list[ResultPoint]] = {}
    for one in ones:
        own_names = frozenset(one.conditions) - frozenset(left)
        found: list[ResultPoint] = []
        for (quantity, names), group in by_names.items():
            if quantity != one.quantity:
                continue
            shared = own_names & names
            index = indices.setdefault((quantity, names, shared), {})
            if not index:
                for other in group:
                    index.setdefault(_key(other, shared), []).append(other)
            found += index.get(_key(one, shared), [])
        alike = _of_like_machine(one, found)
        for other in alike:
            picked.setdefault(id(other), []).append(one)
        pairs += [(one, other) for other in _of_like_setup(one, alike)]
    # Each must pick the other, so that it does not matter which side is named first.
    return [
        (one, other)
        for one, other in pairs
        if any(row is one for row in _of_like_setup(other, picked[id(other)]))
    ]


def _key(point: ResultPoint, names: frozenset[str]) -> tuple[Condition, ...]:
    return tuple(point.conditions[name] for name in sorted(names))


def _of_like_machine(one: ResultPoint, found: Sequence[ResultPoint]) -> Sequence[ResultPoint]:
    """Return those with the same medium or board; all where none of them is known to have it."""
    for name, value in one.machine.items():
        alike = [other for other in found if other.machine.get(name) == value]
        found = alike or found
    return found


def _of_like_setup(one: ResultPoint, found: Sequence[ResultPoint]) -> Sequence[ResultPoint]:
    """Return those on the same setup, where a side was measured on several; all where none is.

    Else the times of one kernel would be compared with those of another one, and the other way
    round, beside the two comparisons that are meant.
    """
    for name in dict.fromkeys(name for point in (one, *found) for name, _ in _setup_of(point)):
        own = _property(one, name)
        found = [other for other in found if _property(other, name) == own] or found
    return found


def _setup_of(point: ResultPoint) -> Sequence[tuple[str, str]]:
    return () if point.cell is None else point.cell.setup


def _property(point: ResultPoint, name: str) -> object:
    """A property of the setup of an own point."""
    return None if point.cell is None else compared(point.cell.fingerprints[0], name)


def _ratio(one: ResultPoint, other: ResultPoint) -> MeasuredRatio | None:
    if min(*one.values, *other.values) <= 0:
        return None
    if one.is_published or other.is_published:
        value = one.mean / other.mean
        return MeasuredRatio(
            value=value,
            unadjusted=value,
            interval=None,
            method=ComparisonMethod.NONE,
            counts=(len(one.values), len(other.values)),
            reason=PUBLISHED_REASON,
        )
    return compare(one.runs, other.runs)


def _alone(
    points: Iterable[ResultPoint], taken: Collection[int], common: Collection[str]
) -> tuple[ResultPoint, ...]:
    """Return points without a match; of a quantity that only one side has, none could have one."""
    rows = [point for point in points if id(point) not in taken]
    if DURATION in common:  # one row for each cell is enough
        return tuple(point for point in rows if point.quantity == DURATION)
    return tuple(point for point in rows if not common or point.quantity in common)


def nearest_points(
    first: ResultSet, second: ResultSet
) -> tuple[ResultPoint, ResultPoint, tuple[str, ...]] | None:
    """Return the two points that differ in the fewest conditions, and these conditions.

    None where a side has no points. For a message: at most the first 200 of each are compared.
    """
    best: tuple[ResultPoint, ResultPoint, tuple[str, ...]] | None = None
    for one in first.points[:200]:
        for other in second.points[:200]:
            shared = [name for name in one.conditions if name in other.conditions]
            names = [name for name in shared if one.conditions[name] != other.conditions[name]]
            if one.quantity != other.quantity:
                names.append("quantity")
            if best is None or len(names) < len(best[2]):
                best = (one, other, tuple(names))
    return best
