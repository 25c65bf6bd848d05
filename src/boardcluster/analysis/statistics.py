"""Statistics of repeated durations. Pure functions over numbers.

Sources: sample statistics and Student's t interval as in Montgomery and Runger, *Applied Statistics
and Probability for Engineers*, chapters 6 and 8; fences of outliers: J. W. Tukey, *Exploratory
Data Analysis*, 1977, chapter 2. Quantiles come from SciPy. What cells show of each other is in
``inference``.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = [
    "CONFIDENCE",
    "LEAST_RUNS",
    "Interval",
    "coefficient_of_variation",
    "mean",
    "outliers",
    "standard_deviation",
    "t_quantile",
]

CONFIDENCE = 0.95

LEAST_RUNS = 5
"""Of fewer values none can lie beyond Tukey's fences, and nothing is said of what carries over."""

_FENCE_SPREADS = 1.5


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


def t_quantile(degrees: float) -> float:
    """Two-sided quantile of Student's t distribution for CONFIDENCE."""
    # Not scipy.stats, for the same value: it takes three times as long to load, and commands that
    # show a mean of a few runs need no more.
    from scipy.special import stdtrit  # noqa: PLC0415

    return float(stdtrit(degrees, (1 + CONFIDENCE) / 2))
