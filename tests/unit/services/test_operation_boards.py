"""Boards come up: looked at and made ready before anything starts, and closed again each time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cluster.recordings import PI_5

from boardcluster.cluster.facts import parse_facts
from boardcluster.cluster.kinds.boards.nodes import SERVICE_USER, board_state, known_hosts_of
from boardcluster.cluster.state import Daemon, LiveNode, LiveState, load_state, save_state
from boardcluster.errors import (
    ClusterError,
    ClusterNotUpError,
    DaemonError,
    HostError,
    JvmCrashError,
    LockedError,
    StoreError,
    UnreachableError,
)
from boardcluster.fetch.cache import no_progress
from boardcluster.records import ClusterSpec, Egress, MasterPlacement, NodeFacts, Security
from boardcluster.remote.base import ProcessRef
from boardcluster.remote.fake import FakeRemote
from boardcluster.services import operation
from boardcluster.services.boards import INSTALLED, Ready
from boardcluster.services.install import Installation
from boardcluster.services.java import Java
from boardcluster.services.layout import Layout
from boardcluster.services.lifecycle import Health
from boardcluster.services.operation import LiveCluster
from boardcluster.services.pair import pair_ids
from boardcluster.services.profile import profile_names
from boardcluster.services.provision.provisioning import Change
from boardcluster.spec.cluster import address_of
from boardcluster.spec.template import render_cluster
from boardcluster.spec.variant import ClusterVariant

HEALTHY = Health(
    live_datanodes=2, live_nodemanagers=2, safe_mode=False, history=True, hdfs_free_bytes=1
)


def facts_of(name: str) -> NodeFacts:
    facts = parse_facts(
        PI_5.raw(), folder="/mnt/ssd/boardcluster", asked_seconds=0.0, answered_seconds=0.5
    )
    return replace(facts, name=name)


class Keeper:
    """Keeps the daemons of a node.

    Attributes:
        now: the processes of daemons that were started again.
        stopped: the daemons that were to end.
    """

    def __init__(self) -> None:
        self.now: dict[str, ProcessRef] = {}
        self.stopped: list[str] = []

    def running(self, known: Mapping[str, ProcessRef]) -> dict[str, ProcessRef]:
        return {**known, **self.now}

    def stop(self, known: Mapping[str, ProcessRef], *, grace_seconds: float) -> int:
        self.stopped += known
        return 0


class Rack:
    """Boards of a desk, on which everything is recorded and nothing is done.

    Attributes:
        done: what was done, in order.
        said: what was told of progress.
        lost: boards that do not answer.
        others: boards that another driver claimed.
        facts: what is found on each.
        changes: what the next making ready changes.
        fails: what something raises, by its name in ``done``.
        left_over: whether something still runs on the boards.
        layouts: the layouts that boards were made ready for.
        deep: whether every byte was to be read, each time.
        caches: where class-data archives were kept, each time; None if none were to be made.
        archived: the archives that boards get.
        archive_folders: where this machine keeps them.
        declared: the clusters that boards were made ready for.
        keepers: what keeps the daemons of each node.
    """

    def __init__(self, home: Path, spec: ClusterSpec, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home = home
        self.spec = spec
        self.done: list[str] = []
        self.said: list[str] = []
        self.lost: set[str] = set()
        self.others: set[str] = set()
        self.facts = {node.name: facts_of(node.name) for node in spec.nodes}
        self.changes: tuple[Change, ...] = ()
        self.fails: dict[str, BaseException] = {}
        self.left_over = True
        self.layouts: list[Layout] = []
        self.deep: list[bool] = []
        self.caches: list[Path | None] = []
        self.archived: dict[str, frozenset[str]] = {}
        self.archive_folders: tuple[Path, ...] = ()
        self.declared: list[ClusterSpec] = []
        self.keepers = {node.name: Keeper() for node in spec.nodes}
        self.remotes = {
            (node.name, user): FakeRemote(f"{user}@{node.name}")
            for node in spec.nodes
            for user in (SERVICE_USER, "root")
        }
        home.mkdir()
        self.declare(spec)
        refuse = "asked of this machine, which is none of the nodes"
        for name, value in {
            "check_memory": lambda _: pytest.fail(refuse),
            "require_disk_space": lambda _: pytest.fail(refuse),
            "provide_archives": lambda *_, **__: pytest.fail(refuse),
            "nodes_of": lambda home, kind: self if (home, kind) == (self.home, "boards") else None,
            "provide_java": lambda *_, **__: Java(
                program=Path("/java/bin/java"), feature=17, version="17.0.1", vendor="Maker"
            ),
            "install": lambda pair, *_, **__: Installation(pair=pair, folder=home),
            "make_ready": self.make_ready,
            "require_own_boards": self.require_own,
            "end_boards": self.end_boards,
            "load_facts": lambda _: self.facts,
            "wipe_boards": lambda *given: self._do(f"wipe {given == (self.home, self.spec)}"),
            "managers_of": self.managers_of,
            "current_daemons": self.current_daemons,
            "dead_daemons": lambda _: [],
        }.items():
            monkeypatch.setattr(operation, name, value)
        for name, value in {
            "configure": self.configure,
            "start": self.start,
            "wait_healthy": lambda *_, **__: self._do("wait"),
            "health": lambda *_: HEALTHY,
        }.items():
            monkeypatch.setattr(f"boardcluster.services.lifecycle.{name}", value)

    def limiter(self, spec: ClusterSpec, state: LiveState) -> None:
        """Boards have none."""

    def declare(self, spec: ClusterSpec) -> None:
        text = render_cluster(spec, engine_pairs=pair_ids(), profiles=profile_names())
        (self.home / "cluster.toml").write_text(text)

    def _do(self, what: str) -> None:
        self.done.append(what)
        if what in self.fails:
            raise self.fails[what]

    def require_own(self, home: Path, boards: Sequence[LiveNode]) -> None:
        if self.others.intersection(board.name for board in boards):
            raise LockedError("these boards belong to the cluster of another driver")

    # What a cluster asks of its nodes.

    def new_state(self, spec: ClusterSpec, *, identity: str) -> LiveState:
        return board_state(spec, identity=identity)

    def check(self, spec: ClusterSpec) -> None:
        self._do("check")

    def create(self, spec: ClusterSpec, state: LiveState, needed: Sequence[Path] = ()) -> LiveState:
        assert load_state(self.home) == state  # recorded before anything starts
        self._do("create")
        return replace(state, nodes=tuple(replace(row, boot_id="b") for row in state.nodes))

    def remote_of(self, node: LiveNode, state: LiveState) -> FakeRemote:
        return self.remotes[node.name, SERVICE_USER]

    def admin_of(self, node: LiveNode, state: LiveState) -> FakeRemote:
        return self.remotes[node.name, "root"]

    def alive(self, state: LiveState) -> list[LiveNode]:
        return [node for node in state.nodes if node.name not in self.lost]

    def has_leftovers(self, state: LiveState) -> bool:
        return self.left_over

    def destroy(self, state: LiveState) -> int:
        pytest.fail("what was lent to boards would stay there")

    # What a cluster asks of its boards.

    def make_ready(
        self,
        home: Path,
        declared: ClusterSpec,
        layout: Layout,
        *,
        dry_run: bool = False,
        deep: bool = False,
        cache: Path | None = None,
        **_: Any,
    ) -> Ready:
        assert home == self.home
        self.caches.append(cache)
        self.deep.append(deep)
        self.layouts.append(layout)
        self.declared.append(declared)
        self._do("plan" if dry_run else "make ready")
        return Ready(
            facts=self.facts,
            java="Debian 17.0.15 aarch64",
            changes=self.changes,
            archived=self.archived if cache else layout.archived,
            archive_folders=self.archive_folders,
        )

    def end_boards(self, home: Path, state: LiveState) -> int:
        assert home == self.home
        self._do("end")
        return 3

    def managers_of(
        self,
        facts: Mapping[str, NodeFacts],
        remotes: Mapping[str, FakeRemote],
        admins: Mapping[str, FakeRemote],
    ) -> dict[str, Keeper]:
        assert facts == self.facts
        assert all(row.name == f"{SERVICE_USER}@{name}" for name, row in remotes.items())
        assert all(row.name == f"root@{name}" for name, row in admins.items())
        return {name: self.keepers[name] for name in remotes}

    def current_daemons(self, home: Path, state: LiveState) -> tuple[Daemon, ...]:
        assert home == self.home
        return tuple(
            replace(row, process=self.keepers[row.node].now.get(row.name, row.process))
            for row in state.daemons
        )

    def configure(self, *_: object, **__: object) -> str:
        self._do("configure")
        return "ab" * 32

    def start(
        self,
        layout: Layout,
        remotes: Mapping[str, FakeRemote],
        *,
        managers: Mapping[str, Keeper],
        identity: str,
        started: Callable[[Daemon], None],
    ) -> list[Daemon]:
        state = load_state(self.home)
        assert state is not None
        assert identity == state.identity
        assert managers == {name: self.keepers[name] for name in remotes}
        self._do("start")
        for pid, node in enumerate(layout.spec.workers, start=10):
            process = ProcessRef(pid, 1)
            url = f"http://{address_of(layout.spec, node.name)}:9864"
            row = Daemon(name="datanode", node=node.name, process=process, log="/log", url=url)
            started(row)
        return []

    # What a user does.

    def up(self, **named: Any) -> LiveCluster:
        return operation.up(
            self.home,
            cache=self.home / "cache",
            progress=lambda what, *_: self.said.append(what),
            seen=lambda _: None,
            **named,
        )

    def state(self) -> LiveState:
        state = load_state(self.home)
        assert state is not None
        return state


@pytest.fixture
def rack(
    tmp_path: Path, make_spec: Callable[..., ClusterSpec], monkeypatch: pytest.MonkeyPatch
) -> Rack:
    plain = make_spec(workers=2, engines=pair_ids()[0])
    nodes = tuple(
        replace(
            node, host=f"pi@{node.name}", address=f"10.0.0.{place}", folder="/mnt/ssd/boardcluster"
        )
        for place, node in enumerate(plain.nodes, start=1)
    )
    spec = replace(
        plain,
        kind="boards",
        security=Security.CLOSED,
        nodes=nodes,
        network=replace(plain.network, subnet="10.0.0.0/24"),
    )
    return Rack(tmp_path / "home", spec, monkeypatch)


def test_boards_are_made_ready_before_anything_starts(rack: Rack) -> None:
    live = rack.up()

    assert rack.done == ["check", "make ready", "create", "configure", "start", "wait"]
    assert live.spec == rack.spec
    assert live.facts == rack.facts
    assert {name: remote.name for name, remote in live.remotes.items()} == {
        name: f"{SERVICE_USER}@{name}" for name in ("master", "worker1", "worker2")
    }
    assert {name: remote.name for name, remote in live.as_root.items()} == {
        name: f"root@{name}" for name in ("master", "worker1", "worker2")
    }
    state = rack.state()
    assert live.state == state
    assert (state.kind, state.phase, state.java) == ("boards", "up", "Debian 17.0.15 aarch64")
    assert {node.boot_id for node in state.nodes} == {"b"}
    assert rack.said == ["boards: nothing to change"]


def test_a_daemons_page_is_named_by_the_boards_address(rack: Rack) -> None:
    rows = [(row.node, row.process.pid, row.url) for row in rack.up().state.daemons]

    assert rows == [
        ("worker1", 10, "http://10.0.0.2:9864"),
        ("worker2", 11, "http://10.0.0.3:9864"),
    ]


def test_on_boards_everything_is_where_it_was_installed(rack: Rack) -> None:
    layout = rack.up().layout

    assert (layout.user, layout.shares_files) == (SERVICE_USER, False)
    assert set(layout.folders.values()) == {"/mnt/ssd/boardcluster"}
    assert layout.jobs_jar == f"{INSTALLED}/jobs.jar"
    assert layout.java.program == INSTALLED / "java" / "bin" / "java"
    assert layout.engines.spark_home == INSTALLED / "engines" / rack.spec.engines / "spark"
    assert layout.engines.folder == rack.home  # what is fetched stays on this machine


def test_what_was_changed_is_said_with_what_could_not_be(rack: Rack) -> None:
    rack.changes = (
        Change(node="worker1", words="creates /opt/boardcluster for root"),
        Change(node="worker2", words="switches swap off", remark="not permitted"),
    )

    rack.up()

    assert rack.said == ["changes on boards: 2", "worker2: switches swap off: not permitted"]


def test_boards_claimed_for_a_start_that_fails_at_once_are_given_up(
    rack: Rack, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_up: list[Path] = []
    monkeypatch.setattr(operation, "release_unused_boards", given_up.append)
    rack.fails["check"] = UnreachableError("worker1: out of reach")
    with pytest.raises(UnreachableError):
        rack.up()
    assert (given_up, rack.done) == ([rack.home], ["check"])


@pytest.mark.parametrize("where", ["check", "make ready"])
def test_boards_that_cannot_be_made_ready_leave_nothing_to_end(where: str, rack: Rack) -> None:
    rack.fails[where] = HostError("worker1: 32-bit userland")

    with pytest.raises(HostError, match="32-bit"):
        rack.up()

    assert "end" not in rack.done
    assert load_state(rack.home) is None


@pytest.mark.parametrize("where", ["create", "configure", "start", "wait"])
@pytest.mark.parametrize("error", [DaemonError("it died"), KeyboardInterrupt()])
def test_whatever_goes_wrong_ends_everything_on_the_boards(
    where: str, error: BaseException, rack: Rack
) -> None:
    rack.fails[where] = error

    with pytest.raises(type(error)):
        rack.up()

    assert rack.done[-2:] == [where, "end"]
    assert load_state(rack.home) is None


def test_boards_that_could_not_be_cleared_stay_recorded(rack: Rack) -> None:
    rack.fails |= {"start": DaemonError("it died"), "end": ClusterError("worker1: out of reach")}

    with pytest.raises(DaemonError) as caught:
        rack.up()

    assert any("boardcluster down" in note for note in caught.value.__notes__)
    assert rack.state().phase == "starting"
    assert [node.host for node in rack.state().nodes] == ["pi@master", "pi@worker1", "pi@worker2"]


def test_boards_that_run_are_made_ready_all_the_same(rack: Rack) -> None:
    first = rack.up()
    rack.done.clear()
    rack.facts = {name: replace(row, uptime_seconds=1.0) for name, row in rack.facts.items()}
    again = rack.up()

    # A firewall that somebody switched off must be on again.
    assert rack.done == ["make ready"]
    assert again.state == first.state
    assert again.facts == rack.facts


def test_the_firewalls_doors_are_changed_on_boards_that_run(rack: Rack) -> None:
    """A campaign ended by it at its next change of variant, though no daemon reads them."""
    first = rack.up()
    rack.done.clear()
    network = replace(rack.spec.network, open_ports=("53/udp",), ssh_from=("10.0.0.0/24",))
    rack.declare(replace(rack.spec, network=replace(network, egress=Egress.MEMBERS)))
    again = rack.up()

    assert rack.done == ["make ready"]
    assert rack.declared[-1].network.open_ports == ("53/udp",)
    assert again.state == first.state


def test_a_daemon_that_was_started_again_is_known_by_its_new_process(rack: Rack) -> None:
    rack.up()
    rack.keepers["worker2"].now = {"datanode": ProcessRef(99, 7)}

    live = rack.up()

    assert [row.process for row in live.state.daemons] == [ProcessRef(10, 1), ProcessRef(99, 7)]
    assert rack.state() == live.state


def test_what_a_killed_driver_left_is_ended_first(rack: Rack) -> None:
    first = rack.up().state
    save_state(rack.home, replace(first, phase="starting"))
    rack.done.clear()

    second = rack.up().state

    assert rack.done[:3] == ["end", "check", "make ready"]
    assert second.identity != first.identity


def test_after_a_power_cut_everything_starts_afresh(rack: Rack) -> None:
    rack.up()
    rack.left_over = False
    rack.done.clear()

    rack.up()

    assert rack.done[:3] == ["end", "check", "make ready"]


def test_every_byte_is_read_if_asked(rack: Rack) -> None:
    rack.up()
    assert rack.deep == [False]
    rack.up(deep=True)  # it runs already
    operation.plan_boards(rack.home, cache=rack.home / "cache", progress=no_progress, deep=True)
    operation.down(rack.home)
    rack.up(deep=True)
    assert rack.deep == [False, True, True, True]


def test_a_dry_run_changes_and_records_nothing(rack: Rack) -> None:
    rack.changes = (Change(node="worker1", words="creates /opt/boardcluster for root"),)

    ready = operation.plan_boards(rack.home, cache=rack.home / "cache", progress=no_progress)

    assert ready.changes == rack.changes
    assert rack.done == ["plan"]
    assert {path.name for path in rack.home.iterdir()} == {"cluster.toml"}


def test_every_later_command_knows_the_archives_that_boards_got(rack: Rack) -> None:
    there = {"master": frozenset({"master", "spark"}), "worker1": frozenset({"worker"})}
    rack.archived = there

    live = rack.up()

    known = there | {"worker2": frozenset()}
    assert {name: live.layout.archived.get(name, frozenset()) for name in known} == known
    assert {node.name: frozenset(node.archived) for node in rack.state().nodes} == known
    attached = operation.attach(rack.home, cache=rack.home, progress=no_progress)
    assert attached.layout.archived == known
    # What runs keeps what it started with, whatever boards could get now.
    rack.archived = {}
    assert rack.up().layout.archived == known
    operation.plan_boards(rack.home, cache=rack.home / "cache", progress=no_progress)
    assert rack.caches == [rack.home / "cache", None, None]
    assert rack.layouts[-1].archived == known


def test_archives_that_a_jvm_crashed_with_are_refused_and_it_starts_again(rack: Rack) -> None:
    rack.archive_folders = (rack.home / "kinds" / "a", rack.home / "kinds" / "b")
    rack.fails["wait"] = JvmCrashError("the JVM of the namenode crashed: SIGSEGV")

    with pytest.raises(JvmCrashError):
        rack.up()

    assert rack.done.count("start") == 2
    assert any("starting again without class-data archives" in line for line in rack.said)
    for folder in rack.archive_folders:
        assert "SIGSEGV" in (folder / "made.json").read_text()


def test_in_a_form_with_fewer_workers_all_declared_boards_are_known(rack: Rack) -> None:
    variant = ClusterVariant(workers=1, profile="default", master=MasterPlacement.DECLARED)

    live = rack.up(variant=variant)

    assert [node.name for node in live.spec.nodes] == ["master", "worker1"]
    assert rack.declared == [rack.spec]
    assert rack.layouts[0].spec == live.spec


def test_attaching_needs_every_board_and_looks_at_none_again(rack: Rack) -> None:
    up = rack.up()
    rack.done.clear()
    again = ProcessRef(4711, 99)
    rack.keepers["worker1"].now["datanode"] = again  # systemd started it again

    live = operation.attach(rack.home, cache=rack.home, progress=no_progress)

    assert rack.done == []
    assert live.state == replace(up.state, daemons=rack.current_daemons(rack.home, up.state))
    assert again in {row.process for row in live.state.daemons}
    assert live.facts == up.facts
    assert live.as_root["worker1"].name == "root@worker1"
    assert live.remotes["worker1"].name == f"{SERVICE_USER}@worker1"
    rack.lost = {"worker2"}
    with pytest.raises(ClusterNotUpError):
        operation.attach(rack.home, cache=rack.home, progress=no_progress)


@pytest.mark.parametrize("command", ["attach", "up", "down"])
def test_nothing_is_done_to_boards_that_another_driver_claimed_since(
    command: str, rack: Rack
) -> None:
    rack.up()
    rack.done.clear()
    rack.others = {"worker2"}

    commands: dict[str, Callable[[], object]] = {
        "attach": lambda: operation.attach(rack.home, cache=rack.home, progress=no_progress),
        "up": rack.up,
        "down": lambda: operation.down(rack.home),
    }
    with pytest.raises(LockedError):
        commands[command]()

    assert rack.done == []
    assert all(keeper.stopped == [] for keeper in rack.keepers.values())
    assert load_state(rack.home) is not None


def test_boards_that_another_driver_has_can_be_forgotten(rack: Rack) -> None:
    rack.up()
    rack.others = {"master", "worker1", "worker2"}

    operation.down(rack.home, without=rack.others)

    assert load_state(rack.home) is None


def test_down_asks_what_keeps_the_daemons_and_then_ends_the_rest(rack: Rack) -> None:
    rack.up()
    rack.done.clear()

    operation.down(rack.home)

    assert {name: keeper.stopped for name, keeper in rack.keepers.items()} == {
        "master": [],
        "worker1": ["datanode"],
        "worker2": ["datanode"],
    }
    assert rack.done == ["end"]
    assert load_state(rack.home) is None


def test_down_deletes_what_submissions_left_and_says_where_it_could_not(rack: Rack) -> None:
    """A killed driver may have left a secret there."""
    rack.up()
    folders = {node.name: f"{node.folder}/scratch" for node in rack.state().nodes}
    remotes = {name: rack.remotes[name, SERVICE_USER] for name in folders}
    for name in ("master", "worker1"):
        remotes[name].tell("rm", "-rf", folders[name])
    said: list[str] = []

    operation.down(rack.home, scratch_stays=lambda name, why: said.append(f"{name}: {why}"))

    for name, remote in remotes.items():
        assert ("rm", "-rf", folders[name]) in remote.calls
    assert [row.partition(":")[0] for row in said] == ["worker2"]


def test_a_board_that_does_not_answer_keeps_the_record_of_what_may_run_there(rack: Rack) -> None:
    rack.up()
    rack.lost = {"worker1"}
    rack.fails["end"] = ClusterError("not everything could be ended on worker1")

    with pytest.raises(ClusterError, match="worker1"):
        operation.down(rack.home)

    assert rack.keepers["worker1"].stopped == []
    assert rack.keepers["worker2"].stopped == ["datanode"]
    assert [node.name for node in rack.state().nodes] == ["master", "worker1", "worker2"]


def test_boards_that_are_gone_are_neither_asked_nor_ended(
    rack: Rack, monkeypatch: pytest.MonkeyPatch
) -> None:
    rack.up()
    asked: list[LiveState] = []

    def alive(state: LiveState) -> list[LiveNode]:
        asked.append(state)
        return list(state.nodes)

    def end_boards(_: Path, state: LiveState) -> int:
        asked.append(state)
        return 3

    monkeypatch.setattr(rack, "alive", alive)
    monkeypatch.setattr(operation, "end_boards", end_boards)

    assert operation.down(rack.home, without={"worker1"}) == 1 + 3

    assert len(asked) == 2
    for state in asked:
        assert [node.name for node in state.nodes] == ["master", "worker2"]
        assert {daemon.node for daemon in state.daemons} == {"worker2"}
    assert rack.keepers["worker1"].stopped == []
    assert rack.keepers["worker2"].stopped == ["datanode"]
    assert load_state(rack.home) is None


def test_a_damaged_record_of_boards_does_not_keep_them_from_ending(
    rack: Rack, monkeypatch: pytest.MonkeyPatch
) -> None:
    rack.up()
    rack.done.clear()

    def damaged(_: Path) -> None:
        raise StoreError("nodes.json is damaged")

    monkeypatch.setattr(operation, "load_facts", damaged)
    rack.facts = {}  # what managers are then chosen by

    operation.down(rack.home)

    assert rack.done == ["end"]
    assert load_state(rack.home) is None


def test_down_counts_what_was_asked_and_what_had_to_be_ended(rack: Rack) -> None:
    rack.up()
    assert operation.down(rack.home) == 2 + 3
    assert operation.down(rack.home) == 0  # nothing is left

    rack.up()
    rack.lost = {"worker1"}
    assert operation.down(rack.home) == 1 + 3


def test_what_a_manager_cannot_stop_is_ended_all_the_same(
    rack: Rack, monkeypatch: pytest.MonkeyPatch
) -> None:
    rack.up()
    rack.done.clear()

    def fail(*_: object, **__: object) -> int:
        raise UnreachableError("worker1: systemctl does not answer")

    monkeypatch.setattr(rack.keepers["worker1"], "stop", fail)

    operation.down(rack.home)

    assert rack.done == ["end"]
    assert load_state(rack.home) is None


def test_boards_of_an_earlier_file_are_not_wiped_with_emulated_nodes(
    rack: Rack, make_spec: Callable[..., ClusterSpec]
) -> None:
    known_hosts_of(rack.home).touch()
    rack.declare(make_spec(workers=2, engines=pair_ids()[0]))
    (rack.home / "nodes").mkdir()

    operation.wipe(rack.home)

    assert rack.done == []
    assert not (rack.home / "nodes").exists()


def test_what_is_forgotten_is_what_could_be_made_again(rack: Rack) -> None:
    for name in ("nodes", "conf", "results"):
        (rack.home / name).mkdir()
    for name in ("running.toml", "declared.toml", "hosts", "known_hosts", "store.sqlite"):
        (rack.home / name).touch()

    operation.forget(rack.home)

    left = {path.name for path in rack.home.iterdir()}
    assert left == {"cluster.toml", "known_hosts", "results", "store.sqlite"}
    assert rack.done == []


@pytest.mark.parametrize("known", [True, False])
def test_only_boards_are_wiped_as_boards(known: bool, rack: Rack) -> None:
    if known:
        known_hosts_of(rack.home).touch()
    (rack.home / "conf").mkdir()

    operation.wipe(rack.home)

    assert rack.done == (["wipe True"] if known else [])
    assert not (rack.home / "conf").exists()


def test_boards_that_are_gone_are_not_wiped(rack: Rack, monkeypatch: pytest.MonkeyPatch) -> None:
    known_hosts_of(rack.home).touch()
    wiped: list[str] = []
    monkeypatch.setattr(
        operation, "wipe_boards", lambda _, spec: wiped.extend(node.name for node in spec.nodes)
    )

    operation.wipe(rack.home, without=["worker2"])

    assert wiped == ["master", "worker1"]


def test_boards_that_cannot_be_wiped_are_said(rack: Rack) -> None:
    known_hosts_of(rack.home).touch()
    (rack.home / "conf").mkdir()
    rack.fails["wipe True"] = UnreachableError("worker1: out of reach")

    with pytest.raises(UnreachableError):
        operation.wipe(rack.home)


def test_nothing_of_a_running_cluster_is_wiped(rack: Rack) -> None:
    rack.up()
    known_hosts_of(rack.home).touch()
    rack.done.clear()

    with pytest.raises(ClusterError, match="still up"):
        operation.wipe(rack.home)
    assert rack.done == []
