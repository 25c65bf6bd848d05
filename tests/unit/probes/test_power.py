"""Power: readings of a meter that works, of meters that do not, and the stress that always ends."""

import itertools
import math
import time
from typing import Any

import pytest
from tests.unit.probes.answering import Answering, done, make_site

from boardcluster.errors import MeterError, RemoteError, UsageError
from boardcluster.probes import power
from boardcluster.probes.power import PROBE, Watts, measure, summary_of
from boardcluster.records import ProbeMode

SHORT = {"power_idle_seconds": "0.1", "power_stress_seconds": "0.1"}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(power, "_INTERVAL_SECONDS", 0.01)
    monkeypatch.setattr(power, "_SETTLE_SECONDS", 0.0)


def node() -> Answering:
    alive = {"alive": True, "resident_bytes": 1, "proportional_bytes": 1}
    return Answering(
        {
            "processes": lambda *_: done([alive]),
            "end": lambda *_: done({"killed": 0}),
            "tail": lambda *_: done(""),
        }
    )


def run(remote: Answering, watts: Any, **changes: Any) -> dict[str, float]:
    site = make_site(remote, watts=watts, **{"settings": SHORT, **changes})
    figures = measure(site)
    assert {row.conditions["cores"] for row in figures} == {"4"}
    return {row.name: row.value for row in figures}


def test_reads_idle_and_stress() -> None:
    remote = node()
    found = run(remote, lambda: 10.31 if remote.started else 5.54)
    assert found["power_idle_mean_watts"] == pytest.approx(5.54)
    assert found["power_stress_mean_watts"] == pytest.approx(10.31)
    assert found["power_idle_readings"] >= 3
    assert remote.ended == [[101, 7]]


def test_without_a_meter_says_how_to_declare_one() -> None:
    remote = node()
    with pytest.raises(MeterError, match="node1: no power meter is declared") as caught:
        run(remote, None)
    assert "[[meter]]" in caught.value.hint
    assert remote.started == []


def test_a_meter_that_fails_under_stress_leaves_no_stress_and_is_given_up_early() -> None:
    remote = node()
    asked = itertools.count()

    def watts() -> float:
        if remote.started:
            raise MeterError(f"no answer to question {next(asked)}\nof many")
        return 5.0

    settings = {**SHORT, "power_stress_seconds": "5"}
    words = r"gave 0 of (\d+) readings during stress, .*; its last error was: no answer to .* \1\b"
    began = time.monotonic()
    with pytest.raises(MeterError, match=words):
        run(remote, watts, settings=settings)
    assert time.monotonic() - began < 4
    assert remote.ended == [[101, 7]]


def test_one_answer_that_is_lost_is_one_reading_less() -> None:
    remote = node()
    asked = itertools.count()

    def watts() -> float:
        if next(asked) in (0, 4):
            raise MeterError("timed out")
        return 10.0 if remote.started else 5.0

    found = run(remote, watts)
    assert found["power_idle_mean_watts"] == 5.0
    assert found["power_stress_mean_watts"] == 10.0


def test_a_meter_that_counts_begins_anew_with_each_phase() -> None:
    remote = node()
    load = []

    def watts() -> float:
        load.append(10.0 if remote.started else 5.0)
        return load[-1] if len(load) > 1 and load[-2] == load[-1] else 7.5  # of before and after

    found = run(remote, watts)
    assert (found["power_idle_mean_watts"], found["power_idle_most_watts"]) == (5.0, 5.0)
    assert found["power_stress_mean_watts"] == 10.0


@pytest.mark.parametrize("stress", [5.0, 4.9])
def test_a_meter_that_does_not_see_the_stress_is_refused(stress: float) -> None:
    remote = node()
    with pytest.raises(MeterError, match=rf"{stress:.2f} W under full load and 5.00 W at idle"):
        run(remote, lambda: stress if remote.started else 5.0)


def test_a_stress_that_ended_early_is_an_error() -> None:
    remote = node()
    gone = {"alive": False, "resident_bytes": 0, "proportional_bytes": 0}
    remote.answers["processes"] = lambda *_: done([gone])
    with pytest.raises(RemoteError, match="stress-ng ended too early: it printed nothing"):
        run(remote, lambda: 10.0 if remote.started else 5.0)
    assert remote.ended == [[101, 7]]


def test_a_slow_meter_is_read_less_often() -> None:
    remote = node()
    moments = itertools.count()

    def watts() -> float:
        next(moments)
        time.sleep(0.025)
        return 10.0 if remote.started else 5.0

    settings = {**SHORT, "power_idle_seconds": "0.3", "power_stress_seconds": "0.3"}
    found = run(remote, watts, settings=settings)
    assert 3 <= found["power_idle_readings"] <= 11


def test_summary_leaves_out_what_is_missing() -> None:
    watts = summary_of([5.0, None, 6.0, 7.0, 6.0], phase="idle")
    assert watts == Watts(mean_watts=6.0, most_watts=7.0, readings=4)


@pytest.mark.parametrize(
    ("readings", "words"),
    [
        ([], "gave 0 of 0 readings during idle, at least 3"),
        ([5.0, 5.0], "gave 2 of 2 readings"),
        ([None] * 10, "gave 0 of 10 readings"),
        ([5.0] * 7 + [None] * 3, "gave 7 of 10 readings during idle, at least 3 and 80%"),
        ([5.0, -0.1, 5.0], "showed -0.1 W"),
        ([5.0, math.nan, 5.0], "showed nan W"),
        ([5.0, math.inf, 5.0], "showed inf W"),
    ],
)
def test_readings_that_say_nothing_are_refused(readings: list[float | None], words: str) -> None:
    with pytest.raises(MeterError, match=words):
        summary_of(readings, phase="idle")


def test_a_setting_that_is_no_duration_is_refused() -> None:
    with pytest.raises(UsageError, match='power_stress_seconds: "an hour" is not a duration'):
        run(node(), lambda: 5.0, settings={**SHORT, "power_stress_seconds": "an hour"})


def test_paper_mode_takes_an_hour_each() -> None:
    assert set(power._PHASES_SECONDS[ProbeMode.PAPER].values()) == {3600.0}
    assert not PROBE.default, "most nodes have no meter"
