"""Statistics of repeated durations. Pure functions over numbers.

Sources: sample statistics and Student's t interval as in Montgomery and Runger, *Applied Statistics
and Probability for Engineers*, chapters 6 and 8; fences of outliers: J. W. Tukey, *Exploratory
Data Analysis*, 1977, chapter 2; rank correlation: C. Spearman, "The proof and measurement of
association between two things", *American Journal of Psychology* 15, 1904. Quantiles come from
SciPy. What cells show of each other is in ``inference``.
"""

from __future__ import annotations

import functools
import itertools
import math
import statistics
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
    "coefficient_of_variation",
    "drift",
    "mean",
    "outliers",
    "standard_deviation",
    "t_quantile",
]

CONFIDENCE = 0.95

# With fewer values than this neither can say anything: no value can lie beyond Tukey's fences, and
# the smallest p of a rank correlation, 2 / n!, is above 0.05.
LEAST_RUNS = 5

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


def t_quantile(degrees: float) -> float:
    """Two-sided quantile of Student's t distribution for CONFIDENCE."""
    # Not scipy.stats, for the same value: it takes three times as long to load, and commands that
    # show a mean of a few runs need no more.
    from scipy.special import stdtrit  # noqa: PLC0415

    return float(stdtrit(degrees, (1 + CONFIDENCE) / 2))
