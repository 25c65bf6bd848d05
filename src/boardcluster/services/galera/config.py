"""The configuration of the database's servers and of its balancer, as text. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from boardcluster.services.http.config import THREADS_MOST

__all__ = [
    "GALERA_PORTS",
    "PROVIDER",
    "SERVER_PROGRAMS",
    "buffer_bytes",
    "render_balancer",
    "render_client",
    "render_server",
]

PROVIDER = "/usr/lib/galera/libgalera_smm.so"
"""What makes MariaDB replicate, where Debian's package has it."""

GALERA_PORTS = {
    "galera-balancer": 8010,
    "galera-server": 8011,
    "galera-group": 8012,
    "galera-missed": 8013,
    "galera-copy": 8014,
    "galera-check": 8015,
}
"""Ports of the parts: of the group's own traffic, of what a node missed, and of a whole copy, too.
Open only while a workload measures them."""

SERVER_PROGRAMS: Mapping[str, str] = {
    "/usr/sbin/mariadbd": "mariadb-server",
    "/usr/bin/wsrep_sst_rsync": "mariadb-server",
    PROVIDER: "galera-4",
    "/usr/bin/rsync": "rsync",
}
"""What a worker needs, each file with its Debian package."""

_CACHE_BYTES = 128 << 20
_SUSPECT_SECONDS = 2.0
_INACTIVE_SECONDS = 4.0
_KEEPALIVE_SECONDS = 0.5
_LOOK_SECONDS = 0.25
"""Galera's own defaults are 5, 15, 1 and 0.5 s; the order among them is the same."""

_LEAST_BUFFER_BYTES = 32 << 20
_BUFFER_SHARE = 8
_CONNECTIONS = 1100
_SERVER = """\
[mariadbd]
datadir = {root}/data
tmpdir = {root}/temporary
# Beside the data, and named from there: a socket's path must be short.
socket = mariadb.sock
pid_file = mariadbd.pid
bind_address = {address}
port = {port}
skip_name_resolve
max_connections = {connections}
default_storage_engine = InnoDB
innodb_buffer_pool_size = {buffer}
# A transaction that waited too long is undone as a whole, not only its last statement.
innodb_rollback_on_timeout = ON
# What Galera asks for.
binlog_format = ROW
innodb_autoinc_lock_mode = 2
wsrep_on = ON
wsrep_provider = {provider}
wsrep_provider_options = "{options}"
wsrep_cluster_name = {name}
wsrep_cluster_address = gcomm://{members}
wsrep_node_name = {node}
wsrep_node_address = {address}
wsrep_slave_threads = {appliers}
wsrep_sst_method = rsync
wsrep_sst_receive_address = {address}:{copy}
"""
_BALANCER = """\
global
    stats socket unix@haproxy.sock mode 600 level operator
    nbthread {cores}
    maxconn {connections}

defaults
    mode tcp
    option redispatch
    retries 3
    timeout connect {connect}
    timeout client {idle}
    timeout server {idle}
    # Without it an answer has no longer than from one check to the next.
    timeout check {connect}
    default-server check port {checked} inter {check} fall 3 rise 2 on-marked-down shutdown-sessions

frontend database
    bind {address}:{port} backlog 4096
    default_backend servers

backend servers
    balance leastconn
    option httpchk GET /
{servers}
"""
_CONNECT_SECONDS = 1.0
_IDLE_SECONDS = 3600.0
_CHECK_SECONDS = 0.4


def _milliseconds(seconds: float, dilation: float) -> str:
    return f"{round(seconds * 1000 * dilation)}ms"


def buffer_bytes(memory_bytes: int) -> int:
    """Return the size of a server's buffer pool: an eighth of its node, beside Hadoop's daemons."""
    return max(_LEAST_BUFFER_BYTES, memory_bytes // _BUFFER_SHARE)


def render_server(
    *,
    root: str,
    node: str,
    address: str,
    members: Mapping[str, str],
    name: str,
    cores: int,
    memory_bytes: int,
    dilation: float,
) -> str:
    """Return the configuration of the MariaDB of one worker.

    Args:
        root: the database's folder.
        node: name of the worker.
        address: where it listens, and nowhere else.
        members: address of each worker by its name.
        name: of this group and of no other.
        cores: the node's cores.
        memory_bytes: the node's memory.
        dilation: by how much the nodes are slower than the boards they stand for.
    """
    times = {
        "evs.keepalive_period": _KEEPALIVE_SECONDS,
        "evs.inactive_check_period": _LOOK_SECONDS,
        "evs.suspect_timeout": _SUSPECT_SECONDS,
        "evs.inactive_timeout": _INACTIVE_SECONDS,
        "evs.install_timeout": _INACTIVE_SECONDS,
    }
    group = GALERA_PORTS["galera-group"]
    options = {
        "gmcast.listen_addr": f"tcp://{address}:{group}",
        "ist.recv_addr": f"{address}:{GALERA_PORTS['galera-missed']}",
        "gcache.size": str(_CACHE_BYTES),
        **{key: f"PT{seconds * dilation:g}S" for key, seconds in times.items()},
    }
    return _SERVER.format(
        root=root,
        node=node,
        address=address,
        port=GALERA_PORTS["galera-server"],
        connections=_CONNECTIONS,
        buffer=buffer_bytes(memory_bytes),
        provider=PROVIDER,
        options="; ".join(f"{key}={value}" for key, value in options.items()),
        name=name,
        members=",".join(f"{where}:{group}" for where in members.values()),
        appliers=max(2, cores),
        copy=GALERA_PORTS["galera-copy"],
    )


def render_balancer(
    servers: Mapping[str, str], *, address: str, cores: int, dilation: float
) -> str:
    """Return the configuration of HAProxy.

    Args:
        servers: each worker's address by its name.
        address: where it listens, and nowhere else.
        cores: the master's cores.
        dilation: by how much the nodes are slower than the boards they stand for.
    """
    port = GALERA_PORTS["galera-server"]
    return _BALANCER.format(
        address=address,
        port=GALERA_PORTS["galera-balancer"],
        cores=min(cores, THREADS_MOST),
        connections=4 * _CONNECTIONS,
        connect=_milliseconds(_CONNECT_SECONDS, dilation),
        idle=_milliseconds(_IDLE_SECONDS, dilation),
        checked=GALERA_PORTS["galera-check"],
        check=_milliseconds(_CHECK_SECONDS, dilation),
        servers="\n".join(f"    server {name} {where}:{port}" for name, where in servers.items()),
    )


def render_client(*, user: str, password: str) -> tuple[str, str]:
    """Return the file with the password that sysbench reads, and that of MariaDB's client."""
    sysbench = f"mysql-user={user}\nmysql-password={password}\n"
    return sysbench, f"[client]\nuser={user}\npassword={password}\n"
