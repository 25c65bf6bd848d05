"""Statistics of repeated durations. Pure functions over numbers.

Sources: sample statistics and Student's t interval as in Montgomery and Runger, *Applied Statistics
and Probability for Engineers*, chapters 6 and 8; Welch's interval: B. L. Welch, "The generalization
of 'Student's' problem when several different population variances are involved", *Biometrika* 34,
1947. Quantiles come from SciPy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = [
    "CONFIDENCE",
    "Interval",
    "coefficient_of_variation",
    "difference_interval",
    "mean",
    "mean_interval",
    "median",
    "standard_deviation",
]

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A confidence interval, in the unit of the values it came from.

    Attributes:
        low: lower limit.
        high: upper limit.
    """

    low: float
    high: float

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
    return math.fsum(values) / len(values)


def median(values: Sequence[float]) -> float:
    """Middle value; the mean of the two middle ones for an even number.

    Raises:
        ValueError: there are no values.
    """
    if not values:
        raise ValueError("the median of no values")
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def standard_deviation(values: Sequence[float]) -> float | None:
    """Sample standard deviation: sqrt(sum((x - mean)^2) / (n - 1)); None for fewer than two."""
    if len(values) < 2:
        return None
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
    half = _t_quantile(len(values) - 1) * deviation / math.sqrt(len(values))
    return Interval(low=mean(values) - half, high=mean(values) + half)


def difference_interval(first: Sequence[float], second: Sequence[float]) -> Interval | None:
    """95 % confidence interval of mean(first) - mean(second) by Welch's t.

    With v = s^2 / n of each: difference -+ t(0.975, df) * sqrt(v1 + v2), where
    df = (v1 + v2)^2 / (v1^2 / (n1 - 1) + v2^2 / (n2 - 1)) (Welch and Satterthwaite). The variances
    need not be equal. None if either has fewer than two values.
    """
    deviations = (standard_deviation(first), standard_deviation(second))
    if deviations[0] is None or deviations[1] is None:
        return None
    difference = mean(first) - mean(second)
    variances = (deviations[0] ** 2 / len(first), deviations[1] ** 2 / len(second))
    total = sum(variances)
    if total == 0:
        return Interval(low=difference, high=difference)
    shares = ((variances[0] / total) ** 2, (variances[1] / total) ** 2)
    degrees = 1 / (shares[0] / (len(first) - 1) + shares[1] / (len(second) - 1))
    half = _t_quantile(degrees) * math.sqrt(total)
    return Interval(low=difference - half, high=difference + half)


def _t_quantile(degrees: float) -> float:
    """Two-sided quantile of Student's t distribution for CONFIDENCE."""
    # Not scipy.stats: it takes three times as long to load and gives the same value.
    from scipy.special import stdtrit  # noqa: PLC0415

    return float(stdtrit(degrees, (1 + CONFIDENCE) / 2))
