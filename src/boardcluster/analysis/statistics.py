"""Statistics of repeated durations. Pure functions over numbers.

Sources: sample statistics and Student's t interval as in Montgomery and Runger, *Applied Statistics
and Probability for Engineers*, chapters 6 and 8; Welch's interval: B. L. Welch, "The generalization
of 'Student's' problem when several different population variances are involved", *Biometrika* 34,
1947; the bootstrap interval: T. C. Hesterberg, "What Teachers Should Know About the Bootstrap",
*The American Statistician* 69(4), 2015, section 5.3 (expanded percentile); fences of outliers:
J. W. Tukey, *Exploratory Data Analysis*, 1977, chapter 2; rank correlation: C. Spearman, "The proof
and measurement of association between two things", *American Journal of Psychology* 15, 1904.
Quantiles and tests come from SciPy.
"""

from __future__ import annotations

import functools
import itertools
import math
import statistics
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "CONFIDENCE",
    "LEAST_RUNS",
    "Drift",
    "Interval",
    "bootstrap_interval",
    "bootstrap_tail",
    "coefficient_of_variation",
    "difference_interval",
    "drift",
    "mean",
    "mean_interval",
    "outliers",
    "resample_count",
    "resampled_means",
    "standard_deviation",
    "t_quantile",
]

CONFIDENCE = 0.95

# With fewer values than this none of the three can say anything at 95 %: resampling cannot leave
# the range of the values, which holds the centre of a symmetric distribution with probability
# 1 - 2^(1 - n); no value can lie beyond Tukey's fences; and the smallest p of a rank correlation,
# 2 / n!, is above 0.05.
LEAST_RUNS = 5

_RESAMPLES = 20_000
_DRAWS_MOST = 20_000_000
_SEED = 20260801
_KEPT_RUNS = 16
"""Up to here draws are kept, 2.5 MB at most: a report has hundreds of cells of few runs each."""
_FENCE_SPREADS = 1.5
_EXACT_RUNS = 8
_SIGNIFICANCE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A confidence interval, in the unit of the values it came from."""

    low: float
    """Lower limit."""
    high: float
    """Upper limit."""

    @property
    def half_width(self) -> float:
        """Half of the interval's width."""
        return (self.high - self.low) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """How values changed with the order in which they were measured."""

    correlation: float
    """Spearman's rank correlation with the order, -1 to 1; above 0 they grew."""
    p_value: float
    """Probability of one at least as far from 0 where order does not matter."""

    @property
    def is_shown(self) -> bool:
        """Whether it is worth a warning: p below 0.05."""
        return self.p_value < _SIGNIFICANCE


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean: sum(x) / n.

    Raises:
        ValueError: there are no values.
    """
    if not values:
        raise ValueError("the mean of no values")
    return statistics.fmean(values)


def standard_deviation(values: Sequence[float]) -> float | None:
    """Sample standard deviation: sqrt(sum((x - mean)^2) / (n - 1)); None for fewer than two."""
    if len(values) < 2:
        return None
    # Not statistics.stdev, whose last digit differs: stored and exported numbers stay the same.
    centre = mean(values)
    return math.sqrt(math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1))


def coefficient_of_variation(values: Sequence[float]) -> float | None:
    """Standard deviation as a share of the mean: s / mean; None if there is none or mean is 0."""
    deviation = standard_deviation(values)
    if deviation is None or mean(values) == 0:
        return None
    return deviation / mean(values)


def mean_interval(values: Sequence[float]) -> Interval | None:
    """95 % confidence interval of the mean by Student's t; None for fewer than two values.

    mean -+ t(0.975, n - 1) * s / sqrt(n). It assumes independent runs of one normal distribution;
    with few runs that is an assumption, not something the data can show.
    """
    deviation = standard_deviation(values)
    if deviation is None:
        return None
    half = t_quantile(len(values) - 1) * deviation / math.sqrt(len(values))
    return Interval(low=mean(values) - half, high=mean(values) + half)


def bootstrap_interval(values: Sequence[float]) -> Interval | None:
    """95 % confidence interval of the mean by the bootstrap; None for fewer than LEAST_RUNS values.

    Means of resamples, drawn with replacement; the interval goes between two of their quantiles,
    expanded for small samples: with a = (1 - 0.95) / 2 the lower one is
    Phi(-sqrt(n / (n - 1)) * t(1 - a, n - 1)). The plain percentile interval is too narrow for few
    values, and BCa is no better at that. It assumes independent runs, but no distribution. The same
    values give the same interval: the seed is fixed, and they are sorted first.
    """
    count = len(values)
    if count < LEAST_RUNS:
        return None
    # Some commands need no statistics, and these two take long to load.
    import numpy as np  # noqa: PLC0415

    means = resampled_means(values, seed=_SEED, resamples=resample_count(count))
    tail = bootstrap_tail(count)
    low, high = np.quantile(means, (tail, 1 - tail))
    return Interval(low=float(low), high=float(high))


def resample_count(count: int) -> int:
    """How many resamples are drawn of so many values: 20,000, fewer where that would take long."""
    return max(2_000, min(_RESAMPLES, _DRAWS_MOST // count))


def bootstrap_tail(count: int) -> float:
    """Share of resamples outside the interval on each side, for so many values.

    Phi(-sqrt(n / (n - 1)) * t(1 - a, n - 1)) with a = (1 - 0.95) / 2, see ``bootstrap_interval``.
    """
    from scipy.special import ndtr  # noqa: PLC0415

    return float(ndtr(-math.sqrt(count / (count - 1)) * t_quantile(count - 1)))


def resampled_means(values: Sequence[float], *, seed: int, resamples: int) -> NDArray[np.float64]:
    """Means of resamples, drawn with replacement from the sorted values.

    Args:
        values: at least one.
        seed: of the draws; the same one gives the same means.
        resamples: how many.
    """
    import numpy as np  # noqa: PLC0415

    count = len(values)
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    if count <= _KEPT_RUNS:
        return np.asarray(ordered[_kept_draws(count, seed, resamples)].mean(axis=0))
    # This generator's stream never changes between versions of numpy (NEP 19).
    generator = np.random.RandomState(seed)
    means = np.empty(resamples)
    batch = max(1, min(resamples, 2_000_000 // count))
    for start in range(0, resamples, batch):
        size = min(batch, resamples - start)
        drawn = generator.randint(0, count, size=(size, count))
        means[start : start + size] = ordered[drawn].mean(axis=1)
    return means


@functools.cache
def _kept_draws(count: int, seed: int, resamples: int) -> NDArray[np.int64]:
    """The draws of a bootstrap, one column each, the same for every cell of as many runs."""
    import numpy as np  # noqa: PLC0415

    drawn = np.random.RandomState(seed).randint(0, count, size=(resamples, count))
    return np.ascontiguousarray(drawn.T)  # a few long rows are added up faster than many short ones


def outliers(values: Sequence[float]) -> tuple[int, ...]:
    """Places of the values beyond Tukey's fences: 1.5 spreads below or above the hinges.

    The hinges are the medians of the lower and the upper half, the middle value in both; the
    spread is the distance between them. An outlier is to be looked at, not to be dropped.
    """
    if len(values) < LEAST_RUNS:
        return ()
    ordered = sorted(values)
    half = (len(ordered) + 1) // 2
    low, high = statistics.median(ordered[:half]), statistics.median(ordered[-half:])
    reach = _FENCE_SPREADS * (high - low)
    return tuple(
        place for place, value in enumerate(values) if not low - reach <= value <= high + reach
    )


def drift(values: Sequence[float]) -> Drift | None:
    """Spearman's rank correlation of values with their order; None for fewer than LEAST_RUNS.

    Ties share the mean of their ranks. The two-sided p is exact, over all orders, up to 8 values;
    from 9 on t = r * sqrt((n - 2) / (1 - r^2)) is taken to have Student's distribution with n - 2
    degrees of freedom. None as well where all values are equal.
    """
    count = len(values)
    if count < LEAST_RUNS or len(set(values)) == 1:
        return None
    from scipy import stats  # noqa: PLC0415

    found = stats.spearmanr(range(count), values)
    p_value = found.pvalue if count > _EXACT_RUNS else _exact_p(stats.rankdata(values))
    return Drift(correlation=float(found.statistic), p_value=float(p_value))


def _exact_p(ranks: NDArray[np.float64]) -> float:
    """Share of all orders of these ranks whose correlation is at least as far from 0.

    SciPy's ``permutation_test`` gives the same, but takes more than a second for 8 values, and a
    report has hundreds of cells.
    """
    import numpy as np  # noqa: PLC0415

    # Each correlation is the scalar product below over one constant, so that need not be known.
    centred = np.arange(1, len(ranks) + 1) - (len(ranks) + 1) / 2
    products = np.abs(ranks[_orders(len(ranks))] @ centred)
    return float(np.mean(products >= abs(ranks @ centred) - 1e-9))


@functools.cache
def _orders(count: int) -> NDArray[np.int64]:
    import numpy as np  # noqa: PLC0415

    return np.array(list(itertools.permutations(range(count))), dtype=np.int64)


def difference_interval(first: Sequence[float], second: Sequence[float]) -> Interval | None:
    """95 % confidence interval of mean(first) - mean(second) by Welch's t.

    With v = s^2 / n of each: difference -+ t(0.975, df) * sqrt(v1 + v2), where
    df = (v1 + v2)^2 / (v1^2 / (n1 - 1) + v2^2 / (n2 - 1)) (Welch and Satterthwaite). The variances
    need not be equal. None if either has fewer than two values.
    """
    if min(len(first), len(second)) < 2:
        return None
    if len(set(first)) == len(set(second)) == 1:  # SciPy divides by the deviation, here 0
        return Interval(low=first[0] - second[0], high=first[0] - second[0])
    from scipy import stats  # noqa: PLC0415

    # SciPy warns of values that are all equal; their variance of 0 is right.
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        found = stats.ttest_ind(first, second, equal_var=False).confidence_interval(CONFIDENCE)
    return Interval(low=float(found.low), high=float(found.high))


def t_quantile(degrees: float) -> float:
    """Two-sided quantile of Student's t distribution for CONFIDENCE."""
    # Not scipy.stats, for the same value: it takes three times as long to load, and commands that
    # show a mean of a few runs need no more.
    from scipy.special import stdtrit  # noqa: PLC0415

    return float(stdtrit(degrees, (1 + CONFIDENCE) / 2))
