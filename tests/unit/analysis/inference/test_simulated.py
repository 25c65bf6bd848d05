"""A reduced form of benchmarks/inference.py, with bounds that a wrong method does not meet."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

from boardcluster.analysis.inference import compare

_BENCHMARK = runpy.run_path(str(Path(__file__).parents[4] / "benchmarks" / "inference.py"))
COUNTS = _BENCHMARK["COUNTS"]
draw_pair, holds = _BENCHMARK["draw_pair"], _BENCHMARK["holds"]
null_campaign, shown_before = _BENCHMARK["null_campaign"], _BENCHMARK["shown_before"]
ROUNDS = 400


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize(
    ("what", "starts"), [("ratio in turn", 1), ("mean", 3), ("ratio of separate starts", 3)]
)
def test_intervals_hold_the_truth(what: str, starts: int, count: int) -> None:
    draw = np.random.default_rng(count)
    share = (
        sum(holds(draw, what, starts=starts, count=count, cv=0.03) for _ in range(ROUNDS)) / ROUNDS
    )
    assert 0.91 <= share <= 0.985, "0.95, four standard errors below and three above"


def test_null_campaigns_have_no_headline() -> None:
    draw = np.random.default_rng(1)
    found = [null_campaign(draw, starts=1, cv=0.03) for _ in range(6)]
    assert sum(row.differences > 0 for row in found) <= 2
    assert all(row.differences_before > 2 for row in found), "as uncorrected tests had"
    assert sum(row.drifts > 0 for row in found) <= 2


def test_a_difference_that_is_there_is_shown_as_often_as_before() -> None:
    draw = np.random.default_rng(2)
    pairs = [draw_pair(draw, starts=1, count=5, cv=0.03, effect=0.1) for _ in range(100)]
    shown = sum(compare(other, one).is_shown for one, other in pairs)
    before = sum(shown_before(one, other, paired=True) for one, other in pairs)
    assert shown >= before - 5
    assert shown > 70
