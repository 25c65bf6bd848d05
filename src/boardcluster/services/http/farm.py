"""Have the farm on a cluster: its files, its processes, and the knowledge that it serves.

Every process carries the marks of its attempt in its environment, so that it is found after the
driver was killed. nginx writes its title over its environment; so it has a parent with the marks
that does nothing else, and ends when that ends.
"""

from __future__ import annotations

import contextlib
import functools
import json
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

from boardcluster.cluster.state import IDENTITY_VARIABLE
from boardcluster.errors import DaemonError, HostError
from boardcluster.records import NodeSpec
from boardcluster.remote.base import Remote
from boardcluster.remote.node_rpc import (
    Reached,
    reach,
    start_detached,
)
from boardcluster.services.beside import (
    check_ports,
    end_service,
    ending,
    look_at,
    missing_programs,
    on_each,
    write_files,
)
from boardcluster.services.http.config import (
    FARM_PORTS,
    MODULE,
    render_balancer,
    render_compute,
    render_server,
)
from boardcluster.services.layout import Layout
from boardcluster.services.operation import LiveCluster
from boardcluster.spec.cluster import address_of
from boardcluster.waiting import wait_until

__all__ = ["FARM_VARIABLE", "farm_folder", "put_pages", "serving", "target_of"]

FARM_VARIABLE = "BOARDCLUSTER_FARM"
"""Carried by every process of one farm, on every node; its value is unique."""

_START_SECONDS = 20.0
_REACH_SECONDS = 2.0
_POLL_SECONDS = 0.05
_GRACE_SECONDS = 2.0
_DIGEST = "digest"
_MOUNTED = "/srv"
_SERVER_USER = "www-data"
_BALANCER_USER = "haproxy"
_BESIDE = 'setpriv --pdeathsig TERM "$@"; :'
"""Stays the parent of what it starts, which ends with it."""
_MOUNT = 'mount --bind "$0" /srv && exec "$@"'
_LOOK = f"""\
for needed in "$@"; do
    test -r "$needed" || echo "lacks $needed"
done
test "$(id -u)" = 0 && awk '{{ n += $3 }} END {{ exit n <= 65536 }}' /proc/self/uid_map \\
    && id {_SERVER_USER} > /dev/null 2>&1 && unshare --mount true 2> /dev/null && echo root
exit 0
"""
"""Says what a node lacks, and whether it has a root that can become another user."""

_NGINX, _HAPROXY = "/usr/sbin/nginx", "/usr/sbin/haproxy"
_PACKAGES = {_NGINX: "nginx", MODULE: "libnginx-mod-http-js", _HAPROXY: "haproxy"}


def farm_folder(layout: Layout, node: NodeSpec) -> str:
    """Return the farm's folder on a node, on the medium of its data."""
    return layout.on_medium(node, "http")


def target_of(layout: Layout, node: NodeSpec, port: str) -> str:
    """Return the address and the port, given by its name, at which a part of the farm listens."""
    return f"{address_of(layout.spec, node.name)}:{FARM_PORTS[port]}"


def put_pages(live: LiveCluster, pages: Path, *, digest: str) -> None:
    """Have the pages on every node: workers serve them, the master's client compares with them.

    Args:
        live: the cluster.
        pages: a folder of the driver with the folder ``pages`` in it, and the plan.
        digest: of all of it; a node that has it already gets nothing.
    """

    def one(node: NodeSpec) -> None:
        remote, folder = live.remotes[node.name], farm_folder(live.layout, node)
        there = remote.run(["cat", f"{folder}/{_DIGEST}"], check=False)
        if there.returncode == 0 and there.text.strip() == digest:
            return
        remote.run(["rm", "-rf", folder])
        remote.run(["mkdir", "-p", folder])
        for path in sorted(pages.iterdir()):
            if path.name != _DIGEST:  # which says that all of it is there
                remote.put(path, f"{folder}/{path.name}")
        # Other users read them, whatever our own mask is.
        remote.run(["chmod", "-R", "a+rX", folder])
        remote.run(["sh", "-c", 'echo "$0" > "$1"', digest, f"{folder}/{_DIGEST}"])

    on_each(live.spec.nodes, one)


@contextlib.contextmanager
def serving(live: LiveCluster, *, mark: Mapping[str, str], rounds: int) -> Iterator[None]:
    """Have the farm serve while the block runs; leave no process of it behind.

    Args:
        live: the cluster, whose nodes have the pages.
        mark: variables of every process, by which a killed driver's are found.
        rounds: digests that a computed page costs.

    Raises:
        HostError: a package is missing; says which, and how it is installed.
        AddressError: a port is taken.
        DaemonError: a server did not come up; with what it said.
    """
    tag = uuid.uuid4().hex
    marks = {**mark, IDENTITY_VARIABLE: live.state.identity, FARM_VARIABLE: tag}
    roots = _look(live)
    ports = {node.name: _ports_of(live, node) for node in live.spec.nodes}
    check_ports(live.remotes, ports, what="the HTTP farm")
    marked = ("env", *(f"{name}={value}" for name, value in marks.items()))
    commands = _configure(live, roots, marked, rounds=rounds)
    end = functools.partial(
        end_service,
        live.remotes,
        live.spec.nodes,
        f"{FARM_VARIABLE}={tag}",
        ports=ports,
        grace_seconds=_GRACE_SECONDS,
        dilation=live.layout.dilation,
    )
    with ending(end, "servers of the farm"):
        for part in ("http-server", "http-balancer"):  # which finds every server there
            _start(live, commands, part)
            _await(live, part)
        yield


def _look(live: LiveCluster) -> dict[str, bool]:
    """Return by node whether servers can become another user; refuse nodes that lack a program."""
    wanted = {
        node.name: [
            *((_NGINX, MODULE) if node in live.spec.workers else ()),
            *((_HAPROXY,) if node == live.spec.master else ()),
        ]
        for node in live.spec.nodes
    }
    said = look_at(live.remotes, _LOOK, wanted)
    words, packages = missing_programs(said, _PACKAGES)
    if words:
        raise HostError(
            f"the HTTP farm cannot start: {words}",
            hint=f"run `sudo apt-get install -y --no-install-recommends {' '.join(packages)}` "
            "there; the system's own services are not needed: `sudo systemctl disable --now nginx "
            "haproxy`",
        )
    return {name: "root" in rows for name, rows in said.items()}


def _ports_of(live: LiveCluster, node: NodeSpec) -> list[int]:
    """Return the ports of the parts that a node has."""
    names = [
        *(("http-server",) if node in live.spec.workers else ()),
        *(("http-balancer", "http-null") if node == live.spec.master else ()),
    ]
    return [FARM_PORTS[name] for name in names]


def _configure(
    live: LiveCluster, roots: Mapping[str, bool], marked: tuple[str, ...], *, rounds: int
) -> dict[str, dict[str, tuple[str, ...]]]:
    """Write every node's configuration; return by node the command of each part, by its port."""
    layout = live.layout
    servers = {node.name: target_of(layout, node, "http-server") for node in live.spec.workers}
    commands: dict[str, dict[str, tuple[str, ...]]] = {}

    def one(node: NodeSpec) -> None:
        remote, folder = live.remotes[node.name], farm_folder(layout, node)
        is_root, own = roots[node.name], commands.setdefault(node.name, {})
        texts: dict[str, str] = {}
        where = str(address_of(live.spec, node.name))
        if node in live.spec.workers:
            root = _MOUNTED if is_root else folder
            user = _SERVER_USER if is_root else _same_user(remote)
            port = FARM_PORTS["http-server"]
            texts["nginx.conf"] = render_server(
                root=root, address=where, port=port, cores=node.cores, user=user
            )
            texts["compute.js"] = render_compute(rounds)
            mounted = ("unshare", "--mount", "sh", "-c", _MOUNT, folder) if is_root else ()
            nginx = (_NGINX, "-p", root, "-e", f"{root}/error.log", "-c", f"{root}/nginx.conf")
            own["http-server"] = (*marked, "sh", "-c", _BESIDE, "farm", *mounted, *nginx)
            texts["command.json"] = json.dumps(own["http-server"])  # to start it after a fault
        if node == live.spec.master:
            texts["haproxy.cfg"] = render_balancer(
                servers,
                address=where,
                port=FARM_PORTS["http-balancer"],
                cores=node.cores,
                user=_BALANCER_USER if is_root else "",
                dilation=layout.dilation,
            )
            haproxy = (_HAPROXY, "-db", "-C", folder, "-f", f"{folder}/haproxy.cfg")
            own["http-balancer"] = (*marked, "sh", "-c", _BESIDE, "farm", *haproxy)
        # A fault of an earlier run must not be taken for one of this.
        remote.run(["sh", "-c", 'rm -f "$0"/fault-*.json', folder])
        remote.run(["mkdir", "-p", f"{folder}/temporary"])
        write_files(remote, folder, texts)

    on_each(live.spec.nodes, one)
    return commands


def _same_user(remote: Remote) -> str:
    """Return what nginx must be told in a user namespace, where the only user is called root."""
    return "root root" if remote.run(["id", "-u"]).text.strip() == "0" else ""


def _log(layout: Layout, node: NodeSpec, part: str) -> str:
    return layout.folder(node, "logs", f"{part}.log")


def _start(
    live: LiveCluster, commands: Mapping[str, Mapping[str, tuple[str, ...]]], part: str
) -> None:
    def one(node: NodeSpec) -> None:
        if argv := commands[node.name].get(part):
            log = _log(live.layout, node, part)
            start_detached(live.remotes[node.name], argv, log=log)

    on_each(live.spec.nodes, one)


def _await(live: LiveCluster, part: str) -> None:
    """Wait until the master reaches every server, or the balancer.

    Raises:
        DaemonError: one does not answer in time; with what it said.
    """
    layout = live.layout
    nodes = [live.spec.master] if part == "http-balancer" else list(live.spec.workers)
    places = [(str(address_of(live.spec, node.name)), FARM_PORTS[part]) for node in nodes]
    waits_seconds = _START_SECONDS * layout.dilation

    def silent() -> list[NodeSpec]:
        views = reach(live.master, places, timeout_seconds=_REACH_SECONDS * layout.dilation)
        return [
            node for node, view in zip(nodes, views, strict=True) if view.state is not Reached.OK
        ]

    late = wait_until(
        silent,
        ready=lambda rows: not rows,
        timeout_seconds=waits_seconds,
        poll_seconds=_POLL_SECONDS,
    )
    if late:
        node = late[0]
        remote, log = live.remotes[node.name], _log(layout, node, part)
        own = f"{farm_folder(layout, node)}/error.log"
        said = remote.run(["tail", "-q", "-n", "4", log, own], check=False).text.strip()
        raise DaemonError(
            f"the {part.replace('-', ' ')} on {node.name} does not answer after "
            f"{waits_seconds:g} s:\n{said}",
            hint=f"see {log}",
        )
