"""The pure parts of emulated nodes; namespaces are for the integration tests."""

import json
import os
import pwd
import signal
import subprocess
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.asleep import asleep
from tests.builders import make_live_node

from boardcluster.cluster import processes
from boardcluster.cluster.kinds.emulated import KIND
from boardcluster.cluster.kinds.emulated import nodes as emulated
from boardcluster.cluster.kinds.emulated.own_names import write_names
from boardcluster.cluster.limits import links
from boardcluster.cluster.state import IDENTITY_VARIABLE, LiveState, boot_id
from boardcluster.errors import AddressError, ClusterError, HostError, RemoteError
from boardcluster.records import ClusterSpec
from boardcluster.remote.base import ProcessRef
from boardcluster.remote.gate import Completed

MakeSpec = Callable[..., ClusterSpec]
IDENTITY = str(uuid.uuid4())  # two runs of the tests at once must not find each other
NODES = emulated.EmulatedNodes(Path("home"))


@pytest.fixture
def marked() -> Iterator["subprocess.Popen[bytes]"]:
    with asleep(**{IDENTITY_VARIABLE: IDENTITY}) as process:
        yield process


@pytest.mark.parametrize(
    ("user", "link"), [(0, f"bc{IDENTITY[:8]}"), (1000, "")], ids=["root", "ordinary user"]
)
def test_state_before_anything_is_started(
    user: int, link: str, make_spec: MakeSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    state = NODES.new_state(make_spec(), identity=IDENTITY)

    assert (state.phase, state.own_user, state.host_link) == ("starting", user != 0, link)
    assert (state.identity, state.subnet) == (IDENTITY, "198.18.7.0/24")
    assert state.boot_id == boot_id()
    assert len(state.host_link) <= 15  # Linux: IFNAMSIZ


def test_a_node_is_reached_by_its_first_process(make_spec: MakeSpec) -> None:
    made = NODES.new_state(make_spec(), identity=IDENTITY)
    state = replace(made, own_user=True, service_uid=0)
    node = make_live_node("worker1", pid=2**22 + 1)
    remote = emulated.remote_of(node, state)

    assert remote.name == "worker1"
    done = remote.run(["true"], check=False)
    assert done.argv[:4] == ("nsenter", "-t", "4194305", "-U")


@pytest.mark.parametrize("root", [True, False], ids=["root", "ordinary user"])
def test_daemons_and_jobs_of_roots_cluster_run_as_another_user(
    root: bool, make_spec: MakeSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0 if root else 1000)
    nodes = emulated.EmulatedNodes(tmp_path)
    state = nodes.new_state(make_spec(), identity=IDENTITY)
    node = make_live_node("worker1", pid=2**22 + 1)

    assert state.kind == "emulated"
    plain, admin = nodes.remote_of(node, state), nodes.admin_of(node, state)
    assert (plain.name, admin.name) == ("worker1", "worker1")
    as_user, as_root = (remote.run(["true"], check=False).argv for remote in (plain, admin))
    assert (as_user == as_root) is not root
    assert "setpriv" not in as_root
    assert KIND.user(state) == ("boardcluster" if root else "root")
    if root:
        assert f"--reuid={state.service_uid}" in as_user
        assert {"--clear-groups", "--no-new-privs", "--inh-caps=-all"} < set(as_user)
        assert state.service_uid not in {row.pw_uid for row in pwd.getpwall()}


def test_a_cluster_of_an_older_version_is_reached_as_it_was_made(
    make_spec: MakeSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    nodes = emulated.EmulatedNodes(tmp_path)
    state = replace(nodes.new_state(make_spec(), identity=IDENTITY), service_uid=0)
    done = nodes.remote_of(make_live_node("a", pid=2**22 + 1), state).run(["true"], check=False)

    assert "setpriv" not in done.argv
    assert KIND.user(state) == "root"


def start_ticks(process: "subprocess.Popen[bytes]") -> int:
    return int(Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()[19])


def test_alive_are_the_nodes_whose_first_process_runs(
    marked: "subprocess.Popen[bytes]", make_spec: MakeSpec, tmp_path: Path
) -> None:
    nodes = emulated.EmulatedNodes(tmp_path)
    ticks = start_ticks(marked)
    here = make_live_node("here", pid=marked.pid, start_ticks=ticks)
    gone = replace(here, name="gone", start_ticks=ticks + 1)
    state = replace(nodes.new_state(make_spec(), identity=IDENTITY), nodes=(gone, here))

    assert nodes.alive(state) == [here]
    # After a reboot the same number can be any process.
    assert nodes.alive(replace(state, boot_id="another")) == []


def test_left_over_is_what_carries_the_identity_since_this_boot(
    marked: "subprocess.Popen[bytes]", make_spec: MakeSpec, tmp_path: Path
) -> None:
    nodes = emulated.EmulatedNodes(tmp_path)
    state = replace(nodes.new_state(make_spec(), identity=IDENTITY), host_link="")

    assert nodes.has_leftovers(state)
    assert not nodes.has_leftovers(replace(state, boot_id="another"))
    assert not nodes.has_leftovers(replace(state, identity=str(uuid.uuid4())))
    assert nodes.destroy(state) == 1
    marked.wait(10)
    assert not nodes.has_leftovers(state)


def test_a_subnet_in_use_is_found_before_nodes_are_made(
    make_spec: MakeSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(emulated, "run_program", routes({"dst": "198.18.7.0/24", "dev": "bcother"}))

    with pytest.raises(AddressError, match="bcother"):
        emulated.EmulatedNodes(tmp_path).check(make_spec())


def test_finds_processes_by_the_identity_in_their_environment(
    marked: "subprocess.Popen[bytes]",
) -> None:
    assert processes.leftover_processes(IDENTITY) == [marked.pid]
    assert processes.leftover_processes(IDENTITY[:-1]) == []


def test_destroy_ends_what_carries_the_identity_and_nothing_else(
    marked: "subprocess.Popen[bytes]", make_spec: MakeSpec, tmp_path: Path
) -> None:
    state = replace(NODES.new_state(make_spec(), identity=IDENTITY), host_link="")
    with asleep() as other:
        assert emulated.EmulatedNodes(tmp_path).destroy(state) == 1
        assert marked.wait(60) == -signal.SIGKILL
        assert other.poll() is None

    assert emulated.EmulatedNodes(tmp_path).destroy(state) == 0  # safe to repeat


def test_destroy_names_what_does_not_end(
    make_spec: MakeSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = replace(NODES.new_state(make_spec(), identity=IDENTITY), host_link="")
    monkeypatch.setattr(processes, "leftover_processes", lambda _: [2**22 + 1])
    monkeypatch.setattr(emulated, "_SHORT_WAIT_SECONDS", 0.1)

    with pytest.raises(ClusterError, match="4194305") as caught:
        emulated.EmulatedNodes(tmp_path).destroy(state)

    assert "kill -9" in caught.value.hint


def test_alive_means_exactly_this_process(marked: "subprocess.Popen[bytes]") -> None:
    ticks = start_ticks(marked)

    assert processes.is_alive(marked.pid, ticks)
    assert not processes.is_alive(marked.pid, ticks + 1)
    marked.kill()
    os.waitid(os.P_PID, marked.pid, os.WEXITED | os.WNOWAIT)  # a zombie now
    assert not processes.is_alive(marked.pid, ticks)
    marked.wait()
    assert not processes.is_alive(marked.pid, ticks)


def routes(*rows: dict[str, Any]) -> Callable[..., Completed]:
    def answer(argv: list[str], **_: Any) -> Completed:
        text = json.dumps(rows) if argv[:3] == ["ip", "-j", "-4"] else ""
        return Completed(
            argv=tuple(argv), returncode=0, stdout=text.encode(), stderr=b"", duration_seconds=0
        )

    return answer


@pytest.mark.parametrize(
    "taken",
    [
        "198.18.7.0/24",
        "198.18.0.0/15",
        "198.18.7.9",
        "198.0.0.0/9",  # the largest that still is a neighbour
    ],
)
def test_a_subnet_in_use_is_refused(
    taken: str, make_spec: MakeSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    rows = ({"dst": "default", "dev": "eth0"}, {"dst": taken, "dev": "bcother"})
    monkeypatch.setattr(emulated, "run_program", routes(*rows))

    with pytest.raises(AddressError, match=r"198\.18\.7\.0/24 is in use.*bcother") as caught:
        emulated.check_host(make_spec())

    assert "boardcluster down" in caught.value.hint
    assert "198.18.0.0/15" in caught.value.hint


@pytest.mark.parametrize(
    ("route", "where"),
    [
        ({"type": "blackhole", "dst": "198.18.0.0/15", "flags": []}, "blackhole"),
        ({"dst": "198.18.7.0/24", "nexthops": [{"dev": "eth0"}]}, "no interface"),
    ],
)
def test_a_subnet_in_use_without_an_interface_is_refused(
    route: dict[str, Any], where: str, make_spec: MakeSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(emulated, "run_program", routes(route))

    with pytest.raises(AddressError) as caught:
        emulated.check_host(make_spec())

    assert caught.value.message == (
        f"the subnet 198.18.7.0/24 is in use on this machine: {route['dst']} on {where}"
    )


def test_other_networks_and_the_default_route_are_no_hindrance(
    make_spec: MakeSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    rows = (
        {"dst": "default", "dev": "eth0"},
        {"dst": "198.18.6.0/24", "dev": "bcother"},
        {"type": "unreachable", "dst": "default"},
        {"type": "blackhole", "dst": "10.0.0.0/8"},
    )
    monkeypatch.setattr(emulated, "run_program", routes(*rows))

    emulated.check_host(make_spec())


@pytest.mark.parametrize("huge", ["128.0.0.0/1", "192.0.0.0/2", "198.0.0.0/8"])
def test_a_route_to_much_of_the_internet_is_no_hindrance(
    huge: str, make_spec: MakeSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A VPN sends both halves of the Internet through its tunnel; our subnet is more specific.
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    vpn = ({"dst": "0.0.0.0/1", "dev": "tun0"}, {"dst": huge, "dev": "tun0"})
    monkeypatch.setattr(emulated, "run_program", routes(*vpn))
    emulated.check_host(make_spec())

    monkeypatch.setattr(
        emulated, "run_program", routes(*vpn, {"dst": "198.18.7.0/24", "dev": "bcother"})
    )
    with pytest.raises(AddressError, match="bcother"):
        emulated.check_host(make_spec())


class Kernel:
    """Answers in place of run_program, and runs nothing.

    Attributes:
        calls: what was to be run, in order.
        rules: the rows of ``ip -j rule show``.
        refuses: the word on whose sight a call fails.
    """

    def __init__(self, *, rules: list[dict[str, Any]] | None = None, refuses: str = "") -> None:
        self.calls: list[list[str]] = []
        self.rules = rules or []
        self.refuses = refuses

    def __call__(self, argv: list[str], **_: Any) -> Completed:
        self.calls.append(list(argv))
        if self.refuses and self.refuses in argv and argv != ROUTES:
            raise RemoteError("command failed with status 2: ip rule\nOperation not supported")
        text = ""
        if argv == ["ip", "-j", "rule", "show"]:
            text = json.dumps(self.rules)
        elif argv == ROUTES:
            text = "[]"
        elif "qdisc" in argv:
            text = json.dumps([{"kind": "tbf", "options": {"rate": 125_000_000}}])
        return Completed(
            argv=tuple(argv), returncode=0, stdout=text.encode(), stderr=b"", duration_seconds=0
        )


@pytest.fixture
def rooted(make_spec: MakeSpec, monkeypatch: pytest.MonkeyPatch) -> LiveState:
    """The state of a cluster that root starts."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.delenv("SUDO_UID", raising=False)
    state = NODES.new_state(make_spec(), identity=IDENTITY)
    assert state.host_link
    return state


def allow(user: str) -> list[str]:
    return [
        *("ip", "rule", "add", "pref", "5080", "iif", "lo", "to", "198.18.7.0/24"),
        *("uidrange", f"{user}-{user}", "lookup", "main", "protocol", "kernel"),
    ]


LINK = f"bc{IDENTITY[:8]}"
ROUTES = ["ip", "-j", "-4", "route", "show", "table", "main"]
SHOW = ["ip", "-j", "rule", "show"]
BOUND = [
    *("ip", "rule", "add", "pref", "5081", "oif", LINK, "to", "198.18.7.0/24"),
    *("lookup", "5081", "protocol", "kernel"),
]
DENY = [
    *("ip", "rule", "add", "pref", "5082", "to", "198.18.7.0/24"),
    *("prohibit", "protocol", "kernel"),
]
HOST_LINK = [
    [
        *("ip", "link", "add", "name", LINK, "type", "veth"),
        *("peer", "name", "uplink", "netns", str(2**22 + 1)),
    ],
    ["ip", "addr", "add", "198.18.7.1/24", "dev", LINK],
    ["ip", "link", "set", LINK, "up"],
    [
        *("ip", "route", "add", "local", "198.18.7.0/24", "dev", LINK),
        *("table", "5081", "proto", "kernel"),
    ],
]


def remove(preference: int) -> list[str]:
    return ["ip", "rule", "del", "pref", str(preference), "to", "198.18.7.0/24"]


@pytest.mark.parametrize(
    ("sudo", "users"),
    [
        (None, ["0"]),
        ("1000", ["0", "1000"]),
        ("0", ["0"]),
        # Whatever is no number must not widen the range.
        ("", ["0"]),
        ("nobody", ["0"]),
        ("-1", ["0"]),
        ("0-4294967294", ["0"]),
        ("1000 lookup local", ["0"]),
    ],
)
def test_only_root_and_the_user_behind_sudo_reach_the_cluster(
    sudo: str | None, users: list[str], rooted: LiveState, monkeypatch: pytest.MonkeyPatch
) -> None:
    if sudo is not None:
        monkeypatch.setenv("SUDO_UID", sudo)
    kernel = Kernel()
    monkeypatch.setattr(emulated, "run_program", kernel)

    emulated._guard(rooted)

    assert kernel.calls == [SHOW, *(allow(user) for user in users), BOUND, DENY]


def guarding(link: str) -> list[dict[str, Any]]:
    """The rules that close a cluster with this link to all but root."""
    return [
        rule(5080, "198.18.7.0", iif="lo", uid_start=0, uid_end=0, table="main"),
        rule(5081, "198.18.7.0", oif=link, table="5081"),
        rule(5082, "198.18.7.0", action="prohibit"),
    ]


def test_rules_that_a_home_deleted_by_hand_left_are_removed_before_they_are_made_again(
    rooted: LiveState, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = Kernel(rules=guarding("bcgone"))
    monkeypatch.setattr(emulated, "run_program", kernel)

    emulated._guard(rooted)

    assert kernel.calls == [
        SHOW,
        *(remove(preference) for preference in (5080, 5081, 5082)),
        *(allow("0"), BOUND, DENY),
    ]


@pytest.mark.parametrize("refuses", ["show", "uidrange", "oif", "prohibit"])
def test_a_kernel_without_such_rules_gets_no_link(
    refuses: str, rooted: LiveState, make_spec: MakeSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = Kernel(refuses=refuses)
    monkeypatch.setattr(emulated, "run_program", kernel)
    spec = make_spec()
    anchors = {node.name: ProcessRef(2**22 + 2, 1) for node in spec.nodes}

    with pytest.raises(HostError, match="Operation not supported") as caught:
        emulated._connect(spec, rooted, ProcessRef(2**22 + 1, 1), anchors)

    assert caught.value.exit_code == 5
    assert "ordinary user" in caught.value.hint
    assert not any("link" in call for call in kernel.calls)


def test_the_rules_stand_before_the_link_and_only_with_one(
    rooted: LiveState, make_spec: MakeSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = make_spec()
    switch = ProcessRef(2**22 + 1, 1)
    anchors = {node.name: ProcessRef(2**22 + 2, 1) for node in spec.nodes}
    guarded, alone = Kernel(), Kernel()
    for module in (emulated, links):
        monkeypatch.setattr(module, "run_program", guarded)
    emulated._connect(spec, rooted, switch, anchors)
    for module in (emulated, links):
        monkeypatch.setattr(module, "run_program", alone)
    emulated._connect(spec, replace(rooted, own_user=True, host_link=""), switch, anchors)

    outside = [call for call in guarded.calls if call[0] == "ip"]
    assert outside == [ROUTES, SHOW, allow("0"), BOUND, DENY, *HOST_LINK]
    # Only what follows, inside the switch, joins the other end to the bridge.
    assert guarded.calls[: len(outside)] == outside
    assert [call for call in alone.calls if call[0] == "ip"] == []


@pytest.mark.parametrize("knows_ipv6", [True, False])
def test_the_link_never_is_up_with_ipv6(
    knows_ipv6: bool, rooted: LiveState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting = tmp_path / "proc/sys/net/ipv6/conf" / LINK / "disable_ipv6"
    kernel, seen = Kernel(), []

    def run(argv: list[str], **named: Any) -> Completed:
        if argv[:3] == ["ip", "link", "add"] and knows_ipv6:
            setting.parent.mkdir(parents=True)
            setting.write_text("0")
        seen.append(setting.read_text() if setting.exists() else "")
        return kernel(argv, **named)

    monkeypatch.setattr(emulated, "run_program", run)
    monkeypatch.setattr(emulated, "Path", lambda path: tmp_path / path.lstrip("/"))

    emulated._link_host(rooted, ProcessRef(2**22 + 1, 1), "198.18.7.1/24")

    assert kernel.calls == HOST_LINK
    assert seen == (["0", "1", "1", "1"] if knows_ipv6 else [""] * 4)
    assert setting.exists() == knows_ipv6


def test_a_link_that_keeps_ipv6_does_not_go_up(
    rooted: LiveState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = Kernel()
    (tmp_path / "proc/sys/net/ipv6/conf" / LINK / "disable_ipv6").mkdir(parents=True)
    monkeypatch.setattr(emulated, "run_program", kernel)
    monkeypatch.setattr(emulated, "Path", lambda path: tmp_path / path.lstrip("/"))

    with pytest.raises(HostError, match="cannot switch off IPv6") as caught:
        emulated._link_host(rooted, ProcessRef(2**22 + 1, 1), "198.18.7.1/24")

    assert caught.value.exit_code == 5
    assert "ordinary user" in caught.value.hint
    assert kernel.calls == HOST_LINK[:1]


def rule(preference: int, dst: str = "", length: int = 24, **more: Any) -> dict[str, Any]:
    to = {"dst": dst, "dstlen": length} if dst else {}
    return {"priority": preference, "src": "all", **to, **more}


def test_only_this_clusters_rules_are_removed_each_of_them(
    rooted: LiveState, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = Kernel(
        rules=[
            rule(0, table="local"),
            rule(5080, "198.18.7.0", iif="lo", uid_start=0, uid_end=0, table="main"),
            rule(5080, "198.18.7.0", iif="lo", uid_start=1000, uid_end=1000, table="main"),
            rule(5080, "198.18.6.0", iif="lo", uid_start=0, uid_end=0, table="main"),
            rule(5080, table="main"),
            rule(5081, "198.18.7.0", oif=LINK, table="5081"),
            rule(5081, "198.18.6.0", oif="bcother", table="5081"),
            rule(5081, table="5081"),
            rule(5082, "198.18.7.0", action="prohibit"),
            rule(5082, "198.18.6.0", action="prohibit"),
            rule(5082, "198.18.7.0", 25, action="prohibit"),
            rule(5079, "198.18.7.0", table="main"),
            rule(5083, "198.18.7.0", action="prohibit"),
            rule(100, "198.18.7.0", table="main"),
            rule(32766, table="main"),
        ]
    )
    monkeypatch.setattr(emulated, "run_program", kernel)

    emulated._unguard(rooted)

    assert kernel.calls == [SHOW, *(remove(which) for which in (5080, 5080, 5081, 5082))]


def test_rules_that_guard_another_cluster_in_the_same_subnet_stay(
    rooted: LiveState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This one was dead when the other came up, so nothing told them apart."""
    kernel = Kernel(rules=guarding("bcother"))
    monkeypatch.setattr(emulated, "run_program", kernel)
    monkeypatch.setattr(emulated, "_LINKS", tmp_path)
    (tmp_path / "bcother").mkdir()

    emulated._unguard(rooted)

    assert kernel.calls == [SHOW]


def test_destroy_removes_the_rules_of_a_cluster_with_a_link_only(
    rooted: LiveState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = Kernel(
        rules=[
            rule(5081, "198.18.7.0", oif=LINK, table="5081"),
            rule(5082, "198.18.7.0", action="prohibit"),
        ]
    )
    monkeypatch.setattr(emulated, "run_program", kernel)
    monkeypatch.setattr(processes, "leftover_processes", lambda _: [])

    assert emulated.EmulatedNodes(tmp_path).destroy(replace(rooted, host_link="")) == 0
    assert kernel.calls == []
    assert emulated.EmulatedNodes(tmp_path).destroy(rooted) == 0
    assert kernel.calls == [SHOW, remove(5081), remove(5082)]


@pytest.mark.parametrize(("user", "hint"), [(0, "CAP_SYS_ADMIN"), (1000, "user")])
def test_a_machine_without_namespaces_is_refused_with_the_kernels_words(
    user: int, hint: str, make_spec: MakeSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[list[str]] = []

    def refuse(argv: list[str], **_: Any) -> Completed:
        tried.append(argv)
        return Completed(
            argv=(),
            returncode=1,
            stdout=b"",
            stderr=b"unshare failed: Operation not permitted\n",
            duration_seconds=0,
        )

    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(emulated, "run_program", refuse)

    with pytest.raises(HostError, match="unshare failed: Operation not permitted") as caught:
        emulated.check_host(make_spec())

    assert hint in caught.value.hint
    assert ("--map-root-user" in tried[0]) == (user != 0)


def test_every_node_knows_every_name(make_spec: MakeSpec, tmp_path: Path) -> None:
    (tmp_path / "of-root").mkdir()
    folder = write_names(make_spec(workers=2), tmp_path, 0)

    rows = [line.split() for line in (folder / "hosts").read_text().splitlines()]
    assert rows[0] == ["127.0.0.1", "localhost"]
    names = [name for _, name in rows[1:]]
    assert names == ["master", "worker1", "worker2"]
    addresses = {address for address, _ in rows[1:]}
    assert len(addresses) == 3
    assert all(address.startswith("198.18.7.") for address in addresses)
    assert "dns" not in (folder / "nsswitch.conf").read_text()
    assert sorted(file.name for file in folder.iterdir()) == ["hosts", "nsswitch.conf"]

    before = os.umask(0o077)
    try:
        folder = write_names(make_spec(workers=2), tmp_path / "of-root", 61000)
    finally:
        os.umask(before)
    assert folder.stat().st_mode & 0o777 == 0o755  # nodes have it as their /etc
    for name in ("passwd", "group"):
        assert "boardcluster:x:61000:" in (folder / name).read_text()
    assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o644}
