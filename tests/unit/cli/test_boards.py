"""Boards on the command line: who is asked what, and what is said of an open cluster."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from tests.builders import make_daemon, make_state
from tests.unit.cluster.recordings import PI_3, PI_4, PI_5, Recording
from typer.testing import CliRunner
from typer.testing import Result as Ran

from boardcluster.cli import boards as module
from boardcluster.cli.app import app
from boardcluster.cluster.facts import parse_facts
from boardcluster.cluster.kinds.boards.nodes import known_hosts_of
from boardcluster.errors import (
    AddressError,
    BoardclusterError,
    CapacityError,
    HostError,
    HostKeyError,
    UnreachableError,
    UsageError,
)
from boardcluster.records import ClusterSpec, NodeFacts, NodeSpec, Role, Security
from boardcluster.remote.fake import FakeRemote
from boardcluster.remote.hostkeys import HostKey
from boardcluster.services import operation
from boardcluster.services.boards import Ready
from boardcluster.services.layout import Layout
from boardcluster.services.lifecycle import Health
from boardcluster.services.operation import LiveCluster
from boardcluster.services.pair import pair_ids
from boardcluster.services.profile import profile_names
from boardcluster.services.provision.provisioning import Change
from boardcluster.services.security import INSECURE_WARNING
from boardcluster.services.status import DaemonView, Status
from boardcluster.spec.cluster import load_cluster
from boardcluster.spec.template import render_cluster

HOSTS = ["pi@pi0", "pi@pi1"]


def facts_of(recording: Recording) -> NodeFacts:
    return parse_facts(
        recording.raw(), folder="/var/lib/boardcluster", asked_seconds=0.0, answered_seconds=0.5
    )


def key_of(host: str) -> HostKey:
    name = host.rpartition("@")[2]
    return HostKey(
        host=host, name=name, kind="ssh-ed25519", key="AAAA", fingerprint=f"SHA256:of-{name}"
    )


@dataclass
class Desk:
    """Where somebody has boards; nothing here connects to any.

    Attributes:
        home: the cluster's state folder.
        facts: what is found on each board.
        lost: boards that do not answer.
        trusted: hosts whose keys are in our file.
        users: users as whom boards were reached.
        closed: how often connections were closed.
        done: what was done to the cluster.
        changes: what boards need.
    """

    home: Path
    facts: dict[str, NodeFacts] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    trusted: list[str] = field(default_factory=list)
    users: set[str] = field(default_factory=set)
    closed: int = 0
    done: list[Any] = field(default_factory=list)
    changes: tuple[Change, ...] = ()

    def __call__(self, *words: str, text: str | None = None) -> Ran:
        """Run the program; what it raises on purpose is raised."""
        return CliRunner().invoke(
            app,
            [words[0], "--home", str(self.home), *words[1:]],
            input=text,
            catch_exceptions=False,
        )

    def reach(self, name: str, host: str, *, user: str, folder: str) -> FakeRemote:
        assert name == host
        self.users.add(user)
        return FakeRemote(host)

    def close(self) -> None:
        self.closed += 1

    def discover(self, remote: FakeRemote) -> NodeFacts:
        if remote.name in self.lost:
            raise UnreachableError(f"{remote.name}: out of reach")
        return self.facts[remote.name]

    def known(self, file: Path, host: str) -> tuple[HostKey, ...]:
        assert file == known_hosts_of(self.home)
        return (key_of(host),) if host in self.trusted else ()

    def learn(self, hosts: Sequence[str]) -> dict[str, HostKey | UnreachableError]:
        return {
            host: UnreachableError(f"{host}: out of reach") if host in self.lost else key_of(host)
            for host in hosts
        }

    def trust(self, file: Path, keys: Sequence[HostKey]) -> None:
        assert file == known_hosts_of(self.home)
        assert self.home.is_dir()
        self.trusted += [key.host for key in keys]

    def spec(self) -> ClusterSpec:
        path = self.home / "cluster.toml"
        return load_cluster(path, engine_pairs=pair_ids(), profiles=profile_names())

    def declare(self, **changed: Any) -> ClusterSpec:
        """Make the file of a cluster, and forget what was done for it."""
        self("init", "--hosts", ",".join(self.facts), "--yes", "--force")
        spec = replace(self.spec(), **changed)
        text = render_cluster(spec, engine_pairs=pair_ids(), profiles=profile_names())
        (self.home / "cluster.toml").write_text(text)
        self.done.clear()
        return spec


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    desk = Desk(tmp_path / "home", facts={"pi@pi0": facts_of(PI_5), "pi@pi1": facts_of(PI_4)})
    monkeypatch.setattr(module, "BoardNodes", lambda home: desk)
    for name in ("discover", "known", "learn", "trust"):
        monkeypatch.setattr(module, name, getattr(desk, name))
    monkeypatch.setattr(
        "boardcluster.cli.init.propose", lambda **_: pytest.fail("a cluster of this machine")
    )
    return desk


def at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let somebody be there to be asked."""
    real = sys.stdin

    class Terminal:
        def isatty(self) -> bool:
            return True

        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

    monkeypatch.setattr("boardcluster.cli.boards.sys", type("Sys", (), {"stdin": Terminal()}))


# init


def test_init_looks_at_each_board_as_who_logs_in(desk: Desk) -> None:
    ran = desk("init", "--hosts", "pi@pi0, pi@pi1", "--yes")

    spec = desk.spec()
    assert (spec.kind, spec.security) == ("boards", Security.CLOSED)
    assert [node.host for node in spec.nodes] == HOSTS
    assert [node.address for node in spec.nodes] == ["192.168.1.20", "192.168.1.21"]
    assert (desk.users, desk.closed) == ({""}, 1)
    for words in ("Raspberry Pi 5 Model B", "Raspberry Pi 4 Model B", "next: edit it"):
        assert words in ran.stdout
    assert "INSECURE" not in ran.output


def test_init_of_an_open_cluster_writes_that_down(desk: Desk) -> None:
    desk("init", "--hosts", "pi@pi0,pi@pi1", "--yes", "--insecure-lab")

    assert desk.spec().security is Security.INSECURE_LAB


def test_a_subnet_that_is_none_is_refused_before_any_board_is_reached(desk: Desk) -> None:
    for wrong in ("10.9.0.0", "127.0.0.0/8"):
        with pytest.raises(UsageError, match=r"^--subnet: "):
            desk("init", "--hosts", "pi@pi0,pi@pi1", "--yes", "--subnet", wrong)
    assert (desk.users, desk.trusted) == (set(), [])
    desk("init", "--hosts", "pi@pi0,pi@pi1", "--yes", "--subnet", "192.168.1.0/24")
    assert desk.spec().network.subnet == "192.168.1.0/24"


def test_an_engine_pair_that_there_is_not_is_refused_before_any_board_is_reached(
    desk: Desk,
) -> None:
    with pytest.raises(UsageError, match="unknown engine pair 'hadoop-9'"):
        desk("init", "--hosts", "pi@pi0,pi@pi1", "--yes", "--engines", "hadoop-9")
    assert (desk.users, desk.trusted) == (set(), [])


def test_any_board_can_be_the_master(desk: Desk) -> None:
    desk("init", "--hosts", "pi@pi0,pi@pi1", "--yes", "--master", "pi@pi1")

    assert Role.MASTER in next(n.roles for n in desk.spec().nodes if n.host == "pi@pi1")


def test_small_boards_get_a_master_that_does_not_work(desk: Desk) -> None:
    for host in HOSTS:
        desk.facts[host] = replace(desk.facts[host], memory_bytes=1920 << 20)

    ran = desk("init", "--hosts", "pi@pi0,pi@pi1", "--yes")

    assert [sorted(node.roles) for node in desk.spec().nodes] == [["master"], ["worker"]]
    assert "the master is not a worker" in ran.stderr


def test_a_single_board_that_is_too_small_can_be_declared_to_be_uninstalled(desk: Desk) -> None:
    """A worker that leaves its cluster becomes one of its own; only `up` needs the memory."""
    desk.facts["pi@pi0"] = replace(desk.facts["pi@pi0"], memory_bytes=1920 << 20)

    ran = desk("init", "--hosts", "pi@pi0", "--yes")

    assert [node.host for node in desk.spec().nodes] == ["pi@pi0"]
    assert "MiB; `boardcluster up` refuses to start" in ran.stderr
    with pytest.raises(CapacityError):
        desk("up", "--dry-run")


def test_boards_of_an_inventory(desk: Desk, tmp_path: Path) -> None:
    inventory = tmp_path / "inventory.json"
    key = {"ansible_host": "pi0", "ansible_ssh_private_key_file": "~/key", "ansible_user": "pi"}
    listed = {
        "_meta": {"hostvars": {"pi0": key, "pi1": {"ansible_user": "pi", "color": "red"}}},
        "all": {"children": ["pis"]},
        "pis": {"hosts": ["pi0", "pi1"]},
    }
    inventory.write_text(json.dumps(listed))

    ran = desk("init", "--inventory", str(inventory), "--yes")

    assert [node.host for node in desk.spec().nodes] == HOSTS
    remarks = [line for line in ran.stderr.splitlines() if str(inventory) in line]
    assert len(remarks) == 2
    assert any('"color" is ignored' in line for line in remarks)
    assert any('IdentityFile "~/key"' in line for line in remarks)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--hosts", "pi@pi0", "--inventory", "hosts.ini"],
            "--hosts cannot be used with --inventory",
        ),
        (["--hosts", " , "], "names no host"),
        (["--hosts", "pi@pi0,pi@pi1,pi@pi0"], "named twice: pi@pi0"),
        (["--insecure-lab"], "can only be used with boards"),
        (["--master", "pi0"], "can only be used with boards"),
    ],
)
def test_what_contradicts_itself_is_refused(words: list[str], message: str, desk: Desk) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        desk("init", *words)

    assert caught.value.hint
    assert (desk.users, desk.trusted) == (set(), [])
    assert not (desk.home / "cluster.toml").exists()


def test_a_file_that_is_there_is_kept_before_any_board_is_asked(desk: Desk) -> None:
    desk.home.mkdir()
    (desk.home / "cluster.toml").write_text("mine")

    with pytest.raises(UsageError, match="already exists"):
        desk("init", "--hosts", "pi@pi0")

    assert (desk.home / "cluster.toml").read_text() == "mine"
    assert (desk.users, desk.trusted) == (set(), [])


def test_every_board_that_does_not_answer_is_named(desk: Desk) -> None:
    desk.trusted = list(HOSTS)
    desk.lost = set(HOSTS)

    with pytest.raises(UnreachableError) as caught:
        desk("init", "--hosts", ",".join(HOSTS))

    assert all(f"{host}: out of reach" in caught.value.message for host in HOSTS)
    assert desk.closed == 1
    assert not (desk.home / "cluster.toml").exists()


def test_a_board_that_cannot_be_a_node_is_refused_with_what_mends_it(desk: Desk) -> None:
    desk.facts["pi@pi1"] = facts_of(PI_3)

    with pytest.raises(HostError) as caught:
        desk("init", "--hosts", ",".join(HOSTS), "--yes")

    assert caught.value.message.startswith("pi@pi1: ")
    assert "32-bit" in caught.value.message
    assert "\n  -> " in caught.value.message
    assert not (desk.home / "cluster.toml").exists()


# Host keys.


def test_keys_that_are_known_are_not_shown_again(desk: Desk) -> None:
    desk.trusted = list(HOSTS)

    ran = desk("init", "--hosts", ",".join(HOSTS))

    assert "host keys" not in ran.output
    assert desk.trusted == HOSTS


def test_new_keys_are_shown_and_only_those_learned(desk: Desk) -> None:
    desk.trusted = ["pi@pi0"]

    ran = desk("init", "--hosts", ",".join(HOSTS), "--yes")

    assert "SHA256:of-pi1" in ran.stderr
    assert "SHA256:of-pi0" not in ran.output
    assert "ssh-keygen -lf" in ran.stderr  # how they are compared
    assert desk.trusted == HOSTS


def test_nobody_is_believed_if_nobody_can_be_asked(desk: Desk) -> None:
    with pytest.raises(HostKeyError, match="there is no terminal to ask on") as caught:
        desk("init", "--hosts", ",".join(HOSTS))

    assert "--yes" in caught.value.hint
    assert (desk.trusted, desk.users) == ([], set())


@pytest.mark.parametrize("answer", ["y\n", "n\n", "\n"])
def test_a_person_says_whether_these_are_the_boards(
    answer: str, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_a_terminal(monkeypatch)
    if answer == "y\n":
        desk("init", "--hosts", ",".join(HOSTS), text=answer)
        assert desk.trusted == HOSTS
        return
    with pytest.raises(HostKeyError, match="not accepted"):
        desk("init", "--hosts", ",".join(HOSTS), text=answer)
    assert (desk.trusted, desk.users) == ([], set())


def test_no_key_is_believed_while_a_board_shows_none(desk: Desk) -> None:
    desk.lost = {"pi@pi1"}

    with pytest.raises(UnreachableError, match="pi@pi1"):
        desk("init", "--hosts", ",".join(HOSTS), "--yes")

    assert desk.trusted == []


# up


@pytest.fixture
def declared(
    desk: Desk,
    make_layout: Callable[[ClusterSpec], Layout],
    monkeypatch: pytest.MonkeyPatch,
) -> Desk:
    """The desk with boards that can be brought up."""
    desk.declare()

    def live(home: Path, *, deep: bool, **_: Any) -> LiveCluster:
        desk.done.append("up deep" if deep else "up")
        spec = desk.spec()
        pages = ("namenode", "resourcemanager", "jobhistory", "sparkhistory")
        state = make_state(
            subnet="192.168.1.0/24",
            kind="boards",
            daemons=tuple(
                make_daemon(name, "pi0", url=f"http://192.168.1.20/{name}") for name in pages
            ),
        )
        return LiveCluster(home=home, state=state, layout=make_layout(spec), remotes={})

    def plan(home: Path, *, deep: bool, **_: Any) -> Ready:
        desk.done.append("plan deep" if deep else "plan")
        return Ready(facts=desk.facts, java="", changes=desk.changes)

    monkeypatch.setattr(operation, "up", live)
    monkeypatch.setattr(operation, "plan_boards", plan)
    monkeypatch.setattr("boardcluster.campaign.upkeep.recover", lambda *_: 0)
    monkeypatch.setattr("boardcluster.campaign.upkeep.clear_leftovers", lambda _: None)
    return desk


def test_up_says_how_the_pages_of_boards_open(declared: Desk) -> None:
    ran = declared("up")

    assert declared.done == ["up"]
    assert "http://192.168.1.20/namenode" in ran.stdout
    assert "boardcluster tunnel" in ran.stdout
    assert "INSECURE" not in ran.output


def test_an_open_cluster_is_loud_before_and_after_it_comes_up(declared: Desk) -> None:
    declared.declare(security=Security.INSECURE_LAB)

    ran = declared("up")

    assert INSECURE_WARNING in ran.stdout
    assert INSECURE_WARNING in ran.stderr


def test_a_board_with_a_new_key_is_not_brought_up_unseen(declared: Desk) -> None:
    declared.trusted = ["pi@pi0"]

    with pytest.raises(HostKeyError):
        declared("up")
    assert declared.done == []

    ran = declared("up", "--yes")
    assert "SHA256:of-pi1" in ran.stderr
    assert declared.done == ["up"]


def test_new_keys_do_not_stand_in_a_json_document(declared: Desk) -> None:
    declared.trusted = ["pi@pi0"]

    assert json.loads(declared("up", "--dry-run", "--json", "--yes").stdout) == []


def test_a_dry_run_shows_each_change_and_brings_nothing_up(declared: Desk) -> None:
    declared.changes = (
        Change(node="pi0", words="writes /etc/hosts", detail="-old\n+new"),
        Change(node="pi1", words="switches swap off"),
    )

    lines = declared("up", "--dry-run").stdout.splitlines()

    assert declared.done == ["plan"]
    assert lines[-5:] == [
        "pi0: writes /etc/hosts",
        "    -old",
        "    +new",
        "pi1: switches swap off",
        "changes: 2; `boardcluster up` makes them",
    ]
    found = json.loads(declared("up", "--dry-run", "--json").stdout)
    assert [(row["node"], row["words"]) for row in found] == [
        ("pi0", "writes /etc/hosts"),
        ("pi1", "switches swap off"),
    ]


def test_every_byte_is_read_if_asked(declared: Desk) -> None:
    declared("up", "--deep")
    declared("up", "--deep", "--dry-run")
    assert declared.done == ["up deep", "plan deep"]


def test_json_without_a_dry_run_is_refused(declared: Desk) -> None:
    with pytest.raises(UsageError, match="--json can only be used with --dry-run"):
        declared("up", "--json")
    assert declared.done == []


def test_a_dry_run_of_nothing_says_so(declared: Desk) -> None:
    assert declared("up", "--dry-run").stdout.splitlines()[-1] == "nothing to change"


def test_emulated_nodes_have_nothing_to_install(
    declared: Desk, make_spec: Callable[..., ClusterSpec]
) -> None:
    spec = make_spec(engines=pair_ids()[0])
    text = render_cluster(spec, engine_pairs=pair_ids(), profiles=profile_names())
    (declared.home / "cluster.toml").write_text(text)

    for option in ("--dry-run", "--deep"):
        with pytest.raises(UsageError, match=f"{option} can only be used with boards"):
            declared("up", option)
    for words in (["tunnel"], ["uninstall", "--yes"]):
        with pytest.raises(UsageError, match="on this machine"):
            declared(*words)
    assert declared.done == []


# status


def health_of(*, under_replicated_blocks: int = 0) -> Health:
    return Health(
        live_datanodes=1,
        live_nodemanagers=1,
        safe_mode=False,
        history=True,
        hdfs_free_bytes=5,
        under_replicated_blocks=under_replicated_blocks,
    )


def status_of(**changed: Any) -> Status:
    view = DaemonView(
        name="datanode",
        node="pi1",
        address="192.168.1.21",
        url="http://192.168.1.21:9864",
        pid=7,
        alive=True,
        resident_bytes=7,
        proportional_bytes=5,
        log="/log",
    )
    return Status(
        **{
            "phase": "up",
            "daemons": (view,),
            "health": health_of(),
            "workers": 1,
            "profile": "default",
            "engines": "pair",
            "browsable": False,
            "kind": "boards",
            "security": Security.CLOSED,
            "page_hint": "These pages open through `boardcluster tunnel`.",
            **changed,
        }
    )


def shown(desk: Desk, monkeypatch: pytest.MonkeyPatch, *words: str, **changed: Any) -> str:
    monkeypatch.setattr("boardcluster.cli.status.status", lambda *_, **__: status_of(**changed))
    return desk("status", *words).stdout


def test_status_of_boards(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(desk, monkeypatch)

    assert text.startswith("up: 1 worker, profile default, pair\n")
    assert "http://192.168.1.21:9864" in text
    assert "boardcluster tunnel" in text
    assert "without root" not in text
    assert "INSECURE" not in text
    assert "too few copies" not in text


@pytest.mark.parametrize(("blocks", "words"), [(1, "1 block"), (6, "6 blocks")])
def test_status_counts_blocks_with_too_few_copies(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, blocks: int, words: str
) -> None:
    text = shown(desk, monkeypatch, health=health_of(under_replicated_blocks=blocks))

    assert f"HDFS has {words} with too few copies" in text


def test_status_of_an_open_cluster_says_so_first(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = Security.INSECURE_LAB

    assert shown(desk, monkeypatch, security=lab).splitlines()[1] == INSECURE_WARNING
    found = json.loads(shown(desk, monkeypatch, "--json", security=lab))
    assert (found["kind"], found["security"]) == ("boards", "insecure-lab")


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("boards", "none of its processes is running"),
        ("emulated", "its driver or its nodes were killed"),
    ],
)
def test_status_of_a_dead_cluster_says_what_that_means(
    kind: str, words: str, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = shown(desk, monkeypatch, phase="dead", kind=kind, daemons=(), health=None)

    assert f"{words}; run `boardcluster down` to clean up" in text


def test_pages_of_emulated_nodes_are_not_behind_a_tunnel(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    hint = "docs/how-to/open-web-pages.md says how"
    emulated = Security.EMULATED
    text = shown(desk, monkeypatch, kind="emulated", security=emulated, page_hint=hint)

    assert hint in text
    assert "tunnel" not in text


# tunnel


@pytest.fixture
def tunnels(declared: Desk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setattr(
        "boardcluster.cli.tunnel.hold_tunnel",
        lambda home, spec, *, pages, socks: declared.done.append((home, spec, pages, socks)),
    )
    return declared


def test_a_tunnel_leads_to_every_page_of_the_master(
    tunnels: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("boardcluster.cli.tunnel._require_free", lambda _: None)

    ran = tunnels("tunnel", "--offset", "1000", "--socks", "1080")

    ((home, spec, pages, socks),) = tunnels.done
    assert (home, spec, socks) == (tunnels.home, tunnels.spec(), 1080)
    assert pages == {
        "namenode": 10870,
        "resourcemanager": 9088,
        "jobhistory": 20888,
        "sparkhistory": 19080,
    }
    for name, port in pages.items():
        assert any(
            name in line and f"http://127.0.0.1:{port}" in line for line in ran.stdout.splitlines()
        )
    assert "socks5h://127.0.0.1:1080" in ran.stdout


def test_a_proxy_cannot_have_the_port_of_a_page(tunnels: Desk) -> None:
    with pytest.raises(UsageError, match="--socks 9870"):
        tunnels("tunnel", "--socks", "9870")
    assert tunnels.done == []


def test_a_port_that_is_taken_is_named_before_anything_is_opened(tunnels: Desk) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(AddressError, match=f"port {port} of this machine") as caught:
            tunnels("tunnel", "--offset", "30000", "--socks", str(port))
    assert "--offset" in caught.value.hint
    assert tunnels.done == []


# uninstall


@pytest.fixture
def installed(declared: Desk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    def take_back(home: Path, boards: Sequence[NodeSpec], **named: Any) -> dict[str, list[str]]:
        assert [node.name for node in boards] == ["pi0", "pi1"]
        declared.done.append(("take back", named["keep_data"], named["dry_run"]))
        return {"pi0": ["removes /opt/boardcluster"], "pi1": []}

    monkeypatch.setattr("boardcluster.services.boards.take_back", take_back)

    def down(_: Path, *, without: Collection[str]) -> None:
        assert not without
        declared.done.append("down")

    monkeypatch.setattr(operation, "down", down)
    monkeypatch.setattr(operation, "forget", lambda _: declared.done.append("forget"))
    return declared


@pytest.mark.parametrize(
    ("words", "done"),
    [
        (["--yes"], ["down", ("take back", False, False), "forget"]),
        (["--yes", "--keep-data"], ["down", ("take back", True, False)]),
        (["--dry-run"], [("take back", False, True)]),  # not even what runs is ended
    ],
)
def test_uninstall_ends_takes_back_and_forgets(
    words: list[str], done: list[object], installed: Desk
) -> None:
    ran = installed("uninstall", *words)

    assert installed.done == done
    taken, _, by_hand = ran.stdout.partition("what you may have set up by hand stays")
    removal = "ssh -t pi@pi1 'sudo rm -f /etc/sudoers.d/010_boardcluster'"
    assert (removal in by_hand) == ("--dry-run" not in words)
    assert taken.splitlines() == [
        "pi0: changes: 1",
        "  removes /opt/boardcluster",
        "pi1: nothing was installed",
    ]


def test_nothing_is_taken_back_if_nobody_can_confirm(installed: Desk) -> None:
    with pytest.raises(UsageError, match="there is no terminal to ask on"):
        installed("uninstall")
    assert installed.done == []


@pytest.mark.parametrize(
    ("answer", "done"), [("y\n", ["down", ("take back", False, False), "forget"]), ("n\n", [])]
)
def test_a_person_says_whether_boards_are_taken_back(
    answer: str, done: list[object], installed: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("boardcluster.cli.asking.can_ask", lambda: True)

    ran = installed("uninstall", text=answer)

    assert "on pi0, pi1, and everything in HDFS?" in ran.output
    assert ("nothing was changed" in ran.output) == (answer == "n\n")
    assert installed.done == done


def test_what_could_not_be_taken_back_is_not_forgotten(
    installed: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise UnreachableError("pi1: out of reach")

    monkeypatch.setattr("boardcluster.services.boards.take_back", fail)

    with pytest.raises(BoardclusterError, match="pi1"):
        installed("uninstall", "--yes")
    assert installed.done == ["down"]
