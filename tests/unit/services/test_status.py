"""What is seen of a cluster, whatever is left of it, and that no node waits for another."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.builders import make_daemon, make_live_node, make_state

from boardcluster.cluster.state import Daemon, LiveNode, LiveState, load_state, save_state
from boardcluster.errors import ClusterError, RemoteError
from boardcluster.records import ClusterSpec, Security
from boardcluster.remote.base import ProcessRef
from boardcluster.remote.fake import FakeRemote
from boardcluster.remote.gate import Completed
from boardcluster.services import status as module
from boardcluster.services.java import Java
from boardcluster.services.pair import pair_ids
from boardcluster.services.profile import profile_names
from boardcluster.services.status import Status, status
from boardcluster.spec.template import render_cluster

JAVA = Java(program=Path("/java/bin/java"), feature=17, version="17.0.1", vendor="Maker")
NAMES = ["master", "worker1", "worker2"]


class SilentRemote(FakeRemote):
    """A node that is out of reach."""

    def run(self, argv: Any, **named: Any) -> Completed:
        raise RemoteError(f"{self.name}: out of reach")


class Watched:
    """A running cluster of a master and two workers, with a daemon on each.

    Attributes:
        state: what is recorded of it.
        remotes: its nodes, as the user that daemons run as.
        gone: emulated nodes that no longer exist.
    """

    def page_hint(self, state: LiveState) -> str:
        return "" if state.host_link else "not from here"

    def __init__(self, home: Path, spec: ClusterSpec, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home = home
        self.spec = spec
        self.remotes: dict[str, FakeRemote] = {name: FakeRemote(name) for name in NAMES}
        self.gone: set[str] = set()
        self.state = make_state(
            *(
                make_live_node(name, address=f"10.0.0.{place}", folder="/mnt/ssd/boardcluster")
                for place, name in enumerate(NAMES, start=1)
            ),
            subnet="10.0.0.0/24",
            kind=spec.kind,
            daemons=tuple(
                make_daemon(
                    "namenode" if name == "master" else "datanode",
                    name,
                    process=ProcessRef(place, 1),
                    log=f"/{name}.log",
                    url=f"http://10.0.0.{place}",
                )
                for place, name in enumerate(NAMES, start=1)
            ),
        )
        home.mkdir()
        self.declare("cluster.toml", spec)
        self.declare("running.toml", spec)
        self.save()
        monkeypatch.setattr(module, "nodes_of", self._nodes_of)
        monkeypatch.setattr(module, "find_java", lambda *_, **__: JAVA)

    def _nodes_of(self, home: Path, kind: str) -> Watched:
        assert (home, kind) == (self.home, self.spec.kind)
        return self

    def declare(self, name: str, spec: ClusterSpec) -> None:
        text = render_cluster(spec, engine_pairs=pair_ids(), profiles=profile_names())
        (self.home / name).write_text(text)

    def save(self, **changed: Any) -> None:
        self.state = replace(self.state, **changed)
        save_state(self.home, self.state)

    def tell(self, **alive: bool) -> None:
        """Prepare what each node says of its daemon."""
        for name, lives in alive.items():
            view = {"alive": lives, "resident_bytes": 7, "proportional_bytes": 5}
            self.remotes[name].tell_node_agent("processes", [view])

    def tell_health(self, *, datanodes: int = 2, managers: int = 2) -> None:
        """Prepare what the masters say."""
        bean = {
            "NumLiveDataNodes": datanodes,
            "FSState": "Operational",
            "CapacityRemaining": 12345,
            "UnderReplicatedBlocks": 0,
        }
        bodies: list[Mapping[str, Any]] = [
            {"beans": [bean]},
            {"clusterMetrics": {"activeNodes": managers}},
            {},
            {},
        ]
        rows = [{"status": 200, "body": json.dumps(body), "location": None} for body in bodies]
        self.remotes["master"].tell_node_agent("http", rows)

    def lose(self, *names: str) -> None:
        for name in names:
            self.remotes[name] = SilentRemote(name)

    def see(self) -> Status:
        return status(self.home, cache=self.home / "cache")

    # What a look asks of the nodes.

    def remote_of(self, node: LiveNode, state: LiveState) -> FakeRemote:
        assert state == self.state
        return self.remotes[node.name]

    def alive(self, state: LiveState) -> list[LiveNode]:
        assert self.spec.kind == "emulated"  # of boards this is asked of each, one by one
        return [node for node in state.nodes if node.name not in self.gone]


@pytest.fixture
def emulated(
    tmp_path: Path, make_spec: Callable[..., ClusterSpec], monkeypatch: pytest.MonkeyPatch
) -> Watched:
    return Watched(tmp_path / "home", make_spec(workers=2, engines=pair_ids()[0]), monkeypatch)


@pytest.fixture
def boards(tmp_path: Path, board_spec: ClusterSpec, monkeypatch: pytest.MonkeyPatch) -> Watched:
    watched = Watched(tmp_path / "home", board_spec, monkeypatch)
    monkeypatch.setattr(module, "find_java", lambda *_, **__: pytest.fail("boards have their own"))
    return watched


@pytest.fixture(params=["emulated", "boards"])
def watched(request: pytest.FixtureRequest) -> Watched:
    made: Watched = request.getfixturevalue(request.param)
    return made


def test_all_is_there(watched: Watched) -> None:
    watched.tell(master=True, worker1=True, worker2=True)
    watched.tell_health()

    seen = watched.see()

    assert (seen.phase, seen.workers) == ("up", 2)
    assert (seen.profile, seen.engines) == ("default", pair_ids()[0])
    assert (seen.kind, seen.security) == (watched.spec.kind, watched.spec.security)
    assert seen.health is not None
    assert (seen.health.live_datanodes, seen.health.hdfs_free_bytes) == (2, 12345)
    assert [(row.node, row.name, row.alive, row.pid) for row in seen.daemons] == [
        ("master", "namenode", True, 1),
        ("worker1", "datanode", True, 2),
        ("worker2", "datanode", True, 3),
    ]
    row = seen.daemons[2]
    assert (row.address, row.url, row.log) == ("10.0.0.3", "http://10.0.0.3", "/worker2.log")
    assert (row.resident_bytes, row.proportional_bytes) == (7, 5)


def test_no_node_waits_for_another(watched: Watched) -> None:
    together = threading.Barrier(3, timeout=10)

    class Slow(FakeRemote):
        """Tells of its processes only when all are asked."""

        def run(self, argv: Any, **named: Any) -> Completed:
            if b'"processes"' in named["stdin"]:
                together.wait()
            return super().run(argv, **named)

    watched.remotes = {name: Slow(name) for name in NAMES}
    watched.tell(master=True, worker1=True, worker2=True)
    watched.tell_health()

    assert [row.node for row in watched.see().daemons] == NAMES


def test_a_daemon_that_ended_is_shown_beside_the_others(watched: Watched) -> None:
    watched.tell(master=True, worker1=False, worker2=True)
    watched.tell_health()

    seen = watched.see()

    assert seen.phase == "degraded"
    assert [row.alive for row in seen.daemons] == [True, False, True]
    assert seen.health is not None


@pytest.mark.parametrize("missing", [{"datanodes": 1}, {"managers": 1}])
def test_a_worker_that_does_not_report_is_enough_to_be_degraded(
    missing: dict[str, int], watched: Watched
) -> None:
    watched.tell(master=True, worker1=True, worker2=True)
    watched.tell_health(**missing)

    assert watched.see().phase == "degraded"


def test_a_node_that_does_not_answer_runs_nothing_that_counts(watched: Watched) -> None:
    watched.tell(master=True, worker1=True)
    watched.tell_health()
    watched.lose("worker2")

    seen = watched.see()

    assert (seen.phase, seen.unreachable) == ("degraded", ("worker2: out of reach",))
    assert [(row.node, row.alive, row.resident_bytes) for row in seen.daemons] == [
        ("master", True, 7),
        ("worker1", True, 7),
        ("worker2", False, 0),
    ]


def test_a_master_that_does_not_answer_does_not_hide_the_others(watched: Watched) -> None:
    watched.tell(worker1=True, worker2=True)
    watched.lose("master")

    seen = watched.see()

    assert (seen.phase, seen.health) == ("degraded", None)
    assert [row.alive for row in seen.daemons] == [False, True, True]


@pytest.mark.parametrize("lost", [[], ["worker2"], ["master", "worker1"]])
def test_a_cluster_of_which_no_daemon_lives_is_dead(lost: list[str], watched: Watched) -> None:
    watched.tell(master=False, worker1=False, worker2=False)
    watched.lose(*lost)

    seen = watched.see()

    assert (seen.phase, seen.health) == ("dead", None)
    assert [row.alive for row in seen.daemons] == [False] * 3
    assert sorted(seen.unreachable) == [f"{name}: out of reach" for name in lost]


def test_of_a_cluster_that_cannot_be_asked_nobody_knows_whether_it_lives(watched: Watched) -> None:
    watched.lose(*NAMES)

    seen = watched.see()

    assert (seen.phase, seen.health) == ("unreachable", None)
    assert [row.alive for row in seen.daemons] == [False] * 3
    assert sorted(seen.unreachable) == [f"{name}: out of reach" for name in NAMES]


@pytest.mark.parametrize("gone", [{"worker2"}, set(NAMES)])
def test_an_emulated_cluster_that_lost_a_node_is_dead(gone: set[str], emulated: Watched) -> None:
    emulated.gone = gone

    seen = emulated.see()

    assert (seen.phase, seen.daemons, seen.health) == ("dead", (), None)
    assert [remote.calls for remote in emulated.remotes.values()] == [[]] * 3


def test_an_emulated_cluster_whose_nodes_were_never_made_is_dead(emulated: Watched) -> None:
    emulated.save(phase="starting", nodes=(), daemons=())

    assert emulated.see().phase == "dead"


@pytest.mark.parametrize("daemons", [0, 1])
def test_a_cluster_that_comes_up_is_not_called_dead(daemons: int, watched: Watched) -> None:
    watched.save(phase="starting", daemons=watched.state.daemons[:daemons])
    watched.tell(master=True)

    seen = watched.see()

    assert (seen.phase, len(seen.daemons), seen.health) == ("starting", daemons, None)
    # What has no daemon yet is not asked.
    assert watched.remotes["worker1"].calls == []


def test_what_runs_counts_and_not_what_is_declared(watched: Watched) -> None:
    fewer = replace(watched.spec, nodes=watched.spec.nodes[:2], profile="upstream")
    watched.declare("running.toml", fewer)
    watched.save(nodes=watched.state.nodes[:2], daemons=watched.state.daemons[:2])
    watched.tell(master=True, worker1=True)
    watched.tell_health(datanodes=1, managers=1)

    seen = watched.see()

    assert (seen.phase, seen.workers, seen.profile) == ("up", 1, "upstream")


@pytest.mark.parametrize("link", ["bc1", ""])
def test_only_a_link_of_this_machine_makes_pages_open_here(link: str, emulated: Watched) -> None:
    emulated.save(host_link=link)
    emulated.tell(master=True, worker1=True, worker2=True)
    emulated.tell_health()

    assert emulated.see().browsable is bool(link)


def test_dilated_masters_have_longer_to_answer(emulated: Watched) -> None:
    emulated.save(dilation=4.0)
    emulated.tell(master=True, worker1=True, worker2=True)
    emulated.tell_health()

    assert emulated.see().phase == "up"
    *_, request = emulated.remotes["master"].requests
    assert {item["timeout"] for item in request["requests"]} == {20.0}


def test_a_daemon_that_a_board_started_again_is_shown_as_it_runs_now(
    boards: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = boards.state

    def now(home: Path, state: LiveState) -> tuple[Daemon, ...]:
        assert (home, state) == (boards.home, before)
        return (*state.daemons[:2], replace(state.daemons[2], process=ProcessRef(99, 7)))

    monkeypatch.setattr(module, "current_daemons", now)
    boards.state = replace(before, daemons=now(boards.home, before))
    boards.tell(master=True, worker1=True, worker2=True)
    boards.tell_health()

    assert [row.pid for row in boards.see().daemons] == [1, 2, 99]
    (request,) = boards.remotes["worker2"].requests
    assert request["processes"] == [[99, 7]]
    # To look changes nothing.
    assert load_state(boards.home) == before


def test_who_may_reach_boards_is_said_also_while_they_are_down(boards: Watched) -> None:
    (boards.home / "state.json").unlink()
    boards.declare("cluster.toml", replace(boards.spec, security=Security.INSECURE_LAB))

    seen = boards.see()

    # What ran last is not what would come up.
    assert (seen.phase, seen.kind, seen.security) == ("down", "boards", Security.INSECURE_LAB)
    assert (seen.daemons, seen.health, seen.browsable) == ((), None, False)


def test_an_emulated_cluster_without_its_java_is_said(
    emulated: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    emulated.tell(master=True, worker1=True, worker2=True)
    monkeypatch.setattr(module, "find_java", lambda *_, **__: None)

    with pytest.raises(ClusterError, match="Java is gone"):
        emulated.see()
