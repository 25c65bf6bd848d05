from __future__ import annotations

import os
import random
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from tests.builders import end_attempt, make_board_fingerprint, store_run
from tests.unit.store.conftest import CAMPAIGN_FILE, TELEMETRY

from boardcluster.errors import EmptySelectionError, StoreError
from boardcluster.records import (
    Attempt,
    AttemptState,
    Campaign,
    CampaignKind,
    Disturbance,
    Engine,
    Fingerprint,
    Measurement,
    Trial,
    Verdict,
)
from boardcluster.store import Store, database, files, migrations, rebuild, rows

BEGAN = "2026-08-01T12:00:01+00:00"
ENDED = "2026-08-01T12:00:31+00:00"


@pytest.fixture
def store(tmp_path: Path, campaign: Campaign, trials: tuple[Trial, ...]) -> Iterator[Store]:
    with Store.open(tmp_path) as opened:
        opened.add_campaign(campaign, trials)
        yield opened


def _damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4096:] = os.urandom(len(data) - 4096)
    path.write_bytes(data)


def test_a_finished_attempt_reads_back_as_it_was_written(
    *,
    store: Store,
    tmp_path: Path,
    campaign: Campaign,
    trials: tuple[Trial, ...],
    fingerprint: Fingerprint,
    measurement: Measurement,
) -> None:
    attempt = store.begin_attempt(trials[0].id, fingerprint, BEGAN)
    assert (attempt.number, attempt.state) == (1, AttemptState.RUNNING)
    assert store.artefact_folder(attempt) == tmp_path / attempt.artefacts
    assert store.artefact_folder(attempt).is_dir()
    done = end_attempt(store, attempt, measurement, telemetry=TELEMETRY)
    with Store.open(tmp_path, read_only=True) as reader:
        first, second, *_ = reader.results(campaign.id)
        assert reader.campaigns() == (campaign,)
        assert reader.trials(campaign.id) == trials
    assert (first.trial, first.attempt, first.measurement) == (trials[0], done, measurement)
    assert (second.trial, second.attempt, second.measurement) == (trials[1], None, None)
    assert first.measurement is not None
    for name in ("figures", "phases_seconds"):
        assert list(getattr(first.measurement, name)) == list(getattr(measurement, name))


@pytest.mark.parametrize("kind", [Campaign, Trial, Measurement])
def test_the_tests_records_leave_no_field_at_its_default(
    kind: type, campaign: Campaign, trials: tuple[Trial, ...], measurement: Measurement
) -> None:
    """A column that is forgotten then fails the tests that read back what was written."""
    record = {Campaign: campaign, Trial: trials[0], Measurement: measurement}[kind]
    for field in fields(kind):
        if field.name not in ("arguments", "counters"):
            assert getattr(record, field.name) != field.default, field.name
            assert getattr(record, field.name) not in ({}, ()), field.name


def test_fewer_fields_read_back_as_their_defaults(
    store: Store,
    trials: tuple[Trial, ...],
    fingerprint: Fingerprint,
    measurement: Measurement,
) -> None:
    bare = Measurement(
        duration_seconds=1.0,
        input_bytes=0,
        output_bytes=0,
        verification=measurement.verification,
        exit_status=0,
    )
    attempt = store.begin_attempt(trials[0].id, fingerprint, BEGAN)
    end_attempt(store, attempt, bare)
    assert store.results()[0].measurement == bare


def test_a_second_attempt_is_numbered_and_the_first_is_kept(
    store: Store,
    trials: tuple[Trial, ...],
    fingerprint: Fingerprint,
    measurement: Measurement,
) -> None:
    first = store.begin_attempt(trials[0].id, fingerprint, BEGAN)
    end_attempt(store, first)
    second = store.begin_attempt(trials[0].id, fingerprint, BEGAN)
    end_attempt(store, second, measurement)
    latest = [item.attempt.number for item in store.results() if item.attempt]
    every = [item.attempt.number for item in store.results(all_attempts=True) if item.attempt]
    assert latest == [2]
    assert every == [1, 2]
    assert len(store.results()) == len(trials)


def test_ok_needs_a_measurement_and_its_proof(
    store: Store,
    campaign: Campaign,
    trials: tuple[Trial, ...],
    fingerprint: Fingerprint,
    measurement: Measurement,
) -> None:
    attempt = store.begin_attempt(trials[0].id, fingerprint, BEGAN)
    assert measurement.verification is not None
    wrong = replace(measurement.verification, actual_sha256="00")
    for bad, message in (
        (None, "without a measurement"),
        (replace(measurement, verification=None), "without a verified output"),
        (replace(measurement, verification=wrong), "not the expected one"),
        (replace(measurement, exit_status=1), "status 1"),
        (replace(measurement, duration_seconds=float("nan")), "took nan s"),
        (replace(measurement, dilation=0.5), "dilation of 0.5"),
        (replace(measurement, dilation=float("inf")), "dilation of inf"),
        (replace(measurement, figures={"a": float("inf")}), "figure a is inf"),
        (replace(measurement, phases_seconds={"map": float("nan")}), "phase map took nan s"),
        (replace(measurement, phases_seconds={"map": -1.0}), "phase map took -1.0 s"),
        (replace(measurement, intermediate_bytes=-1), "intermediate_bytes is -1"),
        (replace(measurement, node_written_bytes={"w": -2}), "bytes written on w is -2"),
        (replace(measurement, node_read_bytes={"w": -3}), "bytes read on w is -3"),
    ):
        with pytest.raises(StoreError, match=message):
            end_attempt(store, attempt, bad, state=AttemptState.OK)
    assert store.summary(campaign.id).pending == len(trials)


def test_the_users_own_program_needs_no_proof(
    tmp_path: Path,
    campaign: Campaign,
    trials: tuple[Trial, ...],
    fingerprint: Fingerprint,
    measurement: Measurement,
) -> None:
    with Store.open(tmp_path) as store:
        store.add_campaign(replace(campaign, kind=CampaignKind.SUBMIT), trials[:2])
        fine = store.begin_attempt(trials[0].id, fingerprint, BEGAN)
        unproved = replace(measurement, verification=None)
        end_attempt(store, fine, unproved)
        broken = store.begin_attempt(trials[1].id, fingerprint, BEGAN)
        kept = replace(unproved, exit_status=3)
        end_attempt(store, broken, kept, state=AttemptState.FAILED)
        assert [item.measurement for item in store.results()] == [unproved, kept]


def test_not_ok_needs_a_reason(
    store: Store, trials: tuple[Trial, ...], fingerprint: Fingerprint
) -> None:
    attempt = store.begin_attempt(trials[0].id, fingerprint, BEGAN)
    with pytest.raises(StoreError, match="without a reason"):
        end_attempt(store, attempt, state=AttemptState.INVALID, reason=" ")


def test_an_ended_attempt_is_never_overwritten(
    store: Store,
    tmp_path: Path,
    trials: tuple[Trial, ...],
    fingerprint: Fingerprint,
    measurement: Measurement,
) -> None:
    attempt = store.begin_attempt(trials[0].id, fingerprint, BEGAN)
    end_attempt(store, attempt)
    with pytest.raises(StoreError, match="failed, not running"):
        end_attempt(store, attempt, measurement, telemetry=TELEMETRY)
    connection = sqlite3.connect(tmp_path / "store.sqlite")
    for statement in ("UPDATE attempts SET reason = ''", "DELETE FROM attempts"):
        with pytest.raises(sqlite3.IntegrityError, match="never"):
            connection.execute(statement)
    connection.close()


def test_a_trial_has_one_running_attempt_and_one_verified_result(
    store: Store,
    trials: tuple[Trial, ...],
    fingerprint: Fingerprint,
    measurement: Measurement,
) -> None:
    measured = next(trial for trial in trials if not trial.warm_up)
    attempt = store.begin_attempt(measured.id, fingerprint, BEGAN)
    with pytest.raises(StoreError, match="still running"):
        store.begin_attempt(measured.id, fingerprint, BEGAN)
    end_attempt(store, attempt, measurement, telemetry=TELEMETRY)
    with pytest.raises(StoreError, match="verified result already"):
        store.begin_attempt(measured.id, fingerprint, BEGAN)


def test_a_warm_up_may_run_again_in_another_start_of_the_daemons(
    store: Store, campaign: Campaign, trials: tuple[Trial, ...], measurement: Measurement
) -> None:
    other = replace(campaign, id="20260802-130000")
    warm_up = replace(trials[0], id="warm", campaign_id=other.id, warm_up=True)
    store.add_campaign(other, [warm_up])
    for _ in range(2):
        store_run(store, warm_up, measurement)
    rows = store.results(other.id, all_attempts=True)
    assert [row.attempt.number for row in rows if row.attempt] == [1, 2]
    assert store.summary(other.id).ok == 1


def test_a_warm_up_that_ran_once_is_done(
    store: Store,
    campaign: Campaign,
    trials: tuple[Trial, ...],
    measurement: Measurement,
    fingerprint: Fingerprint,
) -> None:
    other = replace(campaign, id="20260802-130000")
    warm_up = replace(trials[0], id="warm", campaign_id=other.id, warm_up=True)
    store.add_campaign(other, [warm_up])
    store_run(store, warm_up, measurement)
    for state in (AttemptState.FAILED, AttemptState.INVALID):
        again = store.begin_attempt(warm_up.id, fingerprint, BEGAN)
        assert store.states(other.id) == {"warm": AttemptState.RUNNING}
        store.finish(again, state=state, reason="disturbed", ended_utc=BEGAN, measurement=None)
        assert store.states(other.id) == {"warm": AttemptState.OK}
        summary = store.summary(other.id)
        assert (summary.ok, summary.failed, summary.invalid, summary.pending) == (1, 0, 0, 0)


def test_a_campaign_is_stored_whole_or_not_at_all(
    store: Store, campaign: Campaign, trials: tuple[Trial, ...]
) -> None:
    other = replace(campaign, id="20260802-120000")
    good = replace(trials[0], id="other-0", campaign_id=other.id)
    clash = replace(trials[1], campaign_id=other.id)
    with pytest.raises(StoreError, match="UNIQUE"):
        store.add_campaign(other, (good, clash))
    with pytest.raises(StoreError, match="belongs to campaign"):
        store.add_campaign(other, (good, trials[1]))
    with pytest.raises(EmptySelectionError):
        store.add_campaign(other, ())
    assert store.campaigns() == (campaign,)
    store.add_campaign(other, (good,))
    assert store.trials(other.id) == (good,)


def test_the_file_of_a_campaign_is_kept_with_its_plan(
    tmp_path: Path, campaign: Campaign, trials: tuple[Trial, ...]
) -> None:
    with Store.open(tmp_path) as store:
        with pytest.raises(StoreError, match="the campaign file is not the one"):
            store.add_campaign(campaign, trials, file_bytes=CAMPAIGN_FILE + b"#")
        assert store.campaigns() == ()
        assert store.campaign_file(campaign.id) is None
        store.add_campaign(campaign, trials, file_bytes=CAMPAIGN_FILE)
        assert store.campaign_file(campaign.id) == CAMPAIGN_FILE
        assert store.states(campaign.id) == dict.fromkeys(trial.id for trial in trials)


@pytest.mark.parametrize("bad", ["", "..", "a/b", "/abs", ".hidden", "a\n", "x" * 300])
def test_an_id_cannot_leave_its_folder(
    tmp_path: Path, campaign: Campaign, trials: tuple[Trial, ...], bad: str
) -> None:
    with Store.open(tmp_path) as store:
        with pytest.raises(StoreError, match="not usable as an id"):
            store.add_campaign(campaign, (replace(trials[0], id=bad),))
        moved = replace(trials[0], campaign_id=bad)
        with pytest.raises(StoreError, match="not usable as an id"):
            store.add_campaign(replace(campaign, id=bad), (moved,))
        assert store.campaigns() == ()


def test_an_unknown_campaign_is_an_empty_selection(store: Store, campaign: Campaign) -> None:
    for call in (store.results, store.trials, store.summary, store.states):
        with pytest.raises(EmptySelectionError, match="no campaign nothing") as caught:
            call("nothing")
        assert campaign.id in caught.value.hint


def test_undecodable_bytes_in_a_reason_are_kept_readable(
    store: Store, trials: tuple[Trial, ...], fingerprint: Fingerprint
) -> None:
    attempt = store.begin_attempt(trials[0].id, fingerprint, BEGAN)
    end_attempt(store, attempt, reason="no file ü\udcff")
    found = store.results()[0].attempt
    assert found is not None
    assert found.reason == "no file ü\\udcff"


def test_running_attempts_of_a_dead_driver_become_invalid(
    store: Store, campaign: Campaign, trials: tuple[Trial, ...], fingerprint: Fingerprint
) -> None:
    store.begin_attempt(trials[0].id, fingerprint, BEGAN)
    store.begin_attempt(trials[1].id, fingerprint, BEGAN)
    assert store.summary(campaign.id).pending == len(trials)
    assert store.mark_interrupted("driver was killed") == 2
    assert store.mark_interrupted("driver was killed") == 0
    summary = store.summary(campaign.id)
    assert (summary.invalid, summary.pending) == (2, len(trials) - 2)


def test_an_end_that_reached_its_file_is_taken_from_there(
    *,
    store: Store,
    campaign: Campaign,
    trials: tuple[Trial, ...],
    fingerprint: Fingerprint,
    measurement: Measurement,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    attempt = store.begin_attempt(trials[0].id, fingerprint, BEGAN)
    write = files.write_record

    def write_then_die(*arguments: object) -> None:
        write(*arguments)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(database, "write_record", write_then_die)
        with pytest.raises(KeyboardInterrupt):
            end_attempt(store, attempt, measurement, telemetry=TELEMETRY)
    assert store.summary(campaign.id).ok == 0
    with pytest.raises(StoreError, match="ok, not running"):
        end_attempt(store, attempt)
    assert store.mark_interrupted("Ctrl-C") == 0
    assert store.results()[0].measurement == measurement


def test_a_full_disk_leaves_the_attempt_running(
    store: Store,
    trials: tuple[Trial, ...],
    fingerprint: Fingerprint,
    measurement: Measurement,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    attempt = store.begin_attempt(trials[0].id, fingerprint, BEGAN)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(StoreError, match="No space left") as caught:
            end_attempt(store, attempt, measurement, telemetry=TELEMETRY)
    assert caught.value.hint.startswith("free space")
    assert [path.name for path in store.artefact_folder(attempt).iterdir()] == ["attempt.json"]
    done = end_attempt(store, attempt, measurement, telemetry=TELEMETRY)
    assert done.state is AttemptState.OK


def test_reading_changes_nothing_on_disk(tmp_path: Path, campaign: Campaign) -> None:
    home = tmp_path / "none"
    with Store.open(home, read_only=True) as store:
        assert store.results() == ()
        assert store.campaigns() == ()
        with pytest.raises(StoreError, match="open read-only"):
            store.mark_interrupted("x")
    assert not home.exists()


def test_a_folder_without_write_permission_can_be_read(
    tmp_path: Path, campaign: Campaign, trials: tuple[Trial, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store.open(tmp_path) as store:
        store.add_campaign(campaign, trials)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with Store.open(tmp_path, read_only=True) as store:
        assert store.campaigns() == (campaign,)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["campaigns", "store.sqlite"]


def test_a_reader_sees_what_is_committed_while_a_writer_is_open(
    store: Store, tmp_path: Path, trials: tuple[Trial, ...], fingerprint: Fingerprint
) -> None:
    with Store.open(tmp_path, read_only=True) as reader:
        store.begin_attempt(trials[0].id, fingerprint, BEGAN)
        found = reader.results()[0].attempt
    assert found is not None
    assert found.state is AttemptState.RUNNING


@pytest.mark.parametrize("read_only", [False, True])
def test_a_damaged_store_is_found_when_it_is_opened(
    tmp_path: Path, campaign: Campaign, trials: tuple[Trial, ...], read_only: bool
) -> None:
    with Store.open(tmp_path) as store:
        store.add_campaign(campaign, trials)
    _damage(tmp_path / "store.sqlite")
    with pytest.raises(StoreError) as caught:
        Store.open(tmp_path, read_only=read_only)
    assert caught.value.hint == "run `boardcluster results --rebuild`"


def test_a_damaged_page_is_found_when_it_is_read(
    tmp_path: Path, campaign: Campaign, trials: tuple[Trial, ...]
) -> None:
    with Store.open(tmp_path) as store:
        store.add_campaign(campaign, trials)
    _damage(tmp_path / "store.sqlite")
    with (
        pytest.raises(StoreError) as caught,
        Store.open(tmp_path, read_only=True, whole=False) as store,
    ):
        store.results()
    assert caught.value.hint == "run `boardcluster results --rebuild`"


def test_a_file_that_is_no_database_is_found(tmp_path: Path) -> None:
    (tmp_path / "store.sqlite").write_bytes(b"hello" * 1000)
    with pytest.raises(StoreError, match="not a database") as caught:
        Store.open(tmp_path)
    assert caught.value.hint == "run `boardcluster results --rebuild`"


def test_a_lost_database_beside_campaigns_is_not_an_empty_store(
    store: Store, tmp_path: Path
) -> None:
    store.close()
    (tmp_path / "store.sqlite").unlink()
    with pytest.raises(StoreError, match="missing although campaigns were recorded"):
        Store.open(tmp_path, read_only=True)


def test_a_store_of_a_newer_version_is_refused(store: Store, tmp_path: Path) -> None:
    store.close()
    connection = sqlite3.connect(tmp_path / "store.sqlite")
    connection.execute("INSERT INTO migrations VALUES ('9999_future', 'x')")
    connection.commit()
    connection.close()
    for read_only in (False, True):
        with pytest.raises(StoreError, match="9999_future") as caught:
            Store.open(tmp_path, read_only=read_only)
        assert "newer" in caught.value.hint


def test_a_database_cut_short_before_its_first_format_is_completed(tmp_path: Path) -> None:
    (tmp_path / "store.sqlite").touch()
    with Store.open(tmp_path, read_only=True) as store:
        assert store.results() == ()
    with Store.open(tmp_path) as store:
        assert store.results() == ()


def test_planned_is_always_ok_and_failed_and_invalid_and_pending(
    *,
    store: Store,
    tmp_path: Path,
    campaign: Campaign,
    trials: tuple[Trial, ...],
    fingerprint: Fingerprint,
    measurement: Measurement,
) -> None:
    for seed in range(8):
        rng = random.Random(seed)
        copy = replace(campaign, id=f"c{seed}")
        mine = [replace(item, id=f"c{seed}-{item.id}", campaign_id=copy.id) for item in trials]
        store.add_campaign(copy, mine)
        running: dict[str, Attempt] = {}
        expected = {item.id: "pending" for item in mine}
        for _ in range(25):
            trial_id = rng.choice(mine).id
            step = rng.choice(["begin", "ok", "failed", "invalid", "interrupt"])
            if step == "interrupt":
                store.mark_interrupted("interrupted")
                expected.update(dict.fromkeys(running, "invalid"))
                running.clear()
            elif step == "begin" and trial_id not in running and expected[trial_id] != "ok":
                running[trial_id] = store.begin_attempt(trial_id, fingerprint, BEGAN)
                expected[trial_id] = "pending"
            elif step not in ("begin", "interrupt") and trial_id in running:
                end_attempt(store, running.pop(trial_id), measurement, state=AttemptState(step))
                expected[trial_id] = step
            found = store.summary(copy.id)
            counts = {
                name: list(expected.values()).count(name)
                for name in ("ok", "failed", "invalid", "pending")
            }
            assert found.planned == len(mine)
            assert found.planned == found.ok + found.failed + found.invalid + found.pending
            assert counts == {name: getattr(found, name) for name in counts}


def test_states_are_those_of_the_latest_attempts_in_run_order(
    store: Store,
    campaign: Campaign,
    trials: tuple[Trial, ...],
    fingerprint: Fingerprint,
    measurement: Measurement,
) -> None:
    for trial, states in (
        (trials[0], ("failed", "ok")),
        (trials[2], ("invalid",)),
        (trials[3], ("invalid", "running")),
    ):
        for state in states:
            attempt = store.begin_attempt(trial.id, fingerprint, BEGAN)
            if state != "running":
                end_attempt(store, attempt, measurement, state=AttemptState(state))
    found = store.states(campaign.id)
    assert list(found) == [trial.id for trial in trials]
    assert list(found.values())[:5] == ["ok", None, "invalid", "running", None]


def test_campaigns_are_found_by_name_oldest_first(
    store: Store, campaign: Campaign, trials: tuple[Trial, ...]
) -> None:
    later = replace(campaign, id="20260901-000000")
    other = replace(campaign, id="20260902-000000", name="other")
    for added in (other, later):
        trial = replace(trials[0], id=f"{added.id}-0", campaign_id=added.id)
        store.add_campaign(added, [trial])
    assert store.find_campaigns("paper") == (campaign, later)
    assert store.find_campaigns("pap") == ()


def test_typical_seconds_are_means_of_measured_ok_runs(
    store: Store,
    campaign: Campaign,
    trials: tuple[Trial, ...],
    fingerprint: Fingerprint,
    measurement: Measurement,
) -> None:
    own = replace(campaign, id="20260901-000000", kind=CampaignKind.SUBMIT)
    program = replace(trials[0], id="own", campaign_id=own.id, warm_up=False, workload="submit")
    store.add_campaign(own, [program])
    spark = [trial for trial in trials if trial.engine == "spark"]
    assert [trial.warm_up for trial in spark] == [True, False, False]
    for trial, state, seconds, dilation in (
        (program, AttemptState.OK, 1.0, 1.0),
        (spark[0], AttemptState.OK, 900.0, 1.0),
        (spark[1], AttemptState.FAILED, 800.0, 1.0),
        (spark[1], AttemptState.OK, 20.0, 1.0),
        (spark[2], AttemptState.OK, 10.0, 3.0),  # which took 30 s here
    ):
        timed = replace(measurement, duration_seconds=seconds, dilation=dilation)
        store_run(store, trial, timed, state=state)
    assert store.typical_seconds() == {("wordcount", "spark", 256_000_000, 4): 25.0}


def test_of_the_newest_runs_those_of_other_campaigns_take_no_place(
    store: Store, campaign: Campaign, trials: tuple[Trial, ...], measurement: Measurement
) -> None:
    trial = replace(trials[0], warm_up=False, concurrency=1, engine=Engine.SPARK, position=0)
    mine, search = replace(campaign, id="20260901-a"), replace(campaign, id="20260901-b")
    first = replace(trial, id="first", campaign_id=mine.id)
    second = replace(trial, id="second", campaign_id=mine.id, position=1)
    searched = replace(trial, id="searched", campaign_id=search.id)
    store.add_campaign(mine, [first, second])
    store.add_campaign(search, [searched])
    for one, moment in ((first, "01"), (second, "02"), (searched, "03")):
        store_run(store, one, measurement, started_utc=f"2026-08-01T12:00:{moment}+00:00")

    def newest(most: int, *without: str) -> list[str]:
        found = store.recent(first.workload, "spark", most=most, without=without)
        return [row.trial.id for row in found]

    assert newest(1) == [searched.id]
    assert newest(1, search.id) == [second.id]
    assert newest(9, search.id, "another") == [second.id, first.id]


def test_the_database_itself_refuses_ok_without_a_proof(
    store: Store, trials: tuple[Trial, ...], fingerprint: Fingerprint, measurement: Measurement
) -> None:
    attempt = store.begin_attempt(trials[0].id, fingerprint, BEGAN)
    done = replace(attempt, state=AttemptState.OK, ended_utc=ENDED)
    with pytest.raises(sqlite3.IntegrityError, match="without a verified output"):
        rows.insert_end(store._connection, done, replace(measurement, verification=None))


def test_one_attempt_does_not_read_the_whole_campaign(
    store: Store,
    trials: tuple[Trial, ...],
    fingerprint: Fingerprint,
    measurement: Measurement,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    built: list[str] = []
    made = rows._trial

    def build(row: sqlite3.Row) -> Trial:
        built.append(row["id"])
        return made(row)

    monkeypatch.setattr(rows, "_trial", build)
    attempt = store.begin_attempt(trials[0].id, fingerprint, BEGAN)
    end_attempt(store, attempt, measurement, telemetry=TELEMETRY)
    assert built == [trials[0].id] * 2


STEPS = (
    (migrations, "begin"),
    (rows, "insert_campaign"),
    (rows, "insert_trials"),
    (rows, "insert_attempt"),
    (rows, "insert_end"),
    (database, "write_record"),
    (files, "write_temporary"),
    (files, "put_in_place"),
    (files, "sync_folder"),
    (migrations, "commit"),
)
FILE = ["write_record", "write_temporary", "put_in_place", "sync_folder"]


def _wrap(patch: pytest.MonkeyPatch, called: Callable[[str], None]) -> None:
    """Call back before each step of the protocol."""

    def wrapped(name: str, step: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            called(name)
            return step(*arguments)

        return call

    for module, name in STEPS:
        patch.setattr(module, name, wrapped(name, getattr(module, name)))


def test_every_change_takes_the_same_steps(
    *,
    tmp_path: Path,
    campaign: Campaign,
    trials: tuple[Trial, ...],
    fingerprint: Fingerprint,
    measurement: Measurement,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Store.open(tmp_path) as store:
        steps: list[str] = []
        _wrap(monkeypatch, steps.append)
        store.add_campaign(campaign, trials[:1])
        attempt = store.begin_attempt(trials[0].id, fingerprint, BEGAN)
        end_attempt(store, attempt, measurement, telemetry=TELEMETRY)
    assert steps == [
        *("begin", "insert_campaign", "insert_trials", *FILE, "commit"),
        *("begin", "insert_attempt", *FILE, "commit"),
        *("begin", "put_in_place", "sync_folder", "insert_end", *FILE, "commit"),
    ]


def test_a_campaign_that_reached_only_its_file_is_taken_from_there(
    tmp_path: Path,
    campaign: Campaign,
    trials: tuple[Trial, ...],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def die(name: str) -> None:
        if name == "commit":
            raise KeyboardInterrupt

    with Store.open(tmp_path) as store:
        with monkeypatch.context() as patch:
            _wrap(patch, die)
            with pytest.raises(KeyboardInterrupt):
                store.add_campaign(campaign, trials)
        assert store.campaigns() == ()
        (tmp_path / "campaigns" / "broken.json").write_text("{")
        assert store.mark_interrupted("driver was killed") == 0
        assert store.find_campaigns("paper") == (campaign,)
        assert store.trials(campaign.id) == trials
        assert set(store.states(campaign.id).values()) == {None}
        assert store.mark_interrupted("driver was killed") == 0
        assert store.campaigns() == (campaign,)
    assert "broken.json" in caplog.text


def test_a_judged_run_needs_the_samples_that_it_was_judged_by(
    store: Store,
    campaign: Campaign,
    trials: tuple[Trial, ...],
    fingerprint: Fingerprint,
    measurement: Measurement,
) -> None:
    attempt = store.begin_attempt(trials[0].id, fingerprint, BEGAN)
    invalid = replace(measurement, verdict=Verdict.INVALID)
    for bad, telemetry, message in (
        (measurement, None, "judged without telemetry"),
        (invalid, TELEMETRY, "verdict is invalid"),
    ):
        with pytest.raises(StoreError, match=message):
            end_attempt(store, attempt, bad, telemetry=telemetry)
    assert store.telemetry(attempt) is None


def test_a_run_that_is_out_of_its_cell_may_be_repeated_and_one_in_it_not(
    store: Store,
    campaign: Campaign,
    trials: tuple[Trial, ...],
    fingerprint: Fingerprint,
    measurement: Measurement,
) -> None:
    tainted = replace(measurement, verdict=Verdict.TAINTED)
    throttled = Disturbance(cause="throttled", node="worker1", share=0.2, adjustable=False)
    measured = next(trial for trial in trials if not trial.warm_up)
    for found, out in ((replace(tainted, disturbances=(throttled,)), True), (tainted, False)):
        assert store.excluded(campaign.id, attempts_most=0) == frozenset()
        store_run(store, measured, found)
        assert store.excluded(campaign.id, attempts_most=1) == ({measured.id} if out else set())
    with pytest.raises(StoreError, match="verified result already"):
        store.begin_attempt(measured.id, fingerprint, BEGAN)
    verdicts = [
        item.measurement.verdict
        for item in store.results(campaign.id, all_attempts=True)
        if item.measurement
    ]
    assert verdicts == [Verdict.TAINTED, Verdict.TAINTED]


def test_the_best_clock_of_each_board_is_known_and_of_no_other_board(
    store: Store, trials: tuple[Trial, ...], measurement: Measurement
) -> None:
    ours = make_board_fingerprint(hardware=("pi1: Raspberry Pi 5", "pi2: Raspberry Pi 5"))
    swapped = make_board_fingerprint(hardware=("pi1: Raspberry Pi 5", "pi2: Raspberry Pi 4"))
    for trial, setup, clocks in (
        (trials[0], ours, {"pi1": 2.3e9, "pi2": 2.2e9}),
        (trials[1], swapped, {"pi1": 2.4e9, "pi2": 1.8e9}),
        (trials[2], ours, {"pi1": 2.1e9}),
    ):
        store_run(store, trial, replace(measurement, clock_hertz=clocks), fingerprint=setup)
    assert store.best_clocks(ours) == {"pi1": 2.4e9, "pi2": 2.2e9}
    assert store.best_clocks(swapped) == {"pi1": 2.4e9, "pi2": 1.8e9}
    assert store.best_clocks(make_board_fingerprint()) == {}


# Further trials of a campaign


def further_of(trials: tuple[Trial, ...], number: int) -> tuple[Trial, ...]:
    last = max(trial.position for trial in trials)
    return tuple(
        replace(trials[0], id=f"{trials[0].id}x{place}", position=last + place, repetition=90)
        for place in range(1, number + 1)
    )


def test_further_trials_come_after_the_planned_ones(
    store: Store, campaign: Campaign, trials: tuple[Trial, ...], tmp_path: Path
) -> None:
    further = further_of(trials, 3)
    planned = store.trials(campaign.id)

    store.add_trials(campaign.id, further)

    assert store.trials(campaign.id) == (*planned, *further)
    assert store.summary(campaign.id).planned == len(planned) + 3
    store.close()
    rebuild(tmp_path)
    with Store.open(tmp_path, read_only=True) as rebuilt:
        assert rebuilt.trials(campaign.id) == (*planned, *further)


def test_further_trials_are_taken_whole_or_not_at_all(
    store: Store, campaign: Campaign, trials: tuple[Trial, ...]
) -> None:
    planned = store.trials(campaign.id)
    first, second = further_of(trials, 2)
    for wrong in (
        (first, first),
        (first, trials[0]),
        (first, replace(second, position=first.position)),
        (first, replace(second, campaign_id="another")),
    ):
        with pytest.raises(StoreError):
            store.add_trials(campaign.id, wrong)
        assert store.trials(campaign.id) == planned


def test_a_round_that_only_its_file_has_can_be_planned_again(
    store: Store,
    campaign: Campaign,
    trials: tuple[Trial, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A crash between the file and the commit."""
    further = further_of(trials, 2)
    planned = store.trials(campaign.id)

    def crash(*_: object) -> None:
        raise OSError("power cut")

    with monkeypatch.context() as patch:
        patch.setattr("boardcluster.store.migrations.commit", crash)
        with pytest.raises(StoreError, match="power cut"):
            store.add_trials(campaign.id, further)
    assert store.trials(campaign.id) == planned

    store.mark_interrupted("the driver was killed")
    store.add_trials(campaign.id, further)
    assert store.trials(campaign.id) == (*planned, *further)
