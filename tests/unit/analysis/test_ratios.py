"""Ratios with intervals, and tests of pairs, against SciPy and against simulation."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from scipy import stats
from tests.unit.analysis.runs import result

from boardcluster.analysis import Cell, summarise
from boardcluster.analysis.ratios import (
    ONE_RUN,
    RatioMethod,
    geometric_mean,
    paired,
    paired_ratio,
    paired_test,
    pairs_of,
    quotient,
    ratio_of_cells,
    ratio_of_means,
    sums_ratio,
    wilcoxon_p,
)
from boardcluster.analysis.statistics import difference_interval, t_quantile
from boardcluster.records import Engine

SLOW = [61.2, 58.9, 60.4, 63.0, 59.5]
FAST = [30.1, 31.4, 29.2, 30.9, 30.4]


def test_ratio_of_two_means() -> None:
    ratio = ratio_of_means(SLOW, FAST)
    assert ratio.value == pytest.approx(60.6 / 30.4)
    assert ratio.method is RatioMethod.FIELLER
    assert ratio.interval is not None
    assert ratio.bootstrap is not None
    assert ratio.interval.low < ratio.value < ratio.interval.high
    assert ratio.is_shown
    # Two ways to the same thing differ by little, as the values scatter by 2 %.
    assert ratio.bootstrap.low == pytest.approx(ratio.interval.low, rel=0.02)
    assert ratio.bootstrap.high == pytest.approx(ratio.interval.high, rel=0.02)


def test_limits_are_where_the_difference_to_a_multiple_is_just_not_shown() -> None:
    """The definition: at a limit r, Welch's t of mean(over) - r mean(under) is the quantile."""
    ratio = ratio_of_means(SLOW, FAST)
    assert ratio.interval is not None
    errors = [stats.sem(values) ** 2 for values in (SLOW, FAST)]
    scaled = [errors[0], ratio.value**2 * errors[1]]
    degrees = sum(scaled) ** 2 / sum(row**2 / 4 for row in scaled)
    for limit in (ratio.interval.low, ratio.interval.high):
        difference = abs(sum(SLOW) / 5 - limit * sum(FAST) / 5)
        error = math.sqrt(errors[0] + limit**2 * errors[1])
        assert difference / error == pytest.approx(stats.t.ppf(0.975, degrees))


def test_a_ratio_and_the_inverse_say_the_same() -> None:
    one, other = ratio_of_means(SLOW, FAST), ratio_of_means(FAST, SLOW)
    assert one.interval is not None
    assert other.interval is not None
    assert 1 / one.interval.low == pytest.approx(other.interval.high)
    assert 1 / one.interval.high == pytest.approx(other.interval.low)


def test_it_agrees_with_the_difference_on_what_is_shown() -> None:
    for factor in (0.9, 0.97, 0.995, 1.0, 1.005, 1.03, 1.1):
        other = [value * factor for value in SLOW]
        difference = difference_interval(SLOW, other)
        assert difference is not None
        shown = not difference.low <= 0 <= difference.high
        assert ratio_of_means(SLOW, other).is_shown == shown


def test_the_interval_holds_the_truth_in_19_of_20_cases() -> None:
    draw = random.Random(7)
    rounds = 1500
    held = 0
    for _ in range(rounds):
        over = [draw.gauss(60, 6) for _ in range(4)]
        under = [draw.gauss(30, 1.5) for _ in range(6)]
        interval = ratio_of_means(over, under).interval
        assert interval is not None
        held += interval.low <= 2 <= interval.high
    assert 0.93 < held / rounds < 0.975


@pytest.mark.parametrize(("over", "under"), [([60.0], FAST), (SLOW, [30.0]), ([60.0], [30.0])])
def test_one_run_has_no_interval(over: list[float], under: list[float]) -> None:
    ratio = ratio_of_means(over, under)
    assert (ratio.interval, ratio.bootstrap, ratio.reason) == (None, None, ONE_RUN)
    assert ratio.method is RatioMethod.NONE
    assert not ratio.is_shown
    assert ratio.value == pytest.approx(2, rel=0.02)


def test_where_the_lower_mean_may_be_nothing_no_interval_is_made_up() -> None:
    ratio = ratio_of_means(SLOW, [1.0, 60.0])
    assert ratio.interval is None
    assert "every ratio is possible" in ratio.reason


def test_equal_values_have_an_interval_without_width() -> None:
    ratio = ratio_of_means([4.0, 4.0], [2.0, 2.0, 2.0])
    assert ratio.interval is not None
    assert (ratio.interval.low, ratio.value, ratio.interval.high) == (2, 2, 2)


def test_bootstrap_begins_at_five_runs_of_both_and_does_not_depend_on_order() -> None:
    assert ratio_of_means(SLOW[:4], FAST).bootstrap is None
    assert ratio_of_means(SLOW, FAST[:4]).bootstrap is None
    shuffled = ratio_of_means(SLOW[::-1], FAST[::-1])
    assert shuffled.bootstrap == ratio_of_means(SLOW, FAST).bootstrap


@pytest.mark.parametrize("under", [[0.0, 0.0], [-1.0, -2.0], [1.0, -1.0]])
def test_times_of_nothing_are_refused(under: list[float]) -> None:
    with pytest.raises(ValueError, match="not above 0"):
        ratio_of_means(SLOW, under)


def test_no_values_are_refused() -> None:
    with pytest.raises(ValueError, match="no values"):
        ratio_of_means([], FAST)


def test_times_a_factor() -> None:
    ratio = ratio_of_means(SLOW, FAST)
    half = ratio.times(0.5)
    assert ratio.interval is not None
    assert half.interval is not None
    assert half.value == ratio.value / 2
    assert half.interval.half_width == pytest.approx(ratio.interval.half_width / 2)
    assert half.method is ratio.method
    assert ratio_of_means([1.0], [2.0]).times(4).value == 2


def test_plain_arithmetic() -> None:
    assert quotient(3, 2) == 1.5
    assert sums_ratio([1, 2, 6], [1, 1, 1]) == 3
    assert geometric_mean([2, 8]) == pytest.approx(4)
    assert geometric_mean([1 / 2, 2]) == pytest.approx(1)
    with pytest.raises(ValueError, match="geometric mean of a value"):
        geometric_mean([1.0, 0.0])
    with pytest.raises(ValueError, match="not above 0"):
        quotient(1, math.nan)


@pytest.mark.parametrize("degrees", [1, 2.5, 30])
def test_quantile_of_t(degrees: float) -> None:
    assert t_quantile(degrees) == pytest.approx(stats.t.ppf(0.975, degrees))


# Pairs of values


def test_paired_ratio_leaves_out_what_both_runs_share() -> None:
    drifting = [10.0, 20.0, 40.0, 80.0]
    twice = [20.2, 39.8, 80.4, 159.0]
    ratio = paired_ratio(twice, drifting)
    assert ratio.method is RatioMethod.PAIRED
    assert ratio.pairs == 4
    assert ratio.interval is not None
    assert ratio.interval.low > 1.95
    assert ratio.interval.high < 2.05
    assert not ratio_of_means(twice, drifting).is_shown, "unpaired, nothing is to be seen"


def test_one_pair_has_no_interval() -> None:
    ratio = paired_ratio([4.0], [2.0])
    assert (ratio.value, ratio.interval, ratio.reason) == (2.0, None, ONE_RUN)


def test_paired_t_test_is_scipys() -> None:
    test = paired_test(SLOW, FAST)
    found = stats.ttest_rel(SLOW, FAST)
    limits = found.confidence_interval(0.95)
    assert test.p_t == pytest.approx(found.pvalue)
    assert (test.interval.low, test.interval.high) == pytest.approx((limits.low, limits.high))
    assert test.mean_difference_seconds == pytest.approx(60.6 - 30.4)
    assert test.pairs == 5
    assert test.is_shown
    assert test.p_wilcoxon == 2 / 2**5


@pytest.mark.parametrize("count", [3, 6, 11, 25])
@pytest.mark.parametrize("shift", [0.0, 0.4, 2.0])
def test_exact_signed_ranks_are_scipys(count: int, shift: float) -> None:
    draw = random.Random(count)
    values = [draw.gauss(shift, 1) for _ in range(count)]
    wanted = stats.wilcoxon(values, method="exact").pvalue
    assert wilcoxon_p(values) == pytest.approx(wanted)


def test_signed_ranks_with_ties_are_counted_over_all_signs() -> None:
    values = [1.0, 1.0, -1.0, 2.0, 2.0, 3.0]
    ranks = [2, 2, 2, 4.5, 4.5, 6]
    seen = abs(2 * (sum(ranks) - 2) - sum(ranks))
    signs = [[1 if number >> bit & 1 else -1 for bit in range(6)] for number in range(64)]
    sums = [abs(sum(s * r for s, r in zip(row, ranks, strict=True))) for row in signs]
    assert wilcoxon_p(values) == sum(value >= seen for value in sums) / 64


@pytest.mark.parametrize("seed", range(4))
def test_signed_ranks_with_ties_are_those_of_scipys_permutation_test(seed: int) -> None:
    """SciPy's own exact p takes ranks without ties, so it is another one here."""
    draw = random.Random(seed)
    values = [float(draw.choice((-2, -1, 1, 2, 3))) for _ in range(8)]
    every_sign = stats.PermutationMethod(n_resamples=math.inf)
    assert wilcoxon_p(values) == pytest.approx(stats.wilcoxon(values, method=every_sign).pvalue)


def test_many_signed_ranks_with_ties_are_taken_as_normal_too() -> None:
    values = [float(place % 7 - 2.5) for place in range(60)]
    wanted = stats.wilcoxon(values, method="asymptotic").pvalue
    assert wilcoxon_p(values) == pytest.approx(wanted)


def test_many_signed_ranks_are_taken_as_normal() -> None:
    draw = random.Random(3)
    values = [draw.gauss(0.2, 1) for _ in range(60)]
    wanted = stats.wilcoxon(values, method="approx", correction=False).pvalue
    assert wilcoxon_p(values) == pytest.approx(wanted, rel=1e-6)


def test_differences_of_zero_say_nothing() -> None:
    assert wilcoxon_p([0.0, 0.0]) is None
    assert wilcoxon_p([0.0, 1.0, 2.0]) == wilcoxon_p([1.0, 2.0])
    same = paired_test([3.0, 5.0], [3.0, 5.0])
    assert (same.p_t, same.p_wilcoxon, same.is_shown) == (None, None, False)


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ([1.0, 2.0], [1.0], "2 values cannot be paired with 1"),
        ([1.0], [2.0], "fewer than two pairs"),
        ([1.0, 0.0], [2.0, 2.0], "geometric mean"),
        ([], [], "no values"),
    ],
)
def test_what_is_no_pair_is_refused(first: list[float], second: list[float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        paired_test(first, second)


# Pairs of runs


def two_cells(places: list[tuple[int, int]], **more: Any) -> tuple[Cell, Cell]:
    """A cell of each engine; each row has the places of one repetition."""
    runs = []
    for number, (one, other) in enumerate(places, start=1):
        for place, engine, seconds in (
            (one, Engine.MAPREDUCE, 40.0 + number),
            (other, Engine.SPARK, 20.0 + number),
        ):
            runs.append(result(seconds, position=place, repetition=number, engine=engine, **more))
    first, second = summarise(runs)
    return first, second


def test_repetitions_that_ran_in_turn_are_pairs() -> None:
    first, second = two_cells([(0, 1), (3, 2), (4, 5)])
    rows = pairs_of(first, second)
    assert [(a.trial.repetition, b.trial.repetition) for a, b in rows] == [(1, 1), (2, 2), (3, 3)]
    test = paired(first, second)
    assert test is not None
    assert test.pairs == 3
    assert test.mean_difference_seconds == pytest.approx(20)
    assert ratio_of_cells(first, second) == test.ratio
    assert test.ratio.method is RatioMethod.PAIRED


def test_cells_that_ran_one_after_the_other_are_not_paired() -> None:
    first, second = two_cells([(0, 3), (1, 4), (2, 5)])
    assert pairs_of(first, second) == ()
    assert paired(first, second) is None
    ratio = ratio_of_cells(first, second)
    assert ratio == ratio_of_means(first.durations_seconds, second.durations_seconds)
    assert ratio.method is RatioMethod.FIELLER


def test_pairs_are_of_one_campaign() -> None:
    runs = [
        result(40, position=0, engine=Engine.MAPREDUCE, campaign="a"),
        result(20, position=1, engine=Engine.SPARK, campaign="b"),
    ]
    first, second = summarise(runs)
    assert pairs_of(first, second) == ()


def test_a_repetition_that_only_one_cell_has_is_no_pair() -> None:
    first, second = two_cells([(0, 1), (2, 3)])
    more = [*first.results, *second.results, result(90, position=4, repetition=3)]
    first, second = summarise(more)
    assert first.count == 3
    assert len(pairs_of(first, second)) == 2


def test_of_several_tries_the_last_one_counts() -> None:
    first, second = two_cells([(0, 1), (2, 3)])
    again = result(99, position=2, repetition=2, number=2)
    first, second = summarise([*first.results, *second.results, again])
    rows = pairs_of(first, second)
    assert [row.measurement.duration_seconds for row, _ in rows if row.measurement] == [41, 99]


def test_a_ratio_of_cells_leaves_no_run_out_for_the_sake_of_pairs() -> None:
    first, second = two_cells([(0, 1), (2, 3), (4, 5)])
    alone = [
        result(30.0, position=place, repetition=1, engine=engine, campaign=campaign)
        for place, (engine, campaign) in enumerate(
            ((Engine.MAPREDUCE, "d"), (Engine.SPARK, "e")), start=6
        )
    ]
    more, others = summarise([*first.results, *second.results, *alone])
    assert len(pairs_of(more, others)) == 3
    assert ratio_of_cells(more, others).pairs == 0
    assert ratio_of_cells(more, second).pairs == 3
    assert ratio_of_cells(first, second).pairs == 3
