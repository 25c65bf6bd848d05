"""Control charts, on simulated rounds whose truth is known."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from boardcluster.analysis.control_chart import (
    FALSE_ALARM,
    ControlChart,
    RoundValue,
    control_chart,
)

SEED = 19


def rounds(seconds: Sequence[float | None]) -> list[RoundValue]:
    return [
        RoundValue(round=f"c{place}", started_utc="", seconds=value, runs=int(value is not None))
        for place, value in enumerate(seconds)
    ]


def simulated(count: int, *, deviation: float, seed: int = SEED) -> list[float]:
    """Rounds of 20 s that scatter by so much, as logarithms."""
    values = np.random.default_rng(seed).normal(0.0, deviation, count)
    return [20 * math.exp(value) for value in values]


def out(chart: ControlChart) -> list[int]:
    return [point.number for point in chart.points if point.out]


def test_rounds_of_an_unchanged_machine_rarely_leave_their_limits() -> None:
    alarms = judged = 0
    for seed in range(300):
        chart = control_chart(rounds(simulated(40, deviation=0.05, seed=seed)), baseline=10)
        judged += sum(not point.in_baseline for point in chart.points)
        alarms += len(out(chart))
    # Alarms of the average come in rows, so 9,000 rounds are worth fewer: twice the rate is far.
    assert alarms / judged <= 2 * FALSE_ALARM
    assert alarms > 0  # limits that hold everything would pass, too


def test_many_cells_share_the_false_alarms() -> None:
    values = rounds(simulated(12, deviation=0.1))
    alone, among = (control_chart(values, baseline=10, cells=count) for count in (1, 20))
    assert alone.limits_seconds is not None
    assert among.limits_seconds is not None
    assert among.limits_seconds.high > alone.limits_seconds.high


@pytest.mark.parametrize(("deviation", "most"), [(0.01, 1), (0.02, 3), (0.03, 8)])
def test_a_slowdown_of_a_tenth_is_seen_after_few_rounds(deviation: float, most: int) -> None:
    seen = []
    for seed in range(60):
        values = simulated(30, deviation=deviation, seed=seed)
        slowed = [*values[:10], *(1.1 * value for value in values[10:])]
        chart = control_chart(rounds(slowed), baseline=10)
        seen.append(out(chart)[0] - 10 if out(chart) else 99)
    assert np.median(seen) <= most


def test_the_change_point_is_where_the_change_was_put() -> None:
    held = seen = 0
    for seed in range(60):
        values = simulated(24, deviation=0.02, seed=seed)
        slowed = [*values[:16], *(1.15 * value for value in values[16:])]
        change = control_chart(rounds(slowed), baseline=10).change
        if change is None:  # the baseline scatters much by chance
            continue
        seen += 1
        held += change.earliest <= 16 <= change.latest
        assert change.earliest <= change.before <= change.latest
        assert change.ratio.value == pytest.approx(1.15, abs=0.05)
    assert seen >= 55
    assert held >= 0.9 * seen


def test_one_slow_round_is_out_and_a_repaired_machine_is_not() -> None:
    steady = [20.0, 20.2, 19.9, 20.1, 19.8]
    slow = control_chart(rounds([*steady, 40.0]), baseline=5)
    assert out(slow) == [6]
    assert slow.is_out
    assert slow.change is not None
    assert (slow.change.before, slow.change.after) == (5, 6)
    repaired = control_chart(rounds([*steady, 40.0, 40.0, 20.0]), baseline=5)
    assert out(repaired) == [6, 7]
    assert not repaired.is_out
    assert repaired.change is None


def test_a_repaired_episode_is_no_part_of_a_later_change() -> None:
    steady = simulated(10, deviation=0.01)
    normal = simulated(40, deviation=0.005, seed=SEED + 1)
    chart = control_chart(rounds([*steady, *[26.0] * 10, *normal, 18.0]), baseline=10)
    assert chart.change is not None
    assert (chart.change.before, chart.change.after) == (60, 61)
    assert chart.change.ratio.value == pytest.approx(0.9, abs=0.02)


def test_faster_rounds_leave_their_limits_too() -> None:
    chart = control_chart(rounds([20.0, 20.2, 19.9, 20.1, 19.8, 10.0]), baseline=5)
    assert chart.change is not None
    assert chart.change.ratio.value == pytest.approx(0.5, abs=0.01)


def test_a_small_shift_that_lasts_is_seen_by_the_average() -> None:
    steady = [20.0, 20.6, 19.4, 20.3, 19.7, 20.5, 19.5, 20.2, 19.8, 20.0]
    chart = control_chart(rounds([*steady, *[21.4] * 12]), baseline=10)
    assert {point.out for point in chart.points if point.out} == {"level"}


def test_less_than_the_smallest_effect_is_no_alarm() -> None:
    chart = control_chart(rounds([20.0] * 5 + [20.9] * 5), baseline=5)
    assert not out(chart)


def test_without_a_whole_baseline_there_are_no_limits() -> None:
    chart = control_chart(rounds([20.0, None, 21.0, 19.0, 20.0]), baseline=5)
    assert (chart.have, chart.limits_seconds, chart.is_out) == (4, None, False)
    assert control_chart(rounds([]), baseline=5).latest is None


def test_a_round_without_a_value_is_a_gap() -> None:
    chart = control_chart(rounds([20.0, None, 20.2, 19.9, 20.1, 19.8, 40.0, None]), baseline=5)
    assert out(chart) == [7]
    assert chart.is_out
    assert [point.in_baseline for point in chart.points[:3]] == [True, False, True]


def test_a_small_baseline_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 5 rounds, not 4"):
        control_chart(rounds([20.0] * 6), baseline=4)
