"""What is alive, as recorded in ``<home>/state.json``: enough to find it again after ``kill -9``.

The identity is written before anything is started, and the first process of the switch and of each
node carries it in its environment; everything else ends with those. So there is no moment at which
a process of ours exists that ``down`` cannot find.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from boardcluster.capabilities import Capabilities, capabilities_of
from boardcluster.errors import ClusterError, HostError
from boardcluster.fetch.cache import writing
from boardcluster.records import DiskLimits, NodeLimits
from boardcluster.remote.base import ProcessRef

__all__ = [
    "IDENTITY_VARIABLE",
    "Daemon",
    "LiveNode",
    "LiveState",
    "boot_id",
    "load_state",
    "remove_state",
    "save_state",
    "write_atomically",
]

IDENTITY_VARIABLE = "BOARDCLUSTER_IDENTITY"


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveNode:
    """A node that exists.

    Attributes:
        name: host name.
        address: IPv4 address inside the cluster.
        pid: the first process of an emulated node, as this machine sees it; 0 for other nodes.
        start_ticks: its start time.
        folder: the node's own folder (configuration, data, logs), as the node sees it.
        host: how OpenSSH reaches a board; empty for an emulated node.
        boot_id: the boot of a board in which its daemons were started.
    """

    name: str
    address: str
    pid: int
    start_ticks: int
    folder: str
    host: str = ""
    boot_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Daemon:
    """A daemon that was started.

    Attributes:
        name: ``namenode``, ``datanode``, ``resourcemanager``, ...
        node: the node it runs on.
        process: its process, as the node sees it.
        log: its log file on the node.
        url: its web page.
    """

    name: str
    node: str
    process: ProcessRef
    log: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveState:
    """Everything about a cluster that is being started, up, or left behind by a dead driver.

    Attributes:
        identity: unique; in the environment of everything started for this cluster.
        boot_id: the boot of this machine in which it was started.
        phase: ``starting`` or ``up``.
        own_user: whether the namespaces live in a user namespace made without root.
        subnet: network of the nodes.
        host_link: the host's network interface into the cluster; empty without root.
        nodes: the nodes.
        daemons: the daemons, in start order.
        config_sha256: hash over the generated configuration of all nodes.
        spec_sha256: hash of the ``cluster.toml`` it was started from.
        java: description of the JVM in use.
        form: in words, how a campaign changed it; empty if it is as ``cluster.toml`` says.
        storage: name of the folder, on each node, of its HDFS data and the like.
        temporary: whether a campaign brought it up that found it down, and will bring it down.
        kind: how the nodes exist, as in ``cluster.toml``.
        limits: what the kernel gives each emulated board; empty where nodes are not limited.
        dilation: by how much the nodes are slower than the boards they stand for.
        switch_pid: the first process of the switch of emulated nodes, as this machine sees it.
    """

    identity: str
    boot_id: str
    phase: str
    own_user: bool
    subnet: str
    host_link: str = ""
    nodes: tuple[LiveNode, ...] = ()
    daemons: tuple[Daemon, ...] = ()
    config_sha256: str = ""
    spec_sha256: str = ""
    java: str = ""
    form: str = ""
    storage: str = "data"
    temporary: bool = False
    kind: str = "emulated"
    limits: tuple[NodeLimits, ...] = ()
    dilation: float = 1.0
    switch_pid: int = 0

    @property
    def capabilities(self) -> Capabilities:
        """What its kind of node can do; ask for this instead of the kind."""
        return capabilities_of(self.kind)

    def with_daemon(self, daemon: Daemon) -> LiveState:
        """Return the state with one more daemon."""
        return replace(self, daemons=(*self.daemons, daemon))


def boot_id() -> str:
    """Return the id of this machine's current boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def write_atomically(path: Path, text: str) -> None:
    """Write a small file so that a reader sees the old or the new content, never a part.

    Raises:
        CapacityError: the disk is full.
        HostError: the file cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with writing(path):
        try:
            with temporary.open("w") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(path)
        except OSError:
            with contextlib.suppress(OSError):  # the first error is the one to tell
                temporary.unlink(missing_ok=True)
            raise


def _path(home: Path) -> Path:
    return home / "state.json"


def save_state(home: Path, state: LiveState) -> None:
    """Record the state.

    Raises:
        HostError: see ``write_atomically``.
    """
    write_atomically(_path(home), json.dumps(asdict(state), indent=1))


def remove_state(home: Path) -> None:
    """Record that nothing is alive.

    Raises:
        HostError: the file cannot be removed.
    """
    with writing(_path(home)):
        _path(home).unlink(missing_ok=True)


def load_state(home: Path) -> LiveState | None:
    """Read the recorded state, or None if nothing is alive.

    Raises:
        ClusterError: the file is damaged.
        HostError: the file cannot be read.
    """
    try:
        raw = json.loads(_path(home).read_text())
        return _parse(raw)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise HostError(
            f"cannot read {_path(home)}: {error.strerror}",
            hint="run as the user who started the cluster, or name another one with --home",
        ) from error
    except (ValueError, TypeError, KeyError) as error:
        raise ClusterError(
            f"{_path(home)} is damaged: {error}",
            hint="end the cluster's processes by hand, then remove the file",
        ) from error


def _parse(raw: Mapping[str, Any]) -> LiveState:
    nodes = tuple(LiveNode(**node) for node in raw["nodes"])
    daemons = tuple(
        Daemon(**{**daemon, "process": ProcessRef(**daemon["process"])})
        for daemon in raw["daemons"]
    )
    limits = tuple(_parse_limits(row) for row in raw.get("limits", ()))
    return LiveState(**{**raw, "nodes": nodes, "daemons": daemons, "limits": limits})


def _parse_limits(raw: Mapping[str, Any]) -> NodeLimits:
    disk = raw["disk"]
    return NodeLimits(**{**raw, "disk": None if disk is None else DiskLimits(**disk)})
