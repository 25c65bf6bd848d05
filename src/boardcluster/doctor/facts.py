"""All facts that the checks read, wherever they come from: one object, and pure data."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from boardcluster.capabilities import every_kind
from boardcluster.cluster.facts import package_manager
from boardcluster.cluster.state import LiveState
from boardcluster.doctor.machine import Machine
from boardcluster.errors import (
    BoardclusterError,
    ClusterError,
    LoginError,
    SpecError,
)
from boardcluster.records import ClusterSpec, Mount, NetworkSpec, NodeFacts, NodeSpec
from boardcluster.services.pair import EnginePair, load_pair, pair_ids
from boardcluster.services.profile import Profile, build_profile
from boardcluster.spec.cluster import DEFAULT_LINK_BITS_PER_SECOND, DEFAULT_SUBNET

__all__ = [
    "GOVERNOR_FILES",
    "MASTER_NOT_ASKED",
    "Board",
    "BoardDetails",
    "Facts",
    "LostBoard",
    "MasterAnswers",
    "NodeMachine",
    "NodeManagerState",
    "WaitingJob",
]

MASTER_NOT_ASKED = "cannot tell: the master's board could not be asked"
"""What to say where only it could tell."""

GOVERNOR_FILES = "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardDetails:
    """What only the doctor asks of a board."""

    provisioned: bool = False
    """Whether `up` has installed the cluster there."""
    firewall: bool | None = None
    """Whether our table of nftables is loaded; None if nft gives no answer."""
    name_addresses: tuple[str, ...] = ()
    """What its name in cluster.toml resolves to, there."""
    cluster_ids: Mapping[str, str] = field(default_factory=dict)
    """Per VERSION file of HDFS's data, the clusterID in it."""
    login_id: int = 0
    """User id of who logged in."""
    permissions: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Path to (owner, mode) of that user's home and SSH files."""
    listening: tuple[tuple[str, int], ...] = ()
    """Addresses and ports that take TCP connections."""
    ssh_settings: Mapping[str, str] = field(default_factory=dict)
    """What `sshd -T` says: keyword in lower case to value; empty if it gives no answer."""
    accounts_with_password: tuple[str, ...] = ()
    """Names of accounts that have one."""
    java: str = ""
    """The Java that was installed for the daemons, links resolved; empty if none was."""
    dead_daemons: tuple[str, ...] = ()
    """Names of daemons that were started and no longer run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """A board that answered: what is declared, what it is, and what else was asked."""

    spec: NodeSpec
    facts: NodeFacts
    details: BoardDetails

    @property
    def name(self) -> str:
        """Its name in the cluster."""
        return self.spec.name

    @property
    def mount(self) -> Mount | None:
        """The file system that holds its folder, or will hold it."""
        point = self.facts.folder_mount
        return next((row for row in self.facts.mounts if row.folder == point), None)

    def there(self, command: str) -> str:
        """Return the command line that runs a command on the board."""
        return _over_ssh(self.spec.host, command)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeMachine:
    """What is asked alike of every machine that holds nodes: this one, or each board."""

    name: str
    """Of the board; empty for this machine."""
    host: str
    """How ssh reaches the board; empty for this machine."""
    governor: str
    """Frequency governor; several joined by commas; empty if the kernel has none."""
    page_size_bytes: int
    """Size of a memory page."""
    package_managers: tuple[str, ...]
    """Processes of apt and its kind that are at work."""
    systemd: bool
    """Whether systemd manages its services."""

    def there(self, command: str) -> str:
        """Return the command line that runs a command on that machine."""
        return _over_ssh(self.host, command) if self.host else command


@dataclass(frozen=True, slots=True, kw_only=True)
class LostBoard:
    """A board that did not answer, as it is declared, and why it did not."""

    spec: NodeSpec
    error: BoardclusterError

    @property
    def refused_by_sudo(self) -> bool:
        """Whether the login worked and only sudo refused."""
        return isinstance(self.error, LoginError) and "sudo" in self.error.message


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeManagerState:
    """A NodeManager as the ResourceManager sees it."""

    host: str
    """Its node."""
    state: str
    """E.g. RUNNING, UNHEALTHY, LOST."""
    report: str
    """Its own words on its health."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingJob:
    """An application that YARN accepted and has not started."""

    id: str
    """YARN's id."""
    name: str
    """Its name."""
    waited_seconds: float
    """Since it was submitted."""
    diagnostics: str
    """What YARN says about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MasterAnswers:
    """What the masters of a running cluster say; None where one did not answer."""

    live_datanodes: int | None
    """DataNodes that report to the NameNode."""
    managers: tuple[NodeManagerState, ...] | None
    """Every NodeManager the ResourceManager knows."""
    waiting: tuple[WaitingJob, ...] | None
    """Jobs in the state ACCEPTED."""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """This machine, and the cluster of one home."""

    machine: Machine
    """This machine."""
    home: Path
    """The cluster's state folder; need not exist."""
    cache: Path
    """Folder of fetched engines; need not exist."""
    options: str = ""
    """command-line options that name this cluster again, with a space before each."""
    cache_option: str = ""
    """The option that names the cache again, with a space before it."""
    deep: bool = False
    """Whether checks may take long, e.g. to hash every byte."""
    spec: ClusterSpec | None = None
    """The cluster as ``cluster.toml`` declares it; None if there is none or it is wrong."""
    spec_error: SpecError | None = None
    """What is wrong with ``cluster.toml``."""
    state: LiveState | None = None
    """What is recorded as alive; None if nothing is or the record is damaged."""
    state_error: ClusterError | None = None
    """Why the record cannot be read."""
    running: ClusterSpec | None = None
    """The cluster as it was started, perhaps as another variant; None if nothing is recorded as
    alive."""
    this_boot: bool = False
    """Whether the record is from this boot of the machine."""
    alive: bool = False
    """Whether every recorded node lives."""
    processes: tuple[int, ...] = ()
    """Ids of all processes that carry the cluster's identity."""
    driver: int | None = None
    """Id of the boardcluster that is busy with this cluster right now, if any."""
    boards: tuple[Board, ...] = ()
    """Those that answered, in the order of the file."""
    lost: tuple[LostBoard, ...] = ()
    """Those that did not."""
    masters: MasterAnswers | None = None
    """What the masters of boards say; None unless the cluster is recorded as up."""

    @cached_property
    def declared(self) -> ClusterSpec:
        """The specification, or an empty one with the defaults that ``init`` would write."""
        return self.spec or ClusterSpec(
            name="default",
            kind=next(iter(every_kind())),
            engines=pair_ids()[0],
            profile="default",
            network=NetworkSpec(
                subnet=DEFAULT_SUBNET, link_bits_per_second=DEFAULT_LINK_BITS_PER_SECOND
            ),
            nodes=(),
        )

    @cached_property
    def pair(self) -> EnginePair:
        """The engine pair of the specification, or the newest."""
        return load_pair(self.declared.engines)

    @property
    def nodes(self) -> tuple[NodeMachine, ...]:
        """The machines that hold the nodes: the boards that answered, or this machine."""
        if self.declared.capabilities.over_ssh:
            return tuple(_of_board(board) for board in self.boards)
        return (_of_this_machine(self.machine),)

    @property
    def no_masters(self) -> str:
        """Why nothing is known of the masters, in words."""
        if self.state is not None and self.state.phase == "up":
            return MASTER_NOT_ASKED
        return "the cluster is not up"

    @property
    def expected_workers(self) -> tuple[NodeSpec, ...]:
        """The workers that should be live."""
        return (self.running or self.declared).workers

    @cached_property
    def profile(self) -> Profile | None:
        """The engine configuration; None if it is wrong or fits no node; see check profile."""
        try:
            return build_profile(self.declared.profile, self.declared)
        except BoardclusterError:
            return None

    def setting(self, file: str, name: str, default: str, *, node: str = "") -> str:
        """Return a property as the profile sets it, on a node if that is named."""
        if self.profile is None:
            return default
        own = self.profile.per_node.get(node, {}) if file == "yarn-site" else {}
        return own.get(name) or self.profile.properties[file].get(name, default)

    @property
    def default_profile(self) -> str:
        """How to change to the default profile, and when not to."""
        path = self.home / "cluster.toml"
        return (
            f'set `profile = "default"` in {path}; keep {self.declared.profile} only if you '
            "need exactly its settings"
        )

    def command(self, name: str, *, fetches: bool = False) -> str:
        """Return the command line of a command for this cluster, and its cache if it fetches."""
        return f"boardcluster {name}{self.options}{self.cache_option if fetches else ''}"

    @property
    def restart(self) -> str:
        """The command lines that stop the cluster and start it again."""
        return f"{self.command('down')}, then {self.command('up')}"


def _over_ssh(host: str, command: str) -> str:
    return f"ssh {host} {shlex.quote(command)}"


def _of_board(board: Board) -> NodeMachine:
    return NodeMachine(
        name=board.name,
        host=board.spec.host,
        governor=board.facts.governor,
        page_size_bytes=board.facts.page_size_bytes,
        package_managers=board.facts.package_managers,
        systemd=board.facts.service_manager == "systemd",
    )


def _of_this_machine(machine: Machine) -> NodeMachine:
    governors = {(machine.text(path) or "").strip() for path in machine.paths(GOVERNOR_FILES)}
    busy = [
        f"{name} (process {path.split('/')[2]})"
        for path in machine.paths("/proc/[0-9]*/cmdline")
        if (name := package_manager((machine.text(path) or "").split("\0")))
    ]
    return NodeMachine(
        name="",
        host="",
        governor=",".join(sorted(governors - {""})),
        page_size_bytes=machine.page_size_bytes,
        package_managers=tuple(busy),
        systemd=bool(machine.paths("/run/systemd/system")),
    )
