"""``tune``: from what is asked for to a proof and a profile; on a made-up cluster."""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.builders import make_energy, make_measurement, make_telemetry
from tests.unit.cli.desk import Desk, bad, good
from typer.testing import CliRunner

import boardcluster as bc
from boardcluster.campaign.driver import now_utc
from boardcluster.campaign.fingerprint import take_fingerprint
from boardcluster.campaign.submit import UserProgram
from boardcluster.campaign.trial import TrialEnd
from boardcluster.cli.app import app
from boardcluster.errors import CapacityError, ClusterError, RunError, SpecError, UsageError
from boardcluster.records import (
    Attempt,
    AttemptState,
    Campaign,
    ClusterSpec,
    Disturbance,
    Trial,
    Verdict,
)
from boardcluster.services.operation import LiveCluster
from boardcluster.services.pair import pair_ids
from boardcluster.services.profile import build_profile
from boardcluster.services.settings import all_properties
from boardcluster.store import Store
from boardcluster.tuning.record import BASE, TuningRecord, read_records

FAST = "-XX:TieredStopAtLevel=1"
SMALL = ("tune", "wordcount", "--engine", "mapreduce", "--size", "64MB", "--seed", "3")


def took(trial: Trial) -> float:
    """What made-up runs take: the first compiler saves half, uber a tenth."""
    work = 60.0 * trial.size_bytes / 64e6 + 6
    if FAST in trial.settings.get("mapreduce.map.java.opts", ""):
        work *= 0.5
    if trial.settings.get("mapreduce.job.ubertask.enable") == "true":
        work *= 0.9
    of = f"{sorted(trial.settings.items())} {trial.size_bytes} {trial.repetition}"
    noise = int(hashlib.sha256(of.encode()).hexdigest()[:4], 16) / 0xFFFF - 0.5
    return work * (1 + 0.04 * noise)


@pytest.fixture
def tuned(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    desk.seconds = took
    clock = lambda: sum(took(trial) + 1 for trial in desk.ran)  # noqa: E731
    monkeypatch.setattr("boardcluster.campaign.tune.monotonic", clock)
    return desk


def profile_of(desk: Desk) -> tuple[Path, dict[str, Any]]:
    [path] = (desk.home / "tunings").glob("tuned-*.toml")
    return path, tomllib.loads(path.read_text())


def test_it_finds_proves_and_writes_a_profile_that_can_be_used(tuned: Desk) -> None:
    done = tuned(*SMALL, "--budget", "19min")
    assert done.exit_code == 0
    assert "times the time of default" in done.stdout
    path, written = profile_of(tuned)
    assert f"the profile is {path}" in done.stdout.replace("\n", "")
    assert written["base"] == "default"
    assert FAST in written["mapred-site"]["mapreduce.map.java.opts"]
    tag = written["tuned"]
    assert tag["high"] < 0.9
    assert (tag["workload"], tag["engine"], tag["kind"]) == ("wordcount", "mapreduce", "emulated")
    assert tag["pairs"] >= 5
    built = build_profile(str(path), replace(tuned.declared, profile=str(path)))
    assert built.small_daemons
    assert built.remarks == build_profile("default", tuned.declared).remarks
    assert built.properties["mapred-site"]["mapreduce.map.java.opts"].count("-XX:") >= 2
    assert built.settings.keys() == written["mapred-site"].keys() | written.get("hdfs-site", {})
    assert "down" in tuned.calls
    assert not tuned.is_up


def test_the_proof_is_pairs_in_turn_of_a_campaign_of_its_own(tuned: Desk) -> None:
    shown = tuned.json(*SMALL, "--budget", "19min")
    search, proof = shown["request"]["id"], shown["tuning"]["proof"]
    assert {row.id for row in tuned.campaigns()} == {search, proof}
    pairs = [row.trial for row in tuned.results() if row.trial.campaign_id == proof]
    blocks = [pairs[place : place + 2] for place in range(0, len(pairs), 2)]
    assert len(blocks) == shown["proof"]["pairs"] >= 5
    firsts = set()
    for block in blocks:
        assert {bool(trial.settings) for trial in block} == {True, False}
        assert len({trial.repetition for trial in block}) == 1
        firsts.add(bool(block[0].settings))
    assert firsts == {True, False}, "the order is drawn"
    assert shown["proof"]["value"] == pytest.approx(
        shown["tuning"]["rows"][-1]["best_so_far"], abs=0.15
    )


def test_a_proof_that_went_on_in_another_start_of_the_daemons_is_still_of_pairs(
    tuned: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = Store.begin_attempt

    def begun(store: Store, trial_id: str, *given: Any, start_id: str) -> Any:
        number = int(trial_id.rsplit("-", 1)[1])
        return begin(store, trial_id, *given, start_id=f"{start_id}-{number > 2}")

    monkeypatch.setattr(Store, "begin_attempt", begun)
    shown = tuned.json(*SMALL, "--budget", "19min")
    proof = [row for row in tuned.results() if row.trial.campaign_id == shown["tuning"]["proof"]]
    assert len({row.attempt.start_id for row in proof if row.attempt}) == 2
    # Two starts as replicates would leave one degree of freedom, and several times this width.
    assert shown["proof"]["interval"]["high"] < 1.04 * shown["proof"]["value"]
    assert profile_of(tuned)


def test_a_proof_whose_runs_are_lost_stops_and_goes_on(
    tuned: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = tuned.run_trial

    def losing(live: Any, trial: Trial, *given: Any, **named: Any) -> TrialEnd:
        if trial.campaign_id == read_records(tuned.home)[0].request.id:
            return right(live, trial, *given, **named)
        tuned.ran.append(trial)
        return TrialEnd(state=AttemptState.INVALID, reason="the lights went out", measurement=None)

    monkeypatch.setattr("boardcluster.campaign.driver.run_trial", losing)
    with pytest.raises(RunError, match="a run was lost more than once: the lights went out"):
        tuned(*SMALL, "--budget", "19min")
    monkeypatch.setattr("boardcluster.campaign.driver.run_trial", right)
    [stopped] = read_records(tuned.home)
    assert "the profile is" in tuned(*SMALL, "--budget", "19min", "--continue").stdout
    [record] = read_records(tuned.home)
    assert stopped.proof is not None
    assert record.end is not None
    assert stopped.proof.reason
    assert record.end.reason == stopped.proof.reason, "why the search ended, not the proof"


def test_only_what_the_base_took_before_refuses_a_budget(tuned: Desk) -> None:
    tuned(*SMALL, "--budget", "19min")
    tuned.ran.clear()
    with pytest.raises(UsageError, match="the base takes 1 min"):
        tuned(*SMALL, "--budget", "2min", "--new")
    assert tuned.ran == [], "refused by what the base took before"


def test_what_an_invalid_run_took_refuses_no_budget(tuned: Desk) -> None:
    lost = TrialEnd(
        state=AttemptState.INVALID, reason="node_lost: worker1", measurement=make_measurement(9e3)
    )
    tuned.is_up, tuned.ends["wordcount"] = True, lost
    with pytest.raises(RunError):
        tuned("run", *SMALL[1:5], "64MB", "--repetitions", "1")
    tuned.is_up = False
    tuned.ends.clear()
    tuned.ran.clear()

    assert tuned(*SMALL, "--budget", "19min").exit_code == 0


def test_where_nothing_is_better_no_profile_is_written(
    tuned: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuned.seconds = lambda trial: took(replace(trial, settings={})) * (1.3 if trial.settings else 1)
    done = tuned(*SMALL, "--budget", "18min")
    assert done.exit_code == 0
    assert "nothing was faster than default" in done.stdout
    assert not list((tuned.home / "tunings").glob("*.toml"))
    assert len(tuned.campaigns()) == 1


def test_what_only_looked_better_is_not_believed(tuned: Desk) -> None:
    def lucky(trial: Trial) -> float:
        search = trial.campaign_id == read_records(tuned.home)[0].request.id
        return took(replace(trial, settings={})) * (0.8 if trial.settings and search else 1)

    tuned.seconds = lucky
    done = tuned(*SMALL, "--budget", "19min")
    assert "they differ by less than 5 %, so no profile is written and default stays" in done.stdout
    assert not list((tuned.home / "tunings").glob("*.toml"))


@pytest.mark.parametrize("after", [0, 1, 3, 5, 8, 13])
def test_a_kill_loses_at_most_the_run_under_way(
    tuned: Desk, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    calm = tuned.run_trial

    def killed(*given: Any, **named: Any) -> TrialEnd:
        if len(tuned.ran) == after:
            raise KeyboardInterrupt
        return calm(*given, **named)

    monkeypatch.setattr("boardcluster.campaign.driver.run_trial", killed)
    budget = ("--budget", "19min")
    assert tuned(*SMALL, *budget).exit_code == 130
    monkeypatch.setattr("boardcluster.campaign.driver.run_trial", calm)
    with pytest.raises(UsageError, match="is not finished"):
        tuned(*SMALL, *budget)
    if after:
        shown = tuned.json(*SMALL, "--continue", "--dry-run")
        assert shown["request"]["budget_seconds"] == 19 * 60, "as it was begun, not an hour"
        [stopped] = read_records(tuned.home)
        left = 19 * 60 - stopped.spent_seconds - shown["proof_seconds"] - shown["run_seconds"]
        assert shown["runs"] == max(0, int(left / shown["run_seconds"]))
        with pytest.raises(UsageError, match="was begun with --pairs"):
            tuned(*SMALL, "--continue", "--pairs", "7", "--dry-run")
    done = tuned(*SMALL, *budget, "--continue")
    assert done.exit_code == 0
    states = [row.attempt.state for row in all_attempts(tuned) if row.attempt]
    assert states.count(AttemptState.INVALID) == 1, "the one that was killed"
    [record] = read_records(tuned.home)
    assert len({row.run for row in record.runs}) == len(record.runs)
    assert record.end is not None
    ran = len(tuned.ran)
    again = tuned(*SMALL, *budget, "--continue")
    assert (len(tuned.ran), again.stdout) == (ran, done.stdout)


@pytest.mark.parametrize(("name", "begun", "other"), [("seed", 3, "4"), ("pairs", 5, "6")])
def test_what_a_tuning_was_begun_with_is_not_changed_silently(
    tuned: Desk, name: str, begun: int, other: str
) -> None:
    with pytest.raises(UsageError, match="too small"):
        tuned(*SMALL, "--budget", "5min")
    with pytest.raises(UsageError, match=f"was begun with --{name} {begun}, not {other}") as caught:
        tuned(*SMALL, "--budget", "17min", "--continue", f"--{name}", other)
    assert f"leave --{name} out" in caught.value.hint
    assert len(tuned.ran) == 1


def all_attempts(desk: Desk) -> Any:
    with Store.open(desk.home, read_only=True) as store:
        return store.results(all_attempts=True)


def test_a_run_that_ended_before_it_was_noted_is_not_made_again(
    tuned: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError):
        tuned(*SMALL, "--budget", "1min")
    path = next((tuned.home / "tunings").glob("*.jsonl"))
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if '"event": "run"' not in line))
    tuned(*SMALL, "--budget", "17min", "--continue")
    [record] = read_records(tuned.home)
    assert len([t for t in tuned.ran if t.id == record.runs[0].run.partition("/")[0]]) == 1


def test_a_small_budget_is_refused_with_the_arithmetic(tuned: Desk) -> None:
    with pytest.raises(UsageError, match=r"5 pairs of two such runs .* together") as caught:
        tuned(*SMALL, "--budget", "5min")
    assert "--budget 15min --continue" in caught.value.hint
    assert len(tuned.ran) == 1, "the base was measured to know"
    with pytest.raises(UsageError, match="too small for one proof"):
        tuned(*SMALL, "--budget", "5min", "--new")
    assert len(tuned.ran) == 1, "now it is known beforehand"
    with pytest.raises(UsageError, match="a budget of 5 min"):
        tuned(*SMALL, "--continue")
    done = tuned(*SMALL, "--budget", "17min", "--continue")
    assert done.exit_code == 0


def test_smaller_sizes_whose_input_took_long_to_make_count_for_the_budget(
    tuned: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def clock() -> float:
        around = {64_000_000: 1.0, 16_000_000: 120.0}
        return sum(took(trial) + around[trial.size_bytes] for trial in tuned.ran)

    monkeypatch.setattr("boardcluster.campaign.tune.monotonic", clock)
    with pytest.raises(UsageError, match=r"at smaller sizes 2 min .* together") as caught:
        tuned(*SMALL, "--budget", "16min")
    assert "--continue" in caught.value.hint
    assert len(tuned.ran) == 2


def continued(tuned: Desk, refusal: UsageError) -> TuningRecord:
    """Go on with the budget that a refusal names, which left the tuning unfinished."""
    [record] = read_records(tuned.home)
    assert record.end is None
    enough = re.search(r"--budget (\w+) --continue", refusal.hint)
    assert enough
    assert tuned(*SMALL, "--budget", enough[1], "--continue").exit_code == 0
    [record] = read_records(tuned.home)
    return record


def test_what_looked_better_and_never_ran_at_the_whole_size_is_no_end(
    tuned: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def clock() -> float:
        options = [trial.settings.get("mapreduce.map.java.opts", "") for trial in tuned.ran]
        stood_still = 1000.0 if any(FAST in text for text in options) else 0.0
        return sum(took(trial) + 1 for trial in tuned.ran) + stood_still

    monkeypatch.setattr("boardcluster.campaign.tune.monotonic", clock)
    no_room = r"looked better at (8|16) MB, but the budget has no room for a run of the whole"
    with pytest.raises(UsageError, match=no_room) as caught:
        tuned(*SMALL, "--budget", "25min")
    record = continued(tuned, caught.value)
    assert record.end is not None
    assert any(row.rung == 0 and row.candidate != BASE for row in record.runs)


def test_a_budget_that_is_spent_on_bringing_the_cluster_up_is_no_result(
    tuned: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 15 minutes there is room for one run to try something, if nothing else takes time."""
    clock = lambda: sum(took(trial) + 1 for trial in tuned.ran) + 200 * tuned.starts  # noqa: E731
    monkeypatch.setattr("boardcluster.campaign.tune.monotonic", clock)
    with pytest.raises(UsageError, match="nothing was tried: of the budget 4 min") as caught:
        tuned(*SMALL, "--budget", "15min")
    record = continued(tuned, caught.value)
    assert any(row.candidate != BASE for row in record.runs)


def test_a_lost_node_costs_its_run_and_the_search_goes_on(
    tuned: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    calm = tuned.run_trial

    def losing(live: Any, trial: Trial, *given: Any, **named: Any) -> TrialEnd:
        end = calm(live, trial, *given, **named)
        return bad(AttemptState.INVALID, lost="worker2") if len(tuned.ran) == 6 else end

    monkeypatch.setattr("boardcluster.campaign.driver.run_trial", losing)
    tuned(*SMALL, "--budget", "18min")
    [record] = read_records(tuned.home)
    invalid = [row for row in record.runs if row.outcome == "invalid"]
    assert [row.reason for row in invalid] == ["because"]
    assert len(record.runs) > 8
    assert sum(1 for call in tuned.calls if call not in {"attach", "down"}) == 2, "looked again"


def test_one_failure_after_the_other_ends_it_with_the_cause(tuned: Desk) -> None:
    tuned.ends["wordcount"] = bad()
    with pytest.raises(RunError, match=r"one run after another failed.*because: because"):
        tuned(*SMALL, "--budget", "18min")
    assert len(tuned.ran) == 2
    tuned.ends.clear()
    assert tuned(*SMALL, "--budget", "18min", "--continue").exit_code == 0


def test_a_run_that_takes_too_long_is_stopped(tuned: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    calm, slow = tuned.run_trial, "mapreduce.map.speculative"

    def limited(live: Any, trial: Trial, bench: Any, **named: Any) -> TrialEnd:
        end = calm(live, trial, bench, **named)
        limit = bench.policy.timeout_seconds
        if trial.settings.get(slow) == "true" and limit < 3600:
            words = f"stalled: not done after {limit} s"
            return TrialEnd(state=AttemptState.INVALID, reason=words, measurement=None)
        return end

    monkeypatch.setattr("boardcluster.campaign.driver.run_trial", limited)
    tuned(*SMALL, "--budget", "18min")
    [record] = read_records(tuned.home)
    stopped = [row for row in record.runs if row.outcome == "stopped"]
    assert stopped
    assert all(row.seconds >= 20 and "can no longer be the best" in row.reason for row in stopped)


def test_dry_run_shows_the_space_and_changes_nothing(tuned: Desk) -> None:
    before = tuned.files()
    shown = tuned.json(*SMALL, "--dry-run")
    assert tuned.files() - before <= {"cache"}
    assert (shown["runs"], shown["run_seconds"]) == (None, None)
    names = [row["tunable"]["name"] for row in shown["space"]]
    assert "reduces" in names
    assert "executors" not in names
    assert any("MiB" in row["reason"] for row in shown["ruled_out"])
    assert "upstream" in {row["id"] for row in shown["known"]}
    tuned.is_up = True
    tuned("run", "wordcount", "--engine", "mapreduce", "--size", "64MB")
    shown = tuned.json(*SMALL, "--dry-run")
    assert shown["run_seconds"] == pytest.approx(66, rel=0.05)
    assert shown["proof_seconds"] == pytest.approx(shown["run_seconds"] * 11)
    assert shown["runs"] == int((3600 - 12 * shown["run_seconds"]) / shown["run_seconds"])
    assert "settings" in tuned(*SMALL, "--dry-run").stdout


def test_only_runs_that_did_the_same_work_say_what_one_takes(tuned: Desk) -> None:
    tuned.is_up = True
    tuned.seconds = lambda trial: 1200.0 if trial.parameters else 100.0
    pi = ("pi", "--engine", "mapreduce")
    tuned("run", *pi, "--set", "samples=1000000000")
    assert tuned.json("tune", *pi, "--dry-run")["run_seconds"] is None
    tuned("run", *pi)
    assert tuned.json("tune", *pi, "--dry-run")["run_seconds"] == pytest.approx(100.0)


def test_runs_on_what_the_cluster_sets_say_what_one_takes(tuned: Desk) -> None:
    file = tuned.home / "cluster.toml"
    file.write_text(f'{file.read_text()}\n[settings]\n"mapreduce.task.io.sort.factor" = 20\n')
    with pytest.raises(UsageError, match="too small for one proof"):
        tuned(*SMALL, "--budget", "5min")
    shown = tuned.json(*SMALL, "--dry-run")
    assert shown["run_seconds"] == pytest.approx(66, rel=0.05)
    assert "files merged at once" not in {row["tunable"]["name"] for row in shown["space"]}


def test_a_finished_tuning_is_shown_again_though_its_profile_is_there(
    tuned: Desk, tmp_path: Path
) -> None:
    words = (*SMALL, "--budget", "19min", "--out", str(tmp_path / "mine.toml"))
    done = tuned(*words)
    assert (tmp_path / "mine.toml").exists()
    ran = len(tuned.ran)
    again = tuned(*words, "--continue")
    assert (again.exit_code, again.stdout, len(tuned.ran)) == (0, done.stdout, ran)
    assert tuned(*words, "--continue", "--dry-run").exit_code == 0
    shown = tuned.json(*words, "--continue")["tuning"]["result"]
    assert f"{shown['ratio']:.2f} times the time of default" in done.stdout
    assert shown["verdict"] == "lower"
    with pytest.raises(UsageError, match="already exists"):
        tuned(*words, "--new")
    assert len(read_records(tuned.home)) == 1, "nothing was begun that could not end"


def test_what_cannot_be_tuned_is_refused_before_anything_runs(tuned: Desk, tmp_path: Path) -> None:
    campaign = tmp_path / "small.toml"
    campaign.write_text("[campaign]\n")
    jar = tmp_path / "job.jar"
    jar.write_bytes(b"PK\x03\x04")
    for words, expected in (
        (("wordcont",), "neither a workload nor a file; did you mean 'wordcount'"),
        ((str(campaign),), "campaign file"),
        (("hpl",), "no settings"),
        (("wordcount", "--engine", "mpi"), "no settings for MPI"),
        (("wordcount", "--objective", "energy"), "no power meter"),
        (("wordcount", "--budget", "soon"), "--budget"),
        (("wordcount", "--size", "0"), "--size"),
        (("pi", "--size", "1MB"), "takes no input"),
        (("wordcount", "--base", "fastest"), "unknown profile 'fastest'"),
        (("wordcount", "--resume"), "no such tuning"),
        (("wordcount", "--new", "--resume"), "contradict"),
        (("wordcount", "--set", "x"), "NAME=VALUE"),
        (("wordcount", "--class", "my.Main"), "arguments and --class are for programs"),
        (("wordcount", "--", "in"), "arguments and --class are for programs"),
        ((str(jar), "--engine", "mapreduce", "--class", "my.Main"), "only be used with Spark"),
        (("wordcount", "--out", str(tmp_path / "none" / "p.toml")), "no folder"),
        (("wordcount", "--out", str(campaign)), "already exists"),
        (("wordcount", "--out", str(tmp_path / "profile")), "must end in .toml"),
    ):
        with pytest.raises((UsageError, SpecError)) as caught:
            tuned("tune", *words)
        assert expected in caught.value.message, words
        if "--out" in words:
            with pytest.raises(UsageError, match=re.escape(expected)):
                tuned("tune", *words, "--dry-run")
    assert tuned("tune", "wordcount", "--objective", "speed").exit_code == 2
    assert tuned.ran == []
    cluster = bc.open(home=tuned.home, cache=tmp_path / "cache")
    for given in ({"objective": "speed"}, {"budget": "soon"}, {"resume": True, "new": True}):
        with pytest.raises(UsageError):
            cluster.tune("wordcount", **given)


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_without_optuna_the_extra_is_named(
    more: tuple[str, ...], tuned: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(UsageError, match="Optuna") as caught:
        tuned(*SMALL, *more)
    assert "boardcluster[tune]" in caught.value.hint


def test_energy_is_what_shall_be_little_if_asked(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.seconds = took
    clock = lambda: sum(took(trial) + 1 for trial in desk.ran)  # noqa: E731
    monkeypatch.setattr("boardcluster.campaign.tune.monotonic", clock)

    def metered(live: Any, trial: Trial, *given: Any, **named: Any) -> TrialEnd:
        desk.ran.append(trial)
        end = good(took(replace(trial, settings={})))
        assert end.measurement is not None
        energy = make_energy(energy_joules=10 * took(trial))
        return replace(end, measurement=replace(end.measurement, energy=energy))

    monkeypatch.setattr("boardcluster.campaign.driver.run_trial", metered)
    monkeypatch.setattr(
        "boardcluster.campaign.tune.read_declared",
        lambda _: replace(desk.declared, meters=("a meter",)),  # type: ignore[arg-type]
    )
    done = desk(*SMALL, "--objective", "energy", "--budget", "19min")
    assert "times the energy of default" in done.stdout
    assert profile_of(desk)[1]["tuned"]["high"] < 0.9

    def wasteful(live: Any, trial: Trial, *given: Any, **named: Any) -> TrialEnd:
        end = metered(live, trial, *given, **named)
        assert end.measurement is not None
        took_energy = 10 * took(replace(trial, settings={})) * (1 + bool(trial.settings))
        energy = make_energy(energy_joules=took_energy)
        return replace(end, measurement=replace(end.measurement, energy=energy))

    monkeypatch.setattr("boardcluster.campaign.driver.run_trial", wasteful)
    done = desk(*SMALL, "--objective", "energy", "--budget", "19min", "--new")
    assert "nothing took less energy than default" in done.stdout


def test_disturbed_pairs_count_only_if_asked(tuned: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    calm = tuned.run_trial

    def disturbed(*given: Any, **named: Any) -> TrialEnd:
        end = calm(*given, **named)
        assert end.measurement is not None
        steal = Disturbance(cause="throttling", node="worker1", share=0.5, adjustable=False)
        measurement = replace(
            end.measurement,
            verdict=Verdict.TAINTED,
            verdict_reasons=("throttled",),
            disturbances=(steal,),
        )
        return replace(end, measurement=measurement, telemetry=make_telemetry())

    monkeypatch.setattr("boardcluster.campaign.driver.run_trial", disturbed)
    done = tuned(*SMALL, "--budget", "19min")
    assert "only 0 of 5 pairs count" in done.stdout
    assert "throttled" in done.stdout
    ran = len(tuned.ran)
    done = tuned(*SMALL, "--budget", "19min", "--continue", "--tainted")
    assert len(tuned.ran) == ran
    assert "disturbed ones included" in done.stdout
    assert profile_of(tuned)[1]["tuned"]["pairs"] == 5


def test_a_tuned_profile_elsewhere_is_refused_or_remarked(tuned: Desk, tmp_path: Path) -> None:
    out = tmp_path / "mine.toml"
    tuned(*SMALL, "--budget", "19min", "--out", str(out))
    text = out.read_text()
    fewer = replace(tuned.declared, nodes=tuned.declared.nodes[:3], profile=str(out))
    [remark] = [row for row in build_profile(str(out), fewer).remarks if "tuned on" in row]
    assert "here are 2 workers" in remark
    boards = replace(tuned.declared, kind="boards")
    [remark] = [row for row in build_profile(str(out), boards).remarks if "tuned on" in row]
    assert "of the kind emulated" in remark
    assert "of the kind boards" in remark
    document = tomllib.loads(text)
    document["mapred-site"]["mapreduce.map.memory.mb"] = "65536"
    rows = "\n".join(f'"{key}" = "{value}"' for key, value in document["mapred-site"].items())
    out.write_text(f'base = "default"\n[tuned]\nkind = "emulated"\n["mapred-site"]\n{rows}\n')
    with pytest.raises(CapacityError, match=r"mine.toml, which was tuned on .*65536 MiB"):
        build_profile(str(out), tuned.declared)
    plain = tmp_path / "plain.toml"
    tables = '["spark-defaults"]\n"spark.executor.memory" = "99g"\n'
    plain.write_text(f'[tuned]\nkind = "emulated"\n{tables}')
    build_profile(str(plain), tuned.declared)  # where it was tuned it ran
    plain.write_text(f'[tuned]\nkind = "emulated"\nworkers = 63\n{tables}')
    with pytest.raises(CapacityError, match=r"plain.toml, which was tuned on .*Spark"):
        build_profile(str(plain), tuned.declared)
    plain.write_text('[tuned]\nkind = "boards"\n')
    [remark] = [r for r in build_profile(str(plain), tuned.declared).remarks if "tuned on" in r]
    assert "of the kind boards" in remark
    out.write_text('base = "fastest"\n')
    with pytest.raises(SpecError, match="base as one of default"):
        build_profile(str(out), tuned.declared)


def test_a_profile_fits_a_cluster_whose_settings_it_was_tuned_with(
    make_spec: Callable[..., ClusterSpec], tmp_path: Path
) -> None:
    """The profile `default` has a larger sort buffer there than the container of a map."""
    out = tmp_path / "mine.toml"
    options = '"mapreduce.map.java.opts" = "-XX:TieredStopAtLevel=1"'
    own = f'["mapred-site"]\n"mapreduce.map.memory.mb" = 320\n{options}\n'
    out.write_text(f'base = "default"\n{own}')
    roomy = replace(make_spec(memory_mib=8192, engines=pair_ids()[0]), profile=str(out))
    with pytest.raises(CapacityError, match="does not fit into the heap of a map"):
        build_profile(str(out), roomy)
    spec = replace(roomy, settings={"mapreduce.task.io.sort.mb": "64"})
    rows = all_properties(build_profile(str(out), spec).properties)
    assert (rows["mapreduce.map.memory.mb"], rows["mapreduce.task.io.sort.mb"]) == ("320", "64")


def test_what_was_tuned_can_be_tuned_further(tuned: Desk, tmp_path: Path) -> None:
    base = tmp_path / "base.toml"
    base.write_text(
        'source = "mine"\nbase = "default"\nclass_data_archives = ["spark"]\n["mapred-site"]\n'
        '"mapreduce.job.ubertask.enable" = "true"\n"mapreduce.task.io.sort.factor" = "64"\n'
    )
    tuned(*SMALL, "--budget", "23min", "--base", str(base))
    _, written = profile_of(tuned)
    assert written["base"] == "default"
    assert written["class_data_archives"] == ["spark"]
    assert "mapreduce.task.io.sort.factor" in written["mapred-site"]
    assert written["tuned"]["against"] == str(base)
    assert {trial.profile for trial in tuned.ran} == {str(base)}


def test_the_report_shows_it_and_leaves_the_search_out_of_the_rest(
    tuned: Desk, tmp_path: Path
) -> None:
    shown = tuned.json(*SMALL, "--budget", "18min")
    bc.report(home=tuned.home, out=tmp_path / "report")
    text = (tmp_path / "report" / "report.md").read_text()
    assert "## Tuning" in text
    assert "Effect of each setting" in text
    effects = [row["name"] for row in shown["tuning"]["effects"]]
    assert effects
    assert all(name in text for name in effects)
    search = shown["request"]["id"]
    runs = list((tmp_path / "report" / "data").glob("*runs*"))
    assert runs
    assert all(search not in path.read_text() for path in runs)
    assert search in {row.trial.campaign_id for row in tuned.results()}, "they are in the store"
    cells = bc.open(home=tuned.home).results().cells().rows()
    assert len(cells) == 2, "the best and the base, as the pairs measured them"
    assert {row["runs"] for row in cells} == {shown["proof"]["pairs"]}
    words = ["results", "--home", str(tuned.home), "--json"]
    listed = json.loads(CliRunner().invoke(app, words, catch_exceptions=False).stdout)
    assert len(listed["cells"]) == 2
    assert len(listed["results"]) > 2 * shown["proof"]["pairs"], "all runs are listed"
    asked = bc.open(home=tuned.home).results(campaign=search).cells().rows()
    assert len(asked) > 2


def test_ctrl_c_says_how_to_go_on(tuned: Desk) -> None:
    tuned.ends["wordcount"] = KeyboardInterrupt()
    cluster = bc.open(home=tuned.home, cache=tuned.home / "cache")
    with pytest.raises(KeyboardInterrupt) as caught:
        cluster.tune("wordcount", engine="mapreduce", size="64 MB")
    assert any("--continue" in note for note in caught.value.__notes__)


def test_a_changed_cluster_is_not_gone_on_with(tuned: Desk) -> None:
    with pytest.raises(UsageError):
        tuned(*SMALL, "--budget", "1min")
    file = tuned.home / "cluster.toml"
    file.write_text(file.read_text().replace('memory = "', 'memory = "1', 1))
    with pytest.raises((UsageError, ClusterError), match="cannot continue"):
        tuned(*SMALL, "--continue")


def test_an_edited_text_is_not_gone_on_with(tuned: Desk, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("one line\n" * 10)
    words = ("tune", "wordcount", "--engine", "mapreduce", "--input", str(text), "--seed", "3")
    with pytest.raises(UsageError, match="too small for one proof"):
        tuned(*words, "--budget", "1min")
    text.write_text("two line\n" * 10)
    with pytest.raises(UsageError, match=r"is not the one that campaign .* began with"):
        tuned(*words, "--budget", "1min", "--continue")
    [record] = read_records(tuned.home)
    assert len(record.sittings) == 1
    text.write_text("one line\n" * 10)
    with pytest.raises(UsageError, match="too small for one proof"):
        tuned(*words, "--budget", "1min", "--continue")


def test_a_program_of_ones_own_is_tuned_by_its_runs(
    tuned: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = tmp_path / "app.py"
    app.write_text("print(1)\n")
    ran: list[tuple[dict[str, str], tuple[str, ...]]] = []
    given = ("in", "out-{run}", "--password", "hunter2")

    def submit(
        live: LiveCluster,
        store: Store,
        campaign: Campaign,
        trial: Trial,
        program: UserProgram,
        *,
        timeout_seconds: float,
        cwd: Path,
        told: object,
    ) -> tuple[Attempt, None]:
        ran.append((program.settings, program.arguments))
        seconds = (
            30.0 if FAST in program.settings.get("spark.executor.extraJavaOptions", "") else 60
        )
        store.add_campaign(campaign, [trial])
        attempt = store.begin_attempt(trial.id, take_fingerprint(live), now_utc())
        proofless = replace(make_measurement(seconds + len(ran) % 3), verification=None)
        ended = store.finish(
            attempt,
            state=AttemptState.OK,
            reason="",
            ended_utc=now_utc(),
            measurement=proofless,
        )
        return ended, None

    monkeypatch.setattr("boardcluster.campaign.tune_runs.submit_program", submit)
    monkeypatch.setattr("boardcluster.campaign.tune.monotonic", lambda: 61.0 * len(ran))
    before = tuned("tune", str(app), "--dry-run", "--", *given)
    assert "sizes: none, because what a program reads is in its arguments" in before.stdout
    assert "no run of it is stored yet" in before.stdout
    done = tuned("tune", str(app), "--budget", "30min", "--seed", "3", "--", *given)
    assert "times the time of default" in done.stdout
    assert len({arguments for _, arguments in ran}) == len(ran), "each run writes elsewhere"
    assert all((row[1][0], row[1][3]) == ("in", "hunter2") for row in ran)
    after = tuned("tune", str(app), "--dry-run", "--", *given)
    assert "a run takes about 1 min 01 s" in " ".join(after.stdout.split())
    with pytest.raises(UsageError, match="too small for one proof") as refused:
        tuned("tune", str(app), "--budget", "2min", "--new", "--", *given)
    assert "--size" not in refused.value.hint
    _, written = profile_of(tuned)
    assert FAST in written["spark-defaults"]["spark.executor.extraJavaOptions"]
    assert written["tuned"]["workload"] == str(app)
    assert written["tuned"]["pairs"] >= 5
    with pytest.raises(UsageError, match="--size, --input and --set are for workloads"):
        tuned("tune", str(app), "--size", "1MB")
    [record] = (tuned.home / "tunings").glob("*.jsonl")
    assert "hunter2" not in record.read_text()
    lines = record.read_text().splitlines(keepends=True)
    record.write_text("".join(line for line in lines if '"event": "end"' not in line))
    changed = "the program, the folder it starts in or the space of settings"
    with monkeypatch.context() as elsewhere:
        elsewhere.chdir(tuned.home)
        with pytest.raises(UsageError, match=changed):
            tuned("tune", str(app), "--continue", "--", *given)
    app.write_text("print(2)\n")
    with pytest.raises(UsageError, match=changed):
        tuned("tune", str(app), "--continue", "--", *given)
    jar = tmp_path / "job.jar"
    jar.write_bytes(b"PK\x03\x04")
    with pytest.raises(UsageError, match="which engine is to run"):
        tuned("tune", str(jar))
