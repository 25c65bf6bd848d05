"""How precise a mean is, or the ratio of two: the one place that says how far intervals reach."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from boardcluster.analysis.inference.model import compare, estimate
from boardcluster.analysis.inference.observations import RunValue
from boardcluster.analysis.statistics import t_quantile

__all__ = ["Precision", "precision_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """How precise one mean, or one comparison, is."""

    result: float
    """The mean in the unit of its values, or the ratio."""
    is_ratio: bool
    """Whether it is of a ratio."""
    standard_error: float | None
    """Of a mean, as a share of it; of a ratio, of its logarithm. None where nothing shows it."""
    degrees: float
    """Degrees of freedom of ``standard_error``."""
    count: int
    """How many values it is from: starts of the cluster where there are several, else pairs or
    runs."""
    starts: int
    """Starts of the cluster that are replicates."""

    @property
    def deviation(self) -> float | None:
        """Standard deviation of the values that ``standard_error`` comes from."""
        return None if self.standard_error is None else self.standard_error * math.sqrt(self.count)

    def half_width(self, quantile: Callable[[float], float] = t_quantile) -> float:
        """Return how far a 95 % interval reaches, as a share of the result; infinite without one.

        Of a ratio it is by how large a share the upper limit is above it.

        Args:
            quantile: from degrees of freedom to the number of standard errors: Student's, or
                ``sequential.anytime_quantile`` for an interval that is looked at again and again.
        """
        if self.standard_error is None or math.isinf(reach := quantile(self.degrees)):
            return math.inf
        half = reach * self.standard_error
        if not self.is_ratio:
            return half
        return math.expm1(half) if half < 700 else math.inf


def precision_of(over: Sequence[RunValue], under: Sequence[RunValue] | None = None) -> Precision:
    """Return how precise the mean of a cell is, or its ratio to another one.

    Args:
        over: the runs of a cell.
        under: those of the cell that it is compared with; None for the mean.

    Raises:
        ValueError: there are no values.
    """
    if under is None:
        known = estimate(over)
        count = known.starts if known.starts > 1 else known.runs
        return Precision(
            result=known.mean,
            is_ratio=False,
            standard_error=known.standard_error and known.standard_error / known.mean,
            degrees=count - 1,
            count=count,
            starts=known.starts,
        )
    ratio = compare(over, under)
    return Precision(
        result=ratio.value,
        is_ratio=True,
        standard_error=ratio.standard_error,
        degrees=ratio.degrees,
        count=ratio.replicates,
        starts=ratio.starts,
    )
