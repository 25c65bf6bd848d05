"""Comparisons corrected for their number."""

from __future__ import annotations

import pytest
from scipy.stats import false_discovery_control

from boardcluster.analysis.inference import Correction, MeasuredRatio, compare_values, family

SAME = (100.0, 101.0, 99.0, 100.5)


def ratios() -> list[MeasuredRatio]:
    shifts = (1.0, 1.012, 1.02, 1.03, 1.08, 1.3)
    return [compare_values([value * by for value in SAME], SAME) for by in shifts]


def test_holm_by_hand() -> None:
    rows = ratios()
    corrected = family(rows, Correction.CONFIRMATORY)
    values = sorted(row.p_value or 0.0 for row in rows)
    by_hand = [max((6 - j) * values[j] for j in range(i + 1)) for i in range(6)]
    assert sorted(row.p_adjusted or 0.0 for row in corrected) == pytest.approx(
        [min(1.0, value) for value in by_hand]
    )
    assert {row.correction for row in corrected} == {"Holm"}


def test_benjamini_and_hochberg_agrees_with_scipy() -> None:
    rows = ratios()
    corrected = family(rows)
    assert [row.p_adjusted for row in corrected] == pytest.approx(
        list(false_discovery_control([row.p_value or 0.0 for row in rows]))
    )
    assert {row.family_size for row in corrected} == {6}


def test_what_is_shown_alone_may_not_be_among_many() -> None:
    near = compare_values(
        [value * 1.03 for value in SAME],
        SAME,
    )
    assert near.p_value is not None
    assert near.p_value < 0.05
    among = family([near, *(compare_values(SAME, [100.2, 99.1, 101.1, 100.3]) for _ in range(30))])
    assert near.p_adjusted == near.p_value
    assert among[0].p_adjusted is not None
    assert among[0].p_adjusted > 0.05
    assert not among[0].is_shown
    assert among[0].interval == near.interval


def test_those_without_an_interval_are_in_no_family() -> None:
    alone = compare_values([1.0], [2.0])
    assert family([alone]) == (alone,)
    first, second, third = family([alone, *ratios()[:2]])
    assert first == alone
    assert second.family_size == third.family_size == 2
