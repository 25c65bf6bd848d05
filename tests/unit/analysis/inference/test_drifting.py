"""Drift and change points of whole campaigns."""

from __future__ import annotations

import math
import random

import pytest

from boardcluster.analysis.inference import DriftKind, RunValue, drifting, find_drift


def campaign(
    draw: random.Random, *, cells: int = 12, runs: int = 3, trend: float = 0.0, step: float = 0.0
) -> list[list[RunValue]]:
    """Cells of a campaign in random order, with times that scatter by 3 %."""
    places = list(range(cells * runs))
    draw.shuffle(places)
    total = len(places)
    found: list[list[RunValue]] = []
    for cell in range(cells):
        found.append([])
        for place in places[cell * runs : (cell + 1) * runs]:
            log = math.log(50 + 10 * cell) + draw.gauss(0, 0.03)
            log += trend * place / total + (step if place >= total // 2 else 0.0)
            found[-1].append(RunValue(value=math.exp(log), start=("c", 1), position=place))
    return found


def test_a_trend_shows_with_three_repetitions() -> None:
    (found,) = find_drift(campaign(random.Random(1), trend=0.12))
    assert found.is_shown
    assert 0.05 < found.share < 0.25
    assert found.runs == 36


def test_a_step_shows_where_it_is() -> None:
    (found,) = find_drift(campaign(random.Random(2), step=-0.1))
    assert found.is_shown
    assert found.kind is DriftKind.CHANGE
    assert abs(found.position - 18) <= 3
    assert -0.15 < found.share < -0.05


def test_a_null_campaign_is_seldom_warned_of() -> None:
    draw = random.Random(3)
    warned = sum(find_drift(campaign(draw))[0].is_shown for _ in range(150))
    assert warned <= 15, "5 % of 150 is 7.5, and 15 is three standard deviations more"


def test_what_tells_cells_or_starts_apart_is_no_drift() -> None:
    rows = [
        [
            RunValue(
                value=100.0 * start + (place % 2), start=("c", start), position=10 * start + place
            )
            for start in (1, 2, 3)
            for place in range(4)
        ]
    ]
    (found,) = find_drift(rows)
    assert not found.is_shown


def test_few_runs_are_not_tested() -> None:
    rows = [[RunValue(value=10.0 + place, start=("c", 1), position=place) for place in range(3)]]
    assert find_drift(rows) == ()


def test_times_are_shuffled_in_parts_where_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    clear, mild = campaign(random.Random(5), step=-0.3), campaign(random.Random(17))
    whole, (unclear,) = find_drift(clear), find_drift(mild)
    monkeypatch.setattr(drifting, "_NUMBERS_AT_ONCE", 36 * 100)
    assert find_drift(clear) == whole, "no order of so many is as far apart"
    assert unclear.kind is DriftKind.CHANGE
    assert find_drift(mild)[0].p_adjusted == pytest.approx(unclear.p_adjusted, abs=0.05)


def test_the_same_runs_give_the_same_answer() -> None:
    rows = campaign(random.Random(4))
    assert find_drift(rows) == find_drift(rows)


def test_a_trend_that_begins_anew_with_each_start_is_not_added_up_over_them() -> None:
    draw = random.Random(7)
    rows = [
        [
            RunValue(
                value=100.0 * math.exp(0.1 * place / 11 + draw.gauss(0, 0.01)),
                start=("c", start),
                position=12 * start + place,
            )
            for start in range(3)
            for place in range(12)
        ]
    ]
    (found,) = find_drift(rows)
    assert found.is_shown
    assert (found.kind, found.starts) == (DriftKind.TREND, 3)
    assert 0.07 < found.share < 0.13, "10 % within each start, and not 37 % over all three"
