"""How many times one thing is another. Pure.

What is measured is compared by the one layer of ``inference``; here is the arithmetic of numbers
without chance, as papers print them.

Source: means of ratios: P. J. Fleming and J. J. Wallace, "How not to lie with statistics", *CACM*
29(3), 1986.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from boardcluster.analysis.cells import Cell
from boardcluster.analysis.inference import MeasuredRatio, compare, observe
from boardcluster.analysis.statistics import mean

__all__ = ["geometric_mean", "quotient", "ratio_of_cells", "sums_ratio"]


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


def ratio_of_cells(over: Cell, under: Cell) -> MeasuredRatio:
    """Compare the durations of two cells: see ``inference.compare``."""
    return compare(observe(over.results), observe(under.results))
