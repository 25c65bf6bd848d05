"""What a campaign does after a loss: which policy waits for what, and when it stops."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.builders import make_cluster, make_live_node, make_state, make_trial
from tests.unit.campaign.world import World

from boardcluster.campaign import recovery as module
from boardcluster.campaign.recovery import TRIES_MOST, Recovery, _silent_boards, absent_nodes
from boardcluster.cluster.state import LiveNode, LiveState, save_state
from boardcluster.errors import (
    BoardclusterError,
    ClusterError,
    HostKeyError,
    LockedError,
    LoginError,
    RemoteError,
    UnreachableError,
)
from boardcluster.records import ClusterSpec, OnLoss, Policy, Trial
from boardcluster.remote.base import Remote
from boardcluster.remote.node_clock import ClockReading
from boardcluster.services import operation
from boardcluster.services.operation import LiveCluster

GOING_ON = [policy for policy in OnLoss if policy is not OnLoss.STOP]


class Cluster:
    """A cluster that remembers what it was asked for.

    Attributes:
        unreachable: the workers that must be named for an end to succeed.
    """

    def __init__(self, live: LiveCluster) -> None:
        self.live: LiveCluster | None = live
        self.asked: list[object] = []
        self.unreachable: set[str] = set()
        self.failure: BoardclusterError = ClusterError("not everything could be ended")

    def look_again(self) -> None:
        self.asked.append("look")

    def end_without(self, names: tuple[str, ...]) -> None:
        self.asked.append(names)
        if self.unreachable - set(names):
            raise self.failure


class Desk:
    """A recovery under test, whose clock goes on by what it waits.

    Attributes:
        absent: what is away at each look; the last stays.
        broken: what is not whole at each look; the last stays.
    """

    def __init__(self, live: LiveCluster, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cluster = Cluster(live)
        self.absent: list[dict[str, str]] = [{}]
        self.broken = [""]
        self.said: list[str] = []
        self.now = 0.0
        monkeypatch.setattr(module, "absent_nodes", lambda _: self._next(self.absent))
        monkeypatch.setattr(module, "_not_whole", lambda _: self._next(self.broken))
        self.live = live

    @staticmethod
    def _next(rows: list[Any]) -> Any:
        return rows.pop(0) if len(rows) > 1 else rows[0]

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def recovery(
        self, on_loss: OnLoss, *, wait: float = 60.0, goes_on_without: bool = False
    ) -> Recovery:
        return Recovery(
            Path("/home"),
            self.live.spec,
            Policy(on_loss=on_loss, loss_wait_seconds=wait),
            self.cluster,
            goes_on_without=goes_on_without,
            progress=lambda words, *_: self.said.append(words),
            clock=lambda: self.now,
            sleep=self.sleep,
        )


@pytest.fixture
def desk(live: LiveCluster, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(live, monkeypatch)


def trial_of(workers: int = 4) -> Trial:
    return make_trial(workers=workers)


def test_stop_stops_at_once(desk: Desk) -> None:
    assert desk.recovery(OnLoss.STOP).after(trial_of(), "node worker1", tries=1) == "node worker1"
    assert (desk.now, desk.cluster.asked) == (0.0, [])


@pytest.mark.parametrize("on_loss", GOING_ON)
def test_what_comes_back_in_time_is_waited_for(desk: Desk, on_loss: OnLoss) -> None:
    desk.absent = [{"worker2": "silent"}] * 5 + [{}]

    assert desk.recovery(on_loss).after(trial_of(), "node worker2", tries=1) == ""

    assert desk.now == pytest.approx(10.0)
    assert desk.cluster.asked == ["look"]
    assert "waiting for worker2 (silent)" in desk.said


@pytest.mark.parametrize("on_loss", [OnLoss.WAIT, OnLoss.RESTART])
def test_what_stays_away_stops_the_campaign_and_is_named(desk: Desk, on_loss: OnLoss) -> None:
    desk.absent = [{"worker2": "silent"}]

    words = desk.recovery(on_loss).after(trial_of(), "node worker2", tries=1)

    assert words == "node worker2; after 60 s still not back: worker2 (silent)"
    assert 60 <= desk.now < 70
    assert desk.cluster.asked == []


def test_daemons_that_nobody_starts_are_restarted_at_once_or_end_it(desk: Desk) -> None:
    desk.broken = ["datanode on worker1"]

    assert desk.recovery(OnLoss.RESTART).after(trial_of(), "datanode", tries=1) == ""
    assert (desk.now, desk.cluster.asked) == (0.0, ["look"])

    words = desk.recovery(OnLoss.WAIT).after(trial_of(), "datanode", tries=1)
    assert "still not whole: datanode on worker1" in words


@pytest.mark.parametrize("on_loss", GOING_ON)
def test_one_cause_three_times_stops_the_campaign_and_is_named(desk: Desk, on_loss: OnLoss) -> None:
    recovery = desk.recovery(on_loss)
    percents = [recovery.after(trial_of(), f"disk {90 + n} % full", tries=n) for n in (1, 2, 3)]
    assert percents == ["", "", "disk 93 % full; this ended 3 attempts in a row"]


def test_several_causes_are_borne_longer_but_not_for_ever(desk: Desk) -> None:
    recovery = desk.recovery(OnLoss.RESTART)
    causes = ["disk full", "no link"] * 3
    said = [recovery.after(trial_of(), cause, tries=n) for n, cause in enumerate(causes, start=1)]
    assert said == [""] * 5 + ["no link; 6 attempts at one run were lost"]
    assert len(causes) == TRIES_MOST


def test_another_trial_begins_anew(desk: Desk) -> None:
    recovery = desk.recovery(OnLoss.RESTART)
    assert [recovery.after(trial_of(), "no link", tries=n) for n in (1, 2, 1, 2)] == [""] * 4


def test_without_a_worker_only_cells_go_on_that_never_had_it(desk: Desk) -> None:
    desk.absent = [{"worker4": "silent"}]
    desk.cluster.unreachable = {"worker4"}
    recovery = desk.recovery(OnLoss.WITHOUT)

    assert recovery.after(trial_of(), "node worker4", tries=1) == ""

    assert desk.cluster.asked == [(), ("worker4",)]
    assert recovery.left_out == {"worker4": "silent"}
    assert [recovery.skips(trial_of(count)) for count in (4, 3, 1)] == [True, False, False]
    assert recovery.skipped == [trial_of(4)]


def test_a_worker_that_answers_to_nothing_is_left_out_too(desk: Desk) -> None:
    desk.absent = [{"worker4": "silent"}]
    desk.cluster.unreachable = {"worker4"}
    desk.cluster.failure = RemoteError("worker4: no answer")
    assert desk.recovery(OnLoss.WITHOUT).after(trial_of(), "node worker4", tries=1) == ""

    desk.cluster.unreachable = {"worker4", "worker3"}
    words = desk.recovery(OnLoss.WITHOUT).after(trial_of(), "node worker4", tries=1)
    assert words == "node worker4; the other nodes could not be ended: worker4: no answer"

    desk.cluster.failure = LockedError("another driver")
    with pytest.raises(LockedError):
        desk.recovery(OnLoss.WITHOUT).after(trial_of(), "node worker4", tries=1)


def test_no_cell_goes_on_without_its_master(desk: Desk) -> None:
    desk.absent = [{"master": "its disk is 99.0 % full"}]

    words = desk.recovery(OnLoss.WITHOUT).after(trial_of(), "storage", tries=1)

    assert "still not back: master (its disk is 99.0 % full)" in words


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> Callable[[Sequence[str]], None]:
    """Say which nodes of this machine there still are, and which the master does not reach."""

    def make(gone: Sequence[str], away: Sequence[str] = ()) -> None:
        class Nodes:
            def alive(self, state: Any) -> list[Any]:
                return [node for node in state.nodes if node.name not in gone]

        monkeypatch.setattr(operation, "nodes_of", lambda *_: Nodes())
        monkeypatch.setattr(module, "away_now", lambda _: [*gone, *away])

    return make


def test_absent_is_what_no_restart_brings_back(
    live: LiveCluster, world: World, nodes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node of this machine that is gone is made anew; a cut one, or a full disk, is not."""
    ask = {name: remote.run for name, remote in live.remotes.items()}

    def answering(name: str) -> Callable[..., Any]:
        def run(argv: Sequence[str], **named: Any) -> Any:
            if list(argv) == ["true"]:
                world.reach(name)
                return None
            return ask[name](argv, **named)

        return run

    for name, remote in live.remotes.items():
        monkeypatch.setattr(remote, "run", answering(name))
    nodes(gone=["worker1"], away=["worker2"])
    world.lost = {"worker1", "worker3"}
    world.disks["master"] = (1000, 20)

    assert absent_nodes(live) == {
        "worker3": "worker3: out of reach",
        "worker2": "not reached from master",
        "master": "its disk is 98.0 % full",
    }


def test_a_board_that_was_replaced_is_there_though_it_lacks_our_user(
    live: LiveCluster, nodes: Any
) -> None:
    """It stayed away until ``loss_wait`` was over: only a start makes the user there."""

    class Fresh:
        def run(self, argv: Sequence[str], **named: Any) -> Any:
            raise RemoteError(f"worker3: sudo: unknown user boardcluster: {argv}")

    class Root:
        def run(self, argv: Sequence[str], **named: Any) -> Any:
            assert list(argv) == ["true"]

    nodes(gone=[])
    admins = dict.fromkeys(live.remotes, cast("Remote", Root()))
    remotes = {**live.remotes, "worker3": cast("Remote", Fresh())}

    assert absent_nodes(replace(live, remotes=remotes, admins=admins)) == {}


@pytest.mark.parametrize("kind", [HostKeyError, LoginError])
def test_what_only_a_person_can_mend_is_waited_for_with_how(
    kind: type[RemoteError], live: LiveCluster, nodes: Any
) -> None:
    class Refusing:
        def run(self, argv: Sequence[str], **named: Any) -> Any:
            raise kind("worker3: refused", hint="run ssh-keygen -R worker3")

    nodes(gone=["master", "worker1", "worker2", "worker4"])
    admins = {**live.remotes, "worker3": cast("Remote", Refusing())}

    assert absent_nodes(replace(live, admins=admins)) == {
        "worker3": "worker3: refused; run ssh-keygen -R worker3"
    }


@pytest.mark.parametrize("on_loss", GOING_ON)
def test_a_cluster_that_did_not_come_up_is_not_waited_for(desk: Desk, on_loss: OnLoss) -> None:
    assert desk.recovery(on_loss).is_up
    desk.cluster.live = None

    assert not desk.recovery(on_loss).is_up
    assert desk.recovery(on_loss).after(trial_of(), "does not start", tries=1) == ""
    assert desk.cluster.asked == ["look"]


@pytest.mark.parametrize("goes_on", [True, False])
def test_only_a_board_that_is_silent_may_have_been_lost_by_an_earlier_command(
    desk: Desk, goes_on: bool
) -> None:
    recovery = desk.recovery(OnLoss.WITHOUT, goes_on_without=goes_on)
    assert recovery.is_of_before(UnreachableError("worker4: no answer")) is goes_on
    assert not recovery.is_of_before(ClusterError("was edited"))
    assert not recovery.is_of_before(HostKeyError("another key"))


def test_a_board_that_was_up_in_another_variant_is_away_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What runs there must end before a variant without it starts, which needs ``without``."""

    class Nodes:
        def new_state(self, spec: ClusterSpec, identity: str) -> LiveState:
            return make_state(*(make_live_node(node.name) for node in spec.nodes))

        def admin_of(self, node: LiveNode, state: LiveState) -> Any:
            def run(*_: object, **__: object) -> None:
                if node.name == "worker2":
                    raise UnreachableError("worker2: no answer")

            return SimpleNamespace(name=node.name, run=run)

    same = ClockReading(
        monotonic_offset_seconds=0.0,
        wall_offset_seconds=0.0,
        error_seconds=0.1,
        boot_id="1",
        free_bytes=1,
    )
    monkeypatch.setattr(operation, "nodes_of", lambda *_: Nodes())
    monkeypatch.setattr(module, "compare_clocks", lambda _: same)
    spec = make_cluster(workers=1, kind="boards")
    assert _silent_boards(tmp_path, spec) == {}

    nodes = (make_live_node(name) for name in ("master", "worker1", "worker2"))
    save_state(tmp_path, make_state(*nodes, kind="boards"))
    assert _silent_boards(tmp_path, spec) == {"worker2": "worker2: no answer"}


def test_a_board_without_its_time_is_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a power cut it answers before NTP does; a start would refuse its clock."""
    apart = {"master": 0.0, "worker1": -7200.0, "worker2": 1.2}

    class Nodes:
        def new_state(self, spec: ClusterSpec, identity: str) -> LiveState:
            return make_state(*(make_live_node(node.name) for node in spec.nodes))

        def admin_of(self, node: LiveNode, state: LiveState) -> Any:
            return SimpleNamespace(name=node.name, run=lambda *_, **__: None)

    def clock(remote: Any) -> ClockReading:
        return ClockReading(
            monotonic_offset_seconds=0.0,
            wall_offset_seconds=apart[remote.name],
            error_seconds=0.3,
            boot_id="1",
            free_bytes=1,
        )

    monkeypatch.setattr(operation, "nodes_of", lambda *_: Nodes())
    monkeypatch.setattr(module, "compare_clocks", clock)
    assert _silent_boards(tmp_path, make_cluster(workers=2, kind="boards")) == {
        "worker1": "its clock is 2 h 00 min 00 s away from this machine's"
    }
