"""What keeps to a limit with 90 % probability."""

from __future__ import annotations

import numpy as np
import pytest

from boardcluster.plan.limits import PlanLimits, likely_most, shown_limit


def test_nine_of_ten_draws_stay_below_the_likely_most() -> None:
    draws = np.random.default_rng(7).lognormal(np.log(100.0), 0.2, 200_000)
    high = np.quantile(draws, 0.95)
    most = likely_most(np.array([100.0]), np.array([high]))[0]
    assert np.mean(draws <= most) == pytest.approx(0.9, abs=0.005)


def test_only_limits_that_were_given_count() -> None:
    assert PlanLimits().given() == {}
    assert PlanLimits(budget=5.0, joules=2.0).given() == {"budget": 5.0, "joules": 2.0}


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("deadline", 90.0, "1 min 30 s"),
        ("budget", 1500.0, "USD 1,500"),
        ("watts", 42.4, "42 W"),
        ("joules", 9000.0, "9,000 J"),
        ("joules", 58_784.0, "58.8 kJ"),
        ("watts", float("nan"), "unknown"),
    ],
)
def test_amounts_are_shown_in_their_units(name: str, value: float, words: str) -> None:
    assert shown_limit(name, value, "USD") == words
