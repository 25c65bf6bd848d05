"""What is told of a cluster: nodes, daemons, the running job, and to whom."""

from __future__ import annotations

import asyncio
import datetime
import json
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.builders import (
    make_campaign,
    make_fingerprint,
    make_measurement,
    make_result,
    make_trial,
    noon,
    store_run,
)
from tests.unit.services.test_job_log import SPARK

from boardcluster.cluster.lock import driver_lock
from boardcluster.records import Attempt
from boardcluster.store import Store
from boardcluster.web.app import Dashboard
from boardcluster.web.readings import LiveReadings, NodeFrame
from boardcluster.web.reports import Reports
from boardcluster.web.running import last_minute
from boardcluster.web.stored import StoredRuns
from boardcluster.web.watching import ClusterWatch, WatchedNode

HUGE = 10**400
HEAD = json.dumps({"interval_seconds": 1.0, "columns": [["cpu_user_seconds", "c", 0.01]]})


def watched(home: Path, *names: str) -> ClusterWatch:
    watch = ClusterWatch(home, home)
    watch.look()
    for name in names:
        frame = NodeFrame(name=name, cores=4.0, memory_bytes=1 << 30, is_machine=True)
        watch.nodes[name] = WatchedNode(
            readings=LiveReadings(frame), roles=("worker",), daemons=("datanode",), board=""
        )
        watch.take(name, "S", "own")
        watch.take(name, "T", HEAD)
    return watch


def sample(second: int, ticks: int) -> str:
    return f"1 {int(time.time()) * 10**9 + second * 10**9} {ticks}"


def test_without_a_cluster_everything_is_empty_and_json(tmp_path: Path) -> None:
    hello = json.loads(watched(tmp_path).hello())
    assert hello["state"]["phase"] == "down"
    assert hello["state"]["nodes"] == []
    assert hello["campaign"] is None
    assert hello["job"] is None


def test_readings_are_told_once_and_unknown_ones_are_null(tmp_path: Path) -> None:
    watch = watched(tmp_path, "one", "two")
    watch.take("one", "T", sample(0, 0))
    watch.take("one", "T", sample(1, 50))
    rows = json.loads(watch.nodes_text(only_changed=True))["nodes"]
    assert list(rows) == ["one"]
    assert rows["one"][1] == 0.5
    assert rows["one"][5] is None
    assert json.loads(watch.nodes_text(only_changed=True))["nodes"] == {}


def test_a_daemon_that_ended_and_a_node_that_is_silent_are_told(tmp_path: Path) -> None:
    watch = watched(tmp_path, "one")
    watch.take("one", "D", '["datanode"]')
    assert watch.state_document()["nodes"][0]["daemons"] == [{"name": "datanode", "up": False}]
    watch.take("one", "D", "[]")
    assert watch.state_document()["nodes"][0]["daemons"] == [{"name": "datanode", "up": True}]
    watch.take("one", "X", "it cannot be reached")
    node = watch.state_document()["nodes"][0]
    assert node["error"] == "it cannot be reached"
    assert not node["daemons"][0]["up"]


@pytest.mark.parametrize("letter", ["D", "L", "Z", "T", "S", "", "?", "DLZ"])
@pytest.mark.parametrize("text", ["", "{", "[1]", '{"a": 1}', "null", "\x00", "[" * 5000, '"x"'])
def test_what_a_node_says_never_ends_the_watch(tmp_path: Path, letter: str, text: str) -> None:
    watch = watched(tmp_path, "one")
    watch.take("one", letter, text)
    watch.take("nobody", letter, text)
    json.loads(watch.hello())


@pytest.mark.parametrize(
    "said",
    [
        [("T", '{"columns": [["clock_measured_hertz", "g", 1e999]]}'), ("T", sample(0, 7))],
        [
            ("T", '{"columns": [["disk_read_bytes/sda", "c", 1e300]]}'),
            *(("T", sample(second, second * 10**8)) for second in range(3)),
        ],
        [("T", sample(0, HUGE))],
        [("Z", str(HUGE))],
        [("Z", "1e999"), ("L", '["log", "2026-11-23T18:03:44.054 INFO DAGScheduler: x"]')],
    ],
    ids=["scale", "rate", "sample", "clock", "time of a log"],
)
def test_impossible_numbers_of_one_node_do_not_blind_the_page(
    tmp_path: Path, said: list[tuple[str, str]]
) -> None:
    watch = watched(tmp_path, "one", "two")
    watch._job.follow(tmp_path)
    for letter, text in said:
        watch.take("one", letter, text)
    watch.take("two", "T", sample(0, 0))
    watch.take("two", "T", sample(1, 50))
    rows = json.loads(watch.nodes_text(), parse_constant=pytest.fail)["nodes"]
    assert rows["two"][1] == 0.5
    json.loads(watch.hello(), parse_constant=pytest.fail)


def test_a_minute_of_samples_that_make_no_sense_is_left_out(tmp_path: Path) -> None:
    watch = watched(tmp_path, "one")
    watch.take("one", "S", "run")
    head = json.dumps({**json.loads(HEAD), "interval_seconds": HUGE})
    for text in (head, *(sample(second, second) for second in range(6))):
        watch.take("one", "T", text)
    assert last_minute(make_result(), {"one": watch.nodes["one"].readings}) is None


def begun(home: Path) -> Attempt:
    """Begin the only trial of a campaign."""
    with Store.open(home) as store:
        campaign = make_campaign()
        trial = make_trial(campaign_id=campaign.id)
        store.add_campaign(campaign, [trial])
        return store.begin_attempt(trial.id, make_fingerprint(), "2026-11-23T18:03:00+00:00")


def test_the_job_of_the_attempt_that_runs_is_told(tmp_path: Path) -> None:
    attempt = begun(tmp_path)
    watch = ClusterWatch(tmp_path, tmp_path)
    watch.look()
    assert watch.job() is None, "nobody holds the lock: it was left by a driver that was killed"
    with driver_lock(tmp_path, doing="run"):
        watch = ClusterWatch(tmp_path, tmp_path)
        folder = tmp_path / attempt.artefacts / "count"
        folder.mkdir(parents=True)
        (folder / "stderr.txt").write_text(SPARK)
        watch.look()
        job = watch.job()
        told = watch.campaign()
    assert job is not None
    assert told is not None
    assert told["now"]["place"] == 1
    assert job["engine"]["parts"][0]["done"] == 1
    assert job["engine"]["nodes"] == {"worker1": 0, "worker2": 1}


def test_what_is_left_is_told_every_ten_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Told each second, it would have the page read all runs again, beside what is measured."""
    with Store.open(tmp_path) as store:
        campaign = make_campaign()
        one = make_trial(campaign_id=campaign.id)
        other = replace(one, id=f"{campaign.id}-2", repetition=2, position=1)
        store.add_campaign(campaign, [one, other])
        store_run(store, one, make_measurement(600.0), started_utc=noon())
        begun_seconds = datetime.datetime.fromisoformat(noon(900)).timestamp()
        store.begin_attempt(other.id, make_fingerprint(), noon(900))
    watch = ClusterWatch(tmp_path, tmp_path)
    with driver_lock(tmp_path, doing="run"):
        watch.look()
        told = []
        for second in (101.0, 104.0, 112.0):
            monkeypatch.setattr(time, "time", lambda now=begun_seconds + second: now)
            told.append(watch.campaign())
    first, same, later = told
    assert first is not None
    assert later is not None
    assert first == same
    assert 0 < later["left_seconds"] < first["left_seconds"]


def test_the_job_of_a_driver_that_was_killed_runs_no_more(tmp_path: Path) -> None:
    begun(tmp_path)
    watch = ClusterWatch(tmp_path, tmp_path)
    with driver_lock(tmp_path, doing="run"):
        watch.look()
        assert watch.job() is not None
    watch.look()
    assert watch.job() is None, "the store is as it was: nobody could write that it ended"


def test_a_campaign_runs_only_while_a_command_works_on_trials(tmp_path: Path) -> None:
    begun(tmp_path)
    watch = ClusterWatch(tmp_path, tmp_path)
    with driver_lock(tmp_path, doing="up"):
        watch.look()
        told, state = watch.campaign(), watch.state_document()
    assert watch.job() is None, "its driver was killed, and `up` runs no trial"
    assert told is not None
    assert told["driver"] is None
    assert "now" not in told
    assert state["driver"] == "up"


def test_a_state_that_cannot_be_read_is_told_and_the_store_is_looked_at(tmp_path: Path) -> None:
    told: dict[str, str] = {}
    watch = ClusterWatch(tmp_path, tmp_path, tell=told.__setitem__)
    watch.look()
    (tmp_path / "state.json").write_text("{")
    with Store.open(tmp_path) as store:
        campaign = make_campaign()
        store.add_campaign(campaign, [make_trial(campaign_id=campaign.id)])
    watch.look()
    state = json.loads(told["state"])
    assert state["phase"] == "dead"
    assert "state.json is damaged" in state["why"]
    assert json.loads(told["campaign"])["campaign"] == campaign.id
    (tmp_path / "state.json").unlink()
    watch.look()
    state = json.loads(told["state"])
    assert (state["phase"], state["why"]) == ("down", "")


def test_who_comes_takes_no_reading_from_those_who_listen(tmp_path: Path) -> None:
    watch = watched(tmp_path, "one")
    watch.take("one", "T", sample(0, 0))
    watch.take("one", "T", sample(1, 50))
    watch.nodes_text(only_changed=True)
    watch.take("one", "X", "it cannot be reached")
    json.loads(watch.hello())
    rows = json.loads(watch.nodes_text(only_changed=True))["nodes"]
    assert rows["one"][1] is None, "the others would show its last reading for ever"


def test_a_listener_that_does_not_read_is_dropped_and_others_go_on(tmp_path: Path) -> None:
    watch = watched(tmp_path)
    board = Dashboard(watch, StoredRuns(tmp_path), Reports(tmp_path))

    async def scene() -> tuple[int, list[str]]:
        lazy, keen = board.events(), board.events()
        got = [await anext(lazy), await anext(keen)]
        first = asyncio.ensure_future(anext(lazy))
        for number in range(100):
            second = asyncio.ensure_future(anext(keen))
            await asyncio.sleep(0)
            board._publish(f"event {number}")
            got.append(await second)
        await first
        count = len(board._queues)
        board.end()
        with pytest.raises(StopAsyncIteration):
            await anext(keen)
        return count, got

    count, got = asyncio.run(scene())
    assert got[-1] == "event 99"
    assert count == 1
    assert board.is_full, "none begins any more"
