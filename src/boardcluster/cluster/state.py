"""What is alive, as recorded in ``<home>/state.json``: enough to find it again after ``kill -9``.

The identity is written before anything is started, and the first process of the switch and of each
node carries it in its environment; everything else ends with those. So there is no moment at which
a process of ours exists that ``down`` cannot find.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from boardcluster.capabilities import Capabilities, capabilities_of
from boardcluster.errors import ClusterError, HostError, StoreError
from boardcluster.fetch.cache import write_atomically, writing
from boardcluster.records import NodeLimits
from boardcluster.remote.base import ProcessRef
from boardcluster.store import from_json

__all__ = [
    "IDENTITY_VARIABLE",
    "Daemon",
    "LiveNode",
    "LiveState",
    "boot_id",
    "load_state",
    "remove_state",
    "save_state",
]

IDENTITY_VARIABLE = "BOARDCLUSTER_IDENTITY"


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveNode:
    """A node that exists."""

    name: str
    """Host name."""
    address: str
    """IPv4 address inside the cluster."""
    pid: int
    """The first process of an emulated node, as this machine sees it; 0 for other nodes."""
    start_ticks: int
    """Its start time."""
    folder: str
    """The node's own folder (configuration, data, logs), as the node sees it."""
    host: str = ""
    """How OpenSSH reaches a board; empty for an emulated node."""
    boot_id: str = ""
    """The boot of a board in which its daemons were started."""
    archived: tuple[str, ...] = ()
    """The class-data archives that JVMs on a board were told to use; of other nodes empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Daemon:
    """A daemon that was started."""

    name: str
    """``namenode``, ``datanode``, ``resourcemanager``, ..."""
    node: str
    """The node it runs on."""
    process: ProcessRef
    """Its process, as the node sees it."""
    log: str
    """Its log file on the node."""
    url: str
    """Its web page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveState:
    """Everything about a cluster that is being started, up, or left behind by a dead driver."""

    identity: str
    """Unique; in the environment of everything started for this cluster."""
    boot_id: str
    """The boot of this machine in which it was started."""
    phase: str
    """``starting`` or ``up``."""
    own_user: bool
    """Whether the namespaces live in a user namespace made without root."""
    subnet: str
    """Network of the nodes."""
    host_link: str = ""
    """The host's network interface into the cluster; empty without root."""
    nodes: tuple[LiveNode, ...] = ()
    """The nodes."""
    daemons: tuple[Daemon, ...] = ()
    """The daemons, in start order."""
    config_sha256: str = ""
    """Hash over the generated configuration of all nodes."""
    spec_sha256: str = ""
    """Hash of the ``cluster.toml`` it was started from."""
    java: str = ""
    """Description of the JVM in use."""
    form: str = ""
    """In words, how a campaign changed it; empty if it is as ``cluster.toml`` says."""
    storage: str = "data"
    """Name of the folder, on each node, of its HDFS data and the like."""
    temporary: bool = False
    """Whether a campaign brought it up that found it down, and will bring it down."""
    kind: str = "emulated"
    """How the nodes exist, as in ``cluster.toml``."""
    limits: tuple[NodeLimits, ...] = ()
    """What the kernel gives each emulated board; empty where nodes are not limited."""
    dilation: float = 1.0
    """By how much the nodes are slower than the boards they stand for."""
    switch_pid: int = 0
    """The first process of the switch of emulated nodes, as this machine sees it."""
    service_uid: int = 0
    """Number of the user that daemons and jobs of root's emulated nodes run as; 0 where that is the
    user who reaches the nodes."""
    own_parts: dict[str, str] = field(default_factory=dict)
    """The user's own files that say what its boards have, by path, each with its SHA-256."""
    rules_sha256: str = ""
    """Hash of what its configuration was made by; empty in states of earlier versions."""

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
        return from_json(LiveState, json.loads(_path(home).read_text()))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise HostError(
            f"cannot read {_path(home)}: {error.strerror}",
            hint="run as the user who started the cluster, or name another one with --home",
        ) from error
    except (ValueError, StoreError) as error:
        raise ClusterError(
            f"{_path(home)} is damaged: {error}",
            hint="end the cluster's processes by hand, then remove the file",
        ) from error
