"""Nodes as Linux namespaces on this machine.

One ``switch`` (a network namespace that holds a bridge) and, for each node, a network, mount, host
name and process-id namespace with its own address in 198.18.0.0/15. Without root all of it lives in
one user namespace, and everything runs as the user who made it. With root, daemons and jobs run as
a user of their own, see ``service_user.py``. The bridge is never in the host's own network
namespace, so the host's firewall rules (Docker's, for instance) do not touch the cluster's traffic;
with root one veth pair leads from the host into the switch, so that web pages open in the host's
browser, guarded by routing rules that let nobody but root and the user behind sudo through.

A node is its first process: when that ends, the kernel ends every process of the node and removes
its interfaces. Nothing is mounted, named or configured outside the namespaces except that veth and
its routing rules.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from boardcluster.cluster.kinds.emulated.own_names import give_names, write_names
from boardcluster.cluster.kinds.emulated.service_user import (
    choose_number,
    close_folder,
    exposing,
    give_folder,
    require_readable,
)
from boardcluster.cluster.limits.cgroups import find_cgroups
from boardcluster.cluster.limits.disks import attach_disk, check_tools, device_of, make_folder
from boardcluster.cluster.limits.host import check_sysbench
from boardcluster.cluster.limits.limiter import (
    Limiter,
    Port,
    clear_leftovers,
    join_prefix,
    make_groups,
)
from boardcluster.cluster.limits.links import batch, check_rate, shape
from boardcluster.cluster.limits.watching import CoreWatch
from boardcluster.cluster.processes import end_processes_of, is_alive, leftover_processes
from boardcluster.cluster.state import IDENTITY_VARIABLE, LiveNode, LiveState, boot_id
from boardcluster.errors import AddressError, ClusterError, HostError, RemoteError
from boardcluster.records import ClusterSpec
from boardcluster.remote.base import ProcessRef, Remote
from boardcluster.remote.gate import run_program
from boardcluster.remote.local import LocalRemote
from boardcluster.remote.netns import NetnsRemote, NetnsUserRemote, enter
from boardcluster.spec.cluster import address_of, host_address
from boardcluster.waiting import wait_until

__all__ = ["EmulatedNodes", "admin_of", "check_host", "remote_of"]

_SHORT_WAIT_SECONDS = 10.0
_HUGE_PREFIX = 8
_LOCAL = "or use one local node: `boardcluster init --kind local`"
_ALLOW_PREFERENCE = 5080
_BOUND_PREFERENCE = 5081
_DENY_PREFERENCE = 5082
_BOUND_TABLE = "5081"
_LASTING = ("protocol", "kernel")  # systemd-networkd removes all other rules that are not its own
_LINKS = Path("/sys/class/net")
_IDLE = ("env", "--ignore-signal=CHLD", "sleep", "infinity")
"""A node's first process. Ignoring SIGCHLD makes the kernel reap the orphans it inherits.

Where root made the node it is root's: root enters by its namespaces, so a job must not trace it.
"""


def check_host(spec: ClusterSpec) -> None:
    """Check, changing nothing, that this machine can hold the nodes.

    Raises:
        HostError: a tool or the right to make namespaces is missing.
        AddressError: the subnet is already in use on this machine.
    """
    trial = ["unshare", "--net", "--mount", "--uts", "--pid", "--fork", "--mount-proc"]
    if os.geteuid() != 0:
        trial.append("--map-root-user")
    done = run_program([*trial, "ip", "link", "set", "lo", "up"], check=False)
    if done.returncode != 0:
        raise HostError(
            "this machine does not allow us to create namespaces: "
            + done.stderr.decode(errors="replace").strip(),
            hint=_namespace_hint(),
        )
    if os.geteuid() == 0:
        _check_subnet(spec.network.subnet)
    if spec.twin is not None:
        _check_limits()


def _check_limits() -> None:
    """Check that this machine can limit nodes to what boards can do.

    Raises:
        HostError: no root, no control groups, or a program is missing.
    """
    if os.geteuid() != 0:
        raise HostError(
            "nodes with a `board` need limits of the kernel, which only root may set",
            hint="run with sudo; or, without root, a cluster whose nodes have no `board` still "
            "works: `boardcluster demo`",
        )
    find_cgroups("")
    check_tools()
    check_sysbench()


def _namespace_hint() -> str:
    restricted = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
    if os.geteuid() != 0 and restricted.exists() and restricted.read_text().strip() == "1":
        return (
            "Ubuntu's AppArmor forbids namespaces to ordinary users: run `make allow-namespaces` "
            f"once (asks for sudo), run the command as root, {_LOCAL}"
        )
    if os.geteuid() != 0:
        return f"allow user namespaces (sysctl user.max_user_namespaces), run as root, {_LOCAL}"
    return f"run on the host, give the container CAP_SYS_ADMIN and CAP_NET_ADMIN, {_LOCAL}"


def _check_subnet(subnet: str) -> None:
    wanted = ipaddress.ip_network(subnet)
    routes = json.loads(run_program(["ip", "-j", "-4", "route", "show", "table", "main"]).text)
    for route in routes:
        if route["dst"] == "default":
            continue
        taken = ipaddress.ip_network(route["dst"], strict=False)
        # A VPN's route to half the Internet is no neighbour: ours is more specific and wins.
        if taken.overlaps(wanted) and taken.prefixlen > _HUGE_PREFIX:
            where = route.get("dev", route.get("type", "no interface"))
            raise AddressError(
                f"the subnet {wanted} is in use on this machine: {taken} on {where}",
                hint="take down the other cluster (`boardcluster down`) or choose another "
                "`subnet` inside 198.18.0.0/15 in cluster.toml",
            )


def remote_of(node: LiveNode, state: LiveState) -> NetnsRemote:
    """Return the way to reach a live node as the user that daemons and jobs run as."""
    if not state.service_uid:
        return admin_of(node, state)
    joining = join_prefix(state.identity, node.name) if state.limits else ()
    return NetnsUserRemote(
        node.name, pid=node.pid, joining=joining, user=state.service_uid, folder=node.folder
    )


def admin_of(node: LiveNode, state: LiveState) -> NetnsRemote:
    """Return the way to reach a live node as its root."""
    joining = join_prefix(state.identity, node.name) if state.limits else ()
    return NetnsRemote(node.name, pid=node.pid, own_user=state.own_user, joining=joining)


def _hand_over_folders(state: LiveState) -> None:
    """Make the disks of limited nodes, or a folder where there is none, in each node's folder.

    The service user gets that folder only afterwards, so that no job can put anything in the place
    of what root makes and mounts there.
    """
    disks = {row.node: row.disk for row in state.limits}
    for node in state.nodes:
        folder, admin = Path(node.folder), admin_of(node, state)
        if state.service_uid:
            for command in close_folder(folder):
                admin.run(command)
        if node.name in disks:
            disk = disks[node.name]
            if disk is None:
                make_folder(folder, admin, owner=state.service_uid)
            else:
                attach_disk(folder, admin, size_bytes=disk.size_bytes, owner=state.service_uid)
        if state.service_uid:
            for command in give_folder(state.service_uid, folder):
                admin.run(command)


def _await_idle(pid: int, log: str) -> None:
    """Wait until ``unshare`` has become ``sleep``: all its namespaces are then in place."""
    comm = _await_word(Path(f"/proc/{pid}/comm"), ready=lambda word: word == "sleep")
    if comm != "sleep":
        raise HostError(
            f"a node's namespaces could not be created (last seen: {comm or 'process ended'})\n"
            + Path(log).read_text()[-500:],
            hint="run `boardcluster doctor`",
        )


def _child_of(pid: int, log: str) -> ProcessRef:
    children = _await_word(Path(f"/proc/{pid}/task/{pid}/children"), ready=bool)
    if not children:
        raise HostError(
            "a node's first process did not start\n" + Path(log).read_text()[-500:],
            hint="run `boardcluster doctor`",
        )
    child = int(children.split()[0])
    _await_idle(child, log)
    stat = Path(f"/proc/{child}/stat").read_text().rsplit(")", 1)[1].split()
    return ProcessRef(child, int(stat[19]))


def _await_word(file: Path, *, ready: Callable[[str], bool]) -> str:
    """Wait for what a file of /proc says; return what it said last, nothing if it is gone."""

    def look() -> str | None:
        try:
            return file.read_text().strip()
        except OSError:
            return None

    return (
        wait_until(
            look,
            ready=lambda word: word is None or ready(word),
            timeout_seconds=_SHORT_WAIT_SECONDS,
            poll_seconds=0.005,
        )
        or ""
    )


def _expose(state: LiveState, needed: Sequence[Path]) -> None:
    """Let the user of daemons and jobs reach on every node what it needs.

    Raises:
        HostError: that user cannot read it.
    """
    for node in state.nodes:
        admin_of(node, state).run(["sh", "-c", exposing([Path(node.folder), *needed])])
    require_readable(remote_of(state.nodes[0], state), needed)


def _connect(
    spec: ClusterSpec, state: LiveState, switch: ProcessRef, anchors: dict[str, ProcessRef]
) -> None:
    """Lay the bridge and one shaped link per node."""
    inside = enter(switch.pid, own_user=state.own_user, kinds="nm")
    rate = spec.network.link_bits_per_second
    prefix_length = ipaddress.ip_network(spec.network.subnet).prefixlen
    gateway = f"{host_address(spec)}/{prefix_length}"
    lines = ["link set lo up", "link add name switch type bridge", "link set switch up"]
    shapes = []
    for index, node in enumerate(spec.nodes):
        port = f"port{index}"
        lines += [
            f"link add name {port} type veth peer name eth0 netns {anchors[node.name].pid}",
            f"link set {port} master switch up",
        ]
        shapes.append(shape(port, rate))
    if state.host_link:
        _check_subnet(state.subnet)  # again: minutes may have passed, in which another came up
        _guard(state)
        _link_host(state, switch, gateway)
        lines.append("link set uplink master switch up")
    else:
        lines.append(f"addr add {gateway} dev switch")
    batch(inside, "ip", lines)
    batch(inside, "tc", shapes)
    for index in range(len(spec.nodes)):
        check_rate(inside, f"port{index}", rate)


def _guard(state: LiveState) -> None:
    """Let only root, and the user behind sudo, send anything into the cluster from this machine.

    Whoever reaches YARN runs commands as the user that YARN runs as. Hadoop's simple
    authentication believes any name, so the way in is closed by the kernel's routing rules, before
    the link exists. Packets that this machine forwards for others do not match ``iif lo``.

    Where a socket is bound to an interface, which needs no privilege, the kernel takes a prohibited
    destination for one on the link and sends all the same (ip_route_output_key_hash_rcu). So such
    packets find a route: one that turns them back to this machine, see ``_link_host``.

    Raises:
        HostError: the kernel has no such rules, so the link must not be made.
    """
    to = ("to", state.subnet)
    users = {"0", os.environ.get("SUDO_UID", "0")}
    rules: list[tuple[int, tuple[str, ...]]] = [
        (_ALLOW_PREFERENCE, ("iif", "lo", *to, "uidrange", f"{user}-{user}", "lookup", "main"))
        for user in sorted(users)
        if user.isdecimal()
    ]
    rules += [
        (_BOUND_PREFERENCE, ("oif", state.host_link, *to, "lookup", _BOUND_TABLE)),
        (_DENY_PREFERENCE, (*to, "prohibit")),
    ]
    try:
        _unguard(state)  # a home deleted by hand may have left rules, which cannot be added twice
        for preference, rule in rules:
            run_program(["ip", "rule", "add", "pref", str(preference), *rule, *_LASTING])
    except RemoteError as error:
        raise HostError(
            f"this kernel cannot restrict who reaches the cluster: {error.message}",
            hint="run as an ordinary user: the cluster then has a network of its own",
        ) from error


def _link_host(state: LiveState, switch: ProcessRef, gateway: str) -> None:
    """Make the host's link; it leads nowhere until its other end joins the bridge.

    Raises:
        HostError: IPv6, for which there are no rules, cannot be switched off on it.
    """
    link = state.host_link
    run_program(
        [
            *("ip", "link", "add", "name", link, "type", "veth"),
            *("peer", "name", "uplink", "netns", str(switch.pid)),
        ]
    )
    setting = Path("/proc/sys/net/ipv6/conf") / link / "disable_ipv6"
    try:
        if setting.exists():
            setting.write_text("1")
    except OSError as error:
        raise HostError(
            f"cannot switch off IPv6 on the cluster's interface: {error}",
            hint="run as an ordinary user: the cluster then has a network of its own",
        ) from error
    run_program(["ip", "addr", "add", gateway, "dev", link])
    run_program(["ip", "link", "set", link, "up"])
    back = ("local", state.subnet, "dev", link, "table", _BOUND_TABLE, "proto", "kernel")
    run_program(["ip", "route", "add", *back])


def _unguard(state: LiveState) -> None:
    """Remove the rules of this cluster's subnet, however many there are.

    Rules that guard the link of a cluster which came up in the same subnet since stay.
    """
    network = ipaddress.ip_network(state.subnet)
    to = (str(network.network_address), network.prefixlen)
    rows = [
        row
        for row in json.loads(run_program(["ip", "-j", "rule", "show"]).text)
        if row["priority"] in (_ALLOW_PREFERENCE, _BOUND_PREFERENCE, _DENY_PREFERENCE)
        and (row.get("dst"), row.get("dstlen")) == to
    ]
    links = {row["oif"] for row in rows if "oif" in row} - {state.host_link}
    if any((_LINKS / link).exists() for link in links):
        return
    for row in rows:
        run_program(["ip", "rule", "del", "pref", str(row["priority"]), "to", state.subnet])


def _configure_node(spec: ClusterSpec, state: LiveState, node: LiveNode, names: Path) -> None:
    """Give a node its name, its address, its link rate and the names that it knows."""
    rate = spec.network.link_bits_per_second
    length = ipaddress.ip_network(spec.network.subnet).prefixlen
    lines = [
        "link set lo up",
        f"addr add {node.address}/{length} broadcast + dev eth0",
        "link set eth0 up",
    ]
    remote = admin_of(node, state)
    remote.run(["hostname", node.name])
    give_names(remote, names)
    inside = enter(node.pid, own_user=state.own_user, kinds="nm")
    batch(inside, "ip", lines)
    batch(inside, "tc", [shape("eth0", rate)])
    check_rate(inside, "eth0", rate)
    seen = remote.run(["hostname"]).text.strip()
    if seen != node.name:
        raise ClusterError(f"host name of {node.name} reads back as {seen!r}")


class EmulatedNodes:
    """The nodes of the emulated cluster with a state folder."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def new_state(self, spec: ClusterSpec, *, identity: str) -> LiveState:
        """Return the state to record before anything is started."""
        own_user = os.geteuid() != 0
        return LiveState(
            identity=identity,
            boot_id=boot_id(),
            phase="starting",
            own_user=own_user,
            subnet=spec.network.subnet,
            host_link="" if own_user else f"bc{identity[:8]}",
            service_uid=0 if own_user else choose_number(),
        )

    def check(self, spec: ClusterSpec) -> None:
        """Check as ``check_host`` does."""
        check_host(spec)

    def create(self, spec: ClusterSpec, state: LiveState, needed: Sequence[Path] = ()) -> LiveState:
        """Create switch, nodes and links; return the state with the live nodes.

        Raises:
            HostError: the kernel refused, or the user of daemons and jobs cannot read what is
                ``needed``.
            ClusterError: a setting does not read back as written.
        """
        here = LocalRemote()
        log = str(self._home / "anchors.log")
        env = {IDENTITY_VARIABLE: state.identity}
        user = ("--user", "--map-root-user") if state.own_user else ()
        switch = here.start(
            ["unshare", *user, "--net", "--mount", *_IDLE], log=log, env=env, cwd=str(self._home)
        )
        _await_idle(switch.pid, log)

        into_switch = enter(switch.pid, own_user=state.own_user, kinds="nm")
        anchors: dict[str, ProcessRef] = {}
        if state.limits:
            make_groups(state.identity, state.limits)
        for node in spec.nodes:
            join = join_prefix(state.identity, node.name) if state.limits else ()
            starter = LocalRemote("switch", prefix=(*join, *into_switch))
            isolate = [
                "--net",
                "--mount",
                "--uts",
                "--pid",
                "--fork",
                "--kill-child",
                "--mount-proc",
            ]
            parent = starter.start(["unshare", *isolate, *_IDLE], log=log, env=env)
            anchors[node.name] = _child_of(parent.pid, log)
        names = write_names(spec, self._home, state.service_uid)
        _connect(spec, state, switch, anchors)
        nodes = []
        for node in spec.nodes:
            folder = self._home / "nodes" / node.name
            folder.mkdir(parents=True, exist_ok=True)
            live = LiveNode(
                name=node.name,
                address=str(address_of(spec, node.name)),
                pid=anchors[node.name].pid,
                start_ticks=anchors[node.name].start_ticks,
                folder=str(folder),
            )
            _configure_node(spec, state, live, names)
            nodes.append(live)
        state = replace(state, nodes=tuple(nodes), switch_pid=switch.pid)
        if state.service_uid:
            _expose(state, needed)
        _hand_over_folders(state)
        return state

    def remote_of(self, node: LiveNode, state: LiveState) -> Remote:
        """Return the way to enter a node as the user that daemons and jobs run as."""
        return remote_of(node, state)

    def admin_of(self, node: LiveNode, state: LiveState) -> Remote:
        """Return the way to enter a node as its root."""
        return admin_of(node, state)

    def alive(self, state: LiveState) -> list[LiveNode]:
        """Return the nodes whose first process lives."""
        if state.boot_id != boot_id():
            return []
        return [node for node in state.nodes if is_alive(node.pid, node.start_ticks)]

    def has_leftovers(self, state: LiveState) -> bool:
        """Whether any process of this machine carries the cluster's identity."""
        return state.boot_id == boot_id() and bool(leftover_processes(state.identity))

    def destroy(self, state: LiveState) -> int:
        """End every process of the cluster and wait until its interfaces and limits are gone.

        Safe to repeat, and after a reboot: processes are found by the cluster's identity, never by
        name. Returns how many processes were ended.

        Raises:
            ClusterError: something could not be ended.
        """
        ended = end_processes_of(state.identity, within_seconds=_SHORT_WAIT_SECONDS)
        link = _LINKS / (state.host_link or "no-such-link")
        if not wait_until(
            lambda: not link.exists(), timeout_seconds=_SHORT_WAIT_SECONDS, poll_seconds=0.02
        ):
            run_program(["ip", "link", "delete", state.host_link])
        if state.host_link:
            with contextlib.suppress(RemoteError):  # a kernel without rules has none of ours
                _unguard(state)
        if not state.own_user:
            clear_leftovers(state.identity, self._home / "nodes")
        return ended

    def limiter(self, spec: ClusterSpec, state: LiveState) -> Limiter | None:
        """Return the limits of a live cluster; None if it has none.

        Raises:
            HostError: this machine's control groups are gone.
        """
        if not state.limits:
            return None
        places = {node.name: node for node in state.nodes}
        return Limiter(
            groups=find_cgroups(state.identity),
            limits=state.limits,
            devices={
                name: device
                for name, node in places.items()
                if (device := device_of(Path(node.folder)))
            },
            ports={
                node.name: Port(
                    node_pid=places[node.name].pid,
                    switch_pid=state.switch_pid,
                    name=f"port{index}",
                    open_bits_per_second=spec.network.link_bits_per_second,
                )
                for index, node in enumerate(spec.nodes)
            },
            watch=CoreWatch(
                home=self._home,
                identity=state.identity,
                first=[ProcessRef(node.pid, node.start_ticks) for node in state.nodes],
            ),
        )

    def page_hint(self, state: LiveState) -> str:
        """Say how pages are opened where there is no link from this machine."""
        if state.host_link:
            return ""
        return (
            "The cluster was started without root, so this machine's browser cannot reach these "
            "addresses; see docs/how-to/open-web-pages.md."
        )
