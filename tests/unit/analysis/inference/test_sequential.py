"""Intervals that hold under looking: by formula, and by simulation with known truth."""

import math
import statistics

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, stats

from boardcluster.analysis.inference import observe_values, precision_of, sequential
from boardcluster.analysis.inference.sequential import (
    anytime_quantile,
    observations_needed,
)

PATHS = 4000
LOOKS = 40


def test_the_quantile_inverts_the_mixture_of_t_likelihoods() -> None:
    """The boundary is where the likelihood ratio of t, averaged over effects, is 1 / 0.05."""
    for count in (4, 5, 9, 20):
        t = anytime_quantile(count - 1)
        plain = stats.t.pdf(t, count - 1)

        def weighed(effect: float, count: int = count, t: float = t) -> float:
            likelihood = stats.nct.pdf(t, count - 1, effect * math.sqrt(count))
            prior = stats.norm.pdf(effect, scale=math.sqrt(sequential._EFFECT_VARIANCE))
            return float(likelihood * prior)

        mixture, _ = integrate.quad(weighed, -12, 12, limit=200, points=[0, t / math.sqrt(count)])
        assert mixture / plain == pytest.approx(20, rel=1e-3)


def test_too_few_values_have_no_finite_interval() -> None:
    assert [math.isinf(anytime_quantile(degrees)) for degrees in (-1, 0, 1, 2, 3)] == [
        *(True, True, True, True),
        False,
    ]
    assert math.isinf(precision_of(observe_values([1.0, 2.0, 3.0])).half_width(anytime_quantile))


def test_it_is_wider_than_students_and_grows_with_the_confidence() -> None:
    for degrees in (3, 4, 9, 29, 99):
        student = float(stats.t.ppf(0.975, degrees))
        assert 1.6 < anytime_quantile(degrees) / student < 2.6
        assert anytime_quantile(degrees, confidence=0.8) < anytime_quantile(degrees)
    for wrong in (0.0, 1.0, math.nan):
        with pytest.raises(ValueError, match="no confidence"):
            anytime_quantile(9, confidence=wrong)


def test_an_interval_is_as_many_standard_errors_wide() -> None:
    values = [1.0, 1.2, 0.9, 1.1, 1.3, 1.0]
    found = precision_of(observe_values(values))
    error = statistics.stdev(values) / math.sqrt(len(values)) / statistics.fmean(values)
    assert found.half_width(anytime_quantile) == pytest.approx(anytime_quantile(5) * error)
    assert precision_of(observe_values([2.0] * 4)).half_width(anytime_quantile) == 0


def _looks(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean and its standard error at each look, for every path."""
    count = np.arange(1, values.shape[1] + 1)
    mean = values.cumsum(axis=1) / count
    squares = (values**2).cumsum(axis=1) - count * mean**2
    variance = np.maximum(squares, 0) / np.maximum(count - 1, 1)
    return mean, np.sqrt(variance / count)


def _ever_missed(values: NDArray[np.float64], quantiles: list[float], truth: float = 0.0) -> float:
    """Return the share of paths in which an interval of any look misses the truth."""
    mean, error = _looks(values)
    half_width = np.full(values.shape, np.inf)
    for place, quantile in enumerate(quantiles):
        if math.isfinite(quantile):
            half_width[:, place] = quantile * error[:, place]
    return float((np.abs(mean - truth) > half_width).any(axis=1).mean())


def _stopped(
    values: NDArray[np.float64], quantiles: list[float], width: float, truth: float
) -> tuple[float, float]:
    """Return how often the interval at the end misses, and the mean number of runs."""
    mean, error = _looks(values)
    finite = np.array([math.isfinite(row) for row in quantiles])
    half_width = np.where(finite, np.where(finite, quantiles, 0.0) * error, np.inf)
    narrow = half_width <= width
    last = np.where(narrow.any(axis=1), narrow.argmax(axis=1), values.shape[1] - 1)
    rows = np.arange(len(values))
    missed = np.abs(mean[rows, last] - truth) > half_width[rows, last]
    return float(missed.mean()), float((last + 1).mean())


ANYTIME = [anytime_quantile(count - 1) for count in range(1, LOOKS + 1)]
STUDENT = [math.inf, math.inf, *(float(stats.t.ppf(0.975, n - 1)) for n in range(3, LOOKS + 1))]


def test_no_look_misses_more_often_than_it_says_and_students_does() -> None:
    """The reproduction: intervals for a fixed number of runs, looked at after each block."""
    draws = np.random.default_rng(14)
    values = draws.normal(size=(PATHS, LOOKS))
    assert _ever_missed(values, STUDENT) > 0.2
    assert _ever_missed(values, ANYTIME) <= 0.05
    # Durations: lognormal, their logarithms are what is judged.
    seconds = 60 * draws.lognormal(sigma=0.05, size=(PATHS, LOOKS))
    assert _ever_missed(np.log(seconds), ANYTIME, truth=math.log(60)) <= 0.05


@pytest.mark.parametrize("variation", [0.02, 0.05])
def test_what_stops_when_it_is_narrow_covers_the_truth(variation: float) -> None:
    values = np.random.default_rng(15).normal(0.1, variation, size=(PATHS, LOOKS))
    width = 1.2 * variation
    missed, runs = _stopped(values, ANYTIME, width, 0.1)
    naive, fewer = _stopped(values, STUDENT, width, 0.1)
    assert missed <= 0.05
    assert naive > 0.06
    assert fewer < runs < LOOKS  # validity has its price
    assert observations_needed(variation, width) == pytest.approx(runs, rel=0.3)


def test_blocks_of_one_start_are_no_replicates_and_starts_are() -> None:
    """2 % between starts, 3 % within: who takes blocks for replicates misses the truth."""
    draws = np.random.default_rng(16)
    starts = draws.normal(0, 0.02, size=(PATHS, LOOKS // 4, 1))
    blocks = starts + draws.normal(0, 0.03, size=(PATHS, LOOKS // 4, 4))
    assert _ever_missed(blocks.reshape(PATHS, -1), ANYTIME) > 0.06
    assert _ever_missed(blocks.mean(axis=2), ANYTIME[: LOOKS // 4]) <= 0.05


def test_how_many_values_are_needed() -> None:
    assert observations_needed(0.0, 0.03) == 4
    for deviation in (0.01, 0.03, 0.1):
        count = observations_needed(deviation, 0.03)
        assert count is not None
        assert anytime_quantile(count - 1) * deviation / math.sqrt(count) <= 0.03
        assert count == 4 or anytime_quantile(count - 2) * deviation / math.sqrt(count - 1) > 0.03
    assert observations_needed(100.0, 0.001) is None
