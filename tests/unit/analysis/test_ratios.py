"""Arithmetic of ratios, as papers print them."""

from __future__ import annotations

import math

import pytest

from boardcluster.analysis.ratios import geometric_mean, quotient, sums_ratio


def test_a_quotient_of_nothing_is_refused() -> None:
    assert quotient(3, 2) == 1.5
    with pytest.raises(ValueError, match="not above 0"):
        quotient(3, 0)


def test_ratio_of_sums() -> None:
    assert sums_ratio([1, 2, 3], [1, 1, 1]) == 2


def test_geometric_mean_favours_no_side() -> None:
    values = [0.5, 2.0, 4.0]
    assert geometric_mean(values) == pytest.approx(4 ** (1 / 3))
    assert geometric_mean([1 / value for value in values]) == pytest.approx(
        1 / geometric_mean(values)
    )
    assert math.isclose(geometric_mean([7.0]), 7.0)
    with pytest.raises(ValueError, match="not above 0"):
        geometric_mean([1.0, 0.0])
