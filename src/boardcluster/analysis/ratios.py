"""How many times one thing is another, with intervals, and tests of runs that are paired. Pure.

Sources: interval of a ratio of means: E. C. Fieller, "Some problems in interval estimation",
*Journal of the Royal Statistical Society B* 16(2), 1954; its degrees of freedom where variances
differ: B. L. Welch, *Biometrika* 34, 1947, at the ratio that was estimated; means of ratios:
P. J. Fleming and J. J. Wallace, "How not to lie with statistics", *CACM* 29(3), 1986; signed ranks:
F. Wilcoxon, "Individual comparisons by ranking methods", *Biometrics Bulletin* 1(6), 1945. The
bootstrap is that of ``statistics``.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from boardcluster.analysis.cells import Cell
from boardcluster.analysis.statistics import (
    LEAST_RUNS,
    Interval,
    bootstrap_tail,
    mean,
    mean_interval,
    resample_count,
    resampled_means,
    standard_deviation,
    t_quantile,
)
from boardcluster.records import Result

__all__ = [
    "ONE_RUN",
    "PairedTest",
    "Ratio",
    "RatioMethod",
    "geometric_mean",
    "paired",
    "paired_ratio",
    "paired_test",
    "pairs_of",
    "quotient",
    "ratio_of_cells",
    "ratio_of_means",
    "sums_ratio",
    "wilcoxon_p",
]

_SEED = 20260802

_EXACT_PAIRS = 50
"""Up to here signed ranks are counted, which takes milliseconds; beyond, a normal one is near."""

ONE_RUN = "one run, no interval"
"""What is said wherever an interval would need a second run."""


class RatioMethod(StrEnum):
    """Where the interval of a ratio is from, in words for a table's foot."""

    FIELLER = "Fieller's theorem"
    PAIRED = "Student's t of the logarithms of paired ratios"
    NONE = "no interval"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """How many times one mean is another."""

    value: float
    """The ratio; without a unit."""
    interval: Interval | None
    """Its 95 % interval; None where the reason says why."""
    method: RatioMethod
    """Where the interval is from."""
    pairs: int = 0
    """How many pairs of runs it comes from; 0 where runs are not paired."""
    bootstrap: Interval | None = None
    """The 95 % interval by the bootstrap; None with fewer than five runs of either, and for
    pairs."""
    reason: str = ""
    """Why there is no interval, in one line; empty if there is."""

    @property
    def is_shown(self) -> bool:
        """Whether the runs show a difference: there is an interval and it leaves out 1."""
        return self.interval is not None and not self.interval.low <= 1 <= self.interval.high

    def times(self, factor: float) -> Ratio:
        """Return the ratio and its intervals multiplied by a number above 0."""
        return replace(
            self,
            value=self.value * factor,
            interval=_scaled(self.interval, factor),
            bootstrap=_scaled(self.bootstrap, factor),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedTest:
    """Two cells whose runs are paired: each repetition ran both, in one block and random order."""

    mean_difference_seconds: float
    """Mean of first minus second."""
    interval: Interval
    """Its 95 % interval by Student's t over the differences, in seconds."""
    p_t: float | None
    """Two-sided p of the paired t test; None where all differences are equal."""
    p_wilcoxon: float | None
    """Two-sided p of Wilcoxon's signed ranks, exact up to 50 pairs; None where all differences are
    0."""
    pairs: int
    """Number of pairs, at least 2."""
    ratio: Ratio
    """First over second, see ``paired_ratio``."""

    @property
    def is_shown(self) -> bool:
        """Whether the runs show a difference: its interval leaves out zero."""
        return not self.interval.low <= 0 <= self.interval.high


# Plain arithmetic, also of published numbers


def quotient(over: float, under: float) -> float:
    """Return over / under.

    Raises:
        ValueError: under is not above 0, so that "times" means nothing.
    """
    if not under > 0:
        raise ValueError(f"{over:g} times of {under:g}: the lower one is not above 0")
    return over / under


def sums_ratio(over: Sequence[float], under: Sequence[float]) -> float:
    """Ratio of the sums: sum(over) / sum(under), which for equal counts is that of the means.

    Raises:
        ValueError: the lower sum is not above 0.
    """
    return quotient(math.fsum(over), math.fsum(under))


def geometric_mean(values: Sequence[float]) -> float:
    """Geometric mean: exp(mean(ln x)); the only mean of ratios that does not favour a side.

    Raises:
        ValueError: there are no values, or one is not above 0.
    """
    if any(not value > 0 for value in values):
        raise ValueError("the geometric mean of a value that is not above 0")
    return math.exp(mean([math.log(value) for value in values]))


# Independent runs


def ratio_of_means(over: Sequence[float], under: Sequence[float]) -> Ratio:
    """Ratio of two means of independent runs: mean(over) / mean(under).

    With v = s^2 / n of each and t = t(0.975, df), the 95 % interval holds every r for which
    (mean(over) - r mean(under))^2 <= t^2 (v_over + r^2 v_under) (Fieller). df is Welch's at the
    estimated ratio, so variances need not be equal. Where the lower mean itself is not shown to
    differ from 0 the set has no bounds, and there is no interval.

    Raises:
        ValueError: either has no values, or the mean of ``under`` is not above 0.
    """
    value = quotient(mean(over), mean(under))
    if len(over) < 2 or len(under) < 2:
        return Ratio(value=value, interval=None, method=RatioMethod.NONE, reason=ONE_RUN)
    interval = _fieller(over, under, value)
    if interval is None:
        return Ratio(
            value=value,
            interval=None,
            method=RatioMethod.NONE,
            reason="the runs scatter so much that every ratio is possible",
        )
    return Ratio(
        value=value,
        interval=interval,
        method=RatioMethod.FIELLER,
        bootstrap=_bootstrap(over, under),
    )


def ratio_of_cells(over: Cell, under: Cell) -> Ratio:
    """Ratio of the mean durations of two cells.

    It is paired where every run of the cell with fewer runs is in a pair, see ``pairs_of``;
    otherwise runs would be left out. There must be two pairs at least.
    """
    rows = pairs_of(over, under)
    if len(rows) < max(2, min(over.count, under.count)):
        return ratio_of_means(over.durations_seconds, under.durations_seconds)
    return paired_ratio(*_seconds(rows))


def _fieller(over: Sequence[float], under: Sequence[float], value: float) -> Interval | None:
    top, bottom = mean(over), mean(under)
    # Squared standard errors of both means.
    top_variance, bottom_variance = (
        (standard_deviation(row) or 0.0) ** 2 / len(row) for row in (over, under)
    )
    scaled = value**2 * bottom_variance
    total = top_variance + scaled
    if total == 0:
        return Interval(low=value, high=value)
    shares = ((top_variance / total) ** 2, (scaled / total) ** 2)
    degrees = 1 / (shares[0] / (len(over) - 1) + shares[1] / (len(under) - 1))
    squared = t_quantile(degrees) ** 2
    lead = bottom**2 - squared * bottom_variance
    if lead <= 0:
        return None
    # Never negative where the lead is positive, but for rounding.
    inside = (top * bottom) ** 2 - lead * (top**2 - squared * top_variance)
    root = math.sqrt(max(0.0, inside))
    # Where no value is negative, no ratio is.
    least = 0.0 if min(*over, *under) >= 0 else -math.inf
    low, high = (top * bottom - root) / lead, (top * bottom + root) / lead
    return Interval(low=max(least, low), high=max(least, high))


def _bootstrap(over: Sequence[float], under: Sequence[float]) -> Interval | None:
    """95 % interval by the expanded percentile bootstrap, expanded for the smaller of the two."""
    least, most = sorted((len(over), len(under)))
    if least < LEAST_RUNS or min(under) <= 0:
        return None
    import numpy as np  # noqa: PLC0415  some commands need no statistics, and it takes long to load

    resamples = resample_count(most)
    tops = resampled_means(over, seed=_SEED, resamples=resamples)
    ratios = tops / resampled_means(under, seed=_SEED + 1, resamples=resamples)
    tail = bootstrap_tail(least)
    low, high = np.quantile(ratios, (tail, 1 - tail))
    return Interval(low=float(low), high=float(high))


# Paired runs


def pairs_of(first: Cell, second: Cell) -> tuple[tuple[Result, Result], ...]:
    """Return the runs of two cells that are paired, in run order.

    A pair is the same repetition of the same campaign. It counts where the campaign ran the two
    cells in turn, each repetition as a block: then both runs of a pair saw the same state of the
    machine. Cells of different numbers of workers or profiles run in groups of their own, one after
    the other, and are not paired. Of several tries the last one counts.
    """
    ones, others = (
        {(row.trial.campaign_id, row.trial.repetition): row for row in cell.results}
        for cell in (first, second)
    )
    found = []
    for _, keys in itertools.groupby(sorted(ones.keys() & others.keys()), key=lambda key: key[0]):
        rows = [(ones[key], others[key]) for key in keys]
        if _in_turn(rows):
            found += rows
    return tuple(found)


def _in_turn(rows: Sequence[tuple[Result, Result]]) -> bool:
    """Whether each pair's places in the campaign's order come before those of the next."""
    places = [sorted((one.trial.position, other.trial.position)) for one, other in rows]
    return all(former[1] < later[0] for former, later in itertools.pairwise(places))


def _seconds(rows: Sequence[tuple[Result, Result]]) -> tuple[list[float], list[float]]:
    def durations(results: Iterator[Result]) -> list[float]:
        return [row.measurement.duration_seconds for row in results if row.measurement is not None]

    return durations(one for one, _ in rows), durations(other for _, other in rows)


def paired_ratio(over: Sequence[float], under: Sequence[float]) -> Ratio:
    """Ratio of paired values: the geometric mean of over / under of each pair.

    exp(d -+ t(0.975, n - 1) * s / sqrt(n)) with d and s the mean and deviation of ln(over / under).
    What made both runs of a pair slow is in neither.

    Raises:
        ValueError: their numbers differ, there are none, or one is not above 0.
    """
    if len(over) != len(under):
        raise ValueError(f"{len(over)} values cannot be paired with {len(under)}")
    value = geometric_mean([quotient(one, other) for one, other in zip(over, under, strict=True)])
    logs = [math.log(one / other) for one, other in zip(over, under, strict=True)]
    spread = mean_interval(logs)
    if spread is None:
        return Ratio(value=value, interval=None, method=RatioMethod.NONE, pairs=1, reason=ONE_RUN)
    return Ratio(
        value=value,
        interval=Interval(low=math.exp(spread.low), high=math.exp(spread.high)),
        method=RatioMethod.PAIRED,
        pairs=len(over),
    )


def paired(first: Cell, second: Cell) -> PairedTest | None:
    """Test two cells whose runs are paired; None with fewer than two pairs, see ``pairs_of``."""
    rows = pairs_of(first, second)
    return paired_test(*_seconds(rows)) if len(rows) >= 2 else None


def paired_test(first: Sequence[float], second: Sequence[float]) -> PairedTest:
    """Test paired durations: Student's t of the differences, and Wilcoxon's signed ranks.

    t = d / (s / sqrt(n)) with d and s the mean and deviation of first - second, n - 1 degrees of
    freedom. The ranks assume only that differences scatter evenly about their centre; with n pairs
    their p is at least 2^(1 - n), so below six pairs they cannot fall under 0.05.

    Args:
        first: durations in seconds.
        second: durations in seconds, in the same order of pairs.

    Raises:
        ValueError: their numbers differ, there are fewer than two, or one is not above 0.
    """
    ratio = paired_ratio(first, second)
    differences = [one - other for one, other in zip(first, second, strict=True)]
    interval = mean_interval(differences)
    if interval is None:
        raise ValueError("a paired test of fewer than two pairs")
    p_t = None
    if len(set(differences)) > 1:
        from scipy import stats  # noqa: PLC0415

        # SciPy warns of differences that are nearly equal, of which p is as good as 0.
        with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
            p_t = float(stats.ttest_rel(first, second).pvalue)
    return PairedTest(
        mean_difference_seconds=mean(differences),
        interval=interval,
        p_t=p_t,
        p_wilcoxon=wilcoxon_p(differences),
        pairs=len(differences),
        ratio=ratio,
    )


def wilcoxon_p(differences: Sequence[float]) -> float | None:
    """Two-sided p of Wilcoxon's signed ranks; None where every difference is 0.

    Differences of 0 are left out, equal ones share the mean of their ranks. Up to 50 differences
    the p is exact: the share of all 2^n ways to give signs to these ranks whose sum is at least as
    far from the middle. Beyond, the sum is taken as normal, with its variance sum(rank^2) / 4.
    """
    import numpy as np  # noqa: PLC0415
    from scipy import stats  # noqa: PLC0415

    moved = np.array([value for value in differences if value != 0])
    if not len(moved):
        return None
    sizes = np.abs(moved)
    if len(moved) > _EXACT_PAIRS or len(np.unique(sizes)) == len(sizes):
        method = "asymptotic" if len(moved) > _EXACT_PAIRS else "exact"
        return float(stats.wilcoxon(moved, method=method).pvalue)
    # SciPy's exact p takes all ranks to be different, and its permutation test takes 2^n steps. So
    # with ties the ways to each sum are counted here, of twice the ranks, which are whole.
    ranks = np.rint(2 * stats.rankdata(sizes)).astype(int)
    ways = np.ones(1)
    for rank in ranks:
        ways = np.pad(ways, (0, rank)) + np.pad(ways, (rank, 0))
    distances = np.abs(2 * np.arange(len(ways)) - ranks.sum())
    seen = abs(2 * ranks[moved > 0].sum() - ranks.sum())
    return float(ways[distances >= seen].sum() / 2 ** len(ranks))


def _scaled(interval: Interval | None, factor: float) -> Interval | None:
    if interval is None:
        return None
    return Interval(low=interval.low * factor, high=interval.high * factor)
