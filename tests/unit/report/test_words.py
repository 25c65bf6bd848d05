from __future__ import annotations

from dataclasses import replace

import pytest

from boardcluster.analysis.inference import CampaignDrift, DriftKind, RunValue, compare
from boardcluster.analysis.statistics import Interval
from boardcluster.report import ratio_words, words


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.1234, "0.123"), (4.5, "4.50"), (9.96, "10.0"), (24.08, "24.1"), (318.44, "318.4")],
)
def test_seconds_have_three_digits_or_more(value: float, text: str) -> None:
    assert words.seconds(value) == text


def test_long_times_are_in_minutes() -> None:
    assert words.seconds_with_unit(599.9) == "599.9 s"
    assert words.seconds_with_unit(754) == "12 min 34 s"


def test_an_interval_never_begins_below_zero() -> None:
    assert words.interval(Interval(low=-3, high=12)) == "0.000 to 12.0"
    assert words.interval(None) == words.NONE


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.004, "1"), (1.04, "1.04"), (1.058, "1.06"), (1.49, "1.49"), (1.614, "1.6"), (12.4, "12")],
)
def test_ratios_have_the_digits_that_matter(value: float, text: str) -> None:
    assert words.ratio(value) == text


@pytest.mark.parametrize(
    ("value", "low", "high", "text"),
    [(2.449, 2.43, 2.47, "2.45"), (2.449, 2.3, 2.6, "2.4"), (12.4, 12.1, 12.7, "12.4")],
)
def test_a_ratio_is_inside_of_its_interval(
    value: float, low: float, high: float, text: str
) -> None:
    assert words.ratio(value, Interval(low=low, high=high)) == text


def test_a_program_can_be_pasted_and_shows_no_secret() -> None:
    shown = words.program(
        ("app.py", "a b", "--db-password", "hunter2", "--token=abc", "--key", "column", "it's")
    )
    assert shown == (
        "app.py 'a b' --db-password (hidden) --token=(hidden) --key column 'it'\"'\"'s'"
    )


def test_moments_are_readable_and_others_unchanged() -> None:
    assert words.moment("2026-08-01T10:15:00.123+00:00") == "2026-08-01 10:15:00 UTC"
    assert words.moment("2026-08-01T10:15:00+02:00") == "2026-08-01T10:15:00+02:00"


def test_a_tiny_p_says_only_that_it_is_tiny() -> None:
    assert words.p_value(0.01234) == "0.012"
    assert words.p_value(0.0001) == "0.0001"
    assert words.p_value(8.2e-29) == "below 0.0001"


def test_a_p_is_never_rounded_to_the_other_side_of_what_decides() -> None:
    assert words.p_value(0.0496) == "0.0496"
    assert words.p_value(0.04999) == "0.04999"
    assert words.p_value(0.0504) == "0.05"


def test_own_profiles_are_named_by_their_files_unless_two_share_one() -> None:
    names = ("default", "/one/lean.toml", "/one/wide.toml", "/two/wide.toml")
    assert list(words.short_profiles(names).values()) == [
        "default",
        "lean.toml",
        "/one/wide.toml",
        "/two/wide.toml",
    ]


def test_a_ratio_says_which_side_has_one_start() -> None:
    def runs(seconds: float, starts: int) -> list[RunValue]:
        return [
            RunValue(value=seconds + place, start=(str(seconds), start))
            for start in range(starts)
            for place in range(3)
        ]

    assert ratio_words.interval(compare(runs(60, 1), runs(30, 1))) == (
        "3 and 3 unpaired runs in one start of the cluster each (3.0 % allowed between starts)"
    )
    assert ratio_words.interval(compare(runs(60, 3), runs(30, 1))) == (
        "9 and 3 unpaired runs in 3 and 1 starts of the cluster (3.0 % allowed between starts for"
        " the one)"
    )
    assert ratio_words.interval(compare(runs(60, 3), runs(30, 2))) == (
        "9 and 6 unpaired runs in 2 starts of the cluster"
    )


def test_a_drift_within_starts_is_not_said_of_the_whole_campaign() -> None:
    found = CampaignDrift(
        campaign="c", kind=DriftKind.TREND, share=0.1, position=0, runs=36, p_adjusted=0.001
    )
    said = ratio_words.drift_words(found)
    assert "the last runs of campaign c took 10.0 % longer than its first" in said
    said = ratio_words.drift_words(replace(found, starts=3))
    assert "last runs of each start of the cluster in campaign c took 10.0 % longer" in said
    step = ratio_words.drift_words(replace(found, kind=DriftKind.CHANGE, position=4, starts=3))
    assert "from run 5 on within that start of the cluster, times of campaign c are" in step
