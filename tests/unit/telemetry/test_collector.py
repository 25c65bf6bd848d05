"""Agents are started, ended and fetched on every node, whatever single nodes do."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from tests.unit.campaign.world import AGENT, World, live_cluster

from boardcluster.cluster.state import boot_id
from boardcluster.errors import UnreachableError
from boardcluster.records import HOST, TaskRecord
from boardcluster.remote.base import ProcessRef
from boardcluster.remote.fake import FakeRemote
from boardcluster.services.layout import Layout
from boardcluster.services.operation import LiveCluster
from boardcluster.telemetry import collector
from boardcluster.telemetry.collector import Target, recording, unseen_programs
from boardcluster.telemetry.samples import parse_samples


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def live(layout: Layout, world: World, tmp_path: Path) -> LiveCluster:
    return live_cluster(layout, world, tmp_path / "home")


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "_RETRY_SECONDS", 0.0)


def note_ends(world: World, ended: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    ending = world.do_end

    def do_end(node: str, request: dict[str, Any]) -> object:
        ended.append(node)
        return ending(node, request)

    monkeypatch.setattr(world, "do_end", do_end)


def agents(world: World) -> list[str]:
    return sorted(row["node"] for row in world.started.values() if row["argv"] == [AGENT])


def test_every_node_and_the_machine_are_watched(
    live: LiveCluster, world: World, tmp_path: Path
) -> None:
    with recording(live, tmp_path, {"MARK": "7"}) as recorded:
        assert agents(world) == sorted([*live.remotes, HOST])
        recorded.end()
        first = dict(recorded.samples)
    assert recorded.samples == first
    assert set(first) == {*live.remotes, HOST}
    assert recorded.remarks == []
    began = time.monotonic()
    task = TaskRecord(
        node="worker1", begin_seconds=began + 1, end_seconds=began + 3, cpu_seconds=0.5
    )
    telemetry = recorded.telemetry(
        started_seconds=began, duration_seconds=5.0, phases={}, tasks=[task]
    )
    assert telemetry.tasks is not None
    (placed,) = telemetry.tasks
    assert (placed.begin_seconds, placed.end_seconds) == pytest.approx((1.0, 3.0))
    assert [node.scope for node in telemetry.nodes] == ["node"] * len(live.remotes) + ["machine"]
    assert not list(tmp_path.glob("telemetry-*"))


def test_a_connection_that_drops_at_the_end_is_tried_again(
    live: LiveCluster, tmp_path: Path
) -> None:
    node: Any = live.remotes["worker1"]
    getting, failures = node.get, [1, 1]

    def get(source: str, target: Path) -> None:
        if failures:
            failures.pop()
            raise UnreachableError("worker1: connection lost")
        getting(source, target)

    node.get = get
    with recording(live, tmp_path, {}) as recorded:
        pass
    assert "worker1" in recorded.samples
    assert recorded.remarks == []


def test_a_node_that_is_gone_at_the_end_is_named(
    live: LiveCluster, world: World, tmp_path: Path
) -> None:
    with recording(live, tmp_path, {}) as recorded:
        world.lost = {"worker2"}
    assert "worker2" not in recorded.samples
    (remark,) = recorded.remarks
    assert remark.startswith("no telemetry of worker2: ")


def test_agents_end_though_the_run_fails(live: LiveCluster, tmp_path: Path) -> None:
    with pytest.raises(KeyError), recording(live, tmp_path, {}) as recorded:
        raise KeyError
    assert set(recorded.samples) == {*live.remotes, HOST}


def test_a_nodes_clocks_are_compared_with_the_drivers(
    live: LiveCluster, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One is minutes behind and began to count elsewhere; another runs on this very kernel."""

    def moment(node: str, request: dict[str, Any]) -> object:
        behind = 180.0 if node == "worker1" else 0.0
        return {
            "monotonic_seconds": time.monotonic() + 5000.0 * bool(behind),
            "wall_seconds": time.time() - behind,
            "boot_id": "another" if node == "worker1" else boot_id(),
            "free_bytes": 7,
        }

    monkeypatch.setattr(world, "do_moment", moment)
    with recording(live, tmp_path, {}) as recorded:
        pass
    found, same = recorded.samples["worker1"], recorded.samples["worker2"]
    assert found.clock_offset_seconds == pytest.approx(-180.0, abs=0.5)
    assert 0 < found.clock_error_seconds < 0.5
    assert found.seconds[0] - same.seconds[0] == pytest.approx(-5000.0, abs=0.5)
    assert (same.clock_offset_seconds, same.clock_error_seconds) == (0.0, 0.0)
    assert recorded.free_bytes["worker1"] == 7


def test_what_is_fetched_of_a_node_never_looks_like_what_this_machines_agent_writes(
    live: LiveCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    parsing = parse_samples

    def parse(text: str, **named: Any) -> Any:
        seen.extend(path.name for path in tmp_path.glob("*telemetry-*"))
        return parsing(text, **named)

    monkeypatch.setattr(collector, "parse_samples", parse)
    with recording(live, tmp_path, {}) as recorded:
        pass
    assert set(recorded.samples) == {*live.remotes, HOST}
    assert ".telemetry-worker1.txt" in seen
    assert not [name for name in seen if name.startswith("telemetry-")], "as in relay.py"
    assert not list(tmp_path.glob("*telemetry-*"))


def test_a_garbled_file_is_kept_for_people_to_look_at(
    live: LiveCluster, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world, "samples", lambda node: b"bash: setlocale: C.UTF-8\n")
    with recording(live, tmp_path, {}) as recorded:
        pass
    assert recorded.samples == {}
    assert len(recorded.remarks) == len(live.remotes) + 1
    assert "setlocale" in (tmp_path / "telemetry-worker1.txt").read_text()


def test_a_lost_answer_to_the_cleaning_up_costs_no_samples(
    live: LiveCluster, tmp_path: Path
) -> None:
    node: Any = live.remotes["worker1"]
    running = node.run

    def run(argv: Any, **options: Any) -> Any:
        if tuple(argv[:2]) == ("rm", "-f"):
            raise UnreachableError("worker1: the connection broke")
        return running(argv, **options)

    node.run = run
    with recording(live, tmp_path, {}) as recorded:
        pass
    assert "worker1" in recorded.samples
    assert recorded.remarks == []


def test_an_agent_is_ended_though_its_node_was_lost_right_after_the_start(
    live: LiveCluster, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([UnreachableError("worker1: lost"), None])
    asked = world.do_moment

    def moment(node: str, request: dict[str, Any]) -> object:
        if node == "worker1" and (error := next(answers, None)):
            raise error
        return asked(node, request)

    monkeypatch.setattr(world, "do_moment", moment)
    ended: list[str] = []
    note_ends(world, ended, monkeypatch)
    with recording(live, tmp_path, {}) as recorded:
        assert [remark.split(":")[0] for remark in recorded.remarks] == ["no telemetry of worker1"]
    assert "worker1" in ended


def test_agents_that_were_started_before_an_interruption_are_ended(
    live: LiveCluster, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interruptions = iter([KeyboardInterrupt()])  # once: a second would cut the ending short too

    def interrupted(node: str, request: dict[str, Any]) -> object:
        if node == "worker2" and (interruption := next(interruptions, None)):
            raise interruption
        return {"monotonic_seconds": 0.0, "wall_seconds": 0.0, "boot_id": "b", "free_bytes": 1}

    ended: list[str] = []
    monkeypatch.setattr(world, "do_moment", interrupted)
    note_ends(world, ended, monkeypatch)
    with pytest.raises(KeyboardInterrupt), recording(live, tmp_path, {}):
        raise AssertionError("the block is not entered")
    assert set(agents(world)) == set(ended)


def test_agents_last_as_long_as_the_longest_run(
    live: LiveCluster, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They ended after 48 hours, though a run may take a month."""
    asked: list[float] = []
    begin = collector.start_agent

    def start(*words: Any, longest_seconds: float, **named: Any) -> ProcessRef:
        asked.append(longest_seconds)
        return begin(*words, longest_seconds=longest_seconds, **named)

    monkeypatch.setattr(collector, "start_agent", start)
    with recording(live, tmp_path, {}, lasting_seconds=720 * 3600.0):
        pass
    assert set(asked) == {721 * 3600.0}


@pytest.mark.parametrize(
    ("request_of_agent", "first", "namespace", "words"),
    [
        ({"scope": "machine", "lives_with": 7}, "stat", "own", ""),
        ({"scope": "machine", "lives_with": 7}, "absent", "own", "hides those of other users"),
        ({"scope": "machine", "lives_with": 7}, "stat", "other", "of this container alone"),
        ({"scope": "node", "lives_with": 7}, "absent", "other", ""),
        ({"scope": "machine"}, "absent", "other", ""),  # a board: this machine says nothing of it
    ],
)
def test_what_cannot_be_seen_is_said(
    request_of_agent: dict[str, object],
    first: str,
    namespace: str,
    words: str,
    *,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("stat", "own", "other"):
        (tmp_path / name).touch()
    monkeypatch.setattr(collector, "_FIRST_PROCESS", tmp_path / first)
    monkeypatch.setattr(collector, "_OWN_NAMESPACE", tmp_path / namespace)
    monkeypatch.setattr(collector, "_FIRST_NAMESPACE", (tmp_path / "own").stat().st_ino)
    target = Target(remote=FakeRemote(), request=request_of_agent, folder="/f", cores=4)

    said = unseen_programs({"host": target})

    assert bool(said) is bool(words)
    assert words in said
