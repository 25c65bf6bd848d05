"""The model: means, and ratios of what two cells take, with what is known of chance."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from boardcluster.analysis.inference.observations import RunValue, Start, observe_values
from boardcluster.analysis.statistics import Interval, standard_deviation, t_quantile

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "ASSUMED_START_DEVIATION",
    "ONE_RUN",
    "SMALLEST_EFFECT",
    "ComparisonMethod",
    "EffectVerdict",
    "Estimate",
    "MeasuredRatio",
    "compare",
    "compare_values",
    "estimate",
]

SMALLEST_EFFECT = 0.05
"""A difference below this share is not worth acting on, unless the caller says otherwise."""

ASSUMED_START_DEVIATION = 0.03
"""Standard deviation between starts of the cluster, as a share of the time, that is allowed for a
cell of one start where it is compared with a cell of other starts, as nothing shows it. About 2 %
was measured on emulated clusters; a campaign that asks for several starts is judged by its own."""

ONE_RUN = "one run, no interval"
"""What is said wherever an interval would need a second run."""

_SIGNIFICANCE = 0.05
_POWER = 0.8
_MOST_BLOCKS = 1000
_LEAST_PAIRED_SHARE = 0.8
"""From this share of the runs in pairs on, a ratio leaves out the others rather than the blocks."""
_VARIES = 0.005
"""Shares of disturbance that deviate by less cannot move a ratio by more, and are no covariate."""
_RUNS_PER_COVARIATE = 4
_RUNS_FOR_ORDER = 8


class ComparisonMethod(StrEnum):
    """Where an interval is from, in words for a table's foot."""

    PAIRED = "Student's t of the logarithms of paired ratios"
    UNPAIRED = "Welch's t of logarithms"
    NONE = "no interval"


class EffectVerdict(StrEnum):
    """What a comparison shows of the first against the second.

    HIGHER and LOWER: it takes more or less. NOT_WORTHWHILE: they differ by less than the smallest
    effect of interest. NOT_SHOWN: the runs do not tell.
    """

    HIGHER = "higher"
    LOWER = "lower"
    NOT_WORTHWHILE = "no worthwhile difference"
    NOT_SHOWN = "not shown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The mean of a cell."""

    mean: float
    """Arithmetic mean of the runs, in their unit."""
    interval: Interval | None
    """Its 95 % interval; None for one run, or one start each of several with none to compare."""
    runs: int
    """Number of runs."""
    starts: int
    """Number of starts of the cluster that they are from. The interval is of the mean of all starts
    where there are several, and of this one start otherwise."""
    within_share: float | None
    """Standard deviation within a start as a share of the mean; None without two runs of one."""
    between_share: float | None
    """That between starts, beyond what runs within them explain; None for one start."""
    standard_error: float | None
    """Of the mean, in its unit; None where there is no interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRatio:
    """How many times one thing is another, and what that shows."""

    value: float
    """Ratio of the geometric means, adjusted where ``adjusted_for`` names what for."""
    unadjusted: float
    """The same without adjustment."""
    interval: Interval | None
    """95 % interval of ``value``, of this comparison alone; None where ``reason`` says why."""
    method: ComparisonMethod
    """Where the interval is from."""
    counts: tuple[int, int]
    """Runs of each."""
    starts: int = 1
    """Starts of the cluster that are replicates of both; 1 says that nothing shows what a start
    of one of them draws."""
    starts_of_each: tuple[int, int] = (1, 1)
    """Starts of the cluster that the runs of each are from."""
    pairs: int = 0
    """How many pairs of runs it comes from; 0 where runs are not paired."""
    adjusted_for: tuple[str, ...] = ()
    """The disturbances it is adjusted for, and ``order`` for which of a pair ran first."""
    allows_for_starts: bool = False
    """Whether ``ASSUMED_START_DEVIATION`` is in the interval, for each side that has one start."""
    p_value: float | None = None
    """Two-sided p of no difference; None without an interval."""
    p_equivalence: float | None = None
    """P of a difference of ``smallest_effect`` or more: the larger of two one-sided tests."""
    smallest_effect: float = SMALLEST_EFFECT
    """The smallest effect of interest, as a share."""
    family_size: int = 1
    """How many comparisons it is one of."""
    correction: str = ""
    """How p was corrected for their number; empty for one."""
    p_adjusted: float | None = None
    """``p_value`` corrected for the family."""
    p_equivalence_adjusted: float | None = None
    """``p_equivalence`` corrected for the family."""
    standard_error: float | None = None
    """Of the logarithm of the ratio."""
    degrees: float = 0.0
    """Degrees of freedom of ``standard_error``."""
    threshold: float = _SIGNIFICANCE
    """The p at which the next comparison of the family would be shown."""
    agrees: bool = True
    """Whether the arithmetic means differ in the same direction as the ratio says, so that both can
    be stated."""
    reason: str = ""
    """Why there is no interval, in one line; empty if there is."""

    @property
    def verdict(self) -> EffectVerdict:
        """What it shows."""
        if self.p_adjusted is None or self.p_equivalence_adjusted is None:
            return EffectVerdict.NOT_SHOWN
        if self.p_equivalence_adjusted < _SIGNIFICANCE:
            return EffectVerdict.NOT_WORTHWHILE
        if self.p_adjusted < _SIGNIFICANCE and self.agrees:
            return EffectVerdict.HIGHER if self.value > 1 else EffectVerdict.LOWER
        return EffectVerdict.NOT_SHOWN

    @property
    def is_shown(self) -> bool:
        """Whether the runs show a difference, and do not show that it is not worth while."""
        return self.verdict in {EffectVerdict.HIGHER, EffectVerdict.LOWER}

    @property
    def replicates(self) -> int:
        """What the interval comes from: starts where there are several, else pairs or runs."""
        return self.starts if self.starts > 1 else self.pairs or min(self.counts)

    @property
    def more_needed(self) -> int | None:
        """How many more blocks, or starts where ``needs_starts``, would tell a smallest effect.

        With so many, a true difference of ``smallest_effect`` is shown in four of five campaigns,
        at the p that the family asks for, if runs scatter as these do. At least 1; None without an
        interval, or where a thousand are not enough.
        """
        if self.standard_error is None:
            return None
        have = 1 if self.allows_for_starts else self.replicates
        spread = self.standard_error * math.sqrt(have)
        sides = 1 if self.pairs else 2
        from scipy.special import stdtrit  # noqa: PLC0415  most commands show no ratio

        for count in range(max(2, have + 1), _MOST_BLOCKS):
            degrees = sides * (count - 1)
            reach = stdtrit(degrees, 1 - self.threshold / 2) + stdtrit(degrees, _POWER)
            if reach * spread / math.sqrt(count) <= math.log1p(self.smallest_effect):
                return count - have
        return None

    @property
    def needs_starts(self) -> bool:
        """Whether more starts of the cluster would tell, and not more blocks."""
        return self.allows_for_starts or self.starts > 1

    def times(self, factor: float) -> MeasuredRatio:
        """Return the ratio and its interval multiplied by a number above 0, as of other work.

        Nothing is tested of it any more, as its 1 is another one.
        """
        interval = self.interval and Interval(
            low=self.interval.low * factor, high=self.interval.high * factor
        )
        return replace(
            self,
            value=self.value * factor,
            unadjusted=self.unadjusted * factor,
            interval=interval,
            p_value=None,
            p_equivalence=None,
            p_adjusted=None,
            p_equivalence_adjusted=None,
        )


# Means


def estimate(rows: Sequence[RunValue]) -> Estimate:
    """Return the mean of a cell with its interval, by Student's t.

    With s starts of means m the half-width is t(s - 1) * sd(m) / sqrt(s) (Kalibera and Jones); with
    one start of n runs it is t(n - 1) * sd / sqrt(n), and says nothing of another start.

    Raises:
        ValueError: there are no values.
    """
    if not rows:
        raise ValueError("the mean of no values")
    groups = _by_start(rows)
    values = [row.value for row in rows]
    mean = math.fsum(values) / len(values)
    centres = [math.fsum(group) / len(group) for group in groups]
    replicates = centres if len(groups) > 1 else values
    deviation = standard_deviation(replicates)
    interval, error = None, None
    if deviation is not None:
        error = deviation / math.sqrt(len(replicates))
        half = t_quantile(len(replicates) - 1) * error
        interval = Interval(low=mean - half, high=mean + half)
    degrees = len(values) - len(groups)
    within = None
    if degrees:
        squares = math.fsum(
            (value - centre) ** 2
            for centre, group in zip(centres, groups, strict=True)
            for value in group
        )
        within = squares / degrees
    between = None
    if len(groups) > 1 and deviation is not None and within is not None:
        harmonic = len(groups) / math.fsum(1 / len(group) for group in groups)
        between = math.sqrt(max(0.0, deviation**2 - within / harmonic))
    return Estimate(
        mean=mean,
        interval=interval,
        runs=len(values),
        starts=len(groups),
        within_share=None if within is None or not mean else math.sqrt(within) / mean,
        between_share=None if between is None or not mean else between / mean,
        standard_error=error,
    )


def _by_start(rows: Sequence[RunValue]) -> list[list[float]]:
    groups: dict[Start, list[float]] = {}
    for row in rows:
        groups.setdefault(row.started, []).append(row.value)
    return list(groups.values())


# Ratios


def compare_values(over: Sequence[float], under: Sequence[float]) -> MeasuredRatio:
    """Compare plain values that are not paired, measured under one start: see ``compare``.

    Raises:
        ValueError: either has no values, or one is not above 0.
    """
    return compare(observe_values(over), observe_values(under))


def compare(
    over: Sequence[RunValue],
    under: Sequence[RunValue],
    *,
    smallest_effect: float = SMALLEST_EFFECT,
) -> MeasuredRatio:
    """Compare two cells by the logarithms of their values.

    Where the runs of both are in the same blocks and ran in turn, the differences within blocks are
    what is analysed, so that starts and blocks cancel; else each side by itself, with Welch's
    degrees of freedom. Where a side has several starts, the means of its starts are its values.
    Shares of adjustable disturbances are covariates where they vary by half a per cent or more,
    one for each four degrees of freedom, the most varying first. Their coefficients are estimated
    within starts, by least squares held between 0 (they explain nothing) and 1 (all that they
    could); their uncertainty is part of the interval.

    Args:
        over: the runs of the first; one for each trial.
        under: those of the second.
        smallest_effect: below this share a difference is not worth while.

    Raises:
        ValueError: either has no values.
    """
    if not over or not under:
        raise ValueError("a comparison with no values")
    means = [math.fsum(row.value for row in rows) / len(rows) for rows in (over, under)]
    counts = (len(over), len(under))
    sides = _sides(over, under)
    pairs = len(sides[0].logs) if len(sides) == 1 else 0
    of_each = [len(set(side.starts)) for side in sides]
    alone = 0 if len(sides) == 1 or _same_starts(over, under) else of_each.count(1)
    unadjusted = math.exp(sum(side.sign * side.centre(side.logs) for side in sides))
    plain = MeasuredRatio(
        value=unadjusted,
        unadjusted=unadjusted,
        interval=None,
        method=ComparisonMethod.NONE,
        counts=counts,
        starts=min(of_each),
        starts_of_each=(of_each[0], of_each[-1]),
        pairs=pairs,
        smallest_effect=smallest_effect,
        agrees=(means[0] - means[1]) * (unadjusted - 1) > 0,
        reason=ONE_RUN,
    )
    found = _contrast(sides, alone=alone)
    if found is None:
        return plain
    half = t_quantile(found.degrees) * found.error
    p_value, p_equivalence = _tests(found, math.log1p(smallest_effect))
    return replace(
        plain,
        value=math.exp(found.difference),
        interval=Interval(
            low=math.exp(found.difference - half), high=math.exp(found.difference + half)
        ),
        method=ComparisonMethod.PAIRED if pairs else ComparisonMethod.UNPAIRED,
        reason="",
        adjusted_for=found.adjusted_for,
        allows_for_starts=alone > 0,
        p_value=p_value,
        p_equivalence=p_equivalence,
        p_adjusted=p_value,
        p_equivalence_adjusted=p_equivalence,
        standard_error=found.error,
        degrees=found.degrees,
        agrees=(means[0] - means[1]) * found.difference > 0,
    )


def _pairs(
    over: Sequence[RunValue], under: Sequence[RunValue]
) -> tuple[tuple[RunValue, RunValue], ...]:
    """Return the runs that share a block, where the start ran its blocks one after the other."""
    others = {(row.start, row.started, row.block, row.variant): row for row in under if row.block}
    rows: dict[tuple[Start, Start], list[tuple[RunValue, RunValue]]] = {}
    for one in over:
        other = others.get((one.start, one.started, one.block, one.variant))
        if other is not None:
            rows.setdefault((one.start, one.started), []).append((one, other))
    return tuple(row for group in rows.values() if _in_turn(group) for row in group)


def _in_turn(rows: Sequence[tuple[RunValue, RunValue]]) -> bool:
    """Whether each pair's places in the campaign's order come before those of the next."""
    places = sorted(sorted((one.position, other.position)) for one, other in rows)
    return all(former[1] < later[0] for former, later in itertools.pairwise(places))


def _enough(pairs: int, counts: tuple[int, int]) -> bool:
    """Whether so many pairs say more than all runs unpaired."""
    most = max(counts)
    return pairs >= 2 and (pairs == most or pairs >= max(3, _LEAST_PAIRED_SHARE * most))


def _sides(over: Sequence[RunValue], under: Sequence[RunValue]) -> tuple[_Side, ...]:
    """Return the ratios within blocks as the one side, or both cells."""
    pairs = _pairs(over, under)
    if _enough(len(pairs), (len(over), len(under))):
        return (_Side.of_pairs(pairs),)
    return (_Side.of_runs(over, 1.0), _Side.of_runs(under, -1.0))


def _same_starts(over: Sequence[RunValue], under: Sequence[RunValue]) -> bool:
    keys = [{(row.started, row.variant) for row in rows} for rows in (over, under)]
    return keys[0] == keys[1]


@dataclass(frozen=True, slots=True)
class _Side:
    """What is averaged: logarithms, with their starts and covariates."""

    sign: float
    logs: tuple[float, ...]
    starts: tuple[Start, ...]
    covariates: tuple[dict[str, float], ...]

    @classmethod
    def of_runs(cls, rows: Sequence[RunValue], sign: float) -> _Side:
        return cls(
            sign,
            tuple(math.log(row.value) for row in rows),
            tuple(row.started for row in rows),
            tuple({name: _effect(share) for name, share in row.disturbed.items()} for row in rows),
        )

    @classmethod
    def of_pairs(cls, rows: Sequence[tuple[RunValue, RunValue]]) -> _Side:
        covariates = []
        for one, other in rows:
            names = {*one.disturbed, *other.disturbed}
            found = {
                name: _effect(one.disturbed.get(name, 0.0)) - _effect(other.disturbed.get(name, 0))
                for name in names
            }
            found[_ORDER] = 0.5 if one.position > other.position else -0.5
            covariates.append(found)
        return cls(
            1.0,
            tuple(math.log(one.value / other.value) for one, other in rows),
            tuple(one.started for one, _ in rows),
            tuple(covariates),
        )

    def centre(self, values: Sequence[float]) -> float:
        """Mean of the means of starts."""
        means = self.means(values)
        return math.fsum(means) / len(means)

    def means(self, values: Sequence[float]) -> list[float]:
        groups: dict[Start, list[float]] = {}
        for start, value in zip(self.starts, values, strict=True):
            groups.setdefault(start, []).append(value)
        return [math.fsum(group) / len(group) for group in groups.values()]

    def centred(self, values: Sequence[float]) -> list[float]:
        """Each value less the mean of its start."""
        by_start = dict(zip(dict.fromkeys(self.starts), self.means(values), strict=True))
        return [value - by_start[start] for start, value in zip(self.starts, values, strict=True)]


_ORDER = "order"


def _effect(share: float) -> float:
    """The logarithm of how many times as long a run took, if a share of it was disturbance."""
    return -math.log1p(-min(share, 0.99))


@dataclass(frozen=True, slots=True)
class _Contrast:
    """A difference of logarithms."""

    difference: float
    error: float
    degrees: float
    adjusted_for: tuple[str, ...]


def _contrast(sides: Sequence[_Side], *, alone: int) -> _Contrast | None:
    """Estimate the difference of sides; None where a side has one value.

    Of so many sides nothing shows what their one start drew, which is allowed for.
    """
    freedom = sum(len(side.logs) - len(set(side.starts)) for side in sides)
    names = _chosen(sides, freedom)
    adjustment = _Adjustment.of(sides, names, freedom)
    parts: list[tuple[float, float]] = []  # variance and its degrees of freedom
    difference = 0.0
    for side in sides:
        values = adjustment.applied(side)
        centre = side.centre(values)
        difference += side.sign * centre
        means = side.means(values)
        replicates = means if len(means) > 1 else values
        lost = 0.0 if len(means) > 1 or not freedom else len(names) * (len(values) - 1) / freedom
        degrees = len(replicates) - 1 - lost
        if degrees <= 0:
            return None
        squares = math.fsum((value - centre) ** 2 for value in replicates)
        parts.append((squares / degrees / len(replicates), degrees))
    one_start = len(sides) == 1 and len(set(sides[0].starts)) == 1
    own = math.fsum(variance for variance, _ in parts)
    total = own + adjustment.variance
    if one_start:  # the scatter is the same in both terms: the textbook's intercept
        degrees = parts[0][1]
    else:
        parts.append((adjustment.variance, max(1.0, freedom - len(names))))
        weight = math.fsum(variance**2 / free for variance, free in parts)
        total += alone * ASSUMED_START_DEVIATION**2
        degrees = total**2 / weight if weight > 0 else sum(free for _, free in parts)
        if _balanced(sides) and not names:
            degrees = sum(free for _, free in parts[:2])
    return _Contrast(difference, math.sqrt(total), degrees, names)


def _balanced(sides: Sequence[_Side]) -> bool:
    """Whether two sides have as many starts, several each: of one cluster, they vary alike.

    Then the degrees of freedom are those of a common variance; Welch's are too few for three.
    """
    counts = {len(set(side.starts)) for side in sides}
    return len(sides) == 2 and len(counts) == 1 and counts.pop() > 1


def _chosen(sides: Sequence[_Side], freedom: int) -> tuple[str, ...]:
    """The covariates that vary within starts, the most varying first, as many as runs allow."""
    spread: dict[str, float] = {}
    for name in {name for side in sides for row in side.covariates for name in row} - {_ORDER}:
        squares = sum(
            value**2
            for side in sides
            for value in side.centred([row.get(name, 0.0) for row in side.covariates])
        )
        spread[name] = math.sqrt(squares / freedom) if freedom else 0.0
    names = sorted(
        (name for name in spread if spread[name] > _VARIES), key=lambda name: (-spread[name], name)
    )
    if len(sides) == 1 and freedom >= _RUNS_FOR_ORDER:
        first = sides[0].centred([row[_ORDER] for row in sides[0].covariates])
        names += [_ORDER] if any(first) else []
    return tuple(names[: freedom // _RUNS_PER_COVARIATE])


@dataclass(frozen=True, slots=True)
class _Adjustment:
    """What the covariates explain."""

    names: tuple[str, ...]
    coefficients: NDArray[np.float64] | None
    variance: float
    """What their uncertainty adds to the squared error of the difference."""

    @classmethod
    def of(cls, sides: Sequence[_Side], names: tuple[str, ...], freedom: int) -> _Adjustment:
        if not names:
            return cls((), None, 0.0)
        import numpy as np  # noqa: PLC0415  most commands adjust nothing
        from scipy.optimize import lsq_linear  # noqa: PLC0415

        def column(name: str) -> list[float]:
            return [
                value
                for side in sides
                for value in side.centred([row.get(name, 0.0) for row in side.covariates])
            ]

        matrix = np.array([column(name) for name in names]).T
        values = np.array([value for side in sides for value in side.centred(side.logs)])
        low = [-np.inf if name == _ORDER else 0.0 for name in names]
        high = [np.inf if name == _ORDER else 1.0 for name in names]
        found = lsq_linear(matrix, values, bounds=(low, high))
        scatter = float(((values - matrix @ found.x) ** 2).sum()) / max(1, freedom - len(names))
        shift = np.array(
            [
                sum(
                    side.sign * side.centre([row.get(name, 0.0) for row in side.covariates])
                    for side in sides
                )
                for name in names
            ]
        )
        spread = np.linalg.pinv(matrix.T @ matrix)
        return cls(names, found.x, scatter * float(shift @ spread @ shift))

    def applied(self, side: _Side) -> list[float]:
        """Return the logarithms of a side as they would be undisturbed."""
        if self.coefficients is None:
            return list(side.logs)
        return [
            value
            - math.fsum(
                float(factor) * row.get(name, 0.0)
                for factor, name in zip(self.coefficients, self.names, strict=True)
            )
            for value, row in zip(side.logs, side.covariates, strict=True)
        ]


def _tests(found: _Contrast, reach: float) -> tuple[float, float]:
    """Two-sided p of no difference, and p of one that reaches so far."""
    if found.error == 0:
        return (1.0 if found.difference == 0 else 0.0), float(abs(found.difference) >= reach)
    from scipy.special import stdtr  # noqa: PLC0415

    def beyond(distance: float) -> float:
        return float(stdtr(found.degrees, -distance / found.error))

    return 2 * beyond(abs(found.difference)), beyond(reach - abs(found.difference))
