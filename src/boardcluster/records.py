"""The nouns of boardcluster as frozen dataclasses.

Every room may import this module and it imports none of them but ``capabilities``. Units stand last
in every name (``_seconds``, ``_bytes``, ``_watts``). What is declared lives here; what is alive
(processes, namespaces, connections) lives in the room that owns it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from boardcluster.capabilities import Capabilities, capabilities_of, every_kind

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing

__all__ = [
    "BASELINE_LEAST",
    "EXCLUDING_SHARE",
    "HOST",
    "MANY_YEARS",
    "QUOTA_CORES_LEAST",
    "SMALLEST_EFFECT_SHARE",
    "Attempt",
    "AttemptState",
    "CachePolicy",
    "Campaign",
    "CampaignKind",
    "CampaignSpec",
    "Checksum",
    "ClusterSpec",
    "Coverage",
    "Dataset",
    "DeclaredComparison",
    "DiskLimits",
    "Disturbance",
    "Egress",
    "Energy",
    "EnergyMethod",
    "Engine",
    "Fingerprint",
    "JavaHome",
    "Link",
    "MasterPlacement",
    "Matrix",
    "Measurement",
    "Medium",
    "MeterSpec",
    "Mount",
    "NetworkSpec",
    "NodeFacts",
    "NodeLimits",
    "NodeSamples",
    "NodeSpec",
    "NodeTwin",
    "OnLoss",
    "PlannedFault",
    "Policy",
    "Power",
    "PowerModel",
    "PowerSamples",
    "Prices",
    "ProbeFigure",
    "ProbeMode",
    "ProbeRun",
    "Result",
    "Role",
    "Security",
    "Sudo",
    "Swap",
    "TaskRecord",
    "Telemetry",
    "Trial",
    "TwinSpec",
    "Variant",
    "Verdict",
    "Verification",
    "in_cell",
]

HOST = "host"
"""What the machine that emulated nodes share is called beside them, in samples and probes."""


class Role(StrEnum):
    """What a node does in the cluster. A node may have both roles."""

    MASTER = "master"
    WORKER = "worker"


class Engine(StrEnum):
    """The engines a workload can run on."""

    MAPREDUCE = "mapreduce"
    SPARK = "spark"
    MPI = "mpi"
    HTTP = "http"
    GALERA = "galera"
    GLUSTER = "gluster"

    @property
    def own_name(self) -> str:
        """Its own spelling of its name."""
        names = {
            Engine.MAPREDUCE: "MapReduce",
            Engine.SPARK: "Spark",
            Engine.GALERA: "Galera",
            Engine.GLUSTER: "GlusterFS",
        }
        return names.get(self, self.value.upper())

    @property
    def on_yarn(self) -> bool:
        """Whether its jobs run in YARN's containers, with data in HDFS and settings of Hadoop."""
        return self in (Engine.MAPREDUCE, Engine.SPARK)

    @property
    def is_service(self) -> bool:
        """Whether it starts for a run and ends with it, where others run in daemons that stay."""
        return self in (Engine.HTTP, Engine.GALERA, Engine.GLUSTER)


class Egress(StrEnum):
    """What daemons and jobs of closed boards may reach: ANY address, or the cluster's MEMBERS."""

    ANY = "any"
    MEMBERS = "members"


class Security(StrEnum):
    """Who may reach a cluster.

    EMULATED: its network exists only inside this machine. LOCAL: its daemons listen on this
    machine's loopback address, which every user of the machine reaches, with the controls that the
    engines have themselves. CLOSED: boards with every control of
    docs/explanation/security.md. INSECURE_LAB: boards as the papers had them, open to their whole
    network; only for comparison, and shown wherever its results appear.
    """

    EMULATED = "emulated"
    LOCAL = "local"
    CLOSED = "closed"
    INSECURE_LAB = "insecure-lab"


class MasterPlacement(StrEnum):
    """Where the master runs.

    DECLARED: as ``cluster.toml`` says. SEPARATE: on a node of its own. COMBINED: with the first
    worker (Lee, Oh and Park 2021, section VI-C).
    """

    DECLARED = "declared"
    SEPARATE = "separate"
    COMBINED = "combined"


class Checksum(StrEnum):
    """Checksums of HDFS blocks (``dfs.checksum.type``); NULL is the 2021 paper's CRC experiment."""

    CRC32C = "crc32c"
    NULL = "null"


MANY_YEARS = "flights-of-many-years"
"""In place of the path of a text: flights with as many distinct lines as the papers' file."""


class Variant(StrEnum):
    """Which program of a workload runs, where there are two for an engine."""

    FAST = "fast"
    TEXTBOOK = "textbook"


class PlannedFault(StrEnum):
    """What happens to the last worker of a service while it is measured, and passes again.

    KILL: its server is killed, and started again. LINK: its network link is down for a while.
    """

    NONE = "none"
    KILL = "kill"
    LINK = "link"


class CachePolicy(StrEnum):
    """What happens to the page caches of the nodes before each run."""

    DROP = "drop"
    KEEP = "keep"


class OnLoss(StrEnum):
    """What a campaign does when a node, a daemon or a disk of its cluster is lost.

    The attempt is invalid in any case. All but STOP wait a bounded time for nodes and disks and run
    the trial again. WAIT starts nothing: daemons must come back by themselves. RESTART starts what
    does not. WITHOUT does so, too, and goes on without workers that stay away: trials that need
    one of them stay pending. STOP ends the campaign at once.
    """

    WAIT = "wait"
    RESTART = "restart"
    WITHOUT = "without"
    STOP = "stop"


class CampaignKind(StrEnum):
    """Where a campaign came from: a declared workload, or the user's own program."""

    RUN = "run"
    SUBMIT = "submit"


class AttemptState(StrEnum):
    """State of one try at a trial.

    RUNNING: begun, not ended. OK: output verified and measurement stored. FAILED: the job or its
    verification failed. INVALID: the result says nothing about the trial (aborted, node lost).
    """

    RUNNING = "running"
    OK = "ok"
    FAILED = "failed"
    INVALID = "invalid"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTwin:
    """What an emulated node is to behave like. Names are of the catalog, or paths of files."""

    board: str
    """A board; its CPU and its link."""
    medium: str = ""
    """A storage medium; empty leaves the disk as fast as this machine's."""
    pcie: str = ""
    """Version of PCI Express by which the medium is reached, where its figures differ by that:
    ``2.0`` or ``3.0``; else empty."""
    supply: str = ""
    """A power supply; empty models none."""
    cooling: str = ""
    """What cools the board; empty models no heat."""
    disk_bytes: int = 0
    """Size of the node's disk; 0 without a medium."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TwinSpec:
    """How emulated nodes are limited to what boards can do."""

    dilation: float | None = None
    """By how much everything is slower than on the boards; at least 1. None takes the least that
    leaves this machine idle headroom."""


QUOTA_CORES_LEAST = 0.01
"""Of a core of this machine: the kernel can hold no group to less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskLimits:
    """What the kernel lets a node do with its disk; rates are divided by the dilation already."""

    size_bytes: int
    """Size of its file system's device."""
    read_bytes_per_second: int
    """All reads together."""
    write_bytes_per_second: int
    """All writes together."""
    read_iops: int
    """Read requests per second."""
    write_iops: int
    """Write requests per second."""
    unwritten_bytes: int | None = None
    """What may wait in memory to be written to it. None where the kernel has no limit for a single
    device, before Linux 6.2: a fifth of this machine's memory may wait there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLimits:
    """What the kernel gives one emulated node; rates are divided by the dilation already."""

    node: str
    """Its name."""
    cpu_cores: float
    """CPU time per second, in seconds of this machine's cores."""
    memory_bytes: int
    """Memory, page cache included."""
    disk: DiskLimits | None
    """None leaves its files on this machine's disk, at its speed."""
    link_bits_per_second: int
    """Rate of its link in each direction."""
    board_cores: int = 1
    """Into how many cores its CPU time is divided; a thread gets one of them at most. Runs from
    before there were such cores have 1: a thread could have all of the node's CPU time."""
    board: str = ""
    """What the board has, in words and at its own speed. It is the same at every start, while this
    machine's speed, and with it what the kernel gives, is measured anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSpec:
    """One declared node."""

    name: str
    """Host name inside the cluster; lower-case letters, digits and hyphens."""
    roles: frozenset[Role]
    """What the node does; at least one."""
    cores: int
    """CPU cores the profile may count on."""
    memory_bytes: int
    """Memory the profile may count on."""
    host: str = ""
    """How OpenSSH reaches it, as ``[USER@]HOST``; empty for an emulated node."""
    address: str = ""
    """Its IPv4 address in the cluster's network; empty for an emulated node, whose address follows
    from its place."""
    folder: str = ""
    """Folder on the node for data, logs and configuration, on the medium to be used; empty for an
    emulated node, which has one in the cluster's home."""
    twin: NodeTwin | None = None
    """The board that an emulated node is to behave like; None leaves it unlimited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSpec:
    """The cluster's network."""

    subnet: str
    """IPv4 network in CIDR form that holds every node's address; for emulated nodes inside
    198.18.0.0/15 (RFC 2544, benchmarking)."""
    link_bits_per_second: int
    """Rate of each node's link in each direction; emulated nodes get it, boards are said to have
    it."""
    open_ports: tuple[str, ...] = ()
    """Ports that the firewall of boards leaves open for services of their own: ``"53/udp"``."""
    ssh_from: tuple[str, ...] = ()
    """Networks in CIDR form from which boards may be reached by SSH; empty for all."""
    egress: Egress = Egress.ANY
    """What daemons and jobs of boards may reach."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerModel:
    """What one node draws, for modelled energy."""

    node: str
    """Its name."""
    idle_watts: float
    """When it does nothing."""
    stress_watts: float
    """When every core is busy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """The ``[prices]`` of a ``cluster.toml``. What is not said is None."""

    currency: str
    """Three letters (ISO 4217), of every price here."""
    per_kwh: float | None = None
    """Price of a kilowatt-hour of electricity."""
    total: float | None = None
    """Price of the whole cluster, where its parts are not said one by one."""
    board: float | None = None
    """Price of one board."""
    medium: float | None = None
    """Price of one board's storage medium."""
    supply: float | None = None
    """Price of one power supply."""
    supplies: int | None = None
    """How many power supplies there are; None is one for each node."""
    cooling: float | None = None
    """Price of what cools one board."""
    switch: float | None = None
    """Price of the network switch."""
    other: float | None = None
    """Price of all the rest together, such as cables and cases."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSpec:
    """A validated ``cluster.toml``."""

    name: str
    """Name of the cluster, also of its state folder."""
    kind: str
    """How the nodes exist: the name of a folder of ``cluster/kinds/``."""
    engines: str
    """Id of the engine pair, the name of a lock file."""
    profile: str
    """Name of the engine configuration, or the path of one's own."""
    network: NetworkSpec
    """Its network."""
    nodes: tuple[NodeSpec, ...]
    """Every node, master first, in file order after it."""
    security: Security = Security.EMULATED
    """Who may reach the cluster."""
    meters: tuple[MeterSpec, ...] = ()
    """Its power meters, in file order."""
    power_models: tuple[PowerModel, ...] = ()
    """What its nodes draw, where that was declared; in the order of the nodes."""
    twin: TwinSpec | None = None
    """How its nodes are limited to what boards can do; None if none of them is."""
    prices: Prices | None = None
    """What its parts and its electricity cost; None if nothing was said."""
    settings: dict[str, str] = field(default_factory=dict)
    """Properties of the engines that are set beside the profile, as the engines read them; only
    what was set."""

    @property
    def capabilities(self) -> Capabilities:
        """What its kind of node can do; ask for this instead of the kind."""
        return capabilities_of(self.kind)

    @property
    def master(self) -> NodeSpec:
        """The one node with the role ``master``."""
        return next(node for node in self.nodes if Role.MASTER in node.roles)

    @property
    def workers(self) -> tuple[NodeSpec, ...]:
        """All nodes with the role ``worker``, in file order."""
        return tuple(node for node in self.nodes if Role.WORKER in node.roles)

    def workers_beside(self, master: MasterPlacement) -> tuple[NodeSpec, ...]:
        """Return the workers that a place of the master leaves, in file order."""
        if master is not MasterPlacement.SEPARATE:
            return self.workers
        return tuple(node for node in self.workers if Role.MASTER not in node.roles)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """Prepared text input on the driver."""

    name: str
    """What it is made of, for people (``airline-256MB``)."""
    path: Path
    """The prepared file."""
    size_bytes: int
    """Its size."""
    sha256: str
    """Its content, hexadecimal; also the key of everything derived from it."""
    source: str
    """Where it came from, one sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One cell of a campaign's matrix and one repetition."""

    id: str
    """Stable; the same cell and repetition of the same campaign has the same id."""
    campaign_id: str
    """The campaign it belongs to."""
    position: int
    """Place in the campaign's seeded random order, from 0."""
    workload: str
    """Name of the workload folder, or ``submit`` for the user's own program; several names joined
    by ``+`` are a mix of jobs that is timed as a whole."""
    engine: Engine
    """The engine it runs on."""
    profile: str
    """The engine configuration."""
    size_bytes: int
    """Input size; 0 where there is no input we know."""
    workers: int
    """Number of workers of the cluster."""
    repetition: int
    """From 1."""
    arguments: tuple[str, ...] = ()
    """The user's own program and its arguments; empty for workloads."""
    concurrency: int = 1
    """How many jobs of a mix run at once; 1 is one after the other."""
    replication: int = 0
    """Copies of each HDFS block; 0 is the profile's own number."""
    checksum: Checksum = Checksum.CRC32C
    """Checksums of the blocks that the trial writes and reads."""
    master: MasterPlacement = MasterPlacement.DECLARED
    """Where the master runs."""
    warm_up: bool = False
    """Run before the measured ones; kept and labelled, out of statistics."""
    input: str = ""
    """The text that text workloads read: empty for the flights, else a path."""
    parameters: dict[str, str] = field(default_factory=dict)
    """``workload.parameter`` to value as text; only what was set."""
    settings: dict[str, str] = field(default_factory=dict)
    """Properties of the engines to values, as the engines read them; only what was set, in
    ``cluster.toml`` or for this trial."""
    variant: Variant = Variant.FAST
    """Which program of each of its workloads runs."""
    fault: PlannedFault = PlannedFault.NONE
    """What happens to a worker of a service in the middle of the run."""
    start: int = 1
    """Which start of the cluster it belongs to, from 1; cells of one start share what a start draws
    by chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredComparison:
    """One ``[[comparison]]`` of a campaign file: what the campaign was run to compare."""

    factor: str
    """What differs: the name of a factor (factors.py), or a property of the engines."""
    levels: tuple[int | str, ...]
    """Two or more of its levels; every other one is compared with the first."""
    where: dict[str, tuple[int | str, ...]] = field(default_factory=dict)
    """Names of other factors and the levels of the cells that are compared; empty for all cells."""


_NAMED_BY_COMMANDS = re.compile(r"bisect-.+-\d+|tune-.+-(mapreduce|spark)|watch-.+")
"""How campaigns are called that `tune` and `watch-performance` make."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """A planned set of trials."""

    id: str
    """Unique in the store, sortable by time."""
    kind: CampaignKind
    """Workload runs, or the user's own program."""
    created_utc: str
    """ISO 8601 with offset."""
    seed: int
    """Seed of the random order."""
    cluster: str
    """The cluster's name."""
    emulated: bool
    """Whether nodes are namespaces on one machine; shown wherever results appear."""
    dataset: str = ""
    """Name of the input; empty where there is none."""
    dataset_sha256: str = ""
    """Its content; empty where there is none."""
    dataset_source: str = ""
    """Its origin, one sentence; empty where there is none."""
    name: str = ""
    """Name of the ``campaign.toml``; empty for a single command."""
    spec_sha256: str = ""
    """Digest of what the file means; empty for a single command. A resume with another digest is
    refused."""
    starts: int = 1
    """Fewest starts of the cluster; more than 1 restarts the daemons before each start's runs."""
    precision: float | None = None
    """It runs further blocks until every 95 % interval reaches no further than this share of its
    result; None for a campaign that runs what is planned."""
    repetitions_max: int = 0
    """Most measured runs of a cell with a precision; 0 without one."""
    comparisons: tuple[DeclaredComparison, ...] = ()
    """What it was run to compare, as its file declares it; all else is exploratory."""
    file_sha256: str = ""
    """SHA-256 of the bytes of its campaign file, stored with the plan and so before the first run;
    empty for a single command, and in campaigns from before it was recorded."""

    @property
    def is_resumable(self) -> bool:
        """Whether ``run FILE --resume`` continues it.

        What ``tune`` and ``watch-performance`` run has names of their own, and only they continue
        it; a single command is run again.
        """
        return bool(self.name) and not _NAMED_BY_COMMANDS.fullmatch(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How every run of a campaign is treated."""

    timeout_seconds: float = 3600.0
    """Longest duration of one job; longer is ``invalid(stalled)``."""
    cache: CachePolicy = CachePolicy.KEEP
    """What happens to page caches before each run."""
    trim: bool = False
    """Whether to discard unused blocks (``fstrim``) before each run."""
    cool_down_seconds: float = 0.0
    """Pause before each run."""
    cool_below_celsius: float = 0.0
    """Wait until the hottest sensor of every node is below; 0 does not wait."""
    cool_wait_seconds: float = 600.0
    """Longest such wait; the run then goes ahead with a remark."""
    repeat_tainted: int = 0
    """How often a disturbed run is repeated, after a cool-down; each try is kept."""
    telemetry_hertz: float = 1.0
    """Samples of each node per second; 0.1 to 10."""
    on_loss: OnLoss = OnLoss.STOP
    """What happens when a part of the cluster is lost."""
    loss_wait_seconds: float = 600.0
    """Longest wait for a part that was lost; see ``on_loss``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """One ``[[matrix]]`` of a ``campaign.toml``: every combination of its lists is a cell."""

    workloads: tuple[str, ...]
    """Names, or names joined by ``+`` for a mix."""
    engines: tuple[Engine, ...] = ()
    """Engines; empty means all that the workload has."""
    profiles: tuple[str, ...] = ()
    """Engine configurations; empty means the cluster's own."""
    sizes_bytes: tuple[int, ...]
    """Input sizes; ignored by workloads without input."""
    levels: dict[str, tuple[int | str, ...]] = field(default_factory=dict)
    """Of each other factor of factors.py that is set, its levels. Left out, ``workers`` means all
    of them, and ``concurrency`` all jobs of a mix at once, and one after the other."""
    repetitions: int
    """Measured runs of each cell in each start."""
    warm_ups: int = 0
    """Runs of each cell before its measured ones, in each start."""
    input: str = ""
    """The text that text workloads read: empty for the flights, else a path."""
    parameters: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """``workload.parameter`` to its values."""
    settings: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Properties of the engines to their values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignSpec:
    """A validated ``campaign.toml``."""

    name: str
    """Its name."""
    seed: int | None
    """Seed of the random order; None draws another one for each new campaign."""
    policy: Policy
    """How every run is treated."""
    matrices: tuple[Matrix, ...]
    """What to run."""
    starts: int = 1
    """How often the cluster is started; each start runs every repetition."""
    precision: float | None = None
    """It runs further blocks until every 95 % interval reaches no further than this share of its
    result; None runs what is planned."""
    repetitions_max: int = 0
    """Most measured runs of a cell with a precision; 0 without one."""
    comparisons: tuple[DeclaredComparison, ...] = ()
    """What it is run to compare."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """What a result was measured on. Equal fingerprints may be compared without a remark."""

    kernel: str
    """Release and architecture of the driver's kernel."""
    os: str
    """Distribution name."""
    cpu: str
    """Model name of the host's CPU."""
    cpu_cores: int
    """Cores of the host."""
    memory_bytes: int
    """Memory of the host."""
    java: str
    """Vendor, version and path-free description of the JVM that runs the engines."""
    hadoop: str
    """Version of Hadoop."""
    spark: str
    """Version of Spark."""
    boardcluster: str
    """Our own version."""
    profile: str
    """Name of the engine configuration."""
    config_sha256: str
    """Hash over every generated configuration file of every node."""
    nodes: int
    """Number of nodes."""
    node_memory_bytes: int
    """Declared memory of the smallest worker."""
    node_cores: int
    """Declared cores of the smallest worker."""
    link_bits_per_second: int
    """Rate of a node's link."""
    emulated: bool
    """Whether nodes are namespaces on one machine."""
    security: Security = Security.EMULATED
    """Who could reach the cluster."""
    hardware: tuple[str, ...] = ()
    """One line for each board, with its name first; empty for emulated nodes."""
    kernel_command_line: str = ""
    """Of the machine that ``kernel`` is of, without what differs from card to card or is secret;
    empty if unknown, as in results from before it was recorded."""
    blas: str = ""
    """The library that linear algebra comes from: the one that a workload's program brought, with
    its kernels, else that of the machine; empty if unknown."""
    numa: str = ""
    """Its NUMA nodes and settings, in words; empty if unknown."""
    governor: str = ""
    """Frequency governors of all nodes, joined by commas; empty if unknown."""
    limits: str = ""
    """What the kernel gave each emulated board, one line for each node with its name first; empty
    for other nodes."""
    twin: str = ""
    """The boards, media and the like that emulated nodes stand for, in words; empty for other
    nodes."""
    kind: str = ""
    """The kind of node. Results from before it was recorded are of emulated nodes or of boards, as
    ``emulated`` says, and get the kind when they are read."""

    def __post_init__(self) -> None:
        """Name the kind of node of a result from before it was recorded."""
        known = every_kind().get(self.kind)
        if not self.kind or (known is not None and known.emulated != self.emulated):
            object.__setattr__(self, "kind", "emulated" if self.emulated else "boards")

    @property
    def mark(self) -> str:
        """What is said wherever its results appear; empty for boards."""
        return self._words("mark")

    @property
    def short_mark(self) -> str:
        """The mark where there is little space, as on an axis."""
        return self._words("short_mark")

    @property
    def noun(self) -> str:
        """What the nodes are, after their number."""
        return self._words("noun")

    def _words(self, which: str) -> str:
        """Return words of its kind, which may be of another version or somebody's own folder."""
        known = every_kind().get(self.kind)
        words: str = getattr(known, which) if known else f"nodes of the kind {self.kind}"
        return words


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaHome:
    """A Java runtime on a node."""

    home: str
    """Its folder, links resolved."""
    version: str
    """E.g. ``17.0.15``; empty if it does not say."""
    feature: int | None
    """Feature version, e.g. 17; None if it does not say."""
    vendor: str
    """Who built it; empty if it does not say."""
    architecture: str
    """What its program was built for, as ``uname -m`` says it; empty if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A network interface of a node; the loopback one is none."""

    name: str
    """E.g. ``eth0``."""
    addresses: tuple[str, ...]
    """Its addresses with their prefix, e.g. ``192.168.1.5/24``."""
    speed_bits_per_second: int | None
    """The rate agreed with the switch; None for a wireless or idle one."""
    duplex: str
    """``full``, ``half`` or empty."""
    wireless: bool
    """Whether it is a radio."""
    up: bool
    """Whether it has a carrier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Medium:
    """A block device that can hold data."""

    name: str
    """E.g. ``mmcblk0``, ``nvme0n1``, ``sda``."""
    kind: str
    """``sd``, ``emmc``, ``nvme``, ``ssd``, ``usb-ssd``, ``usb`` (a stick or a disk that turns),
    ``hdd`` or ``virtual``."""
    model: str
    """What it calls itself; empty if it does not."""
    size_bytes: int
    """Its size."""
    pcie_generation: int | None = None
    """Generation of its PCIe link as it runs now; None if it has no such link."""
    pcie_lanes: int | None = None
    """Lanes of that link."""
    usb_bits_per_second: int | None = None
    """Rate of its USB link; None if it has none."""
    trim: bool | None = None
    """Whether it takes discards; None if the kernel does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A file system that can hold data, where it is mounted."""

    folder: str
    """Where."""
    file_system: str
    """Its type, e.g. ``ext4``."""
    source: str
    """What is mounted, e.g. ``/dev/mmcblk0p2``."""
    medium: str
    """Name of the medium below it; empty if it has none (memory, network) or unknown."""
    size_bytes: int | None
    """Its size; None if it was not asked (network) or did not answer."""
    available_bytes: int | None
    """What an ordinary user may still write; None likewise."""
    read_only: bool
    """Whether nothing can be written."""
    options: str
    """Mount options, comma-separated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Swap:
    """A swap area."""

    place: str
    """The device or file."""
    size_bytes: int
    """Its size."""
    used_bytes: int
    """What is in use."""
    kind: str
    """``zram`` (compressed memory), or the kind of its medium; empty if unknown."""


class Sudo(StrEnum):
    """What the login user may do: all as ROOT, or by sudo: WORKS, ASKS, MISSING, SILENT."""

    ROOT = "root"
    WORKS = "works"
    ASKS = "asks"
    MISSING = "missing"
    SILENT = "silent"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """What a node is, as it was found. What could not be read is None or empty, never guessed."""

    name: str
    """Its own host name."""
    board: str
    """Model of the board (device tree) or machine (DMI)."""
    soc: str
    """System on chip, from the device tree; empty on PCs."""
    cpu: str
    """Name of the CPU; of each kind, joined by `` + ``."""
    cores: int
    """CPUs that are on."""
    clock_least_hertz: int | None
    """Lowest frequency the CPU can run at."""
    clock_most_hertz: int | None
    """Highest frequency the CPU can run at."""
    governor: str
    """Frequency governor; several joined by commas."""
    memory_bytes: int
    """Memory that the kernel manages."""
    available_memory_bytes: int
    """What may be used now without swapping."""
    architecture: str
    """Of the kernel, as ``uname -m`` says it."""
    userland_bits: int
    """64 or 32: what the installed programs are built for."""
    page_size_bytes: int
    """Size of a memory page."""
    os: str
    """Distribution."""
    kernel: str
    """Its release."""
    firmware: str
    """Boot loader or BIOS with its version."""
    service_manager: str
    """``systemd`` or ``none``."""
    boot_id: str
    """Id of this boot."""
    uptime_seconds: float | None
    """Time since boot."""
    machine_id: str
    """Hash of ``/etc/machine-id``; equal ones are clones of one card."""
    host_keys: tuple[str, ...]
    """SHA-256 fingerprints of the SSH host keys; equal ones likewise."""
    login_user: str
    """Who logged in."""
    sudo: Sudo
    """What that user may do."""
    python: str
    """Version of ``python3``."""
    javas: tuple[JavaHome, ...]
    """Every Java found."""
    java_home: str
    """``JAVA_HOME`` as a program sees it that is started over SSH."""
    links: tuple[Link, ...]
    """Network interfaces."""
    own_addresses: tuple[str, ...]
    """What the own host name resolves to."""
    clock_synchronised: bool | None
    """Whether the kernel says that a time service keeps the clock."""
    clock_offset_seconds: float
    """How far its clock is ahead of the driver's."""
    clock_error_seconds: float
    """How wrong that may be."""
    media: tuple[Medium, ...]
    """Block devices."""
    mounts: tuple[Mount, ...]
    """File systems."""
    folder: str
    """The folder that was asked for."""
    folder_mount: str
    """Mount point of the file system that holds it or will hold it."""
    swaps: tuple[Swap, ...]
    """Swap areas."""
    cgroup_controllers: tuple[str, ...]
    """Those that are on."""
    memory_controller: bool
    """Whether memory of a group of processes can be limited."""
    throttled: int | None
    """Bits of the Raspberry Pi's ``get_throttled``; None on other machines."""
    temperature_celsius: float | None
    """Hottest sensor."""
    package_managers: tuple[str, ...]
    """Processes of apt and its kind that are at work."""
    kernel_faults: tuple[str, ...] | None
    """Lines of the kernel's log on failing storage, power or memory; None if the log may not be
    read."""

    def mount(self, folder: str) -> Mount | None:
        """Return the file system that holds a folder, existing or not, by the mount points."""
        path = folder.rstrip("/") + "/"
        holding = [row for row in self.mounts if path.startswith(row.folder.rstrip("/") + "/")]
        return max(holding, key=lambda row: len(row.folder), default=None)

    def medium(self, name: str) -> Medium | None:
        """Return a medium by its name."""
        return next((row for row in self.media if row.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The proof that an output was right."""

    method: str
    """One sentence saying how it was proved."""
    expected_sha256: str
    """Digest of the canonical expected output."""
    actual_sha256: str
    """Digest of the canonical actual output; equal to the expected one when right."""
    records: int
    """Number of output records compared."""


class Verdict(StrEnum):
    """Whether a number can be trusted, from telemetry.

    VALID: what was seen explains less of it than it tolerates. TAINTED: something that disturbed it
    (heat, stolen time, other work) may explain more; kept, labelled, and in statistics only as
    ``in_cell`` says, or if asked for. INVALID:
    it says nothing, for instance because telemetry does not cover the run. UNJUDGED: recorded
    before there were verdicts.
    """

    VALID = "valid"
    TAINTED = "tainted"
    INVALID = "invalid"
    UNJUDGED = "unjudged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Disturbance:
    """What disturbed a run, as a bound on what it did to the result."""

    cause: str
    """``steal``, ``foreign load``, ``throttled`` and so on: the name of the rule that found it."""
    node: str
    """The node where it did most."""
    share: float
    """At most this share of the run's duration is explained by it, 0 to 1."""
    adjustable: bool
    """Whether a model of several runs can adjust for it (steal, foreign load); else it excludes."""


BASELINE_LEAST = 5
"""Fewest rounds of a watch's baseline. With 5 the limits are 7.4 standard deviations from the mean,
with 4 already 11 and with 3 23: they would hold nearly everything."""

SMALLEST_EFFECT_SHARE = 0.05
"""The smallest effect of interest: what explains less of a run than this is not worth a verdict,
unless the run's cell is known to be more precise."""

EXCLUDING_SHARE = 0.25
"""Above this, no model adjusts for a disturbance any more: a quarter of what was measured would be
the model's."""


class EnergyMethod(StrEnum):
    """Where an energy comes from: METERED by a meter, or MODELLED from utilisation."""

    METERED = "metered"
    MODELLED = "modelled"


class Coverage(StrEnum):
    """What a power meter sees.

    WALL: everything behind the plug, power supply included. NODE: a whole node behind its supply.
    BOARD: the board without USB, HAT or NVMe (Raspberry Pi 5 PMIC). PACKAGE: the processor's
    package only (RAPL). PORT: a port of a PoE switch, the splitter included.
    """

    WALL = "wall"
    NODE = "node"
    BOARD = "board"
    PACKAGE = "package"
    PORT = "port"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeterSpec:
    """One declared ``[[meter]]`` of a ``cluster.toml``."""

    name: str
    """Its name, for messages and figures."""
    kind: str
    """Name of the driver, a file of ``telemetry/meters/``."""
    nodes: tuple[str, ...]
    """Names of the nodes it covers; several for a meter of the whole cluster."""
    switch: bool = False
    """Whether the network switch hangs on it too."""
    options: dict[str, str] = field(default_factory=dict)
    """The driver's own settings as text, e.g. ``url``; never a secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """What one meter recorded over one run."""

    meter: str
    """Its name."""
    kind: str
    """Its driver."""
    coverage: Coverage
    """What it sees."""
    nodes: tuple[str, ...]
    """The nodes it covers."""
    switch: bool
    """Whether the network switch hangs on it too."""
    accuracy: str
    """Its stated accuracy in words, with the source."""
    rate_hertz: float
    """Readings per second as it took them."""
    energy_joules: float | None
    """Over the run; None where the reason says why."""
    mean_watts: float | None
    """Mean power over the run; None likewise."""
    most_watts: float | None
    """Highest reading; None likewise."""
    readings: int
    """Readings within the run."""
    method: EnergyMethod = EnergyMethod.METERED
    """METERED or MODELLED."""
    remarks: tuple[str, ...] = ()
    """What was odd: gaps, resets, frozen values; one line each."""
    reason: str = ""
    """Why there is no energy, in one line; empty if there is."""
    idle_watts: float | None = None
    """Mean power while the cluster was up and idle just before the run; None where that is not
    known."""
    idle_reason: str = ""
    """Why it is not, in one line; empty if it is, and in runs from before it was read."""
    uncertainty_joules: float | None = None
    """By how much the energy may be wrong at most: by the accuracy that the meter's maker states,
    and by its lag at begin and end; None where no accuracy is stated, and in runs from before it
    was computed."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PowerSamples:
    """What one meter was seen to say during one run."""

    meter: str
    """Its name."""
    coverage: Coverage
    """What it sees."""
    nodes: tuple[str, ...]
    """The nodes it covers."""
    seconds: numpy.typing.NDArray[np.float64]
    """When each reading was taken, rising; 0 is the start of the run, by the driver's monotonic
    clock, so that there may be readings before it and after its end."""
    watts: numpy.typing.NDArray[np.float64]
    """Power then; NaN where the meter gave none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Energy:
    """Energy of one run over the whole cluster."""

    energy_joules: float | None
    """Sum over the meters; None unless every node is covered exactly once."""
    method: EnergyMethod
    """METERED only if every part is."""
    level: int
    """Level of the EE HPC WG power measurement methodology that is reached: 1, 2 or 3; 0 where none
    is."""
    level_reason: str
    """Why it is not higher, in one line."""
    powers: tuple[Power, ...]
    """What each meter recorded."""
    reason: str = ""
    """Why there is no sum, in one line; empty if there is."""
    uncertainty_joules: float | None = None
    """By how much the sum may be wrong at most; None where a part of it is not known."""
    idle_watts: float | None = None
    """Power of the whole cluster, up and idle, just before the run; None where a part of it is not
    known."""
    core: Energy | None = None
    """The same over the core phase alone, where the program dates one: in HPL the solution, without
    the making and checking of the matrix; None for others. Its level is of that span."""


class ProbeMode(StrEnum):
    """QUICK: the whole set on one node in minutes. PAPER: as long and as often as the papers."""

    QUICK = "quick"
    PAPER = "paper"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeFigure:
    """One number of a probe."""

    name: str
    """What was measured, unit last: ``sysbench_cpu_events_per_second``."""
    value: float
    """In that unit."""
    conditions: dict[str, str] = field(default_factory=dict)
    """What distinguishes it from its siblings: ``threads`` to ``4``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeRun:
    """One run of one probe on one node, or between two."""

    id: str
    """Unique in the store, sortable by time."""
    probe: str
    """Its name."""
    mode: ProbeMode
    """Quick or paper."""
    node: str
    """The node it ran on."""
    peer: str = ""
    """The other node; empty where there is none."""
    started_utc: str
    """ISO 8601 with offset."""
    duration_seconds: float
    """Driver's monotonic clock."""
    cluster: str
    """The cluster's name."""
    emulated: bool
    """Whether the node is a namespace on this machine; shown wherever figures appear."""
    versions: tuple[str, ...] = ()
    """The tools that measured, with their versions."""
    hardware: str = ""
    """One line on the node."""
    figures: tuple[ProbeFigure, ...] = ()
    """What was measured; empty where the reason says why."""
    reason: str = ""
    """Why it failed, in one line; empty if it did not."""
    verdict: Verdict = Verdict.UNJUDGED
    """Whether its figures can be trusted."""
    verdict_reasons: tuple[str, ...] = ()
    """Why it is not valid, in one line each."""
    disturbances: tuple[Disturbance, ...] = ()
    """What disturbed it, the largest share first; also what is too small to taint."""
    tolerated_share: float = SMALLEST_EFFECT_SHARE
    """Share of its duration above which disturbances taint it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NodeSamples:
    """Telemetry of one node over one run."""

    node: str
    """Its name; ``host`` is the machine that emulated nodes share."""
    scope: str
    """``machine``: the kernel's totals; ``node``: only what belongs to an emulated node."""
    interval_seconds: float
    """Pause between samples, as asked for at the start."""
    cores: int
    """CPUs that the node may use."""
    seconds: numpy.typing.NDArray[np.float64]
    """End of each sample's interval by the driver's monotonic clock; 0 is the start of the run, so
    that the first samples are before it."""
    columns: Mapping[str, numpy.typing.NDArray[np.float64]]
    """By name (see docs/reference/telemetry.md) one value for each sample, over the interval that
    ends then; NaN where it is not known."""
    clock_offset_seconds: float = 0.0
    """How far the node's wall clock is ahead of the driver's."""
    clock_error_seconds: float = 0.0
    """How wrong the alignment of ``seconds`` may be."""
    notes: tuple[str, ...] = ()
    """Foreign programs with the CPU time that they took, one a line: ``make 3.5 s``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRecord:
    """One try at a task, as its engine accounts for it; times in seconds of the run itself.

    They are not divided by a dilation. What an engine does not account for is 0.
    """

    node: str
    """The node that it ran on."""
    begin_seconds: float
    """By the clock that ``Telemetry.phases`` has: 0 is the start of the run."""
    end_seconds: float
    """Likewise."""
    cpu_seconds: float
    """CPU time of the task: of its thread (Spark), or of its process with all that belongs to it
    (MapReduce)."""
    collection_seconds: float = 0.0
    """In which garbage collection stopped it; 0 where that is part of ``cpu_seconds``."""
    fetch_wait_seconds: float = 0.0
    """It waited for shuffle data, of other nodes or its own."""
    overhead_seconds: float = 0.0
    """It was not at work yet, or no longer: scheduling, deserialising, handing in its result."""
    spilled_bytes: int = 0
    """Written to disk because memory did not suffice."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Telemetry:
    """Telemetry of one run."""

    duration_seconds: float
    """From the start of the run to its end, by the driver's monotonic clock."""
    nodes: tuple[NodeSamples, ...]
    """One entry for each node that gave samples, in the cluster's order, ``host`` last."""
    phases: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Name to start and end of each submission, and as ``SUBMISSION/PHASE`` of the engine's own
    phases inside it, in seconds from the start of the run; see analysis/phases.py."""
    tasks: tuple[TaskRecord, ...] | None = ()
    """What the engine says of each task, in the order of their beginnings; empty where it keeps no
    account, None in runs from before it was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What a valid attempt yields."""

    duration_seconds: float
    """Driver's monotonic clock around the engine's own submission."""
    input_bytes: int
    """Bytes of input; 0 where unknown (the user's own program)."""
    output_bytes: int
    """Bytes of final output in HDFS; 0 where unknown."""
    counters: dict[str, int] = field(default_factory=dict)
    """The engine's own counters as ``group/name``, unchanged."""
    verification: Verification | None
    """The proof; None only for the user's own program, which has no known answer."""
    exit_status: int
    """Exit status of the submission."""
    application_id: str = ""
    """YARN's id of the (last) application; empty if it never got one."""
    figures: dict[str, float] = field(default_factory=dict)
    """What the workload itself measures, unit last in each name."""
    phases_seconds: dict[str, float] = field(default_factory=dict)
    """Duration of each part: our own submissions, and the engine's phases as ``submission/phase``
    where it gives them."""
    intermediate_bytes: int | None = None
    """Bytes the engine says it wrote to local storage that are not final output (spills, merges,
    shuffle files); None where it does not say."""
    node_written_bytes: dict[str, int] = field(default_factory=dict)
    """Per node, bytes its processes wrote to storage during the run, by the kernel's accounting,
    final output and its replicas included."""
    node_read_bytes: dict[str, int] = field(default_factory=dict)
    """Per node, bytes they read from storage, which is not the page cache."""
    remarks: tuple[str, ...] = ()
    """What was not as the policy asked, in one line each."""
    verdict: Verdict = Verdict.UNJUDGED
    """Whether it can be trusted."""
    verdict_reasons: tuple[str, ...] = ()
    """Why it is not valid, in one line each."""
    energy: Energy | None = None
    """Over the run; None where nothing measures or models it."""
    dilation: float = 1.0
    """By how much the nodes were slower than the boards they stand for; every time and every rate
    here is already divided or multiplied by it, so that it is the board's. See ``undilated`` for
    what is not."""
    disturbances: tuple[Disturbance, ...] = ()
    """What disturbed it, the largest share first; also what is too small to taint."""
    tolerated_share: float = SMALLEST_EFFECT_SHARE
    """Share of its duration above which disturbances taint it: the precision that its cell had
    reached when it ended, else the smallest effect of interest."""
    clock_hertz: dict[str, float] = field(default_factory=dict)
    """Per node, the clock that it reached under load, by a timed loop; only where that is known."""


def in_cell(judged: Measurement | ProbeRun) -> bool:
    """Say whether what was measured is in the statistics of its cell.

    It is if it is valid or was never judged; or tainted, but only by what a model of several runs
    can adjust for (steal, foreign load), and by no more than ``EXCLUDING_SHARE``. What nothing can
    adjust for (throttling, swap, a link that changed) excludes a run once it explains more than the
    run tolerates. So does a taint of earlier versions, which says nothing of its size.
    """
    if judged.verdict is not Verdict.TAINTED:
        return judged.verdict is not Verdict.INVALID
    shares = {True: 0.0, False: 0.0}
    for row in judged.disturbances:
        shares[row.adjustable] += row.share
    return (
        bool(judged.disturbances)
        and shares[True] <= EXCLUDING_SHARE
        and shares[False] <= judged.tolerated_share
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One try at a trial; never overwritten."""

    trial_id: str
    """The trial."""
    number: int
    """From 1, per trial."""
    state: AttemptState
    """How it ended, or that it has not yet."""
    reason: str
    """Why it is not ok, in one line; for an ok attempt, a remark or empty."""
    started_utc: str
    """ISO 8601 with offset."""
    ended_utc: str
    """ISO 8601 with offset; empty while running."""
    artefacts: str
    """Folder of raw artefacts, relative to the cluster's state folder."""
    fingerprint: Fingerprint
    """What it ran on."""
    start_id: str = ""
    """Id of the start of the daemons that it ran on; empty where it was not recorded yet. A resume
    in the middle of a start may have had to start them again."""

    @property
    def name(self) -> str:
        """How people name it: ``TRIAL/NUMBER``."""
        return f"{self.trial_id}/{self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A trial with one of its attempts; ``attempt`` is None while the trial is pending.

    ``measurement`` is None unless the attempt's state is ok (or the user's program ended with a
    non-zero status, whose time is kept).
    """

    trial: Trial
    attempt: Attempt | None
    measurement: Measurement | None
