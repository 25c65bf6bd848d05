"""What `results` prints of many kinds of runs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.builders import make_fingerprint, make_result

from boardcluster.cli.console import print_json
from boardcluster.cli.results import document
from boardcluster.cli.show_results import print_results
from boardcluster.records import (
    Engine,
    Result,
    Security,
    Verdict,
)


def result(
    position: int,
    seconds: float = 20.0,
    *,
    security: Security = Security.EMULATED,
    reasons: tuple[str, ...] = (),
    **changes: Any,
) -> Result:
    own = {"verification": None, "verdict_reasons": reasons, "size_bytes": 256_000_000}
    setup = make_fingerprint(security=security)
    return make_result(seconds, setup=setup, position=position, **(own | changes))


def test_columns_that_say_nothing_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    print_results([result(0), result(1, repetition=2)])
    shown = capsys.readouterr().out
    runs, cells = shown.split("verified runs per engine")
    for column in ("settings", "figures"):
        assert column not in shown
    for column in ("profile", "workers"):
        assert column not in runs
        assert column in cells
    assert "warm-up" not in shown


def test_what_varies_has_a_column(capsys: pytest.CaptureFixture[str]) -> None:
    print_results(
        [
            result(0, workers=2, replication=1, parameters={"grep.pattern": "ATL"}),
            result(1, profile="papers"),
        ]
    )
    runs, cells = capsys.readouterr().out.split("verified runs per engine")
    for shown in (runs, cells):
        assert "replication 1, pattern ATL" in shown
        assert "papers" in shown
        assert "workers" in shown


def test_programs_of_ones_own_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    own: dict[str, Any] = {"workload": "submit", "size_bytes": 0}
    print_results(
        [
            result(0, **own, arguments=("/own/a.py", "two words")),
            result(1, **own, arguments=("/own/b.py", "--password", "abc")),
        ]
    )
    shown = capsys.readouterr().out
    assert "program" in shown
    assert "/own/a.py 'two words'" in " ".join(shown.split())
    assert "abc" not in shown


def test_runs_of_an_open_cluster_are_named_and_stand_apart(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lab, closed = Security.INSECURE_LAB, Security.CLOSED
    print_results([result(0, 20.0, security=closed), result(1, 50.0, security=lab)])
    runs, cells = capsys.readouterr().out.split("verified runs per engine")
    for shown in (runs, cells):
        first, second = (line for line in shown.splitlines() if "grep" in line)
        assert ("20 s" in first, "INSECURE LAB" in first) == (True, False)
        assert ("50 s" in second, "INSECURE LAB" in second) == (True, True)


@pytest.mark.parametrize("security", [Security.CLOSED, Security.EMULATED])
def test_of_other_clusters_nothing_is_said(
    security: Security, capsys: pytest.CaptureFixture[str]
) -> None:
    print_results([result(0, security=security), result(1, security=security)])
    assert "settings" not in capsys.readouterr().out


def test_warm_ups_are_marked_and_not_counted(capsys: pytest.CaptureFixture[str]) -> None:
    print_results([result(0, 90.0, warm_up=True, remarks=("still 61 °C",)), result(1, 20.0)])
    runs, cells = capsys.readouterr().out.split("verified runs per engine")
    assert "warm-up 1" in runs
    assert "still 61 °C" in runs
    assert cells.startswith(", without warm-ups")
    assert "20 s" in cells
    assert "90 s" not in cells


def test_three_figures_are_shown_and_the_others_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    figures = {"a_seconds": 1234.5, "b_gigaflops": 2.34567, "c_bytes": 3.0, "d_bytes": 4.0}
    print_results([result(0, figures=figures)])
    shown = capsys.readouterr().out
    for text in ("a_seconds 1,234", "b_gigaflops 2.346", "c_bytes 3", "and 1 more: --json"):
        assert text in shown
    assert "d_bytes" not in shown


REASON = "pi1: throttled for 12 s of 60 s"


def test_each_run_has_its_verdict_and_the_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    bad = result(1, 90.0, verdict=Verdict.TAINTED, reasons=(REASON,), remarks=("still warm",))
    print_results([result(0), bad, result(2, verdict=Verdict.UNJUDGED)])
    runs, cells = capsys.readouterr().out.split("verified runs per engine")
    first, second, third = (line for line in runs.splitlines() if "grep" in line)
    assert " valid " in first
    assert " tainted " in second
    assert " unjudged " in third
    assert REASON in runs
    assert "still warm" in runs
    assert "1 valid, 1 unjudged; 1 left out" in cells
    assert "20 s" in cells
    assert "tainted" not in cells


def test_tainted_runs_count_if_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    bad = result(1, 40.0, verdict=Verdict.TAINTED, reasons=(REASON,))
    print_results([result(0), bad], tainted=True)
    cells = capsys.readouterr().out.split("verified runs per engine")[1]
    assert "1 valid, 1 tainted" in cells
    assert "30 s" in cells


def test_a_cell_without_a_valid_run_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    print_results([result(0, 40.0, verdict=Verdict.TAINTED, reasons=(REASON,))])
    cells = capsys.readouterr().out.split("verified runs per engine")[1]
    assert "1 tainted; all left out" in cells
    assert "no valid run; --tainted counts these" in cells
    assert "40 s" not in cells


def test_intervals_and_outliers(capsys: pytest.CaptureFixture[str]) -> None:
    seconds = (20.0, 20.1, 20.2, 20.3, 26.0)
    print_results([result(place, value) for place, value in enumerate(seconds)])
    shown = capsys.readouterr().out
    cells = shown.split("verified runs per engine")[1]
    assert "±" in cells
    assert "26 s (order 5)" in cells


def test_drift_of_a_campaign_is_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    print_results([result(place, 20.0 * 1.05**place) for place in range(6)])
    assert "warning: Times drift: " in " ".join(capsys.readouterr().out.split())


def test_few_runs_show_no_outliers(capsys: pytest.CaptureFixture[str]) -> None:
    print_results([result(0), result(1, 21.0)])
    shown = capsys.readouterr().out
    for word in ("outliers", "warning:"):
        assert word not in shown


@pytest.mark.parametrize("tainted", [False, True])
def test_json_hides_nothing(tainted: bool, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [
        result(0, verdict=Verdict.TAINTED, reasons=(REASON,)),
        result(1, engine=Engine.MAPREDUCE),
        result(2, 60.0, engine=Engine.MAPREDUCE, verdict=Verdict.TAINTED),
    ]
    print_json(document((), runs, tainted=tainted))
    found = json.loads(capsys.readouterr().out)
    assert found["results"][0]["measurement"]["verdict_reasons"] == [REASON]
    if tainted:
        assert [len(cell["results"]) for cell in found["cells"]] == [2, 1]
        assert found["untrusted"] == []
    else:
        (cell,) = found["cells"]
        assert [run["measurement"]["duration_seconds"] for run in cell["left_out"]] == [60.0]
        (row,) = found["untrusted"]
        assert (row["engine"], row["configuration"]["workload"]) == ("spark", "grep")
        assert len(row["results"]) == 1


def test_times_of_emulated_boards_are_named_with_their_dilation(
    capsys: pytest.CaptureFixture[str],
) -> None:
    slow = result(0)
    assert slow.attempt
    assert slow.measurement
    twin = replace(slow.attempt.fingerprint, twin="4 x rpi-5b")
    slow = replace(
        slow,
        attempt=replace(slow.attempt, fingerprint=twin),
        measurement=replace(slow.measurement, dilation=4.0),
    )
    print_results([slow])
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.count("emulated boards,") == 2  # of the run, and of its cell
    assert "dilation 4.0" in shown
    print_results([result(0)])
    assert "emulated boards" not in capsys.readouterr().out
    print_json(document([], [slow], tainted=False))
    assert json.loads(capsys.readouterr().out)["results"][0]["measurement"]["dilation"] == 4.0
