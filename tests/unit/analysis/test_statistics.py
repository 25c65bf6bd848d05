from __future__ import annotations

import pytest

from boardcluster.analysis.statistics import (
    LEAST_RUNS,
    coefficient_of_variation,
    mean,
    outliers,
    standard_deviation,
)

# By hand: mean (23 + 24 + 28) / 3 = 25, squares 4 + 1 + 9 = 14, s = sqrt(14 / 2) = sqrt(7).
VALUES = (23.0, 24.0, 28.0)
ROOT_7 = 2.6457513110645906
# t(0.975, 2) and t(0.975, 4) as printed in tables of Student's distribution.
T_2 = 4.302653
T_4 = 2.776445


def test_mean_and_deviation_by_hand() -> None:
    assert mean(VALUES) == 25.0
    assert standard_deviation(VALUES) == pytest.approx(ROOT_7)
    assert coefficient_of_variation(VALUES) == pytest.approx(ROOT_7 / 25)


def test_one_run_has_no_deviation() -> None:
    assert standard_deviation((3.0,)) is None
    assert coefficient_of_variation((3.0,)) is None


def test_no_values_are_an_error_and_a_mean_of_zero_has_no_variation() -> None:
    with pytest.raises(ValueError, match="no values"):
        mean(())
    assert coefficient_of_variation((-1.0, 1.0)) is None


@pytest.mark.parametrize("count", range(LEAST_RUNS))
def test_few_runs_have_no_outliers(count: int) -> None:
    values = [1.0, 2.0, 3.0, 99.0][:count]
    assert outliers(values) == ()


def test_outliers_by_hand() -> None:
    # Hinges of the eight below are 11.5 and 14.5: fences at 7 and 19, which still belong.
    values = (19.0, 11.0, 12.0, 7.0, 13.0, 14.0, 15.0, 12.0)
    assert sorted(values) == [7, 11, 12, 12, 13, 14, 15, 19]
    assert outliers(values) == ()
    assert outliers((19.1, *values[1:])) == (0,)
    assert outliers((*values[:3], 6.9, *values[4:])) == (3,)
    assert outliers((10.0, 10.0, 10.0, 10.0, 10.1)) == (4,)
