"""What is asked of boards: all before any is changed, and what comes of it is kept."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.cluster.recordings import DESKTOP, PI_3, PI_4, PI_5, Recording

from boardcluster.cluster.facts import parse_facts
from boardcluster.cluster.kinds.boards.nodes import SERVICE_USER, board_nodes, board_state
from boardcluster.cluster.state import Daemon, LiveNode, LiveState
from boardcluster.errors import (
    CapacityError,
    ClusterError,
    HostError,
    LockedError,
    StoreError,
    UnreachableError,
)
from boardcluster.fetch.cache import no_progress
from boardcluster.records import ClusterSpec, Link, NodeFacts, Security
from boardcluster.remote.base import ProcessRef
from boardcluster.remote.fake import FakeRemote
from boardcluster.remote.local import LocalRemote
from boardcluster.services import boards as module
from boardcluster.services import mpi
from boardcluster.services.boards import (
    WEB_PAGES,
    Ready,
    board_layout,
    boards_free_bytes,
    end_boards,
    hold_tunnel,
    load_facts,
    make_ready,
    managers_of,
    take_back,
    wipe_boards,
)
from boardcluster.services.daemons import command_of, daemons_of
from boardcluster.services.layout import Layout
from boardcluster.services.provision.manager import PlainProcesses, Systemd
from boardcluster.services.provision.provisioning import Change
from boardcluster.store import to_json

FOLDER = "/mnt/ssd/boardcluster"
UNIT = "boardcluster-datanode.service"


def facts_of(recording: Recording, **changed: Any) -> NodeFacts:
    facts = parse_facts(recording.raw(), folder=FOLDER, asked_seconds=0.0, answered_seconds=0.5)
    return replace(facts, clock_offset_seconds=0.0, **{"links": (), **changed})


class Desk:
    """Boards that are reached by root and by nobody else.

    Attributes:
        remotes: the boards.
        lost: names of those that do not answer.
        others: names of those that another driver claimed.
        unmounted: names of those whose folder was on a disk that is not mounted now.
        found: what is found on each, as the next looks see it; the last stays.
        looked: names of boards that were looked at.
        planned: what differs on each.
        provisioned: the boards that were changed, with what each is to have.
        asked: what was asked of ``desired``.
        done: what was done, in order.
        deep: whether every byte was to be read, each time that boards were looked at or changed.
    """

    def __init__(self, spec: ClusterSpec) -> None:
        self.remotes = {node.name: FakeRemote(node.name) for node in spec.nodes}
        self.lost: set[str] = set()
        self.others: set[str] = set()
        self.unmounted: set[str] = set()
        self.found: dict[str, list[NodeFacts]] = {}
        self.looked: list[str] = []
        self.planned: dict[str, list[Change]] = {name: [] for name in self.remotes}
        self.provisioned: list[dict[str, Any]] = []
        self.asked: list[dict[str, Any]] = []
        self.done: list[str] = []
        self.deep: list[bool] = []
        self.destroyed = 0

    def admin(self, node: Any) -> FakeRemote:
        if node.name in self.lost:
            raise UnreachableError(f"{node.name}: out of reach")
        return self.remotes[node.name]

    def admin_of(self, node: LiveNode, state: LiveState) -> FakeRemote:
        return self.admin(node)

    def require_own(self, boards: Sequence[Any]) -> None:
        self.done.append("require own")
        if self.others:
            raise LockedError(f"another driver has {', '.join(sorted(self.others))}")

    def release(self, boards: Sequence[Any]) -> None:
        self.done.append("release")

    def end_on(self, node: Any) -> int:
        self.done.append(f"end {self.admin(node).name}")
        return 0

    def lost_folders(self, remote: FakeRemote) -> list[str]:
        return [FOLDER] if remote.name in self.unmounted else []

    def use_claims(self) -> None:
        assert not self.provisioned, "it is said before anything is changed"

    def destroy(self, state: LiveState) -> int:
        self.done.append("destroy")
        if self.lost:
            raise ClusterError(f"not everything could be ended on {', '.join(sorted(self.lost))}")
        return 5

    def discover(self, remote: FakeRemote, *, folder: str) -> NodeFacts:
        assert folder == FOLDER
        self.looked.append(remote.name)
        rows = self.found[remote.name]
        return rows.pop(0) if len(rows) > 1 else rows[0]

    def desired(self, spec: ClusterSpec, node: Any, ground: Any, **named: Any) -> list[str]:
        self.asked.append({"spec": spec, "node": node.name, "ground": ground, **named})
        return [f"what {node.name} is to have"]

    def plan(self, remote: FakeRemote, wanted: Sequence[str], *, deep: bool) -> list[Change]:
        self.deep.append(deep)
        assert wanted == [f"what {remote.name} is to have"]
        self.done.append(f"plan {remote.name}")
        return self.planned[remote.name]

    def provision(
        self,
        remotes: Mapping[str, FakeRemote],
        wanted: Mapping[str, Any],
        *,
        deep: bool,
        said: Callable[[str], None],
    ) -> list[Change]:
        self.deep.append(deep)
        self.done.append(f"provision {', '.join(sorted(wanted))}")
        assert set(wanted) <= set(remotes)
        return [change for name in wanted for change in self.planned[name]]


@pytest.fixture
def spec(make_spec: Callable[..., ClusterSpec]) -> ClusterSpec:
    plain = make_spec(workers=2)
    nodes = tuple(
        replace(node, host=f"pi@{node.name}", address=f"10.0.0.{place}", folder=FOLDER)
        for place, node in enumerate(plain.nodes, start=1)
    )
    return replace(plain, kind="boards", security=Security.CLOSED, nodes=nodes)


@pytest.fixture
def desk(spec: ClusterSpec, monkeypatch: pytest.MonkeyPatch) -> Desk:
    desk = Desk(spec)
    desk.found = {
        "master": [facts_of(DESKTOP)],
        "worker1": [facts_of(PI_5)],
        "worker2": [facts_of(PI_4)],
    }
    monkeypatch.setattr(module, "board_nodes", lambda _: desk)
    for name in ("discover", "desired", "plan", "provision"):
        monkeypatch.setattr(module, name, getattr(desk, name))
    monkeypatch.setattr(module, "unmounted", desk.lost_folders)
    monkeypatch.setattr(
        module, "render_units", lambda layout, node, *, closed: {node.name: str(closed)}
    )
    monkeypatch.setattr(module, "_trees", lambda _: ["trees"])
    return desk


@pytest.fixture
def layout(spec: ClusterSpec, make_layout: Callable[[ClusterSpec], Layout]) -> Layout:
    return make_layout(spec)


@pytest.fixture
def state(spec: ClusterSpec) -> LiveState:
    return board_state(spec, identity="1")


Prepare = Callable[..., Ready]


@pytest.fixture
def prepare(desk: Desk, spec: ClusterSpec, layout: Layout, tmp_path: Path) -> Prepare:
    def run(**named: Any) -> Ready:
        declared = named.pop("declared", spec)
        return make_ready(tmp_path, declared, layout, progress=no_progress, **named)

    return run


def test_each_board_gets_what_fits_it(desk: Desk, prepare: Prepare, spec: ClusterSpec) -> None:
    prepare()

    rows = {row["node"]: row for row in desk.asked}
    assert list(rows) == ["master", "worker1", "worker2"]
    grounds = {name: row["ground"] for name, row in rows.items()}
    assert {name: ground.architecture for name, ground in grounds.items()} == {
        "master": "x86_64",
        "worker1": "aarch64",
        "worker2": "aarch64",
    }
    assert grounds["master"].java_home == "/usr/lib/jvm/java-21-openjdk-amd64"
    assert all(row["spec"] is spec and row["trees"] == ["trees"] for row in rows.values())
    assert rows["worker1"]["units"] == {"worker1": "True"}


@pytest.mark.parametrize("security", [Security.CLOSED, Security.INSECURE_LAB])
def test_units_are_closed_unless_the_cluster_is_open(
    security: Security, desk: Desk, prepare: Prepare, spec: ClusterSpec
) -> None:
    prepare(declared=replace(spec, security=security))

    closed = str(security is Security.CLOSED)
    assert [row["units"][row["node"]] for row in desk.asked] == [closed] * 3


def test_boards_on_which_nothing_differs_are_not_changed(
    desk: Desk, prepare: Prepare, tmp_path: Path
) -> None:
    ready = prepare()

    assert sorted(desk.done[:3]) == ["plan master", "plan worker1", "plan worker2"]
    assert desk.done[3:] in ([], ["provision "])
    assert ready.changes == ()
    assert ready.facts == {name: rows[0] for name, rows in desk.found.items()}
    assert sorted(desk.looked) == ["master", "worker1", "worker2"]  # once
    assert load_facts(tmp_path) == ready.facts


def test_what_the_firewall_closes_is_said_before_it_does(
    desk: Desk, spec: ClusterSpec, layout: Layout, tmp_path: Path
) -> None:
    words = "loads the firewall: others reach SSH only; it closes 53/udp (dnsmasq) to others"
    for name in ("worker1", "worker2"):
        rows = ("installs rsync", words)
        desk.planned[name] = [Change(node=name, words=row) for row in rows]
    said: list[str] = []

    def progress(what: str, *_: int) -> None:
        said.append(what)
        if what.endswith(words):
            assert not desk.provisioned
            assert "provision worker1, worker2" not in desk.done

    make_ready(tmp_path, spec, layout, progress=progress)
    assert said.count(f"worker1, worker2: {words}") == 1


def test_what_was_changed_is_looked_at_again(desk: Desk, prepare: Prepare, tmp_path: Path) -> None:
    desk.planned["worker1"] = [Change(node="worker1", words="installs openjdk-17-jre-headless")]
    bare, after = facts_of(PI_5, javas=()), facts_of(PI_5)
    desk.found["worker1"] = [bare, after]

    ready = prepare()

    assert desk.done[-1] == "provision worker1"  # and nothing else
    assert ready.changes == tuple(desk.planned["worker1"])
    assert ready.facts["worker1"] == after
    assert load_facts(tmp_path)["worker1"] == after


@pytest.mark.parametrize("deep", [False, True])
def test_every_byte_is_read_only_if_asked(deep: bool, desk: Desk, prepare: Prepare) -> None:
    prepare(deep=deep)

    assert desk.deep == [deep] * 4  # each board is looked at, and all are changed


def test_the_java_of_each_kind_of_board_is_named_once(desk: Desk, prepare: Prepare) -> None:
    java = facts_of(PI_5).javas
    desk.found["worker2"] = [facts_of(PI_4, javas=java)]

    assert prepare().java == "OpenJDK 21.0.7 x86_64 + Debian 17.0.15 aarch64"


def test_a_java_that_does_not_fit_is_not_named(desk: Desk, prepare: Prepare) -> None:
    old = tuple(row for row in facts_of(DESKTOP).javas if row.feature == 8)
    assert old
    desk.found = {name: [facts_of(DESKTOP, javas=old)] for name in desk.found}

    assert prepare().java == ""


def test_a_dry_run_writes_nothing_down(desk: Desk, prepare: Prepare, tmp_path: Path) -> None:
    change = Change(node="worker2", words="creates /opt/boardcluster for root")
    desk.planned["worker2"] = [change]

    ready = prepare(dry_run=True)

    assert ready.changes == (change,)
    assert not any(what.startswith("provision") for what in desk.done)
    assert list(tmp_path.glob("*.json")) == []


class Archives:
    """Class-data archives of boards.

    Attributes:
        changes: what was changed.
        done: what was done, in order.
        wanted: what each board was said to have beside them.
    """

    folders = (Path("/cache/archives/boards/kind"),)

    def __init__(self, desk: Desk, got: Mapping[str, frozenset[str]]) -> None:
        self.done: list[str] = desk.done
        self.got = got
        self.wanted: Mapping[str, Any] = {}
        self.changes = [Change(node="worker1", words="copies archives")]

    def __call__(
        self, layout: Layout, remotes: object, trees: Sequence[Any], **named: Any
    ) -> Archives:
        assert (list(trees), named["cache"]) == ([ENGINES], Path("/cache"))
        return self

    def look(self) -> None:
        self.done.append("look at archives")

    def expected(self) -> dict[str, frozenset[str]]:
        return dict.fromkeys(self.got, frozenset({"worker"}))

    def planned(self) -> list[Change]:
        return [Change(node="worker1", words="gets class-data archives")]

    def provide(self, wanted: Mapping[str, Any], *, deep: bool) -> Mapping[str, frozenset[str]]:
        self.wanted = wanted
        self.done.append("provide archives")
        return self.got


ENGINES = SimpleNamespace(path="/opt/boardcluster/engines/pair/hadoop")


@pytest.fixture
def archives(desk: Desk, layout: Layout, monkeypatch: pytest.MonkeyPatch) -> Archives:
    trees = [ENGINES, SimpleNamespace(path=layout.jobs_jar)]
    monkeypatch.setattr(module, "_trees", lambda _: trees)
    monkeypatch.setattr(
        module,
        "render_units",
        lambda layout, node, **_: {node.name: " ".join(layout.archived[node.name])},
    )
    got = dict.fromkeys(("master", "worker1", "worker2"), frozenset({"worker"}))
    made = Archives(desk, got)
    monkeypatch.setattr(module, "BoardArchives", made)
    return made


def test_archives_come_after_all_that_they_need(
    archives: Archives, desk: Desk, prepare: Prepare
) -> None:
    desk.planned["worker1"] = [Change(node="worker1", words="copies engines")]

    ready = prepare(cache=Path("/cache"))

    assert [row for row in desk.done if not row.startswith("plan ")] == [
        "look at archives",
        "provision worker1",
        "look at archives",
        "provide archives",
        "provision ",
    ]
    assert archives.wanted["worker1"] == ["what worker1 is to have"]
    assert [row.words for row in ready.changes] == ["copies engines", "copies archives"]
    assert ready.archived == archives.got
    assert ready.archive_folders == archives.folders
    assert {row["units"][row["node"]] for row in desk.asked} == {"worker"}


def test_units_are_written_again_only_where_archives_are_not_as_expected(
    archives: Archives, desk: Desk, prepare: Prepare
) -> None:
    archives.got = {**archives.got, "worker2": frozenset()}

    ready = prepare(cache=Path("/cache"))

    assert desk.done[-2:] == ["provide archives", "provision worker2"]
    assert desk.done.count("look at archives") == 1
    assert desk.asked[-1]["units"] == {"worker2": ""}
    assert ready.archived["worker2"] == frozenset()


def test_a_dry_run_makes_no_archives_but_says_so(
    archives: Archives, desk: Desk, prepare: Prepare
) -> None:
    ready = prepare(cache=Path("/cache"), dry_run=True)

    assert [row.words for row in ready.changes] == ["gets class-data archives"]
    assert "provide archives" not in desk.done


@pytest.mark.parametrize("running", [True, False])
@pytest.mark.usefixtures("archives")
def test_running_daemons_and_profiles_of_others_get_no_archives(
    running: bool, desk: Desk, layout: Layout, spec: ClusterSpec, tmp_path: Path
) -> None:
    used = {node.name: frozenset({"spark"}) for node in spec.nodes}
    upstream = replace(layout.profile, small_daemons=False, class_data_archives=frozenset())
    layout = replace(layout, archived=used, profile=layout.profile if running else upstream)

    ready = make_ready(
        tmp_path, spec, layout, cache=None if running else Path("/cache"), progress=no_progress
    )

    assert not [row for row in desk.done if "archives" in row]
    assert ready.archived == used


def test_no_board_is_changed_if_one_cannot_be_reached(desk: Desk, prepare: Prepare) -> None:
    desk.lost = {"worker2"}

    with pytest.raises(UnreachableError, match="worker2"):
        prepare()
    assert desk.done == []


def test_no_board_is_changed_if_one_lacks_space(
    desk: Desk, prepare: Prepare, monkeypatch: pytest.MonkeyPatch
) -> None:
    def plan(remote: FakeRemote, wanted: object, *, deep: bool) -> list[Change]:
        assert not deep
        if remote.name == "worker2":
            raise CapacityError("worker2: no room")
        return [Change(node=remote.name, words="creates /opt/boardcluster for root")]

    monkeypatch.setattr(module, "plan", plan)

    with pytest.raises(CapacityError, match="worker2"):
        prepare()
    assert desk.done == []


def test_a_board_that_cannot_be_a_node_is_refused_with_the_reason(
    desk: Desk, prepare: Prepare
) -> None:
    desk.found["worker2"] = [facts_of(PI_3)]  # 32-bit userland, and a sudo that asks

    with pytest.raises(HostError) as caught:
        prepare()

    assert caught.value.message.startswith("worker2: ")
    assert "32-bit" in caught.value.message
    assert "\n  -> " in caught.value.message
    assert desk.done == []


def test_a_board_with_another_address_is_refused_before_anything_is_changed(
    desk: Desk, prepare: Prepare
) -> None:
    link = Link(
        name="eth0",
        addresses=("10.0.0.9/24",),
        speed_bits_per_second=10**9,
        duplex="full",
        wireless=False,
        up=True,
    )
    desk.found["worker2"] = [facts_of(PI_4, links=(link,))]

    with pytest.raises(HostError) as caught:
        prepare()

    assert caught.value.message == (
        "worker2: 10.0.0.3, its address in cluster.toml, is on no interface; it has 10.0.0.9"
    )
    assert "`address`" in caught.value.hint
    assert desk.done == []

    held = replace(link, addresses=("10.0.0.9/24", "10.0.0.3/24"))
    desk.found["worker2"] = [facts_of(PI_4, links=(held,))]
    prepare()


def test_clocks_that_are_apart_are_refused(desk: Desk, prepare: Prepare) -> None:
    far = replace(facts_of(PI_4), clock_offset_seconds=90.0, clock_error_seconds=0.0)
    desk.found["worker2"] = [far]
    desk.found["worker1"] = [replace(facts_of(PI_5), clock_error_seconds=0.0)]

    with pytest.raises(ClusterError) as caught:
        prepare()

    assert "worker2" in caught.value.message
    assert "timedatectl" in caught.value.hint
    assert desk.done == []


def test_a_clock_that_answers_too_slowly_is_refused_by_what_would_mend_it(
    desk: Desk, prepare: Prepare
) -> None:
    desk.found["worker2"] = [replace(facts_of(PI_4), clock_error_seconds=2.0)]

    with pytest.raises(ClusterError) as caught:
        prepare()

    assert "the clock of worker2 is known only to within 2 s" in caught.value.message
    assert "timedatectl" not in caught.value.hint
    assert desk.done == []


def test_what_is_known_of_boards_that_are_not_used_now_is_kept(
    desk: Desk, prepare: Prepare, layout: Layout, spec: ClusterSpec, tmp_path: Path
) -> None:
    every = prepare().facts
    fewer = replace(layout, spec=replace(spec, nodes=spec.nodes[:2]))

    make_ready(tmp_path, spec, fewer, progress=no_progress)

    assert load_facts(tmp_path) == every


def test_nothing_is_known_of_boards_that_were_never_made_ready(tmp_path: Path) -> None:
    assert load_facts(tmp_path) == {}


def test_a_damaged_record_of_boards_is_named_with_the_way_out(
    prepare: Prepare, tmp_path: Path
) -> None:
    prepare()
    (path,) = tmp_path.glob("*.json")
    for text in ("", "{", "[]", "5", '{"master": 5}', '{"master": {"name": 5}}'):
        path.write_text(text)
        with pytest.raises(StoreError, match=r"nodes\.json is damaged") as caught:
            load_facts(tmp_path)
        assert caught.value.hint == "delete it and run `boardcluster up`"


def test_systemd_keeps_daemons_where_it_runs(spec: ClusterSpec) -> None:
    remotes = {node.name: FakeRemote(f"{SERVICE_USER}@{node.name}") for node in spec.nodes}
    admins = {node.name: FakeRemote(f"root@{node.name}") for node in spec.nodes}
    facts = {
        "master": facts_of(DESKTOP, service_manager="none"),
        "worker1": facts_of(PI_5, service_manager="systemd"),
    }

    managers = managers_of(facts, remotes, admins)

    assert {name: type(manager) for name, manager in managers.items()} == {
        "master": PlainProcesses,
        "worker1": Systemd,
        "worker2": PlainProcesses,  # nothing is known of it, as of every emulated node
    }
    admins["worker1"].tell("systemctl", "stop", UNIT)
    admins["worker1"].tell("systemctl", "show", "-p", "Result", UNIT, stdout="Result=success\n")
    assert managers["worker1"].stop({"datanode": ProcessRef(7, 1)}, grace_seconds=1.0) == 0
    remotes["worker2"].tell_node_agent("end", {"killed": 1})
    assert managers["worker2"].stop({"datanode": ProcessRef(7, 1)}, grace_seconds=1.0) == 1


def remember(tmp_path: Path, **facts: NodeFacts) -> None:
    (tmp_path / "nodes.json").write_text(json.dumps(to_json(facts)))


def test_what_was_lent_to_boards_goes_with_what_is_ended(
    desk: Desk, state: LiveState, tmp_path: Path
) -> None:
    clear = ("rm", "-rf", "--", f"{FOLDER}/tmp")
    of_mpi = ("sh", "-c", mpi._DELETE_LEFT, f"{FOLDER}/tmp")  # first: names in there lead further
    for remote in desk.remotes.values():
        remote.tell(*of_mpi)
        remote.tell(*clear)

    assert end_boards(tmp_path, state) == 5
    assert desk.done == ["destroy"]
    # What was lent to a node, or a job of the driver's, lies there.
    assert {name: remote.calls for name, remote in desk.remotes.items()} == {
        name: [of_mpi, clear] for name in desk.remotes
    }


def test_a_board_out_of_reach_is_named_by_what_ends_the_others(
    desk: Desk, state: LiveState, tmp_path: Path
) -> None:
    remember(tmp_path, worker2=facts_of(PI_4, service_manager="systemd"))
    desk.lost = {"worker2"}

    with pytest.raises(ClusterError, match="not everything could be ended on worker2"):
        end_boards(tmp_path, state)
    assert desk.done == ["destroy"]


def test_wiping_leaves_what_is_not_ours(
    desk: Desk, spec: ClusterSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, remote in desk.remotes.items():
        folder = tmp_path / name
        for part in ("conf", "data", "data-2w", "database", "logs", "mine", "spark-events", "tmp"):
            (folder / part / "inner").mkdir(parents=True)
        here = LocalRemote(name)
        monkeypatch.setattr(remote, "run", here.run)
    nodes = tuple(replace(node, folder=str(tmp_path / node.name)) for node in spec.nodes)
    had_data: list[bool] = []
    # A board that came back after `down --without` still runs its daemons.
    monkeypatch.setattr(
        desk, "end_on", lambda node: had_data.append((tmp_path / node.name / "data").exists())
    )

    wipe_boards(tmp_path, replace(spec, nodes=nodes))

    # A folder that was there before holds what is somebody's own.
    for name in desk.remotes:
        assert sorted(path.name for path in (tmp_path / name).iterdir()) == ["database", "mine"]
    assert had_data == [True] * 3
    assert desk.done == ["require own", "release"]


def test_a_board_without_its_disk_is_not_said_to_be_wiped(
    desk: Desk, spec: ClusterSpec, tmp_path: Path
) -> None:
    desk.unmounted = {"worker1"}

    with pytest.raises(HostError, match=f"worker1: {FOLDER} was on a disk .* not deleted") as told:
        wipe_boards(tmp_path, replace(spec, nodes=spec.nodes[1:2]))

    assert "--without worker1" in told.value.hint
    assert desk.done == ["require own"]
    assert desk.remotes["worker1"].calls == []


def test_nothing_of_another_driver_is_wiped_or_taken_back(
    desk: Desk, spec: ClusterSpec, tmp_path: Path
) -> None:
    desk.others = {"worker2"}

    with pytest.raises(LockedError, match="another driver has worker2"):
        wipe_boards(tmp_path, spec)
    with pytest.raises(LockedError, match="another driver has worker2"):
        take_back_all(tmp_path, spec, [], keep_data=False, dry_run=False)

    assert all(remote.calls == [] for remote in desk.remotes.values())
    assert desk.done == ["require own", "require own"]


def test_a_board_that_was_not_wiped_is_said(desk: Desk, spec: ClusterSpec, tmp_path: Path) -> None:
    desk.lost = {"worker1"}

    with pytest.raises(UnreachableError, match="worker1"):
        wipe_boards(tmp_path, replace(spec, nodes=spec.nodes[1:2]))


def room(desk: Desk, name: str, *, size: int, available: int, held: int | None) -> None:
    remote = desk.remotes[name]
    remote.tell("sh", "-c", module._NEAREST, "sh", FOLDER, stdout="/mnt/ssd\n")
    remote.tell(
        *("df", "--block-size=1", "--output=size,avail", "/mnt/ssd"),
        stdout=f"1B-blocks Avail\n{size} {available}\n",
    )
    said = ""
    if held is not None:
        said = f"{held}\t{FOLDER}/data/datanode\n7\t{FOLDER}/data-2w/datanode\n"
    argv = ("sh", "-c", f"du -sb {FOLDER}/data*/datanode")
    remote.tell(*argv, stdout=said, returncode=0 if held is not None else 1)


def free_of(home: Path, spec: ClusterSpec) -> tuple[int, Counter[str]]:
    return boards_free_bytes(home, spec, of={worker.name for worker in spec.workers})


def test_the_worker_with_the_least_space_decides_for_all(
    desk: Desk, spec: ClusterSpec, tmp_path: Path
) -> None:
    room(desk, "worker1", size=1000, available=900, held=30)
    room(desk, "worker2", size=1000, available=400, held=None)

    # YARN gives a node up that is 90 % full; the master holds no blocks.
    assert free_of(tmp_path, spec) == (2 * 300, {"data": 30, "data-2w": 7})
    assert desk.remotes["master"].calls == []


def test_a_worker_that_is_fuller_than_yarn_allows_has_no_space(
    desk: Desk, spec: ClusterSpec, tmp_path: Path
) -> None:
    room(desk, "worker1", size=1000, available=900, held=30)
    room(desk, "worker2", size=1000, available=50, held=40)

    assert free_of(tmp_path, spec) == (0, {"data": 70, "data-2w": 14})


def test_a_worker_that_does_not_answer_has_no_space_that_could_be_told(
    desk: Desk, spec: ClusterSpec, tmp_path: Path
) -> None:
    room(desk, "worker1", size=1000, available=900, held=30)
    desk.lost = {"worker2"}

    with pytest.raises(UnreachableError, match="worker2"):
        free_of(tmp_path, spec)


def test_only_workers_that_are_needed_are_asked_for_their_space(
    desk: Desk, spec: ClusterSpec, tmp_path: Path
) -> None:
    """One that was dead kept a campaign from going on with runs that do not need it."""
    room(desk, "worker1", size=1000, available=900, held=30)
    desk.lost = {"worker2"}

    found = boards_free_bytes(tmp_path, spec, of={"worker1"})

    # For all declared workers together, of which a variant with fewer gets its share.
    assert found == (2 * 800, {"data": 30, "data-2w": 7})


def test_workers_that_are_away_decide_nothing_where_a_campaign_goes_on_without_them(
    desk: Desk, spec: ClusterSpec, tmp_path: Path
) -> None:
    room(desk, "worker1", size=1000, available=900, held=None)
    desk.lost = {"worker2"}
    both = {"worker1", "worker2"}

    assert boards_free_bytes(tmp_path, spec, of=both, may_lack=True)[0] == 2 * 800
    desk.lost = both
    with pytest.raises(UnreachableError, match="worker1"):
        boards_free_bytes(tmp_path, spec, of=both, may_lack=True)


def test_a_tunnel_leads_to_the_ports_that_the_masters_listen_on(
    spec: ClusterSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[Any] = []

    class Nodes:
        def hold_tunnel(self, node: Any, *, ports: Mapping[int, int], socks: int) -> None:
            held.append((node, ports, socks))

    monkeypatch.setattr(module, "board_nodes", lambda _: Nodes())

    hold_tunnel(tmp_path, spec, pages={"namenode": 10870, "jobhistory": 20888}, socks=1080)

    assert held == [(spec.master, {10870: 9870, 20888: 19888}, 1080)]
    assert WEB_PAGES == {
        "namenode": 9870,
        "resourcemanager": 8088,
        "jobhistory": 19888,
        "sparkhistory": 18080,
    }


# Taking back.


def take_back_all(
    tmp_path: Path, spec: ClusterSpec, said: list[str], **named: Any
) -> dict[str, list[str]]:
    wanted = {"keep_data": False, "dry_run": False, **named}
    return take_back(tmp_path, spec.nodes, progress=lambda what, *_: said.append(what), **wanted)


@pytest.mark.parametrize(("keep_data", "dry_run"), [(True, False), (False, True)])
def test_what_was_taken_back_is_told_by_board(
    *,
    keep_data: bool,
    dry_run: bool,
    desk: Desk,
    spec: ClusterSpec,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[str, bool, bool]] = []

    def uninstall(remote: FakeRemote, *, keep_data: bool, dry_run: bool) -> list[Change]:
        asked.append((remote.name, keep_data, dry_run))
        assert (f"end {remote.name}" in desk.done) == (not dry_run)
        if remote.name == "master":
            return []
        return [
            Change(node=remote.name, words="removes the packages hpcc", remark="1 stays"),
            Change(node=remote.name, words="removes /opt/boardcluster"),
        ]

    monkeypatch.setattr(module, "uninstall", uninstall)
    said: list[str] = []

    done = take_back_all(tmp_path, spec, said, keep_data=keep_data, dry_run=dry_run)

    assert sorted(asked) == [(name, keep_data, dry_run) for name in sorted(desk.remotes)]
    rows = ["removes the packages hpcc (1 stays)", "removes /opt/boardcluster"]
    assert done == {"master": [], "worker1": rows, "worker2": rows}
    assert said == ["checking what was installed on 3 boards"]
    assert desk.done[:1] == ([] if dry_run else ["require own"])


def test_what_cannot_be_taken_back_is_said_after_all_were_asked(
    desk: Desk, spec: ClusterSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def uninstall(remote: FakeRemote, **_: bool) -> list[Change]:
        asked.append(remote.name)
        if remote.name == "worker1":
            raise ClusterError("worker1: daemons still run")
        return []

    monkeypatch.setattr(module, "uninstall", uninstall)
    desk.lost = {"master"}

    with pytest.raises(UnreachableError) as caught:
        take_back_all(tmp_path, spec, [])

    assert "master: out of reach\nworker1: daemons still run" in caught.value.message
    assert sorted(asked) == ["worker1", "worker2"]


# What boards are, for commands and configuration.


def test_on_boards_nothing_of_this_machine_is_named(
    spec: ClusterSpec, layout: Layout, state: LiveState, tmp_path: Path
) -> None:
    found = board_layout(spec, layout.profile, layout.engines, replace(state, storage="data-1w"))

    node = spec.nodes[1]
    assert (found.user, found.shares_files, found.storage) == (SERVICE_USER, False, "data-1w")
    assert found.data(node) == f"{FOLDER}/data-1w"
    assert found.java.program == Path("/opt/boardcluster/java/bin/java")
    assert found.jobs_jar == "/opt/boardcluster/jobs.jar"
    assert str(found.engines.spark_home).startswith("/opt/boardcluster/engines/")
    commands = [word for kind, owner in daemons_of(spec) for word in command_of(found, owner, kind)]
    assert not [word for word in commands if str(tmp_path) in word]


def test_boards_get_the_engines_and_the_jobs_as_they_are_here(
    layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engines = layout.engines
    jar = engines.folder / "spark/jars/spark-core.jar"
    jar.write_bytes(b"jar")
    (engines.folder / "manifest.json").write_text(
        json.dumps({"spark/jars/spark-core.jar": ["url", 3, "5" * 64]})
    )
    jobs = tmp_path / "boardcluster-jobs.jar"
    jobs.write_bytes(b"jobs!")
    monkeypatch.setattr(module, "jobs_jar", lambda: jobs)

    state = board_state(layout.spec, identity="")
    on_boards = board_layout(layout.spec, layout.profile, engines, state)
    trees = {tree.path: tree for tree in module._trees(on_boards)}

    place = f"/opt/boardcluster/engines/{engines.pair.id}"
    assert set(trees) == {f"{place}/hadoop", f"{place}/spark", "/opt/boardcluster/jobs.jar"}
    copied = trees[f"{place}/spark"]
    assert copied.source == engines.folder / "spark"
    assert copied.files["jars/spark-core.jar"] == (3, "5" * 64)
    (only,) = trees["/opt/boardcluster/jobs.jar"].files.values()
    assert only[0] == 5


def test_daemons_that_systemd_started_again_are_known_as_they_run_now(
    desk: Desk, state: LiveState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember(
        tmp_path,
        worker1=facts_of(PI_5, service_manager="systemd"),
        worker2=facts_of(PI_4, service_manager="none"),
    )
    asked: list[str] = []

    class Manager(Systemd):
        def __init__(self, remote: FakeRemote) -> None:
            asked.append(remote.name)

        def running(self, known: Mapping[str, ProcessRef]) -> dict[str, ProcessRef]:
            assert known == {"datanode": ProcessRef(1, 1)}
            return {"datanode": ProcessRef(2, 2)}

    monkeypatch.setattr(module, "Systemd", Manager)
    daemons = tuple(
        Daemon(node=node, name="datanode", process=ProcessRef(1, 1), log="", url="")
        for node in ("worker1", "worker2")
    )

    now = module.current_daemons(tmp_path, replace(state, daemons=daemons))

    assert [row.process for row in now] == [ProcessRef(2, 2), ProcessRef(1, 1)]
    assert asked == ["worker1"]


def test_the_boards_of_a_home_are_one_object(tmp_path: Path) -> None:
    assert board_nodes(tmp_path) is board_nodes(tmp_path)
    assert board_nodes(tmp_path) is not board_nodes(tmp_path / "other")
