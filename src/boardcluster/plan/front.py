"""Which choices nothing beats in every respect at once. Pure."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["pareto_front"]


def pareto_front(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the places of the rows that no other row beats, by their first column.

    A row beats another if it is nowhere larger and somewhere smaller. Of equal rows only the first
    stays. NaN counts as infinite.

    Args:
        values: a row for each choice, a column for each respect; less is better.
    """
    rows = np.where(np.isnan(values), np.inf, values)
    _, first = np.unique(rows, axis=0, return_index=True)
    # The rows come back sorted by their columns, so none can beat one that stands before it.
    left, kept = first, []
    while len(left):
        best, left = left[0], left[1:]
        kept.append(best)
        left = left[np.any(rows[left] < rows[best], axis=1)]
    return np.array(kept, dtype=np.int64)
