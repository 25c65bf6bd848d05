"""Boards as nodes: what is recorded of them, and what it means that one does not answer."""

import contextlib
import errno
import json
import os
import re
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from boardcluster.cluster.each_node import ASKED_AT_ONCE, each_node, raise_first
from boardcluster.cluster.kinds.boards import nodes as module
from boardcluster.cluster.kinds.boards.nodes import (
    DAEMON_UNITS,
    SERVICE_USER,
    BoardNodes,
    board_state,
    known_hosts_of,
    stop_units,
)
from boardcluster.cluster.owner import CLAIM_FILE, home_owner
from boardcluster.cluster.state import LiveState, boot_id, load_state, save_state
from boardcluster.errors import (
    ClusterError,
    HostError,
    LockedError,
    RemoteError,
    RemoteTimeoutError,
    UnreachableError,
)
from boardcluster.records import ClusterSpec, Security
from boardcluster.remote import node_agent
from boardcluster.remote.fake import FakeRemote
from boardcluster.remote.gate import Completed, run_program
from boardcluster.remote.local import LocalRemote
from boardcluster.remote.node_rpc import node_program
from boardcluster.services.daemons import DAEMONS
from boardcluster.services.provision.units import unit_name

NAMES = ["master", "worker1", "worker2"]
ROOT = "root"


@pytest.fixture
def spec(make_spec: Callable[..., ClusterSpec]) -> ClusterSpec:
    plain = make_spec(workers=2)
    nodes = tuple(
        replace(
            node, host=f"pi@{node.name}", address=f"10.0.0.{place}", folder="/mnt/ssd/boardcluster"
        )
        for place, node in enumerate(plain.nodes, start=1)
    )
    network = replace(plain.network, subnet="10.0.0.0/24")
    return replace(plain, kind="boards", security=Security.CLOSED, nodes=nodes, network=network)


class Board(FakeRemote):
    """A board that keeps whose it is, by the program that runs on real ones.

    Attributes:
        claim: the file that says so.
    """

    def __init__(self, name: str, disk: Path) -> None:
        super().__init__(name)
        self.claim = disk / f"{name}.json"

    def run(self, argv: Sequence[str], **named: Any) -> Completed:
        request = json.loads(named["stdin"]) if named.get("stdin") else {}
        if (verb := request.get("do")) in {"owner", "claim", "release"}:
            assert request["path"] == CLAIM_FILE
            self.requests.append(request)
            answer = node_agent.VERBS[verb]({**request, "path": str(self.claim)})
            return Completed(
                argv=tuple(argv),
                returncode=0,
                stdout=json.dumps(answer).encode(),
                stderr=b"",
                duration_seconds=0.0,
            )
        return super().run(argv, **named)

    def asked(self) -> list[str]:
        """What it was asked to do, but for whose it is."""
        return [row["do"] for row in self.requests if row["do"] not in {"owner", "claim"}]


class Desk(BoardNodes):
    """Boards that are made up.

    Attributes:
        there: what answers, by destination and user.
        lost: names of the boards that do not.
        busy: names of those that do not in time.
    """

    def __init__(self, home: Path, disks: Path | None = None) -> None:
        super().__init__(home)
        self.disks = disks or home
        self.there: dict[tuple[str, str], Board] = {}
        self.lost: set[str] = set()
        self.busy: set[str] = set()

    def reach(self, name: str, host: str, *, user: str, folder: str) -> Board:
        if name in self.lost:
            raise UnreachableError(f"{name}: out of reach")
        if name in self.busy:
            raise RemoteTimeoutError(f"{name}: no answer within 60 s")
        assert folder == "/mnt/ssd/boardcluster"
        return self.there.setdefault((host, user), Board(name, self.disks))

    def tell(self, verb: str, **answers: Any) -> None:
        """Prepare what each board answers its root to a request."""
        for name, answer in answers.items():
            remote = self.reach(name, f"pi@{name}", user=ROOT, folder="/mnt/ssd/boardcluster")
            remote.tell_node_agent(verb, answer)

    def boot(self, **boots: str) -> None:
        self.tell("boot", **{name: {"boot_id": boot} for name, boot in boots.items()})

    def requests(self, name: str) -> list[dict[str, Any]]:
        return self.there[f"pi@{name}", ROOT].requests


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.fixture
def state(spec: ClusterSpec) -> LiveState:
    """The state of a cluster whose boards run since the boot ``b-NAME``."""
    bare = board_state(spec, identity="1")
    nodes = tuple(replace(node, boot_id=f"b-{node.name}") for node in bare.nodes)
    return replace(bare, phase="up", nodes=nodes)


def test_answers_and_errors_are_told_apart_in_the_order_of_the_nodes() -> None:
    def one(name: str) -> str:
        time.sleep(0.05 if name == "master" else 0)  # the first is the last to answer
        if name == "worker1":
            raise RemoteError("worker1: out of reach")
        return name.upper()

    answers, errors = each_node(iter(NAMES), one)

    assert list(answers.items()) == [("master", "MASTER"), ("worker2", "WORKER2")]
    assert {name: error.message for name, error in errors.items()} == {
        "worker1": "worker1: out of reach"
    }


def test_nodes_are_asked_at_the_same_time() -> None:
    together = threading.Barrier(3, timeout=10)

    answers, _ = each_node(NAMES, lambda _: together.wait())

    assert sorted(answers.values()) == [0, 1, 2]
    all_together = threading.Barrier(ASKED_AT_ONCE, timeout=10)
    answers, _ = each_node(
        map(str, range(ASKED_AT_ONCE)), lambda _: all_together.wait(), at_once=ASKED_AT_ONCE
    )
    assert len(answers) == ASKED_AT_ONCE


def test_a_defect_is_not_taken_for_a_node_that_fails() -> None:
    with pytest.raises(KeyError):
        each_node(NAMES, dict[str, str]().__getitem__)


def test_of_one_error_nothing_is_changed() -> None:
    error = HostError("no room", hint="make some")
    raise_first({})
    with pytest.raises(HostError) as caught:
        raise_first({"pi0": error})
    assert caught.value is error


def test_several_errors_are_one_of_the_first_ones_kind_with_the_words_of_all() -> None:
    first = UnreachableError("pi0: out of reach", hint="switch it on")
    with pytest.raises(UnreachableError) as caught:
        raise_first({"pi0": first, "pi1": HostError("pi1: no room")})
    assert caught.value.message == "2 nodes failed:\npi0: out of reach\npi1: no room"
    assert caught.value.hint == "switch it on"


def test_boards_are_recorded_before_anything_is_started_on_them(
    spec: ClusterSpec, desk: Desk, tmp_path: Path
) -> None:
    state = desk.new_state(spec, identity="1")

    assert (state.kind, state.phase, state.own_user, state.host_link) == (
        *("boards", "starting"),
        *(False, ""),
    )
    assert state.boot_id == boot_id()
    assert state.subnet == "10.0.0.0/24"
    rows = [(node.name, node.host, node.address, node.folder) for node in state.nodes]
    assert rows == [(n.name, n.host, n.address, n.folder) for n in spec.nodes]
    assert {(node.pid, node.start_ticks, node.boot_id) for node in state.nodes} == {(0, 0, "")}
    save_state(tmp_path, state)
    assert load_state(tmp_path) == state


def test_boards_that_answer_their_root_can_be_used(
    spec: ClusterSpec, desk: Desk, tmp_path: Path
) -> None:
    desk.tell("of_user", master=[], worker1=[], worker2=[])
    desk.tell("end_of_user", **{name: {"ended": 0, "left": 0} for name in NAMES})

    desk.check(spec)

    assert {user for _, user in desk.there} == {ROOT}
    for name in NAMES:
        board = desk.there[f"pi@{name}", ROOT]
        assert board.asked() == ["of_user", "end_of_user"]
        assert json.loads(board.claim.read_text())["id"] == home_owner(tmp_path).id


def test_every_board_that_does_not_answer_is_named(spec: ClusterSpec, desk: Desk) -> None:
    desk.tell("of_user", master=[])
    desk.lost = {"worker1", "worker2"}

    with pytest.raises(UnreachableError) as caught:
        desk.check(spec)

    assert "worker1: out of reach\nworker2: out of reach" in caught.value.message


def test_the_boot_of_each_board_is_noted(spec: ClusterSpec, desk: Desk) -> None:
    desk.boot(master="a", worker1="b", worker2="c")
    state = desk.new_state(spec, identity="1")

    made = desk.create(spec, state)

    assert [node.boot_id for node in made.nodes] == ["a", "b", "c"]
    assert replace(made, nodes=state.nodes) == state


@pytest.fixture
def disks(tmp_path: Path) -> Path:
    """What the boards keep, whoever drives them."""
    folder = tmp_path / "disks"
    folder.mkdir()
    return folder


def driver(name: str, disks: Path, *, running: Sequence[str] = ()) -> Desk:
    """Return a driver with a state folder of its own; something runs on some of the boards."""
    desk = Desk(disks.parent / name, disks)
    (disks.parent / name).mkdir(exist_ok=True)
    desk.tell("of_user", **{board: [[7, 8]] if board in running else [] for board in NAMES})
    desk.tell("end_of_user", **{board: {"ended": board in running, "left": 0} for board in NAMES})
    return desk


def asked(desk: Desk) -> set[str]:
    return {verb for board in desk.there.values() for verb in board.asked()}


def test_of_two_drivers_the_second_touches_nothing_though_nothing_runs(
    spec: ClusterSpec, disks: Path
) -> None:
    """The boards lost power: only what they keep on their disks says whose they are."""
    driver("one", disks).check(spec)
    two = driver("two", disks)

    with pytest.raises(LockedError) as caught:
        two.check(spec)

    assert "another driver: master, worker1, worker2: " in caught.value.message
    assert f":{disks.parent / 'one'} (since " in caught.value.message
    assert f"`boardcluster up --home {disks.parent / 'two'} --take-over`" in caught.value.hint
    assert asked(two) == set()
    for rows in (spec.nodes, two.new_state(spec, identity="1").nodes):
        with pytest.raises(LockedError):
            two.require_own(rows)
    driver("one", disks).require_own(spec.nodes)


def test_a_machine_of_the_same_name_and_folder_is_another_driver(
    spec: ClusterSpec, disks: Path
) -> None:
    driver("one", disks).check(spec)
    (disks.parent / "one" / "owner.json").unlink()

    with pytest.raises(LockedError):
        driver("one", disks).check(spec)


def test_who_gets_only_some_boards_keeps_none(spec: ClusterSpec, disks: Path) -> None:
    driver("one", disks).check(replace(spec, nodes=spec.nodes[2:]))

    with pytest.raises(LockedError, match="driver: worker2: "):
        driver("two", disks).check(spec)

    assert [path.name for path in disks.iterdir()] == ["worker2.json"]


def claiming(who: str, path: Path) -> dict[str, Any]:
    """A request to claim a board."""
    owner = {"path": str(path), "owner": {"id": who}}
    return {**owner, "take_over": False, "service_user": SERVICE_USER}


def test_a_claim_of_ones_own_is_one_on_a_card_that_is_read_only_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = claiming("me", tmp_path / "claim")
    assert node_agent.claim(request) == {"now": {"id": "me"}, "before": None}

    def refuse(*_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(os, "link", refuse)
    assert node_agent.claim(request)["before"] == {"id": "me"}
    other = {**request, "path": str(tmp_path / "other")}
    assert node_agent.claim(other) == {"error": "Read-only file system"}
    assert [path.name for path in tmp_path.iterdir()] == ["claim"]


def test_a_card_that_cannot_be_written_is_named_with_what_to_do(
    spec: ClusterSpec, disks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(node_agent.VERBS, "claim", lambda _: {"error": "Read-only file system"})
    with pytest.raises(HostError, match=f"{CLAIM_FILE} cannot be written: Read-only") as caught:
        driver("one", disks).check(spec)
    assert "doctor" in caught.value.hint


@pytest.mark.parametrize("way", ["check", "take_over"])
def test_who_logs_in_as_the_service_user_claims_nothing(
    way: str, spec: ClusterSpec, disks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUDO_USER", SERVICE_USER)
    desk = driver("one", disks)
    with pytest.raises(HostError, match="master: boardcluster is the name of the account") as told:
        desk.take_over(spec.nodes) if way == "take_over" else desk.check(spec)
    assert "log in as another user" in told.value.hint
    assert "end_of_user" not in asked(desk)
    assert list(disks.iterdir()) == []


def test_of_many_who_claim_at_once_one_wins(disks: Path) -> None:
    together = threading.Barrier(8, timeout=10)

    def one(name: str) -> str:
        request = claiming(name, disks / "claim")
        together.wait()
        # Each in a process of its own, as on a board: the name of a temporary file has its id.
        program = [sys.executable, "-c", node_program()]
        stdin = json.dumps({"do": "claim", **request}).encode()
        return str(json.loads(run_program(program, stdin=stdin).stdout)["now"]["id"])

    names = [str(number) for number in range(8)]
    seen, errors = each_node(names, one)

    assert errors == {}
    assert len(set(seen.values())) == 1
    assert [path.name for path in disks.iterdir()] == ["claim"]


def test_boards_that_run_something_though_nobody_claimed_them_are_left_alone(
    spec: ClusterSpec, disks: Path
) -> None:
    desk = driver("one", disks, running=["worker1"])

    with pytest.raises(LockedError, match="driver: worker1: unknown"):
        desk.check(spec)

    assert "end_of_user" not in asked(desk)
    assert list(disks.iterdir()) == []


@pytest.mark.parametrize("text", ["", "{", "[]", '{"who": 7}'])
def test_a_damaged_claim_is_anothers(text: str, spec: ClusterSpec, disks: Path) -> None:
    (disks / "worker1.json").write_text(text)

    with pytest.raises(LockedError, match="driver: worker1: "):
        driver("one", disks).check(spec)


def test_taking_over_ends_what_runs_and_the_former_driver_is_told(
    spec: ClusterSpec, disks: Path
) -> None:
    one = driver("one", disks)
    one.check(spec)
    two = driver("two", disks, running=["worker1"])
    assert set(two.owners(spec.nodes)) == set(NAMES)

    two.take_over(spec.nodes)

    assert two.owners(spec.nodes) == {}
    assert "end_of_user" in two.there["pi@worker1", ROOT].asked()
    with pytest.raises(LockedError, match=re.escape(str(disks.parent / "two"))):
        one.require_own(spec.nodes)


def test_what_was_claimed_for_nothing_is_given_up(spec: ClusterSpec, disks: Path) -> None:
    one = driver("one", disks)
    one.check(spec)
    one.release_unused()
    assert list(disks.iterdir()) == []

    one.check(spec)
    one.use_claims()
    one.release_unused()
    assert len(list(disks.iterdir())) == 3

    again = driver("one", disks)
    again.check(spec)
    again.release_unused()
    assert len(list(disks.iterdir())) == 3, "they were this home's before"


def test_what_was_claimed_until_an_interrupt_is_given_up(
    spec: ClusterSpec, disks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = driver("one", disks)

    def interrupted(names: Iterable[str], ask: Callable[[str], object]) -> None:
        ask(next(iter(names)))
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "each_node", interrupted)
        with pytest.raises(KeyboardInterrupt):
            one.check(spec)
    assert [path.name for path in disks.iterdir()] == ["master.json"]

    one.release_unused()

    assert list(disks.iterdir()) == []


def test_only_the_owner_gives_boards_up(spec: ClusterSpec, disks: Path) -> None:
    one, two = driver("one", disks), driver("two", disks)
    one.check(spec)
    home_owner(disks.parent / "two")
    two.release(spec.nodes)
    assert len(list(disks.iterdir())) == 3

    one.release(spec.nodes)

    two.check(spec)


def test_a_board_that_does_not_answer_is_nobody_elses(spec: ClusterSpec, disks: Path) -> None:
    one, two = driver("one", disks), driver("two", disks)
    one.check(spec)
    two.lost = set(NAMES)
    two.require_own(spec.nodes)


def test_a_board_too_busy_to_say_whose_it_is_may_be_another_drivers(
    spec: ClusterSpec, disks: Path
) -> None:
    one, two = driver("one", disks), driver("two", disks)
    one.check(spec)
    two.busy = {"worker1"}
    with pytest.raises(LockedError):
        two.require_own(spec.nodes)
    one.busy = {"worker1"}
    with pytest.raises(RemoteTimeoutError, match="worker1"):
        one.require_own(spec.nodes)


def test_what_this_driver_left_on_a_board_is_ended(spec: ClusterSpec, disks: Path) -> None:
    driver("one", disks).check(spec)
    again = driver("one", disks, running=["worker1"])

    again.check(spec)

    request = again.requests("worker1")[-1]
    assert (request["do"], request["user"]) == ("end_of_user", SERVICE_USER)
    assert request["grace_seconds"] > 0


@pytest.mark.parametrize("way", ["check", "take_over", "end_on", "destroy"])
def test_systemd_stops_daemons_before_they_are_ended_or_it_would_start_them_again(
    way: str, spec: ClusterSpec, state: LiveState, disks: Path
) -> None:
    """Also where nothing runs: it starts again what ended some seconds ago."""
    desk = driver("one", disks)
    ways: dict[str, Callable[[], object]] = {
        "check": lambda: desk.check(spec),
        "take_over": lambda: desk.take_over(spec.nodes),
        "end_on": lambda: [desk.end_on(node) for node in spec.nodes],
        "destroy": lambda: desk.destroy(state),
    }

    ways[way]()

    for name in NAMES:
        stop, end = desk.there[f"pi@{name}", ROOT].calls[-2:]
        assert stop == ("sh", "-c", module._STOP_UNITS, "sh", *DAEMON_UNITS)
        assert end == ("node_agent", "end_of_user")


def test_nothing_is_ended_of_who_logs_in_as_the_service_user(
    spec: ClusterSpec, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.tell("end_of_user", master={"login": SERVICE_USER})
    with pytest.raises(HostError, match="master: boardcluster is the name of the account"):
        desk.end_on(spec.master)
    monkeypatch.setenv("SUDO_USER", SERVICE_USER)
    request = {"user": SERVICE_USER, "grace_seconds": 0.0}
    assert node_agent.end_of_user(request) == {"login": SERVICE_USER}


def test_only_daemons_are_stopped() -> None:
    assert set(DAEMON_UNITS) == {unit_name(kind.name) for kind in DAEMONS}


@pytest.mark.parametrize("booted", [True, False])
def test_units_are_stopped_only_by_systemd(
    booted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, said = tmp_path / "systemctl", tmp_path / "said"
    program.write_text(f'#!/bin/sh\necho "$@" >{said}\nexit 5\n')  # a unit is not loaded
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    place = tmp_path if booted else tmp_path / "none"
    script = module._STOP_UNITS.replace("/run/systemd/system", str(place))
    monkeypatch.setattr(module, "_STOP_UNITS", script)

    stop_units(LocalRemote("master"))

    assert said.exists() == booted
    assert not booted or said.read_text().split() == ["stop", *DAEMON_UNITS]


def test_nothing_is_noted_if_a_board_does_not_answer(spec: ClusterSpec, desk: Desk) -> None:
    desk.boot(master="a", worker1="b")
    desk.lost = {"worker2"}

    with pytest.raises(UnreachableError, match="worker2"):
        desk.create(spec, desk.new_state(spec, identity="1"))


def test_a_node_is_reached_as_the_service_user_and_as_root(state: LiveState, desk: Desk) -> None:
    node = state.nodes[1]

    as_user, as_root = desk.remote_of(node, state), desk.admin_of(node, state)

    assert desk.there == {
        ("pi@worker1", SERVICE_USER): as_user,
        ("pi@worker1", ROOT): as_root,
    }
    assert as_user.name == "worker1"


def test_alive_is_what_answers_in_the_boot_of_its_daemons(state: LiveState, desk: Desk) -> None:
    desk.boot(master="b-master", worker1="a later one")
    desk.lost = {"worker2"}

    assert [node.name for node in desk.alive(state)] == ["master"]


def test_whatever_runs_as_the_service_user_is_left_over(state: LiveState, desk: Desk) -> None:
    desk.tell("of_user", master=[], worker1=[], worker2=[])
    assert not desk.has_leftovers(state)
    desk.there.clear()
    desk.tell("of_user", master=[], worker1=[[7, 8]], worker2=[])

    assert desk.has_leftovers(state)
    assert desk.requests("worker2") == [{"do": "of_user", "user": SERVICE_USER}]


def test_a_board_that_does_not_answer_is_not_taken_for_an_empty_one(
    state: LiveState, desk: Desk
) -> None:
    desk.tell("of_user", master=[], worker1=[])
    desk.lost = {"worker2"}

    with pytest.raises(UnreachableError, match="worker2"):
        desk.has_leftovers(state)


def test_everything_of_the_service_user_is_ended(state: LiveState, desk: Desk) -> None:
    gone = {"left": 0}
    desk.tell(
        "end_of_user",
        master={"ended": 4, **gone},
        worker1={"ended": 2, **gone},
        worker2={"ended": 0, **gone},
    )

    assert desk.destroy(state) == 6
    for name in NAMES:
        (request,) = desk.requests(name)
        assert (request["user"], request["grace_seconds"] > 0) == (SERVICE_USER, True)


def test_what_does_not_end_is_said_after_all_boards_were_asked(
    state: LiveState, desk: Desk
) -> None:
    desk.tell("end_of_user", worker1={"ended": 1, "left": 2}, worker2={"ended": 3, "left": 0})
    desk.lost = {"master"}

    with pytest.raises(ClusterError) as caught:
        desk.destroy(state)

    assert caught.value.message == (
        "not everything could be ended on master, worker1\n"
        "master: out of reach\n"
        "worker1: 2 processes of boardcluster do not end"
    )
    assert caught.value.hint == (
        f"on worker1: sudo pkill -KILL -u {SERVICE_USER}; turn master on, or repair the network; "
        "then run the command again, or continue without: "
        f"`boardcluster down --home {desk._home} --without master --without worker1`"
    )
    assert len(desk.requests("worker2")) == 1


# The way to a board; nothing here connects.


@pytest.fixture
def nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BoardNodes:
    monkeypatch.setenv("XDG_RUNTIME_DIR", "")
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.delenv("TMPDIR", raising=False)
    return BoardNodes(tmp_path)


def test_what_killed_drivers_left_is_removed_and_nobody_elses(
    nodes: BoardNodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    dead, alive = tmp_path / f"bc-{2**22 + 1}-x", tmp_path / f"bc-{os.getpid()}-x"
    other, own = tmp_path / "bc-tool-data", tmp_path / f"bc-{2**22 + 2}-results"
    for folder in (dead, alive, other, own):
        folder.mkdir()
    (own / "table.csv").write_text("somebody's, who calls a folder so")
    # A path of tmp_path's length holds no sockets; the folder for them is made before that is said.
    with contextlib.suppress(HostError):
        nodes.reach("pi0", "pi@pi0", user=ROOT, folder="/x")

    assert [row.exists() for row in (dead, alive, other, own)] == [False, True, True, True]


def test_connections_are_shared_in_a_folder_of_our_own_that_goes_with_them(
    nodes: BoardNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Path] = []
    real = tempfile.mkdtemp

    def mkdtemp(**named: Any) -> str:
        time.sleep(0.05)  # so that threads meet here
        made.append(Path(real(**named)))
        return str(made[-1])

    monkeypatch.setattr(tempfile, "mkdtemp", mkdtemp)
    hosts = [f"pi@pi{number}" for number in range(8)]
    together = threading.Barrier(8, timeout=10)

    def one(host: str) -> object:
        together.wait()
        return nodes.reach(host, host, user=ROOT, folder="/x")

    ways, errors = each_node(hosts, one)

    assert not errors
    (folder,) = made
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for host in hosts:
        assert nodes.reach(host, host, user=ROOT, folder="/x") is ways[host]
        assert nodes.reach(host, host, user=SERVICE_USER, folder="/x") is not ways[host]
    beside = Beside(fails=hosts[0])
    monkeypatch.setattr("boardcluster.remote.ssh.beside", beside)

    nodes.close()
    nodes.close()  # safe to repeat

    assert sorted(argv[-1] for argv in beside.ran) == hosts[1:], "one that fails keeps no other"
    assert all(argv[argv.index("-O") + 1] == "exit" for argv in beside.ran)
    assert beside.started_before_an_end == len(hosts) - 1, "they end together"
    assert not folder.exists()


class Beside:
    """Stands for ``gate.beside``; keeps what was started and what had been when the first ended."""

    def __init__(self, fails: str = "") -> None:
        self.fails = fails
        self.ran: list[list[str]] = []
        self.started_before_an_end = 0

    @contextlib.contextmanager
    def __call__(self, argv: list[str], *, patience_seconds: float) -> Iterator[None]:
        assert patience_seconds == 10
        if argv[-1] == self.fails:
            raise HostError("ssh cannot be executed")
        self.ran.append(list(argv))
        yield
        self.started_before_an_end = self.started_before_an_end or len(self.ran)


def test_only_host_keys_of_this_cluster_are_believed(
    nodes: BoardNodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = Beside()
    monkeypatch.setattr("boardcluster.remote.ssh.beside", beside)
    nodes.reach("pi0", "pi@pi0", user=ROOT, folder="/x")

    nodes.close()

    (argv,) = beside.ran
    assert known_hosts_of(tmp_path) == tmp_path / "known_hosts"
    (believed,) = (word for word in argv if word.startswith("UserKnownHostsFile="))
    assert believed.partition("=")[2].strip('"') == f"{tmp_path}/known_hosts"


def test_a_tunnel_is_open_to_this_machine_alone_and_shares_no_connection(
    nodes: BoardNodes, spec: ClusterSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[list[str]] = []
    monkeypatch.setattr(module, "run_program", lambda argv, **_: ran.append(list(argv)))
    reached: list[tuple[str, str, str]] = []
    board = FakeRemote("master")
    board.tell("true")

    def reach(name: str, host: str, *, user: str, folder: str) -> FakeRemote:
        assert not ran  # a login that fails is told by its own words, before anything is forwarded
        assert folder == spec.master.folder
        reached.append((name, host, user))
        return board

    monkeypatch.setattr(nodes, "reach", reach)

    nodes.hold_tunnel(spec.master, ports={9870: 9870, 18088: 8088}, socks=1080)
    nodes.close()

    assert (reached, board.calls) == ([("master", "pi@master", "")], [("true",)])
    (argv,) = ran
    assert argv[-1] == "pi@master"
    # The node's own address: its daemons do not listen on its loopback address.
    forwards = [argv[place + 1] for place, word in enumerate(argv) if word in ("-L", "-D")]
    assert forwards == [
        "127.0.0.1:9870:10.0.0.1:9870",
        "127.0.0.1:18088:10.0.0.1:8088",
        "127.0.0.1:1080",
    ]
    # ssh takes the first of two.
    paths = [word for word in argv if word.startswith("ControlPath=")]
    assert paths[0] == "ControlPath=none"
    assert argv.index("ClearAllForwardings=no") < argv.index("ClearAllForwardings=yes")
