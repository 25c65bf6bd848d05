"""Comparisons that are read together, corrected for their number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum

from boardcluster.analysis.inference.model import MeasuredRatio

__all__ = ["Correction", "family", "holm"]

_SIGNIFICANCE = 0.05


class Correction(StrEnum):
    """How p values are corrected.

    CONFIRMATORY: no false difference among all of them, but with probability 0.05; for comparisons
    that were declared before the runs. EXPLORATORY: of the differences that are shown, 5 % are
    false on average.
    """

    CONFIRMATORY = "Holm"
    EXPLORATORY = "Benjamini and Hochberg"


def family(
    ratios: Sequence[MeasuredRatio], correction: Correction = Correction.EXPLORATORY
) -> tuple[MeasuredRatio, ...]:
    """Return the same comparisons, each with its p values corrected for the family.

    Only those with an interval are in it. Differences and equivalences are corrected each by
    themselves, as no comparison can be both.
    """
    tested = [row for row in ratios if row.p_value is not None]
    size = len(tested)
    if size < 2:
        return tuple(ratios)
    method = holm if correction is Correction.CONFIRMATORY else _benjamini_hochberg
    differences = method([row.p_value or 0.0 for row in tested])
    equivalences = method([row.p_equivalence or 0.0 for row in tested])
    found = sum(value < _SIGNIFICANCE for value in differences)
    threshold = (
        _SIGNIFICANCE / max(1, size - found)
        if correction is Correction.CONFIRMATORY
        else _SIGNIFICANCE * min(size, found + 1) / size
    )
    changed = {
        id(row): replace(
            row,
            family_size=size,
            correction=str(correction),
            p_adjusted=p_adjusted,
            p_equivalence_adjusted=p_equivalence,
            threshold=threshold,
        )
        for row, p_adjusted, p_equivalence in zip(tested, differences, equivalences, strict=True)
    }
    return tuple(changed.get(id(row), row) for row in ratios)


def holm(values: Sequence[float]) -> list[float]:
    """Return adjusted p by Holm 1979: the i-th smallest times n - i + 1, never falling."""
    found, highest = [0.0] * len(values), 0.0
    for rank, place in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        highest = max(highest, min(1.0, (len(values) - rank) * values[place]))
        found[place] = highest
    return found


def _benjamini_hochberg(values: Sequence[float]) -> list[float]:
    """Adjusted p by Benjamini and Hochberg 1995."""
    from scipy.stats import false_discovery_control  # noqa: PLC0415  it takes long to load

    return [float(value) for value in false_discovery_control(values)]
