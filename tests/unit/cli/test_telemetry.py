"""``telemetry`` and ``report --run`` over a store of synthetic runs."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.builders import make_campaign, make_measurement, make_trial, store_run
from tests.unit.analysis.telemetry import NAN, node
from typer.testing import CliRunner
from typer.testing import Result as Ran

from boardcluster.cli.app import app
from boardcluster.errors import EmptySelectionError, StoreError, UsageError
from boardcluster.records import (
    Attempt,
    AttemptState,
    Disturbance,
    Telemetry,
    Verdict,
)
from boardcluster.store import Store

REASON = "host: other programs used 7 % of the machine"
TELEMETRY = Telemetry(
    duration_seconds=60.0,
    nodes=(
        node("worker1", scope="node", columns={"storage_read_bytes": 2e6}),
        node("host", columns={"throttle_bits": 0.0, "clock_hertz/cpu0": 2.4e9}),
    ),
    phases={"write": (0.0, 30.0), "read": (30.0, 60.0)},
)


class Desk:
    """A home with a store, and the program."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._trials = [
            make_trial(
                "wordcount",
                id=f"wordcount-{number}",
                campaign_id="c1",
                position=number,
                workers=1,
                repetition=number + 1,
            )
            for number in range(3)
        ]
        campaign = make_campaign(id="c1")
        with Store.open(home) as store:
            store.add_campaign(campaign, self._trials)

    def add(
        self,
        number: int,
        telemetry: Telemetry | None,
        *,
        hour: int | None = None,
        state: AttemptState = AttemptState.OK,
        reason: str = "",
        **fields: Any,
    ) -> Attempt:
        """Store a run; without samples one that failed."""
        end: dict[str, Any] = {} if state is AttemptState.OK else {"state": state, "reason": reason}
        measurement = make_measurement(60.0, **{"verdict": Verdict.VALID, **fields})
        started = f"2026-08-01T{10 + number if hour is None else hour}:00:00+00:00"
        with Store.open(self.home) as store:
            return store_run(
                store,
                self._trials[number],
                measurement if telemetry else None,
                started_utc=started,
                ended_utc=started.replace(":00:00", ":01:00"),
                telemetry=telemetry,
                **end,
            )

    def file(self, attempt: Attempt) -> Path:
        return self.home / attempt.artefacts / "telemetry.npz"

    def __call__(self, *words: str) -> Ran:
        arguments = [words[0], "--home", str(self.home), *words[1:]]
        return CliRunner().invoke(app, arguments, catch_exceptions=False)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "home")


def test_a_run_that_did_not_end_well_is_not_called_valid(desk: Desk) -> None:
    desk.add(0, TELEMETRY, state=AttemptState.FAILED, reason="exit status 1")
    assert "verdict: none, failed" in desk("telemetry").stdout
    assert json.loads(desk("telemetry", "--json").stdout)["verdict"] is None
    rows = json.loads(desk("results", "--watch", "--json").stdout.splitlines()[-1])
    assert (rows["last"]["state"], rows["last"]["verdict"]) == ("failed", None)
    [line] = [row for row in desk("results").stdout.splitlines() if " failed " in row]
    assert " valid " not in line


def test_what_disturbed_a_valid_run_a_little_is_shown(desk: Desk) -> None:
    steal = Disturbance(cause="steal", node="host", share=0.0125, adjustable=True)
    desk.add(0, TELEMETRY, disturbances=(steal,), tolerated_share=0.02)
    shown = desk("telemetry").stdout
    assert (
        "verdict: valid\n  at most 1.25 % of the time by steal on host; it tolerates 2 %" in shown
    )


def test_a_run_is_shown_with_its_verdict_and_a_table_for_each_phase(desk: Desk) -> None:
    desk.add(
        0,
        TELEMETRY,
        verdict=Verdict.TAINTED,
        verdict_reasons=(REASON,),
        remarks=("page caches kept",),
    )
    shown = desk("telemetry").stdout
    assert "run wordcount-0/1: wordcount on spark" in shown
    assert "verdict: tainted" in shown
    assert f"  {REASON}" in shown
    assert "remark: page caches kept" in shown
    for title in ("whole run: 60.0 s", "phase write: 0.0 to 30.0 s", "phase read: 30.0 to 60.0 s"):
        assert title in shown
    host = next(line for line in shown.splitlines() if " host " in line)
    assert "1.93 of 2" in host
    assert "2.40 GHz" in host
    assert "throttled" not in shown, "a column that says nothing is left out"


def test_the_latest_run_with_samples_is_meant_and_a_trial_means_its_latest_attempt(
    desk: Desk,
) -> None:
    desk.add(0, TELEMETRY)
    desk.add(1, TELEMETRY, verdict=Verdict.TAINTED, verdict_reasons=(REASON,))
    desk.add(1, TELEMETRY)
    desk.add(2, None)
    assert "run wordcount-1/2" in desk("telemetry").stdout
    assert "run wordcount-1/2" in desk("telemetry", "wordcount-1").stdout
    assert "run wordcount-1/1" in desk("telemetry", "wordcount-1/1").stdout


def test_the_latest_run_is_the_one_that_began_last_whatever_its_place_in_the_plan(
    desk: Desk,
) -> None:
    desk.add(2, TELEMETRY, hour=10)
    desk.add(0, TELEMETRY, hour=12)
    desk.add(1, TELEMETRY, hour=11)
    assert "run wordcount-0/1" in desk("telemetry").stdout


def test_one_phase_and_one_node(desk: Desk) -> None:
    desk.add(0, TELEMETRY)
    shown = desk("telemetry", "--phase", "read", "--node", "host").stdout
    assert "phase read" in shown
    assert "whole run" not in shown
    assert "worker1" not in shown


def test_phases_of_the_engine_are_listed_and_shown_when_asked_for(desk: Desk) -> None:
    inner = {"write/map": (2.0, 20.0), "write/commit": (20.0, 21.5)}
    desk.add(0, replace(TELEMETRY, phases={**TELEMETRY.phases, **inner}))
    shown = desk("telemetry").stdout
    assert shown.count("CPU busy") == 3  # the run, write and read: no table for each phase of these
    assert "the engine's phases" in shown
    [line] = [line for line in shown.splitlines() if "write/map" in line]
    assert re.findall(r"[\d.]+ s", line) == ["2.0 s", "20.0 s", "18.0 s"]
    alone = desk("telemetry", "--phase", "write/map").stdout
    assert "phase write/map: 2.0 to 20.0 s" in alone
    assert "the engine's phases" not in alone
    document = json.loads(desk("telemetry", "--json").stdout)
    assert document["phases"]["write/map"] == [2.0, 20.0]
    assert {row["span"] for row in document["nodes"]} == {"", "write", "read"}


def test_single_columns_are_summed_up(desk: Desk) -> None:
    desk.add(0, TELEMETRY)
    words = ("--columns", "cpu_user_seconds,clock_hertz", "--node", "host")
    shown = desk("telemetry", *words).stdout
    assert "clock_hertz/cpu0" in shown
    user = next(line for line in shown.splitlines() if "cpu_user_seconds" in line)
    assert "102" in user, "1.7 s a second for 60 s"


def test_csv_is_tidy_and_leaves_unknown_values_out(desk: Desk, tmp_path: Path) -> None:
    desk.add(0, TELEMETRY)
    target = tmp_path / "samples.csv"
    words = ("--columns", "cpu_user_seconds", "--columns", "temperature_celsius")
    said = desk("telemetry", "--csv", str(target), *words).stdout
    with target.open() as stream:
        rows = list(csv.DictReader(stream))
    assert f"{len(rows)} values" in said
    assert set(rows[0]) == {"node", "seconds", "column", "value"}
    assert {row["column"] for row in rows} == {"cpu_user_seconds"}, "temperature is NaN"
    assert {row["node"] for row in rows} == {"worker1", "host"}
    assert {float(row["value"]) for row in rows} == {1.7}
    seconds = [float(row["seconds"]) for row in rows if row["node"] == "host"]
    assert seconds == sorted(seconds)
    assert len(seconds) in (60, 61)
    piped = desk("telemetry", "--csv", "-", *words).stdout
    assert piped == target.read_text()


def test_json_holds_the_summaries(desk: Desk) -> None:
    desk.add(0, TELEMETRY)
    told = json.loads(desk("telemetry", "--json", "--columns", "clock_hertz").stdout)
    assert told["run"] == "wordcount-0/1"
    assert (told["verdict"], told["duration_seconds"]) == ("valid", 60.0)
    assert [(row["node"], row["span"]) for row in told["nodes"]] == [
        (name, span) for span in ("", "write", "read") for name in ("worker1", "host")
    ]
    assert told["nodes"][0]["temperature_most_celsius"] is None
    assert [row["column"] for row in told["columns"]] == ["clock_hertz/cpu0"]


def test_few_samples_or_none_are_shown_and_no_error(desk: Desk) -> None:
    one = node("pi1", seconds=TELEMETRY.nodes[0].seconds[:1])
    empty = replace(one, columns={name: one.columns[name] * NAN for name in one.columns})
    for number, nodes in enumerate([(one,), (empty,), ()]):
        desk.add(number, replace(TELEMETRY, nodes=nodes))
        shown = desk("telemetry", f"wordcount-{number}")
        assert shown.exit_code == 0
        assert ("pi1" in shown.stdout) == bool(nodes)


def test_names_that_are_not_there_get_the_nearest(desk: Desk) -> None:
    desk.add(0, TELEMETRY)
    for words, message, hint in (
        (("--phase", "sort"), "no phase 'sort'", "write, read"),
        (("--node", "worker7"), "there are no samples of node 'worker7'", "worker1, host"),
        (("--columns", "cpu_user"), "no column 'cpu_user'", "cpu_user_seconds"),
        (("wordcount-0/x",), "not TRIAL/NUMBER", ""),
        (("--csv", "x", "--json"), "cannot be used with", ""),
    ):
        with pytest.raises(UsageError, match=message) as caught:
            desk("telemetry", *words)
        assert hint in caught.value.hint
    for name in ("wordcont-0", "wordcount-0/2", "wordcount-1"):
        with pytest.raises(EmptySelectionError, match=f"no run {name}") as missing:
            desk("telemetry", name)
        assert "wordcount-0/1" in missing.value.hint


def test_a_run_without_samples_and_a_store_without_runs(desk: Desk) -> None:
    with pytest.raises(EmptySelectionError, match="no run has samples"):
        desk("telemetry")
    desk.add(0, None)
    with pytest.raises(EmptySelectionError, match="wordcount-0/1 has no samples"):
        desk("telemetry", "wordcount-0")


def test_damaged_samples_are_named_and_cost_the_report_one_page(desk: Desk) -> None:
    damaged = desk.file(desk.add(0, TELEMETRY))
    desk.add(1, TELEMETRY)
    damaged.write_bytes(damaged.read_bytes()[:200])
    with pytest.raises(StoreError, match="damaged"):
        desk("telemetry", "wordcount-0")
    assert desk("report").exit_code == 0
    pages = desk.home / "report" / "runs"
    assert [page.name for page in pages.iterdir()] == ["run-wordcount-1-1.html"]
    html = (desk.home / "report" / "report.html").read_text()
    assert set(re.findall(r'<a href="(runs/[^"]*)"', html)) == {"runs/run-wordcount-1-1.html"}


def test_one_page_on_demand_also_of_a_run_without_samples(desk: Desk, tmp_path: Path) -> None:
    desk.add(0, TELEMETRY)
    desk.add(1, None)
    for name, words in (("wordcount-0", "<svg"), ("wordcount-1", "This run has no samples")):
        told = json.loads(
            desk("report", "--run", name, "-o", str(tmp_path / "out"), "--json").stdout
        )
        assert told == {"page": str(tmp_path / "out" / f"run-{name}-1.html")}
        assert words in Path(told["page"]).read_text()
    assert "page: " in desk("report", "--run", "wordcount-0/1", "-o", str(tmp_path)).stdout
    assert not (tmp_path / "out" / "report.html").exists()


def test_the_page_of_one_run_takes_no_options_of_the_report(desk: Desk) -> None:
    desk.add(0, TELEMETRY)
    for words in (("--tainted",), ("--campaign", "c1")):
        with pytest.raises(UsageError, match="--run"):
            desk("report", "--run", "wordcount-0", *words)
    with pytest.raises(EmptySelectionError, match="no run nothing"):
        desk("report", "--run", "nothing")
