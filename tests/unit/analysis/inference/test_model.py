"""Means and ratios, against SciPy and by hand."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Iterable
from dataclasses import replace

import pytest
from scipy import stats
from tests.unit.analysis.runs import result

from boardcluster.analysis.inference import (
    ASSUMED_START_DEVIATION,
    ComparisonMethod,
    EffectVerdict,
    RunValue,
    compare,
    compare_values,
    estimate,
    observe,
    observe_values,
)
from boardcluster.records import Disturbance

SLOW = (61.2, 58.9, 60.4, 63.0, 59.5)
FAST = (30.1, 31.4, 29.2, 30.9, 30.4)


def block(place: int, value: float, side: int = 0, start: int = 1, steal: float = 0.0) -> RunValue:
    """A run of a campaign that ran its cells in turn."""
    return RunValue(
        value=value,
        start=("c", start),
        block=place + 1,
        position=1000 * start + 2 * place + side,
        disturbed={"steal": steal} if steal else {},
    )


def cell(values: tuple[float, ...], side: int = 0, start: int = 1) -> list[RunValue]:
    return [block(place, value, side, start) for place, value in enumerate(values)]


def test_pairs_are_students_t_of_logarithms() -> None:
    ratio = compare(cell(SLOW), cell(FAST, 1))
    logs = [math.log(one / other) for one, other in zip(SLOW, FAST, strict=True)]
    test = stats.ttest_1samp(logs, 0)
    low, high = test.confidence_interval(0.95)
    assert ratio.interval is not None
    assert (ratio.method, ratio.pairs) == (ComparisonMethod.PAIRED, 5)
    assert math.log(ratio.value) == pytest.approx(statistics.fmean(logs))
    assert [math.log(ratio.interval.low), math.log(ratio.interval.high)] == pytest.approx(
        [low, high]
    )
    assert ratio.p_value == pytest.approx(test.pvalue)
    assert ratio.verdict is EffectVerdict.HIGHER


def test_runs_that_are_not_paired_are_welchs_t_of_logarithms() -> None:
    ratio = compare_values(SLOW, FAST)
    test = stats.ttest_ind(*(list(map(math.log, row)) for row in (SLOW, FAST)), equal_var=False)
    low, high = test.confidence_interval(0.95)
    assert ratio.interval is not None
    assert [math.log(ratio.interval.low), math.log(ratio.interval.high)] == pytest.approx(
        [low, high]
    )
    assert ratio.p_value == pytest.approx(test.pvalue)
    assert ratio.pairs == 0


def test_the_inverse_says_the_inverse() -> None:
    one, other = compare_values(SLOW, FAST), compare_values(FAST, SLOW)
    assert one.interval is not None
    assert other.interval is not None
    assert one.value == pytest.approx(1 / other.value)
    assert one.interval.low == pytest.approx(1 / other.interval.high)
    assert (one.verdict, other.verdict) == (EffectVerdict.HIGHER, EffectVerdict.LOWER)


def test_no_worthwhile_difference_is_two_one_sided_tests() -> None:
    same = [100.0 + 0.2 * place for place in range(5)]
    ratio = compare_values(same, [value * 1.01 for value in same])
    logs = [math.log(value) for value in same]
    error = math.sqrt(2 * statistics.variance(logs) / 5)
    beyond = (math.log(1.05) - math.log(1.01)) / error
    assert ratio.p_value is not None
    assert ratio.p_value < 0.05, "a difference of 1 % is certain, and too small to matter"
    assert ratio.p_equivalence == pytest.approx(stats.t.sf(beyond, 8))
    assert ratio.verdict is EffectVerdict.NOT_WORTHWHILE
    strict = compare(
        [RunValue(value=value, start=("c", 1)) for value in same],
        [RunValue(value=value * 1.01, start=("c", 1)) for value in same],
        smallest_effect=0.001,
    )
    assert strict.verdict is EffectVerdict.LOWER


def test_one_run_has_no_interval_and_shows_nothing() -> None:
    ratio = compare_values(SLOW[:1], FAST)
    assert (ratio.interval, ratio.p_value, ratio.more_needed) == (None, None, None)
    assert ratio.verdict is EffectVerdict.NOT_SHOWN
    assert ratio.reason == "one run, no interval"


def test_the_interval_of_a_mean_is_students_by_hand() -> None:
    """Mean (23 + 24 + 28) / 3 = 25, s = sqrt(7), t(0.975, 2) = 4.302653 as tables have it."""
    interval = estimate(observe_values((23.0, 24.0, 28.0))).interval
    assert interval is not None
    assert interval.half_width == pytest.approx(4.302653 * 7**0.5 / 3**0.5, rel=1e-6)
    assert (interval.low + interval.high) / 2 == pytest.approx(25)
    equal = estimate(observe_values((2.0, 2.0))).interval
    assert equal is not None
    assert (equal.low, equal.high) == (2.0, 2.0)
    assert estimate(observe_values((3.0,))).interval is None


def test_with_several_starts_their_means_are_the_values() -> None:
    starts = {1: 1.0, 2: 1.06, 3: 0.95}
    rows = [
        row for start, by in starts.items() for row in cell((by, by * 1.01, by * 0.99), 0, start)
    ]
    known = estimate(rows)
    means = list(starts.values())
    half = stats.t.ppf(0.975, 2) * statistics.stdev(means) / math.sqrt(3)
    assert known.interval is not None
    assert known.interval.half_width == pytest.approx(half)
    assert known.starts == 3
    assert known.between_share == pytest.approx(
        math.sqrt(
            statistics.variance(means) - (0.01**2 * statistics.fmean(by**2 for by in means)) / 3
        )
        / known.mean,
    )


def test_what_a_start_draws_cancels_within_blocks() -> None:
    sides: tuple[list[RunValue], list[RunValue]] = ([], [])
    for start, by in enumerate((1.0, 1.3, 0.7), start=1):
        for side, rows in enumerate(sides):
            factor = by * (1.1 if side else 1.0)
            rows.extend(cell((factor, factor * 1.01, factor * 0.99), side, start))
    ratio = compare(sides[1], sides[0])
    assert (ratio.pairs, ratio.starts) == (9, 3)
    assert ratio.value == pytest.approx(1.1)
    assert ratio.verdict is EffectVerdict.HIGHER


def test_cells_of_a_start_each_get_an_allowance_and_runs_alone_do_not_remove_it() -> None:
    """Cells measured in one start are pseudo-replicates: a hundred runs are still one start."""
    one = [RunValue(value=100.0 + place % 3, start=("c", 1), variant="1") for place in range(100)]
    other = [replace(row, value=row.value * 1.08, variant="2") for row in one]
    ratio = compare(other, one)
    assert ratio.allows_for_starts
    assert ratio.standard_error is not None
    assert ratio.standard_error > math.sqrt(2) * ASSUMED_START_DEVIATION
    assert ratio.verdict is EffectVerdict.NOT_SHOWN
    assert ratio.needs_starts
    together = compare([replace(row, variant="1") for row in other], one)
    assert together.verdict is EffectVerdict.HIGHER, "of the same start they do differ"


def test_a_disturbance_that_explains_the_difference_is_adjusted_for() -> None:
    draw = random.Random(3)
    sides: tuple[list[RunValue], list[RunValue]] = ([], [])
    for place in range(10):
        for side, rows in enumerate(sides):
            steal = draw.uniform(0, 0.3) if side else draw.uniform(0, 0.05)
            time = 100 * draw.gauss(1, 0.005) / (1 - steal)
            rows.append(block(place, time, side, steal=steal))
    ratio = compare(sides[1], sides[0])
    assert "steal" in ratio.adjusted_for
    assert ratio.unadjusted > 1.1
    assert ratio.interval is not None
    assert ratio.interval.low <= 1 <= ratio.interval.high


def test_a_disturbance_that_does_nothing_takes_no_credit_above_its_bound() -> None:
    """A share of 1 % cannot explain a difference of 30 %, however well they go together."""
    first = [block(place, 100.0 + place) for place in range(6)]
    second = [block(place, 130.0 + 6 * place, 1, steal=0.01 * place) for place in range(6)]
    ratio = compare(second, first)
    assert ratio.adjusted_for == ("steal",)
    assert ratio.value > 1.25


def test_few_runs_or_equal_shares_are_not_adjusted() -> None:
    few = compare(
        [block(place, 50.0 + place, steal=0.1 * place) for place in range(3)], cell(FAST[:3], 1)
    )
    same = compare(
        [block(place, value, steal=0.2) for place, value in enumerate(SLOW)], cell(FAST, 1)
    )
    assert few.adjusted_for == same.adjusted_for == ()


def test_a_direction_that_the_means_deny_is_not_shown() -> None:
    """One run of many minutes turns the means around, and both would stand in one report."""
    one = (90.0, 91.0, 89.5, 90.2, 90.1, 900.0)
    other = (100.0, 101.0, 99.5, 100.3, 100.1, 1000.0 / 3)
    ratio = compare(cell(one), cell(other, 1))
    assert not ratio.is_shown


def test_a_run_without_a_partner_is_left_out_only_among_many_pairs() -> None:
    many = compare(cell(tuple(100.0 + place for place in range(10))), cell(SLOW + FAST[:4], 1))
    few = compare(cell(SLOW[:3]), cell(FAST[:2], 1))
    assert (many.pairs, few.pairs) == (9, 0)
    assert few.counts == (3, 2)


def test_blocks_that_did_not_run_in_turn_are_not_paired() -> None:
    first = [replace(row, position=place) for place, row in enumerate(cell(SLOW))]
    second = [replace(row, position=10 + place) for place, row in enumerate(cell(FAST))]
    assert compare(first, second).method is ComparisonMethod.UNPAIRED


def test_so_many_more_blocks_do_show_it() -> None:
    draw = random.Random(11)

    def run(count: int) -> bool:
        rows = [
            [block(place, 100 * draw.gauss(1, 0.03), side) for place in range(count)]
            for side in (0, 1)
        ]
        rows[1] = [replace(row, value=row.value * 1.05) for row in rows[1]]
        return compare(rows[1], rows[0]).is_shown

    needed = []
    for _ in range(200):
        rows = [
            [block(place, 100 * draw.gauss(1, 0.03), side) for place in range(5)] for side in (0, 1)
        ]
        more = compare(rows[1], rows[0]).more_needed
        assert more is not None
        needed.append(5 + more)
    count = int(statistics.median(needed))
    shown = sum(run(count) for _ in range(400)) / 400
    assert 0.65 < shown < 0.95


def test_results_become_values_with_what_disturbed_them() -> None:
    row = result(20.0, position=3, repetition=2)
    assert row.measurement is not None
    shares = (
        Disturbance(cause="steal", node="n1", share=0.1, adjustable=True),
        Disturbance(cause="steal", node="n2", share=0.2, adjustable=True),
        Disturbance(cause="throttled", node="n1", share=0.5, adjustable=False),
    )
    row = replace(row, measurement=replace(row.measurement, disturbances=shares))
    (value,) = observe([row, replace(row, measurement=None)])
    assert (value.value, value.block, value.position) == (20.0, 2, 3)
    assert value.disturbed == {"steal": 0.2}


def test_work_grows_with_the_runs_and_not_with_their_square(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    added, count = 0, 200
    plain = math.fsum

    def counting(values: Iterable[float]) -> float:
        nonlocal added
        known = list(values)
        added += len(known)
        return plain(known)

    monkeypatch.setattr(math, "fsum", counting)
    rows = observe_values([60.0 + place % 7 for place in range(count)])
    estimate(rows)
    assert 0 < added < 10 * count
    added = 0
    compare(rows, rows)
    assert 0 < added < 20 * count


def test_values_that_have_no_ratio_are_refused() -> None:
    with pytest.raises(ValueError, match="not above 0"):
        compare_values([0.0], [1.0])
    with pytest.raises(ValueError, match="no values"):
        compare([], [])
    with pytest.raises(ValueError, match="no values"):
        estimate([])


def test_what_is_always_zero_has_a_mean_and_no_shares() -> None:
    found = estimate([replace(row, value=0.0) for row in cell(SLOW)])
    assert (found.mean, found.within_share, found.between_share) == (0, None, None)


def test_a_start_that_a_resume_had_to_repeat_is_two() -> None:
    """A campaign of one start, whose daemons were started again after its third block."""
    rows = [
        [replace(row, daemons="d1" if row.block < 4 else "d2") for row in cell(values, side)]
        for side, values in enumerate((SLOW, FAST))
    ]
    assert [estimate(row).starts for row in rows] == [2, 2]
    ratio = compare(*rows)
    assert (ratio.pairs, ratio.starts) == (5, 2)
    assert compare(cell(SLOW), cell(FAST, 1)).starts == 1


def test_blocks_that_a_restart_divided_are_no_pairs() -> None:
    over = [replace(row, daemons="d1") for row in cell(SLOW)]
    under = [replace(row, daemons="d1" if row.block < 5 else "d2") for row in cell(FAST, 1)]
    assert compare(over, under).pairs == 4


def test_one_side_with_one_start_gets_the_allowance_for_itself() -> None:
    several = [row for start in (1, 2, 3) for row in cell((60.0, 60.1, 59.9), 0, start)]
    alone = [replace(row, variant="other") for row in cell((30.0, 30.1, 29.9), 1, 4)]
    ratio = compare(several, alone)
    assert ratio.allows_for_starts
    assert ratio.needs_starts
    assert (ratio.starts, ratio.starts_of_each) == (1, (3, 1))
    assert ratio.standard_error is not None
    assert ASSUMED_START_DEVIATION < ratio.standard_error < 1.1 * ASSUMED_START_DEVIATION


def test_campaigns_on_the_same_daemons_are_of_one_start() -> None:
    apart = [
        RunValue(value=value, start=(name, 1)) for name, value in zip("abc", SLOW[:3], strict=True)
    ]
    assert estimate(apart).starts == 3
    together = [replace(row, daemons="d1") for row in apart]
    assert estimate(together).starts == 1
    others = [replace(row, value=30.0 + place) for place, row in enumerate(together)]
    assert compare(together, others).starts == 1
    assert not compare(together, others).allows_for_starts
