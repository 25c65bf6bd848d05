"""How precise the results of a campaign are, as one number each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from boardcluster.analysis.inference.model import compare, estimate
from boardcluster.analysis.inference.observations import RunValue, observe
from boardcluster.analysis.statistics import CONFIDENCE

if TYPE_CHECKING:  # cells ask this package for their intervals
    from boardcluster.analysis.cells import Cell

__all__ = ["HalfWidth", "half_width", "half_widths"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HalfWidth:
    """How precise one mean, or one comparison, is."""

    cells: tuple[Cell, ...]
    """The cell of a mean; the two cells of a comparison."""
    share: float | None
    """Half of the interval's width: of a mean as a share of it; of a ratio, by how large a share
    its upper limit is above it. None for one run."""


def half_width(
    over: Sequence[RunValue],
    under: Sequence[RunValue] | None = None,
    *,
    confidence: float = CONFIDENCE,
) -> float | None:
    """Return how wide the interval of a mean is, or that of the ratio of two, as a share.

    Args:
        over: the runs of a cell.
        under: those of the cell that it is compared with; None for the mean.
        confidence: of the interval; above 0.95 for one that is looked at more than once.

    Raises:
        ValueError: there are no values.
    """
    if under is None:
        found = estimate(over, confidence=confidence)
        return None if found.interval is None else found.interval.half_width / found.mean
    ratio = compare(over, under, confidence=confidence)
    if ratio.interval is None:
        return None
    return math.sqrt(ratio.interval.high / ratio.interval.low) - 1


def half_widths(cells: Iterable[Cell], *, confidence: float = CONFIDENCE) -> tuple[HalfWidth, ...]:
    """Return the precision of each mean, then of each two engines at one configuration."""
    rows = [(cell, observe(cell.results)) for cell in cells]
    found = [
        HalfWidth(cells=(cell,), share=half_width(values, confidence=confidence))
        for cell, values in rows
    ]
    for place, (one, values) in enumerate(rows):
        found += [
            HalfWidth(cells=(one, other), share=half_width(values, others, confidence=confidence))
            for other, others in rows[place + 1 :]
            if one.configuration == other.configuration
        ]
    return tuple(found)
