"""Finding a lost node: every answer of the master is made up, and nobody waits."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.campaign.world import World

from boardcluster.campaign.heartbeat import Heartbeat, _unhealthy, away_now, lost_now
from boardcluster.errors import RemoteError, UnreachableError
from boardcluster.records import ClusterSpec
from boardcluster.remote.fake import FakeRemote
from boardcluster.remote.gate import Completed
from boardcluster.remote.ssh_route import _SILENT_SECONDS
from boardcluster.services.layout import Layout
from boardcluster.services.operation import LiveCluster

Target = tuple[str, int]
Sight = dict[Target, str] | Exception
"""What the master sees at one look: the targets that are not well, or that it does not answer."""

DATANODE, NODEMANAGER = 9866, 8041


class Master(FakeRemote):
    """A master that sees, at each look, what the list says; the last stays."""

    def __init__(self, sights: Sequence[Sight]) -> None:
        super().__init__("master")
        self._sights = list(sights)
        self.looks: list[list[Target]] = []

    def run(self, argv: Sequence[str], *, stdin: bytes = b"", **options: Any) -> Completed:
        sight = self._sights.pop(0) if len(self._sights) > 1 else self._sights[0]
        if isinstance(sight, Exception):
            raise sight
        self._answers.clear()
        self.tell_node_agent("reach", [])
        super().run(argv, stdin=stdin, **options)
        targets = [(host, port) for host, port in self.requests[-1]["targets"]]
        self.looks.append(targets)
        self._answers.clear()
        self.tell_node_agent("reach", [answer(sight.get(target, "ok")) for target in targets])
        return super().run(argv, stdin=stdin, **options)


def answer(state: str) -> dict[str, str]:
    return {"state": state, "words": {"ok": "", "unreachable": "No route to host"}.get(state, "no")}


@pytest.fixture
def look_at(live: LiveCluster) -> Callable[..., tuple[LiveCluster, Master]]:
    def make(*sights: Sight) -> tuple[LiveCluster, Master]:
        master = Master(sights)
        return replace(live, remotes={**live.remotes, "master": master}), master

    return make


class Waits:
    """Stands in for waiting: remembers how long, and ends the block after so many times."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.seconds: list[float] = []
        self.over = threading.Event()

    def __call__(self, seconds: float) -> bool:
        self.seconds.append(seconds)
        if len(self.seconds) > self._most:
            self.over.set()
            return True
        return False


def well() -> Sequence[str]:
    return []


def watch(
    live: LiveCluster, *, waits: int = 30, unhealthy: Callable[[], Sequence[str]] = well
) -> tuple[Heartbeat, list[str], Waits]:
    """Let a heartbeat go on until it found something or has waited so often."""
    losses: list[str] = []
    ended = threading.Event()
    wait = Waits(waits)

    def on_loss(words: str) -> None:
        losses.append(words)
        ended.set()
        wait.over.set()

    with Heartbeat(live, on_loss=on_loss, wait=wait, unhealthy=unhealthy) as beats:
        assert wait.over.wait(20)
    return beats, losses, wait


def gone(node: str, state: str = "unreachable") -> dict[Target, str]:
    return {(node, DATANODE): state, (node, NODEMANAGER): state}


def test_watches_where_the_work_of_each_daemon_arrives(look_at: Any) -> None:
    live, master = look_at({})

    beats, losses, _ = watch(live, waits=2)

    assert (beats.lost, losses) == ("", [])
    workers = [f"worker{number}" for number in range(1, 5)]
    assert sorted(master.looks[0]) == sorted(
        [("master", port) for port in (8020, 8032, 10020, 18080)]
        + [(name, port) for name in workers for port in (DATANODE, NODEMANAGER)]
    )
    assert len(master.looks) == 2


def test_a_daemon_that_refuses_twice_is_lost(look_at: Any) -> None:
    live, master = look_at({}, {("worker2", DATANODE): "refused"})

    beats, losses, wait = watch(live)

    assert beats.lost == "datanode on worker2 refuses connections"
    assert losses == [beats.lost]
    assert wait.seconds == [4.0, 4.0, 1.0]
    assert master.looks[2] == [("worker2", DATANODE)]


def test_on_dilated_nodes_everything_waits_longer(look_at: Any) -> None:
    live, master = look_at({}, {("worker2", DATANODE): "refused"})
    live = replace(live, layout=replace(live.layout, dilation=3.0))

    _, losses, wait = watch(live)

    assert losses == ["datanode on worker2 refuses connections"]
    assert wait.seconds == [12.0, 12.0, 3.0]
    assert {request["timeout_seconds"] for request in master.requests} == {6.0, 7.5}


@pytest.mark.parametrize("sight", [gone("worker1"), {("worker1", DATANODE): "refused"}])
def test_a_miss_that_the_second_look_does_not_confirm_is_none(look_at: Any, sight: Sight) -> None:
    live, master = look_at(sight, {})

    beats, losses, _ = watch(live, waits=6)

    assert (beats.lost, losses) == ("", [])
    assert len(master.looks) > 2


def test_a_node_of_which_nothing_answers_is_lost(look_at: Any) -> None:
    live, _ = look_at(gone("worker3"))

    _, losses, _ = watch(live)

    assert losses == ["node worker3 unreachable from master (No route to host)"]


def test_two_nodes_are_named(look_at: Any) -> None:
    live, _ = look_at({**gone("worker1"), **gone("worker3")})

    assert watch(live)[1] == ["nodes worker1, worker3 unreachable from master (No route to host)"]


def test_the_masters_own_link_is_told_from_the_others(look_at: Any) -> None:
    sight: dict[Target, str] = {}
    for number in range(1, 5):
        sight |= gone(f"worker{number}")
    live, _ = look_at(sight)

    assert watch(live)[1] == ["every other node unreachable from master (No route to host)"]


def test_a_node_without_daemons_refuses_and_is_not_called_unreachable(look_at: Any) -> None:
    live, _ = look_at(gone("worker1", "refused"))

    assert watch(live)[1] == [
        "datanode on worker1 refuses connections, nodemanager on worker1 refuses connections"
    ]


def test_a_mute_daemon_of_a_node_that_answers_is_lost_after_three_beats(look_at: Any) -> None:
    live, master = look_at({("worker1", DATANODE): "unreachable"})

    _, losses, wait = watch(live)

    assert losses == ["datanode on worker1 does not answer"]
    assert wait.seconds == [4.0, 1.0] * 3
    assert len(master.looks) == 6


def test_a_mute_daemon_that_recovers_starts_from_nothing(look_at: Any) -> None:
    mute: Sight = {("worker1", DATANODE): "unreachable"}
    live, _ = look_at(mute, mute, mute, mute, {}, mute, mute, mute, mute, {})

    assert watch(live, waits=12)[1] == []


def test_three_beats_without_the_master_are_a_loss(look_at: Any) -> None:
    live, _ = look_at(RemoteError("out of reach"))

    _, losses, wait = watch(live)

    assert losses == ["master master unreachable (out of reach)"]
    assert wait.seconds == [4.0] * 3


def test_a_board_that_does_not_answer_is_asked_again_only_when_it_is_really_asked(
    look_at: Any,
) -> None:
    """A try without an answer is remembered for 10 s: one of 22 s counted as three beats."""
    silent = UnreachableError("no connection within 22 s")
    live, _ = look_at(silent, {}, silent, silent, silent)

    _, losses, wait = watch(live)

    assert losses == ["master master unreachable (no connection within 22 s)"]
    assert wait.seconds == [4.0, 11.0, 4.0, 11.0, 11.0]
    assert min(wait.seconds[3:]) > _SILENT_SECONDS


def test_the_heart_beats_on_after_a_passing_failure(look_at: Any) -> None:
    failure = RemoteError("busy")
    cut = ValueError("half an answer")
    live, _ = look_at(failure, cut, {}, failure, cut, {}, {("worker4", NODEMANAGER): "refused"})

    assert watch(live)[1] == ["nodemanager on worker4 refuses connections"]


def test_a_node_that_yarn_gives_no_more_work_is_lost(look_at: Any) -> None:
    """A job may wait for it for ever; YARN is asked at every fifth beat."""
    live, _ = look_at({})
    asked: list[int] = []

    def sick_at_last() -> Sequence[str]:
        asked.append(len(asked))
        return ["worker1: 1/1 local-dirs are bad"] if len(asked) == 2 else []

    beats, losses, waits = watch(live, unhealthy=sick_at_last)

    assert losses == [beats.lost] == ["worker1: 1/1 local-dirs are bad"]
    assert len(waits.seconds) == 10


def test_a_yarn_that_does_not_say_its_nodes_is_no_loss(look_at: Any) -> None:
    live, _ = look_at({})

    def silent() -> Sequence[str]:
        raise RemoteError("no answer from the ResourceManager")

    _, losses, waits = watch(live, waits=60, unhealthy=silent)

    assert losses == []
    assert len(waits.seconds) > 60, "its daemons answer, so what YARN says may be late"


def test_a_failing_kill_does_not_hide_the_loss(look_at: Any) -> None:
    live, _ = look_at(gone("worker3"))
    called = threading.Event()

    def on_loss(words: str) -> None:
        called.set()
        raise RemoteError("YARN does not answer either")

    with Heartbeat(live, on_loss=on_loss, wait=Waits(30), unhealthy=well) as beats:
        assert called.wait(20)

    assert beats.lost.startswith("node worker3")


def test_ends_at_once_though_it_would_wait_long(look_at: Any) -> None:
    live, master = look_at({})

    with Heartbeat(live, on_loss=pytest.fail, interval_seconds=3600.0) as beats:
        pass

    assert (beats.lost, master.looks) == ("", [])
    assert "heartbeat" not in [thread.name for thread in threading.enumerate()]


def test_a_second_look_is_not_taken_when_the_block_has_ended(look_at: Any) -> None:
    live, master = look_at(gone("worker1"))

    beats, losses, _ = watch(live, waits=1)  # the wait before the second look says: ended

    assert (beats.lost, losses) == ("", [])
    assert len(master.looks) == 1


def test_the_block_may_fail(look_at: Any) -> None:
    live, _ = look_at({})

    with pytest.raises(KeyError), Heartbeat(live, on_loss=pytest.fail):
        raise KeyError


def test_a_combined_master_is_watched_as_a_worker_too(
    look_at: Any,
    make_spec: Callable[..., ClusterSpec],
    make_layout: Callable[[ClusterSpec], Layout],
) -> None:
    live, master = look_at({("master", DATANODE): "refused"})
    live = replace(live, layout=make_layout(make_spec(workers=2, memory_mib=4096, combined=True)))

    assert watch(live)[1] == ["datanode on master refuses connections"]
    assert ("worker1", DATANODE) in master.looks[0]


def test_lost_now_of_a_whole_cluster_is_nothing(look_at: Any) -> None:
    live, master = look_at({})
    pauses: list[float] = []

    assert lost_now(live, wait=pauses.append) == ""
    assert (len(master.looks), pauses) == (1, [])


@pytest.mark.parametrize(
    ("sight", "words"),
    [
        ({("worker1", DATANODE): "unreachable"}, "datanode on worker1 does not answer"),
        (gone("worker2"), "node worker2 unreachable from master (No route to host)"),
    ],
)
def test_lost_now_looks_twice(look_at: Any, sight: Sight, words: str) -> None:
    live, master = look_at(sight)
    pauses: list[float] = []

    assert lost_now(live, wait=pauses.append) == words
    assert (len(master.looks), pauses) == (2, [1.0])


def test_lost_now_without_the_master(look_at: Any) -> None:
    live, _ = look_at(RemoteError("gone\nfor good", hint="look"))

    assert lost_now(live) == "master master unreachable (gone for good)"


def test_a_full_disk_of_the_master_ends_a_run_as_a_disk_of_a_worker_does(
    live: LiveCluster, world: World
) -> None:
    """YARN looks at no disk of the master."""
    assert _unhealthy(live) == []
    world.disks["master"] = (1000, 20)
    assert _unhealthy(live) == ["master: its disk is 98.0 % full"]
    world.unhealthy = [{"nodeHostName": "worker2", "healthReport": "1/1 local-dirs"}]
    assert _unhealthy(live)[1:] == ["worker2: 1/1 local-dirs"]


def test_a_disk_is_told_from_a_node(look_at: Any) -> None:
    live, _ = look_at({})
    beats, losses, _ = watch(live, unhealthy=lambda: ["worker2: its disk is 95.0 % full"])
    assert (losses, beats.is_storage) == (["worker2: its disk is 95.0 % full"], True)
    live, _ = look_at(gone("worker3"))
    beats, losses, _ = watch(live)
    assert (len(losses), beats.is_storage) == (1, False)


def test_nodes_that_the_master_does_not_reach_are_away(look_at: Any) -> None:
    live, _ = look_at({**gone("worker2"), ("worker3", DATANODE): "refused"})
    assert away_now(live) == ["worker2"]
    live, _ = look_at(RemoteError("master: out of reach"))
    assert away_now(live) == ["master"]
