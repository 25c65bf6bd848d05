from __future__ import annotations

import pytest

from boardcluster.analysis.statistics import (
    coefficient_of_variation,
    difference_interval,
    mean,
    mean_interval,
    median,
    standard_deviation,
)

# By hand: mean (23 + 24 + 28) / 3 = 25, squares 4 + 1 + 9 = 14, s = sqrt(14 / 2) = sqrt(7).
VALUES = (23.0, 24.0, 28.0)
ROOT_7 = 2.6457513110645906
# t(0.975, 2) and t(0.975, 4) as printed in tables of Student's distribution.
T_2 = 4.302653
T_4 = 2.776445


def test_mean_median_and_deviation_by_hand() -> None:
    assert mean(VALUES) == 25.0
    assert median(VALUES) == 24.0
    assert median((4.0, 1.0, 3.0, 2.0)) == 2.5
    assert standard_deviation(VALUES) == pytest.approx(ROOT_7)
    assert coefficient_of_variation(VALUES) == pytest.approx(ROOT_7 / 25)


def test_interval_of_the_mean_by_hand() -> None:
    interval = mean_interval(VALUES)
    assert interval is not None
    assert interval.half_width == pytest.approx(T_2 * ROOT_7 / 3**0.5, rel=1e-6)
    assert (interval.low + interval.high) / 2 == pytest.approx(25)


def test_interval_of_a_difference_by_hand() -> None:
    # Equal n and variance: df = 2 (n - 1) = 4 and the standard error is sqrt(7/3 + 7/3).
    interval = difference_interval([value + 10 for value in VALUES], VALUES)
    assert interval is not None
    assert interval.low == pytest.approx(10 - T_4 * (14 / 3) ** 0.5, rel=1e-6)
    assert interval.high == pytest.approx(10 + T_4 * (14 / 3) ** 0.5, rel=1e-6)


def test_interval_of_a_difference_where_one_side_does_not_vary() -> None:
    # v2 = 0 leaves df = n1 - 1 = 2.
    interval = difference_interval(VALUES, (20.0, 20.0, 20.0))
    assert interval is not None
    assert interval.half_width == pytest.approx(T_2 * (7 / 3) ** 0.5, rel=1e-6)


def test_equal_runs_have_an_interval_of_no_width() -> None:
    interval = difference_interval((3.0, 3.0), (1.0, 1.0))
    assert interval is not None
    assert (interval.low, interval.high) == (2.0, 2.0)


def test_one_run_has_no_deviation_and_no_interval() -> None:
    assert standard_deviation((3.0,)) is None
    assert coefficient_of_variation((3.0,)) is None
    assert mean_interval((3.0,)) is None
    assert difference_interval((3.0,), VALUES) is None


def test_no_values_are_an_error_and_a_mean_of_zero_has_no_variation() -> None:
    with pytest.raises(ValueError, match="no values"):
        mean(())
    with pytest.raises(ValueError, match="no values"):
        median(())
    assert coefficient_of_variation((-1.0, 1.0)) is None
