"""Have the database on a cluster: its files, its processes, and the knowledge that it answers.

Every process carries the marks of its attempt in its environment, so that it is found after the
driver was killed. The data is made anew for each attempt, and deleted after it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import secrets
import uuid
from collections.abc import Iterator, Mapping, Sequence

from boardcluster.cluster.each_node import each_node
from boardcluster.cluster.state import IDENTITY_VARIABLE
from boardcluster.errors import CapacityError, DaemonError, HostError, RemoteError, RunError
from boardcluster.records import NodeSpec
from boardcluster.remote.node_rpc import (
    http_get_all,
    listening,
    node_program,
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
from boardcluster.services.galera.config import (
    GALERA_PORTS,
    SERVER_PROGRAMS,
    render_balancer,
    render_client,
    render_server,
)
from boardcluster.services.layout import Layout
from boardcluster.services.operation import LiveCluster
from boardcluster.spec.cluster import address_of
from boardcluster.waiting import wait_until

__all__ = [
    "CLIENT_FILE",
    "DATABASE",
    "DATABASE_VARIABLE",
    "MASTER_PROGRAMS",
    "SYSBENCH_FILE",
    "check_url",
    "database_folder",
    "replicated",
]

DATABASE_VARIABLE = "BOARDCLUSTER_DATABASE"
"""Carried by every process of one database, on every node; its value is unique."""

DATABASE = "bench"
"""Name of the database, and of the user that measures it."""

SYSBENCH_FILE = "sysbench.cnf"
"""File of the master's folder with the password, as sysbench reads it."""

CLIENT_FILE = "client.cnf"
"""The same for MariaDB's client."""

MASTER_PROGRAMS: Mapping[str, str] = {
    "/usr/sbin/haproxy": "haproxy",
    "/usr/bin/sysbench": "sysbench",
    "/usr/bin/mariadb": "mariadb-client",
}
"""What the master needs, each program with its Debian package."""

_SYSTEM_SERVICES = {"mariadb-server": "mariadb", "haproxy": "haproxy"}
"""Packages that start a service of the system's own."""
_START_SECONDS = 90.0
_POLL_SECONDS = 0.3
_GRACE_SECONDS = 5.0
_MAKE_SECONDS = 120.0
_DELETE_SECONDS = 600.0
_FULL_BYTES = 32 << 20
_START = """\
# Started again after a loss, the server goes on from where its data ends.
root=$1
shift
place=
if [ -f "$root/data/ibdata1" ] && [ $# = 0 ]; then
    place=$(/usr/sbin/mariadbd --defaults-file="$root/server.cnf" --wsrep-recover 2>&1 |
        sed -n 's/.*Recovered position: *//p' | tail -n 1)
fi
exec /usr/sbin/mariadbd --defaults-file="$root/server.cnf" "$@" \\
    ${place:+--wsrep_start_position=$place}
"""
_MAKE = """\
exec mariadb-install-db --no-defaults --datadir="$1/data" --tmpdir="$1/temporary" --skip-test-db \\
    --skip-name-resolve --auth-root-authentication-method=socket --auth-root-socket-user="$(id -un)"
"""
_LOOK = """\
for needed in "$@"; do
    test -r "$needed" || echo "lacks $needed"
done
test "$(id -u)" = 0 && echo alone
exit 0
"""
"""Says what a node lacks, and whether it has no user but root. Elsewhere nothing of a cluster with
several nodes runs as root."""

_SETUP = """\
CREATE DATABASE {database};
CREATE TABLE {database}.ledger (phase INT NOT NULL, thread INT NOT NULL, number INT NOT NULL,
    PRIMARY KEY (phase, thread, number)) ENGINE = InnoDB;
CREATE USER {database}@'%' IDENTIFIED VIA mysql_native_password USING '{proof}';
GRANT ALL ON {database}.* TO {database}@'%';
"""


def database_folder(layout: Layout, node: NodeSpec) -> str:
    """Return the database's folder on a node, on the medium of its data."""
    return layout.on_medium(node, "galera")


def check_url(layout: Layout, node: NodeSpec) -> str:
    """Return where a worker says whether its database may have work."""
    return f"http://{address_of(layout.spec, node.name)}:{GALERA_PORTS['galera-check']}/"


@contextlib.contextmanager
def replicated(live: LiveCluster, *, mark: Mapping[str, str]) -> Iterator[None]:
    """Have the database run, empty, while the block does; leave nothing of it behind.

    Args:
        live: the cluster.
        mark: variables of every process, by which a killed driver's are found.

    Raises:
        HostError: a package is missing; says which, and how it is installed.
        AddressError: a port is taken.
        DaemonError: a server did not come up; with what it said.
        CapacityError: what ran ended because a disk is full.
    """
    tag = uuid.uuid4().hex
    marks = {**mark, IDENTITY_VARIABLE: live.state.identity, DATABASE_VARIABLE: tag}
    _look(live)
    ports = {node.name: _ports_of(live, node) for node in live.spec.nodes}
    check_ports(live.remotes, ports, what="the database")
    marked = ("env", *(f"{name}={value}" for name, value in marks.items()))
    with ending(lambda: _end(live, tag, ports), "servers of the database"):
        try:
            _configure(live, marked, tag)
            _start_first(live, marked)
            _start_others(live, marked)
            _start_balancer(live, marked)
            yield
        except (DaemonError, RunError) as error:
            if full := _full(live):
                raise CapacityError(
                    f"the disk under the database is full on {', '.join(full)}; {error.message}",
                    hint="free space there, or set fewer oltp.rows, oltp.tables or "
                    "oltp.transactions",
                ) from error
            raise


def _look(live: LiveCluster) -> None:
    """Refuse nodes that lack a program, or a user who is not root."""
    wanted = {
        node.name: [
            *(SERVER_PROGRAMS if node in live.spec.workers else ()),
            *(MASTER_PROGRAMS if node == live.spec.master else ()),
        ]
        for node in live.spec.nodes
    }
    said = look_at(live.remotes, _LOOK, wanted)
    words, packages = missing_programs(said, {**SERVER_PROGRAMS, **MASTER_PROGRAMS})
    if words:
        services = [name for package, name in _SYSTEM_SERVICES.items() if package in packages]
        unused = (
            "; the system's own service is not needed: if you do not use it, `sudo systemctl "
            f"disable --now {' '.join(services)}`"
        )
        raise HostError(
            f"the database cannot start: {words}",
            hint=f"run `sudo apt-get install --no-install-recommends {' '.join(packages)}` there"
            f"{unused if services else ''}",
        )
    if alone := [name for name, rows in said.items() if "alone" in rows]:
        raise HostError(
            f"the database cannot start on {', '.join(alone)}: without root an emulated node has "
            "one user only, and rsync, which copies the data to a new server, refuses that",
            hint="start the cluster as root, or use boards",
        )


def _ports_of(live: LiveCluster, node: NodeSpec) -> list[int]:
    """Return the ports of the parts that a node has."""
    balancer = GALERA_PORTS["galera-balancer"]
    others = [port for port in GALERA_PORTS.values() if port != balancer]
    return [
        *(others if node in live.spec.workers else ()),
        *([balancer] if node == live.spec.master else ()),
    ]


def _configure(live: LiveCluster, marked: tuple[str, ...], tag: str) -> None:
    """Write every node's files; what an earlier run left is deleted."""
    members = {node.name: str(address_of(live.spec, node.name)) for node in live.spec.workers}

    def one(node: NodeSpec) -> None:
        remote, folder = live.remotes[node.name], database_folder(live.layout, node)
        remote.run(["rm", "-rf", folder], timeout_seconds=_DELETE_SECONDS * live.layout.dilation)
        remote.run(["mkdir", "-p", f"{folder}/data", f"{folder}/temporary"])
        texts: dict[str, str] = {}
        if node in live.spec.workers:
            texts["server.cnf"] = render_server(
                root=folder,
                node=node.name,
                address=members[node.name],
                members=members,
                name=tag,
                cores=node.cores,
                memory_bytes=node.memory_bytes,
                dilation=live.layout.dilation,
            )
            texts["start.sh"] = _START
            texts["make.sh"] = _MAKE
            texts["command.json"] = json.dumps(_server(marked, folder))  # to start it after a fault
        if node == live.spec.master:
            texts["haproxy.cfg"] = render_balancer(
                members,
                address=str(address_of(live.spec, node.name)),
                cores=node.cores,
                dilation=live.layout.dilation,
            )
        write_files(remote, folder, texts)

    on_each(live.spec.nodes, one)


def _server(marked: tuple[str, ...], folder: str, *options: str) -> tuple[str, ...]:
    return (*marked, "sh", f"{folder}/start.sh", folder, *options)


def _checker(live: LiveCluster, node: NodeSpec, marked: tuple[str, ...]) -> tuple[str, ...]:
    program = node_program("checking", package=__package__)
    address, port = str(address_of(live.spec, node.name)), str(GALERA_PORTS["galera-check"])
    data = f"{database_folder(live.layout, node)}/data"
    dilation = f"{live.layout.dilation:g}"
    return (*marked, "python3", "-I", "-S", "-c", program, address, port, data, dilation)


def _log(layout: Layout, node: NodeSpec, part: str) -> str:
    return layout.folder(node, "logs", f"{part}.log")


def _start(live: LiveCluster, node: NodeSpec, part: str, argv: Sequence[str]) -> None:
    start_detached(live.remotes[node.name], argv, log=_log(live.layout, node, part))


def _start_first(live: LiveCluster, marked: tuple[str, ...]) -> None:
    """Make the data on the first worker, start the group there, and have its user."""
    layout, node = live.layout, live.spec.workers[0]
    remote, folder = live.remotes[node.name], database_folder(layout, node)
    try:
        remote.run(
            [*marked, "sh", f"{folder}/make.sh", folder],
            timeout_seconds=_MAKE_SECONDS * layout.dilation,
        )
    except RemoteError as error:
        raise DaemonError(
            f"the database cannot be made on {node.name}: {error.message}", hint=error.hint
        ) from error
    _start(live, node, "galera-server", _server(marked, folder, "--wsrep-new-cluster"))
    _start(live, node, "galera-check", _checker(live, node, marked))
    _await(live, [node])
    password = secrets.token_hex(16)
    setup = _SETUP.format(database=DATABASE, proof=_proof_of(password))
    inside = 'cd "$0" && exec mariadb --no-defaults --socket=mariadb.sock'
    remote.run(
        [*marked, "sh", "-c", inside, f"{folder}/data"],
        stdin=setup.encode(),
        timeout_seconds=_MAKE_SECONDS * layout.dilation,
    )
    master = live.spec.master
    sysbench, client = render_client(user=DATABASE, password=password)
    texts = {SYSBENCH_FILE: sysbench, CLIENT_FILE: client}
    write_files(live.remotes[master.name], database_folder(layout, master), texts, mode="600")


def _proof_of(password: str) -> str:
    """Return what the server keeps of a password, so that it is in no statement.

    Source: MariaDB, "Authentication Plugin - mysql_native_password".
    """
    once = hashlib.sha1(password.encode(), usedforsecurity=False).digest()
    return "*" + hashlib.sha1(once, usedforsecurity=False).hexdigest().upper()


def _start_others(live: LiveCluster, marked: tuple[str, ...]) -> None:
    """Start the other servers, each of which first gets a copy of the data."""
    others = live.spec.workers[1:]

    def one(node: NodeSpec) -> None:
        folder = database_folder(live.layout, node)
        _start(live, node, "galera-server", _server(marked, folder))
        _start(live, node, "galera-check", _checker(live, node, marked))

    on_each(others, one)
    _await(live, others)


def _await(live: LiveCluster, nodes: Sequence[NodeSpec]) -> None:
    """Wait until the databases of some nodes are in step.

    Raises:
        DaemonError: one is not in time; with what it said.
    """
    layout = live.layout
    waits_seconds = _START_SECONDS * layout.dilation
    urls = [check_url(layout, node) for node in nodes]

    def late() -> list[NodeSpec]:
        answers = http_get_all(live.master, urls)
        return [node for node, answer in zip(nodes, answers, strict=True) if answer.status != 200]

    left = wait_until(
        late, ready=lambda rows: not rows, timeout_seconds=waits_seconds, poll_seconds=_POLL_SECONDS
    )
    if left:
        node = left[0]
        log = _log(layout, node, "galera-server")
        said = live.remotes[node.name].run(["tail", "-n", "6", log], check=False).text.strip()
        raise DaemonError(
            f"the database on {node.name} is not in step with the others after "
            f"{waits_seconds:g} s:\n{said}",
            hint=f"see {log}",
        )


def _start_balancer(live: LiveCluster, marked: tuple[str, ...]) -> None:
    master = live.spec.master
    folder, remote = database_folder(live.layout, master), live.remotes[master.name]
    haproxy = ("/usr/sbin/haproxy", "-db", "-C", folder, "-f", f"{folder}/haproxy.cfg")
    _start(live, master, "galera-balancer", (*marked, *haproxy))
    port = GALERA_PORTS["galera-balancer"]
    waits_seconds = _START_SECONDS * live.layout.dilation
    if not wait_until(
        lambda: listening(remote, [port]),
        ready=bool,
        timeout_seconds=waits_seconds,
        poll_seconds=_POLL_SECONDS,
    ):
        log = _log(live.layout, master, "galera-balancer")
        said = remote.run(["tail", "-n", "4", log], check=False).text.strip()
        raise DaemonError(
            f"the balancer on {master.name} does not listen after {waits_seconds:g} s:\n{said}",
            hint=f"see {log}",
        )


def _full(live: LiveCluster) -> list[str]:
    """Return the workers whose disk under the data has no room left."""
    known = {node.name: node for node in live.spec.workers}

    def one(name: str) -> int:
        folder = database_folder(live.layout, known[name])
        done = live.remotes[name].run(["stat", "-f", "-c", "%a %S", folder])
        blocks, size = map(int, done.text.split())
        return blocks * size

    free, _ = each_node(known, one)
    return [name for name, left in free.items() if left < _FULL_BYTES]


def _end(live: LiveCluster, tag: str, ports: Mapping[str, list[int]]) -> list[str]:
    """End every process of the database and delete its data; return where that did not work."""

    def delete(node: NodeSpec) -> None:
        live.remotes[node.name].run(
            ["rm", "-rf", database_folder(live.layout, node)],
            timeout_seconds=_DELETE_SECONDS * live.layout.dilation,
        )

    return end_service(
        live.remotes,
        live.spec.nodes,
        f"{DATABASE_VARIABLE}={tag}",
        ports=ports,
        grace_seconds=_GRACE_SECONDS,
        dilation=live.layout.dilation,
        then=delete,
    )
