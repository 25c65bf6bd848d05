from __future__ import annotations

import pytest
import scipy.stats

from boardcluster.analysis.statistics import (
    LEAST_RUNS,
    coefficient_of_variation,
    drift,
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
def test_few_runs_have_no_outliers_and_no_drift(count: int) -> None:
    values = [1.0, 2.0, 3.0, 99.0][:count]
    assert outliers(values) == ()
    assert drift(values) is None


def test_outliers_by_hand() -> None:
    # Hinges of the eight below are 11.5 and 14.5: fences at 7 and 19, which still belong.
    values = (19.0, 11.0, 12.0, 7.0, 13.0, 14.0, 15.0, 12.0)
    assert sorted(values) == [7, 11, 12, 12, 13, 14, 15, 19]
    assert outliers(values) == ()
    assert outliers((19.1, *values[1:])) == (0,)
    assert outliers((*values[:3], 6.9, *values[4:])) == (3,)
    assert outliers((10.0, 10.0, 10.0, 10.0, 10.1)) == (4,)


def test_drift_of_a_rising_series_by_hand() -> None:
    # Of 5! = 120 orders only two are as far from no order: p = 2 / 120.
    found = drift((10.0, 11.0, 12.5, 12.6, 30.0))
    assert found is not None
    assert (found.correlation, found.p_value) == pytest.approx((1.0, 2 / 120))
    assert found.is_shown
    found = drift((5.0, 4.0, 3.0, 2.0, 1.0))
    assert found is not None
    assert (found.correlation, found.p_value) == pytest.approx((-1.0, 2 / 120))


def test_drift_of_one_swap_by_hand() -> None:
    # r = 1 - 6 * 2 / (5 * 24) = 0.9; the orders with |r| >= 0.9 are 1 + 4 and their mirrors.
    found = drift((10.0, 12.0, 11.0, 13.0, 14.0))
    assert found is not None
    assert found.correlation == pytest.approx(0.9)
    assert found.p_value == pytest.approx(10 / 120)
    assert not found.is_shown


def test_drift_with_ties_agrees_with_scipy() -> None:
    # scipy.stats.spearmanr and an exhaustive permutation_test over these.
    found = drift((1.0, 1.0, 2.0, 3.0, 3.0, 5.0, 4.0))
    assert found is not None
    assert found.correlation == pytest.approx(0.9456108576893)
    assert found.p_value == pytest.approx(0.0031746031746)


@pytest.mark.parametrize("values", [(3.0, 1.0, 2.0, 5.0, 4.0, 6.0), (1.0, 1.0, 3.0, 2.0, 3.0)])
def test_exact_p_of_drift_is_that_of_scipys_permutation_test(values: tuple[float, ...]) -> None:
    def size(values: tuple[float, ...]) -> float:
        return abs(float(scipy.stats.spearmanr(range(len(values)), values).statistic))

    wanted = scipy.stats.permutation_test(
        (values,), size, permutation_type="pairings", alternative="greater", n_resamples=10**6
    )
    found = drift(values)
    assert found is not None
    assert found.p_value == pytest.approx(wanted.pvalue)


def test_drift_of_many_runs_agrees_with_scipy() -> None:
    values = (5.0, 3.0, 8.0, 6.0, 9.0, 7.0, 12.0, 10.0, 11.0)
    reference = scipy.stats.spearmanr(range(9), values)
    found = drift(values)
    assert found is not None
    assert found.correlation == pytest.approx(reference.statistic)
    assert found.p_value == pytest.approx(reference.pvalue)
    assert found.is_shown
    straight = drift([float(place) for place in range(12)])
    assert straight is not None
    assert (straight.correlation, straight.p_value) == pytest.approx((1.0, 0.0))


def test_no_drift_where_nothing_varies() -> None:
    assert drift((3.0,) * 6) is None
