from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest
from tests.builders import store_run

from boardcluster.records import (
    AttemptState,
    Campaign,
    Fingerprint,
    Measurement,
    Trial,
)
from boardcluster.store import Store, rebuild, to_json
from boardcluster.store.files import CampaignFile, campaign_path, write_record

BEGAN = "2026-08-01T12:00:01+00:00"
ENDED = "2026-08-01T12:00:31+00:00"


def _fill(
    home: Path,
    campaign: Campaign,
    trials: tuple[Trial, ...],
    fingerprint: Fingerprint,
    measurement: Measurement,
) -> None:
    """One trial failed then ok, one invalid, one running, the rest pending."""
    with Store.open(home) as store:
        store.add_campaign(campaign, trials)
        for trial, state in (
            (trials[0], AttemptState.FAILED),
            (trials[0], AttemptState.OK),
            (trials[1], AttemptState.INVALID),
        ):
            store_run(store, trial, measurement, fingerprint=fingerprint, state=state)
        store.begin_attempt(trials[2].id, fingerprint, BEGAN)


def test_a_rebuilt_store_equals_the_one_that_was_lost(
    tmp_path: Path,
    campaign: Campaign,
    trials: tuple[Trial, ...],
    fingerprint: Fingerprint,
    measurement: Measurement,
) -> None:
    _fill(tmp_path, campaign, trials, fingerprint, measurement)
    with Store.open(tmp_path, read_only=True) as store:
        before = (store.campaigns(), store.results(all_attempts=True), store.summary(campaign.id))
    rubbish = b"rubbish" * 999
    (tmp_path / "store.sqlite").write_bytes(rubbish)
    assert rebuild(tmp_path) == 4
    with Store.open(tmp_path) as store:
        after = (store.campaigns(), store.results(all_attempts=True), store.summary(campaign.id))
        assert after == before
        assert store.mark_interrupted("driver was killed") == 1
    assert (tmp_path / "store.sqlite.damaged-1").read_bytes() == rubbish
    rebuild(tmp_path)
    assert (tmp_path / "store.sqlite.damaged-2").exists()


def test_an_unusable_file_is_left_out_named_and_kept(
    *,
    tmp_path: Path,
    campaign: Campaign,
    trials: tuple[Trial, ...],
    fingerprint: Fingerprint,
    measurement: Measurement,
    caplog: pytest.LogCaptureFixture,
) -> None:
    _fill(tmp_path, campaign, trials, fingerprint, measurement)
    cut = tmp_path / "attempts" / trials[1].id / "1" / "attempt.json"
    cut.write_text(cut.read_text()[:100])
    forged = tmp_path / "attempts" / trials[0].id / "2" / "attempt.json"
    forged.write_text(forged.read_text().replace('"actual_sha256": "ab', '"actual_sha256": "cd'))
    with caplog.at_level(logging.WARNING):
        assert rebuild(tmp_path) == 2
    assert str(cut) in caplog.text
    assert "its output is not the expected one" in caplog.text
    assert cut.exists()
    with Store.open(tmp_path) as store:
        assert store.summary(campaign.id).planned == len(trials)


@pytest.mark.parametrize("places", [(1, 0), (1, 1 << 70)], ids=["twice", "too large"])
def test_a_campaigns_file_that_cannot_be_used_does_not_cost_the_others(
    *,
    tmp_path: Path,
    campaign: Campaign,
    trials: tuple[Trial, ...],
    fingerprint: Fingerprint,
    measurement: Measurement,
    caplog: pytest.LogCaptureFixture,
    places: tuple[int, int],
) -> None:
    _fill(tmp_path, campaign, trials, fingerprint, measurement)
    path = campaign_path(tmp_path, campaign.id)
    document = json.loads(path.read_text())
    place, wrong = places
    document["record"]["trials"][place]["position"] = wrong
    path.write_text(json.dumps(document))
    with caplog.at_level(logging.WARNING):
        assert rebuild(tmp_path) == 4
    assert f"left out: {path}" in caplog.text
    with Store.open(tmp_path) as store:
        assert store.campaigns() == (campaign,)
        assert store.trials(campaign.id) == trials[:3]


def test_attempts_survive_the_loss_of_their_campaigns_file(
    tmp_path: Path,
    campaign: Campaign,
    trials: tuple[Trial, ...],
    fingerprint: Fingerprint,
    measurement: Measurement,
) -> None:
    _fill(tmp_path, campaign, trials, fingerprint, measurement)
    campaign_path(tmp_path, campaign.id).unlink()
    assert rebuild(tmp_path) == 4
    with Store.open(tmp_path) as store:
        assert store.campaigns() == (campaign,)
        assert store.trials(campaign.id) == trials[:3]


def test_rebuilding_an_empty_folder_gives_an_empty_store(tmp_path: Path) -> None:
    assert rebuild(tmp_path / "new") == 0
    with Store.open(tmp_path / "new") as store:
        assert store.results() == ()


DRIVER = """
import json, os, sys
from pathlib import Path
from boardcluster.records import AttemptState, Fingerprint, Measurement, Telemetry
from boardcluster.store import Store, from_json
from boardcluster.store import database, files
from boardcluster.store.files import CampaignFile, read_record

home, plan, data = Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3])
record = read_record(CampaignFile, plan)
fingerprint = from_json(Fingerprint, data["fingerprint"])
measurement = from_json(Measurement, data["measurement"])
left = 0


def tick(*_):
    global left
    left -= 1
    if left == 0:
        os._exit(9)


def drive(folder, steps):
    global left
    folder.mkdir()
    left = steps
    replace = Path.replace
    Path.replace = lambda *given: (tick(), replace(*given), tick())
    store = Store.open(folder)
    store._connection.set_trace_callback(tick)
    store.add_campaign(record.campaign, record.trials)
    for number, trial in enumerate(record.trials):
        attempt = store.begin_attempt(trial.id, fingerprint, "2026-08-01T12:00:01+00:00")
        state = AttemptState.FAILED if number else AttemptState.OK
        store.finish(attempt, state=state, reason="because", ended_utc="2026-08-01T12:00:31+00:00",
                     measurement=None if number else measurement,
                     telemetry=None if number else Telemetry(duration_seconds=1.0, nodes=()))
        print(folder.name, trial.id, state, flush=True)


steps = 1
while True:
    child = os.fork()
    if child == 0:
        drive(home / str(steps), steps)
        os._exit(0)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0:
        break
    steps += 1
"""


def test_a_driver_killed_at_any_step_loses_nothing_that_it_was_told_is_stored(
    tmp_path: Path,
    campaign: Campaign,
    trials: tuple[Trial, ...],
    fingerprint: Fingerprint,
    measurement: Measurement,
) -> None:
    """Kill the driver before every statement and around every rename, then look and resume."""
    chosen = trials[:2]
    plan = tmp_path / "plan.json"
    write_record(plan, CampaignFile(campaign=campaign, trials=chosen))
    homes = tmp_path / "homes"
    homes.mkdir()
    data = to_json({"fingerprint": fingerprint, "measurement": measurement})
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, str(homes), str(plan), json.dumps(data)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    told: dict[str, dict[str, str]] = {}
    for line in done.stdout.splitlines():
        folder, trial_id, state = line.split()
        told.setdefault(folder, {})[trial_id] = state
    folders = sorted(homes.iterdir(), key=lambda path: int(path.name))
    assert len(folders) > 30
    for home in folders:
        _check_and_resume(
            home,
            campaign,
            trials=chosen,
            fingerprint=fingerprint,
            measurement=measurement,
            told=told.get(home.name, {}),
        )
    assert len(told[folders[-1].name]) == len(chosen)


def _check_and_resume(
    home: Path,
    campaign: Campaign,
    *,
    trials: tuple[Trial, ...],
    fingerprint: Fingerprint,
    measurement: Measurement,
    told: dict[str, str],
) -> None:
    with Store.open(home) as store:
        if not store.campaigns():
            assert not told
            store.add_campaign(campaign, trials)
        summary = store.summary(campaign.id)
        assert summary.planned == len(trials)
        assert summary.planned == (summary.ok + summary.failed + summary.invalid + summary.pending)
        marked = store.mark_interrupted("driver was killed")
        assert marked <= 1
        found = {item.trial.id: item.attempt for item in store.results()}
        for trial_id, state in told.items():
            attempt = found[trial_id]
            assert attempt is not None
            assert attempt.state == state
        for number, trial in enumerate(trials):
            latest = found[trial.id]
            if latest is not None and latest.state is not AttemptState.INVALID:
                continue
            store_run(store, trial, None if number else measurement, fingerprint=fingerprint)
        results = store.results()
        states = [item.attempt.state for item in results if item.attempt]
        assert states == [AttemptState.OK, AttemptState.FAILED]
        assert results[0].measurement == measurement
        before = store.results(all_attempts=True)
    rebuild(home)
    with Store.open(home, read_only=True) as store:
        assert store.results(all_attempts=True) == before
