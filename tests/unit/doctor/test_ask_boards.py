"""Asking boards and masters: everything once, and whoever does not answer is noted."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from typing import Any

import pytest
from tests.builders import make_daemon, make_state
from tests.unit.cluster.recordings import PI_5

from boardcluster.cluster.state import LiveState
from boardcluster.doctor import Facts, ask_boards
from boardcluster.doctor.ask_boards import firewall_is_whole
from boardcluster.doctor.facts import NodeManagerState, WaitingJob
from boardcluster.records import MasterPlacement
from boardcluster.remote.base import ProcessRef
from boardcluster.remote.fake import FakeRemote
from boardcluster.services.provision.firewall import render_firewall
from boardcluster.spec.variant import ClusterVariant, apply_variant

WHOLE = """\
table inet boardcluster {
\tset members {
\t\ttype ipv4_addr
\t\telements = { 192.168.1.20, 192.168.1.21,
\t\t\t     192.168.1.22 }
\t}

\tchain input {
\t\ttype filter hook input priority filter; policy drop;
\t\tiif "lo" accept
\t\ttcp dport 22 accept
\t\tip saddr @members tcp dport 1-65535 accept
\t\tdrop
\t}

\tchain output {
\t\ttype filter hook output priority filter; policy drop;
\t\tmeta skuid != { 0, 998, 1000 } ct direction original jump strangers
\t\taccept
\t}

\tchain forward {
\t\ttype filter hook forward priority filter; policy drop;
\t\tip saddr != @members ip daddr @members ct direction original jump strangers
\t\taccept
\t}

\tchain strangers {
\t\tip daddr @members tcp dport != 22 reject with tcp reset
\t}
}
"""
ALIVE = {"alive": True, "resident_bytes": 1, "proportional_bytes": 1}
DEAD = {**ALIVE, "alive": False}
INSPECTED: dict[str, Any] = {
    "provisioned": True,
    "versions": {"/d/data/datanode/current/VERSION": "#Fri\nclusterID=CID-7\nlayoutVersion=-57\n"},
    "uid": 1000,
    "permissions": {"/home/pi": [1000, 0o755]},
    "listening": [
        "0100007F:1F90",
        "1401A8C0:268A",
        "00000000:0016",
        "00000000000000000000000000000000:34FA",
        "0000000000000000FFFF00001401A8C0:1F98",
        "000080FE000000000000000001000000:0016",
    ],
    "accounts": ["pi"],
    "java": "/usr/lib/jvm/java-17-openjdk-arm64",
    "programs": {
        "nft": {"status": 0, "out": WHOLE, "err": ""},
        "sshd": {"status": 0, "out": "port 22\npasswordauthentication yes\n", "err": ""},
        "getent": {"status": 0, "out": "192.168.1.20  STREAM pi0\n192.168.1.20 DGRAM\n", "err": ""},
    },
}
BEANS = '{"beans": [{"NumLiveDataNodes": 3, "FSState": "Operational"}]}'
NODES = (
    '{"nodes": {"node": [{"id": "pi1:8041", "nodeHostName": "pi1", "state": "UNHEALTHY", '
    '"healthReport": "1/1 local-dirs have errors"}, '
    '{"nodeHostName": "pi2", "state": "RUNNING", "healthReport": null}]}}'
)
APPS = (
    '{"apps": {"app": [{"id": "application_1_1", "name": "sort", "state": "ACCEPTED", '
    '"elapsedTime": 61500, "diagnostics": "waiting"}]}}'
)


def answer(body: str, status: int = 200) -> dict[str, Any]:
    return {"status": status, "body": body, "location": None}


@pytest.fixture
def declared(view: Facts) -> Facts:
    """What is known before any board was asked."""
    return replace(view, boards=(), masters=None)


@pytest.fixture
def remotes(declared: Facts) -> dict[str, FakeRemote]:
    made = {node.name: FakeRemote(node.name) for node in declared.declared.nodes}
    for remote in made.values():
        remote.tell_node_agent("facts", PI_5.raw())
        remote.tell_node_agent("inspect", INSPECTED)
    return made


@pytest.fixture
def state() -> LiveState:
    daemons = tuple(
        make_daemon(name, "pi1", process=ProcessRef(pid, 5))
        for pid, name in ((10, "datanode"), (11, "nodemanager"))
    )
    return make_state(subnet="192.168.1.0/24", kind="boards", daemons=daemons)


def test_every_board_is_asked_about_its_own_name_and_folder(
    declared: Facts, remotes: dict[str, FakeRemote]
) -> None:
    view = ask_boards(declared, remotes)
    assert [board.name for board in view.boards] == ["pi0", "pi1", "pi2", "pi3"]
    assert (view.lost, view.masters) == ((), None)
    assert view.command("up") == "boardcluster up --cluster lab"
    folder = "/var/lib/boardcluster"
    assert remotes["pi1"].requests == [
        {"do": "facts", "root": "/", "folder": folder},
        {"do": "inspect", "root": "/", "folder": folder, "name": "pi1"},
    ]


def test_what_is_found_on_a_board(declared: Facts, remotes: dict[str, FakeRemote]) -> None:
    details = ask_boards(declared, remotes).boards[0].details
    assert details.provisioned
    assert details.firewall is True
    assert details.name_addresses == ("192.168.1.20",)
    assert details.cluster_ids == {"/d/data/datanode/current/VERSION": "CID-7"}
    assert details.permissions == {"/home/pi": (1000, 0o755)}
    assert details.ssh_settings == {"port": "22", "passwordauthentication": "yes"}
    assert details.accounts_with_password == ("pi",)
    assert details.listening == (
        ("127.0.0.1", 8080),
        ("192.168.1.20", 9866),
        ("0.0.0.0", 22),
        ("::", 13562),
        ("192.168.1.20", 8088),
        ("fe80:0000:0000:0000:0000:0000:0000:0001", 22),
    )


@pytest.mark.parametrize(
    ("nft", "loaded"),
    [
        (None, None),
        ({"status": 0, "out": WHOLE, "err": ""}, True),
        ({"status": 0, "out": "table inet boardcluster {\n}\n", "err": ""}, False),
        ({"status": 1, "out": "", "err": "No such file or directory"}, False),
    ],
)
def test_the_firewall(
    nft: dict[str, Any] | None,
    loaded: bool | None,
    declared: Facts,
    remotes: dict[str, FakeRemote],
) -> None:
    programs = {"nft": nft, "getent": None, "sshd": None}
    remotes["pi0"] = FakeRemote("pi0")
    remotes["pi0"].tell_node_agent("facts", PI_5.raw())
    remotes["pi0"].tell_node_agent("inspect", {**INSPECTED, "programs": programs})
    details = ask_boards(declared, remotes).boards[0].details
    assert details.firewall is loaded
    assert details.name_addresses == ()


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("hook input priority filter; policy drop", "hook input priority filter; policy accept"),
        ("meta skuid != { 0, 998, 1000 } ct direction original jump strangers", ""),
        ("ip saddr != @members ip daddr @members ct direction original jump strangers", ""),
        ("hook forward", "hook input"),
        ("hook input", "hook output"),
        ("set members", "set others"),
        ("hook output", "hook postrouting"),
        ("jump strangers", "accept"),
        ("ip daddr @members", "ip daddr 10.0.0.9"),
        ("\t\tip saddr @members tcp dport 1-65535 accept\n", ""),
    ],
)
def test_a_firewall_without_its_parts_is_not_whole(was: str, now: str) -> None:
    assert firewall_is_whole(WHOLE)
    assert was in WHOLE
    assert not firewall_is_whole(WHOLE.replace(was, now))


@pytest.mark.skipif(shutil.which("nft") is None, reason="nftables is not installed here")
def test_a_firewall_as_nft_itself_lists_it() -> None:
    rules = render_firewall(["10.0.0.1", "10.0.0.2"], service_ports=[8020])
    for name, number in (("SSH_PORT", "22"), ("SSH_OF_ALL", "22"), ("TRUSTED_USERS", "0, 1")):
        rules = rules.replace(name, number)
    chain = "inet boardcluster input"
    for then, whole in (
        ("true", True),
        (f"nft flush chain {chain}", False),
        ("nft flush chain inet boardcluster output", False),
        ("nft flush chain inet boardcluster strangers", False),
        ("nft flush chain inet boardcluster forward", False),
        (f"nft chain {chain} '{{ policy accept; }}'", False),
    ):
        done = subprocess.run(
            ["unshare", "-rn", "sh", "-c", f"nft -f - && {then} && nft list table {chain[:-6]}"],
            check=False,
            input=rules,
            text=True,
            capture_output=True,
        )
        if "unshare" in done.stderr:
            pytest.skip("this user may not make namespaces")
        assert (done.returncode, done.stderr) == (0, "")
        assert firewall_is_whole(done.stdout) is whole


def test_a_board_that_does_not_answer_is_noted(
    declared: Facts, remotes: dict[str, FakeRemote], state: LiveState
) -> None:
    remotes["pi0"] = FakeRemote("pi0")  # knows no answer
    view = ask_boards(declared, remotes)
    assert [board.name for board in view.boards] == ["pi1", "pi2", "pi3"]
    (lost,) = view.lost
    assert lost.spec.name == "pi0"
    assert "was not told" in lost.error.message


def under_systemd(remote: FakeRemote, *, datanode: int, nodemanager: int) -> None:
    """Have systemd know the main processes of two daemons; 0 is none."""
    pids = {"datanode": datanode, "nodemanager": nodemanager}
    units = [f"boardcluster-{name}.service" for name in pids]
    shown = "\n\n".join(f"MainPID={pid}" for pid in pids.values())
    remote.tell("systemctl", "show", "-p", "MainPID", *units, stdout=f"{shown}\n")
    there = [pid for pid in pids.values() if pid]
    rows = [f"{pid} (java) S {' '.join(map(str, range(1, 30)))}\n" for pid in there]
    remote.tell("cat", *(f"/proc/{pid}/stat" for pid in there), stdout="".join(rows))


def test_dead_daemons(declared: Facts, remotes: dict[str, FakeRemote], state: LiveState) -> None:
    remotes["pi1"] = FakeRemote("pi1")
    remotes["pi1"].tell_node_agent("facts", {**PI_5.raw(), "systemd": False})
    remotes["pi1"].tell_node_agent("inspect", INSPECTED)
    remotes["pi1"].tell_node_agent("processes", [DEAD, ALIVE])
    view = ask_boards(replace(declared, state=state), remotes)
    assert view.boards[1].details.dead_daemons == ("datanode",)
    assert view.boards[2].details.dead_daemons == ()


def test_a_daemon_that_systemd_started_again_is_not_dead(
    declared: Facts, remotes: dict[str, FakeRemote], state: LiveState
) -> None:
    under_systemd(remotes["pi1"], datanode=99, nodemanager=0)
    view = ask_boards(replace(declared, state=replace(state, phase="starting")), remotes)
    assert view.boards[1].details.dead_daemons == ("nodemanager",)


def test_the_masters_of_another_form_are_where_it_has_them(
    declared: Facts, remotes: dict[str, FakeRemote], state: LiveState
) -> None:
    under_systemd(remotes["pi1"], datanode=10, nodemanager=11)
    remotes["pi1"].tell_node_agent("http", [answer(BEANS), answer(NODES), answer(APPS)])
    variant = ClusterVariant(profile="default", workers=3, master=MasterPlacement.COMBINED)
    running = apply_variant(declared.declared, variant)
    assert running.master.name == "pi1"
    masters = ask_boards(replace(declared, state=state, running=running), remotes).masters
    assert masters is not None
    assert masters.live_datanodes == 3
    asked = remotes["pi1"].requests[-1]["requests"]
    assert asked[0]["url"].startswith("http://pi1:9870/jmx")


def test_the_masters(declared: Facts, remotes: dict[str, FakeRemote], state: LiveState) -> None:
    under_systemd(remotes["pi1"], datanode=10, nodemanager=11)
    remotes["pi0"].tell_node_agent("http", [answer(BEANS), answer(NODES), answer(APPS)])
    masters = ask_boards(replace(declared, state=state), remotes).masters
    assert masters is not None
    assert masters.live_datanodes == 3
    assert masters.managers == (
        NodeManagerState(host="pi1", state="UNHEALTHY", report="1/1 local-dirs have errors"),
        NodeManagerState(host="pi2", state="RUNNING", report=""),
    )
    assert masters.waiting == (
        WaitingJob(id="application_1_1", name="sort", waited_seconds=61.5, diagnostics="waiting"),
    )
    asked = [item["url"] for item in remotes["pi0"].requests[-1]["requests"]]
    assert asked[0].startswith("http://pi0:9870/jmx")
    assert asked[2] == "http://pi0:8088/ws/v1/cluster/apps?states=ACCEPTED"


def test_an_empty_list_of_yarns_is_null_and_silence_is_none(
    declared: Facts, remotes: dict[str, FakeRemote], state: LiveState
) -> None:
    under_systemd(remotes["pi1"], datanode=10, nodemanager=11)
    rows = [answer("refused", status=0), answer('{"nodes": null}'), answer("<html>")]
    remotes["pi0"].tell_node_agent("http", rows)
    masters = ask_boards(replace(declared, state=state), remotes).masters
    assert masters is not None
    assert (masters.live_datanodes, masters.managers, masters.waiting) == (None, (), None)


def test_masters_of_a_cluster_that_is_not_up_are_not_asked(
    declared: Facts, remotes: dict[str, FakeRemote], state: LiveState
) -> None:
    assert ask_boards(declared, remotes).masters is None
    assert not any(request["do"] == "http" for request in remotes["pi0"].requests)
