"""The nouns of boardcluster as frozen dataclasses.

Every room may import this module and it imports none of them but ``capabilities``. Units stand last
in every name (``_seconds``, ``_bytes``, ``_watts``). What is declared lives here; what is alive
(processes, namespaces, connections) lives in the room that owns it.
"""

from __future__ import annotations

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
    "DiskLimits",
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
    "Telemetry",
    "Trial",
    "TwinSpec",
    "Verdict",
    "Verification",
]


class Role(StrEnum):
    """What a node does in the cluster. A node may have both roles."""

    MASTER = "master"
    WORKER = "worker"


class Engine(StrEnum):
    """The engines a workload can run on."""

    MAPREDUCE = "mapreduce"
    SPARK = "spark"
    MPI = "mpi"


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


class CachePolicy(StrEnum):
    """What happens to the page caches of the nodes before each run."""

    DROP = "drop"
    KEEP = "keep"


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
    """What an emulated node is to behave like. Names are those of the catalog, or paths of files.

    Attributes:
        board: a board; its CPU and its link.
        medium: a storage medium; empty leaves the disk as fast as this machine's.
        pcie: version of PCI Express by which the medium is reached, where its figures differ by
            that: ``2.0`` or ``3.0``; else empty.
        supply: a power supply; empty models none.
        cooling: what cools the board; empty models no heat.
        disk_bytes: size of the node's disk; 0 without a medium.
    """

    board: str
    medium: str = ""
    pcie: str = ""
    supply: str = ""
    cooling: str = ""
    disk_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TwinSpec:
    """How emulated nodes are limited to what boards can do.

    Attributes:
        dilation: by how much everything is slower than on the boards; at least 1. None takes the
            least that leaves this machine idle headroom.
    """

    dilation: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskLimits:
    """What the kernel lets a node do with its disk; rates are divided by the dilation already.

    Attributes:
        size_bytes: size of its file system's device.
        read_bytes_per_second: all reads together.
        write_bytes_per_second: all writes together.
        read_iops: read requests per second.
        write_iops: write requests per second.
    """

    size_bytes: int
    read_bytes_per_second: int
    write_bytes_per_second: int
    read_iops: int
    write_iops: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLimits:
    """What the kernel gives one emulated node; rates are divided by the dilation already.

    Attributes:
        node: its name.
        cpu_cores: CPU time per second, in seconds of this machine's cores.
        memory_bytes: memory, page cache included.
        disk: None leaves its files on this machine's disk, at its speed.
        link_bits_per_second: rate of its link in each direction.
    """

    node: str
    cpu_cores: float
    memory_bytes: int
    disk: DiskLimits | None
    link_bits_per_second: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSpec:
    """One declared node.

    Attributes:
        name: host name inside the cluster; lower-case letters, digits and hyphens.
        roles: what the node does; at least one.
        cores: CPU cores the profile may count on.
        memory_bytes: memory the profile may count on.
        host: how OpenSSH reaches it, as ``[USER@]HOST``; empty for an emulated node.
        address: its IPv4 address in the cluster's network; empty for an emulated node, whose
            address follows from its place.
        folder: folder on the node for data, logs and configuration, on the medium to be used;
            empty for an emulated node, which has one in the cluster's home.
        twin: the board that an emulated node is to behave like; None leaves it unlimited.
    """

    name: str
    roles: frozenset[Role]
    cores: int
    memory_bytes: int
    host: str = ""
    address: str = ""
    folder: str = ""
    twin: NodeTwin | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSpec:
    """The cluster's network.

    Attributes:
        subnet: IPv4 network in CIDR form that holds every node's address; for emulated nodes
            inside 198.18.0.0/15 (RFC 2544, benchmarking).
        link_bits_per_second: rate of each node's link in each direction; emulated nodes get it,
            boards are said to have it.
    """

    subnet: str
    link_bits_per_second: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerModel:
    """What one node draws, for modelled energy.

    Attributes:
        node: its name.
        idle_watts: when it does nothing.
        stress_watts: when every core is busy.
    """

    node: str
    idle_watts: float
    stress_watts: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """The ``[prices]`` of a ``cluster.toml``. What is not said is None.

    Attributes:
        currency: three letters (ISO 4217), of every price here.
        per_kwh: price of a kilowatt-hour of electricity.
        total: price of the whole cluster, where its parts are not said one by one.
        board: price of one board.
        medium: price of one board's storage medium.
        supply: price of one power supply.
        supplies: how many power supplies there are; None is one for each node.
        cooling: price of what cools one board.
        switch: price of the network switch.
        other: price of all the rest together, such as cables and cases.
    """

    currency: str
    per_kwh: float | None = None
    total: float | None = None
    board: float | None = None
    medium: float | None = None
    supply: float | None = None
    supplies: int | None = None
    cooling: float | None = None
    switch: float | None = None
    other: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSpec:
    """A validated ``cluster.toml``.

    Attributes:
        name: name of the cluster, also of its state folder.
        kind: how the nodes exist: the name of a folder of ``cluster/kinds/``.
        engines: id of the engine pair, the name of a lock file.
        profile: name of the engine configuration, or the path of one's own.
        network: its network.
        security: who may reach the cluster.
        nodes: every node, master first, in file order after it.
        meters: its power meters, in file order.
        power_models: what its nodes draw, where that was declared; in the order of the nodes.
        twin: how its nodes are limited to what boards can do; None if none of them is.
        prices: what its parts and its electricity cost; None if nothing was said.
        settings: properties of the engines that are set beside the profile, as the engines read
            them; only what was set.
    """

    name: str
    kind: str
    engines: str
    profile: str
    network: NetworkSpec
    nodes: tuple[NodeSpec, ...]
    security: Security = Security.EMULATED
    meters: tuple[MeterSpec, ...] = ()
    power_models: tuple[PowerModel, ...] = ()
    twin: TwinSpec | None = None
    prices: Prices | None = None
    settings: dict[str, str] = field(default_factory=dict)

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """Prepared text input on the driver.

    Attributes:
        name: what it is made of, for people (``airline-256MB``).
        path: the prepared file.
        size_bytes: its size.
        sha256: its content, hexadecimal; also the key of everything derived from it.
        source: where it came from, one sentence.
    """

    name: str
    path: Path
    size_bytes: int
    sha256: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One cell of a campaign's matrix and one repetition.

    Attributes:
        id: stable; the same cell and repetition of the same campaign has the same id.
        campaign_id: the campaign it belongs to.
        position: place in the campaign's seeded random order, from 0.
        workload: name of the workload folder, or ``submit`` for the user's own program; several
            names joined by ``+`` are a mix of jobs that is timed as a whole.
        engine: the engine it runs on.
        profile: the engine configuration.
        size_bytes: input size; 0 where there is no input we know.
        workers: number of workers of the cluster.
        repetition: from 1.
        arguments: the user's own program and its arguments; empty for workloads.
        concurrency: how many jobs of a mix run at once; 1 is one after the other.
        replication: copies of each HDFS block; 0 is the profile's own number.
        checksum: checksums of the blocks that the trial writes and reads.
        master: where the master runs.
        warm_up: run before the measured ones; kept and labelled, out of statistics.
        input: the text that text workloads read: empty for the flights, else a path.
        parameters: ``workload.parameter`` to value as text; only what was set.
        settings: properties of the engines to values, as the engines read them; only what was set,
            in ``cluster.toml`` or for this trial.
    """

    id: str
    campaign_id: str
    position: int
    workload: str
    engine: Engine
    profile: str
    size_bytes: int
    workers: int
    repetition: int
    arguments: tuple[str, ...] = ()
    concurrency: int = 1
    replication: int = 0
    checksum: Checksum = Checksum.CRC32C
    master: MasterPlacement = MasterPlacement.DECLARED
    warm_up: bool = False
    input: str = ""
    parameters: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """A planned set of trials.

    Attributes:
        id: unique in the store, sortable by time.
        kind: workload runs, or the user's own program.
        created_utc: ISO 8601 with offset.
        seed: seed of the random order.
        cluster: the cluster's name.
        emulated: whether nodes are namespaces on one machine; shown wherever results appear.
        dataset: name of the input; empty where there is none.
        dataset_sha256: its content; empty where there is none.
        dataset_source: its origin, one sentence; empty where there is none.
        name: name of the ``campaign.toml``; empty for a single command.
        spec_sha256: digest of what the file means; empty for a single command. A resume with
            another digest is refused.
    """

    id: str
    kind: CampaignKind
    created_utc: str
    seed: int
    cluster: str
    emulated: bool
    dataset: str = ""
    dataset_sha256: str = ""
    dataset_source: str = ""
    name: str = ""
    spec_sha256: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How every run of a campaign is treated.

    Attributes:
        timeout_seconds: longest duration of one job; longer is ``invalid(stalled)``.
        cache: what happens to page caches before each run.
        trim: whether to discard unused blocks (``fstrim``) before each run.
        cool_down_seconds: pause before each run.
        cool_below_celsius: wait until the hottest sensor of every node is below; 0 does not wait.
        cool_wait_seconds: longest such wait; the run then goes ahead with a remark.
        repeat_tainted: how often a disturbed run is repeated, after a cool-down; each try is kept.
        telemetry_hertz: samples of each node per second; 0.1 to 10.
    """

    timeout_seconds: float = 3600.0
    cache: CachePolicy = CachePolicy.KEEP
    trim: bool = False
    cool_down_seconds: float = 0.0
    cool_below_celsius: float = 0.0
    cool_wait_seconds: float = 600.0
    repeat_tainted: int = 0
    telemetry_hertz: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """One ``[[matrix]]`` of a ``campaign.toml``: every combination of its lists is a cell.

    Attributes:
        workloads: names, or names joined by ``+`` for a mix.
        engines: engines; empty means all that the workload has.
        profiles: engine configurations; empty means the cluster's own.
        sizes_bytes: input sizes; ignored by workloads without input.
        levels: of each other factor of factors.py that is set, its levels. Left out, ``workers``
            means all of them, and ``concurrency`` all jobs of a mix at once, and one after the
            other.
        repetitions: measured runs of each cell.
        warm_ups: runs of each cell before its measured ones.
        input: the text that text workloads read: empty for the flights, else a path.
        parameters: ``workload.parameter`` to its values.
        settings: properties of the engines to their values.
    """

    workloads: tuple[str, ...]
    engines: tuple[Engine, ...] = ()
    profiles: tuple[str, ...] = ()
    sizes_bytes: tuple[int, ...]
    levels: dict[str, tuple[int | str, ...]] = field(default_factory=dict)
    repetitions: int
    warm_ups: int = 0
    input: str = ""
    parameters: dict[str, tuple[str, ...]] = field(default_factory=dict)
    settings: dict[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignSpec:
    """A validated ``campaign.toml``.

    Attributes:
        name: its name.
        seed: seed of the random order.
        policy: how every run is treated.
        matrices: what to run.
    """

    name: str
    seed: int
    policy: Policy
    matrices: tuple[Matrix, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """What a result was measured on. Equal fingerprints may be compared without a remark.

    Attributes:
        kernel: release and architecture of the driver's kernel.
        os: distribution name.
        cpu: model name of the host's CPU.
        cpu_cores: cores of the host.
        memory_bytes: memory of the host.
        java: vendor, version and path-free description of the JVM that runs the engines.
        hadoop: version of Hadoop.
        spark: version of Spark.
        boardcluster: our own version.
        profile: name of the engine configuration.
        config_sha256: hash over every generated configuration file of every node.
        nodes: number of nodes.
        node_memory_bytes: declared memory of the smallest worker.
        node_cores: declared cores of the smallest worker.
        link_bits_per_second: rate of a node's link.
        emulated: whether nodes are namespaces on one machine.
        security: who could reach the cluster.
        hardware: one line for each board, with its name first; empty for emulated nodes.
        kernel_command_line: of the machine that ``kernel`` is of, without what differs from card
            to card or is secret; empty if unknown, as in results from before it was recorded.
        blas: the library that linear algebra comes from on that machine; empty if unknown.
        numa: its NUMA nodes and settings, in words; empty if unknown.
        governor: frequency governors of all nodes, joined by commas; empty if unknown.
        limits: what the kernel gave each emulated board, one line for each node with its name
            first; empty for other nodes.
        twin: the boards, media and the like that emulated nodes stand for, in words; empty for
            other nodes.
        kind: the kind of node. Results from before it was recorded are of emulated nodes or of
            boards, as ``emulated`` says, and get the kind when they are read.
    """

    kernel: str
    os: str
    cpu: str
    cpu_cores: int
    memory_bytes: int
    java: str
    hadoop: str
    spark: str
    boardcluster: str
    profile: str
    config_sha256: str
    nodes: int
    node_memory_bytes: int
    node_cores: int
    link_bits_per_second: int
    emulated: bool
    security: Security = Security.EMULATED
    hardware: tuple[str, ...] = ()
    kernel_command_line: str = ""
    blas: str = ""
    numa: str = ""
    governor: str = ""
    limits: str = ""
    twin: str = ""
    kind: str = ""

    def __post_init__(self) -> None:
        """Name the kind of node of a result from before it was recorded."""
        known = every_kind().get(self.kind)
        if not self.kind or (known is not None and known.emulated != self.emulated):
            object.__setattr__(self, "kind", "emulated" if self.emulated else "boards")

    @property
    def mark(self) -> str:
        """What is said wherever its results appear; empty for boards."""
        known = every_kind().get(self.kind)
        return known.mark if known else self._unknown

    @property
    def short_mark(self) -> str:
        """The mark where there is little space, as on an axis."""
        known = every_kind().get(self.kind)
        return known.short_mark if known else self._unknown

    @property
    def noun(self) -> str:
        """What the nodes are, after their number."""
        known = every_kind().get(self.kind)
        return known.noun if known else self._unknown

    @property
    def _unknown(self) -> str:
        """Words for a kind that another version, or somebody's own folder, had."""
        return f"nodes of the kind {self.kind}"


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaHome:
    """A Java runtime on a node.

    Attributes:
        home: its folder, links resolved.
        version: e.g. ``17.0.15``; empty if it does not say.
        feature: feature version, e.g. 17; None if it does not say.
        vendor: who built it; empty if it does not say.
        architecture: what its program was built for, as ``uname -m`` says it; empty if unknown.
    """

    home: str
    version: str
    feature: int | None
    vendor: str
    architecture: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A network interface of a node; the loopback one is none.

    Attributes:
        name: e.g. ``eth0``.
        addresses: its addresses with their prefix, e.g. ``192.168.1.5/24``.
        speed_bits_per_second: the rate agreed with the switch; None for a wireless or idle one.
        duplex: ``full``, ``half`` or empty.
        wireless: whether it is a radio.
        up: whether it has a carrier.
    """

    name: str
    addresses: tuple[str, ...]
    speed_bits_per_second: int | None
    duplex: str
    wireless: bool
    up: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Medium:
    """A block device that can hold data.

    Attributes:
        name: e.g. ``mmcblk0``, ``nvme0n1``, ``sda``.
        kind: ``sd``, ``emmc``, ``nvme``, ``ssd``, ``usb-ssd``, ``usb`` (a stick or a disk that
            turns), ``hdd`` or ``virtual``.
        model: what it calls itself; empty if it does not.
        size_bytes: its size.
        pcie_generation: generation of its PCIe link as it runs now; None if it has no such link.
        pcie_lanes: lanes of that link.
        usb_bits_per_second: rate of its USB link; None if it has none.
        trim: whether it takes discards; None if the kernel does not say.
    """

    name: str
    kind: str
    model: str
    size_bytes: int
    pcie_generation: int | None = None
    pcie_lanes: int | None = None
    usb_bits_per_second: int | None = None
    trim: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A file system that can hold data, where it is mounted.

    Attributes:
        folder: where.
        file_system: its type, e.g. ``ext4``.
        source: what is mounted, e.g. ``/dev/mmcblk0p2``.
        medium: name of the medium below it; empty if it has none (memory, network) or unknown.
        size_bytes: its size; None if it was not asked (network) or did not answer.
        available_bytes: what an ordinary user may still write; None likewise.
        read_only: whether nothing can be written.
        options: mount options, comma-separated.
    """

    folder: str
    file_system: str
    source: str
    medium: str
    size_bytes: int | None
    available_bytes: int | None
    read_only: bool
    options: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Swap:
    """A swap area.

    Attributes:
        place: the device or file.
        size_bytes: its size.
        used_bytes: what is in use.
        kind: ``zram`` (compressed memory), or the kind of its medium; empty if unknown.
    """

    place: str
    size_bytes: int
    used_bytes: int
    kind: str


class Sudo(StrEnum):
    """What the login user may do: everything as ROOT, or by sudo that WORKS, ASKS or is MISSING."""

    ROOT = "root"
    WORKS = "works"
    ASKS = "asks"
    MISSING = "missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """What a node is, as it was found. What could not be read is None or empty, never guessed.

    Attributes:
        name: its own host name.
        board: model of the board (device tree) or machine (DMI).
        soc: system on chip, from the device tree; empty on PCs.
        cpu: name of the CPU; of each kind, joined by `` + ``.
        cores: CPUs that are on.
        clock_least_hertz: lowest frequency the CPU can run at.
        clock_most_hertz: highest frequency the CPU can run at.
        governor: frequency governor; several joined by commas.
        memory_bytes: memory that the kernel manages.
        available_memory_bytes: what may be used now without swapping.
        architecture: of the kernel, as ``uname -m`` says it.
        userland_bits: 64 or 32: what the installed programs are built for.
        page_size_bytes: size of a memory page.
        os: distribution.
        kernel: its release.
        firmware: boot loader or BIOS with its version.
        service_manager: ``systemd`` or ``none``.
        boot_id: id of this boot.
        uptime_seconds: time since boot.
        machine_id: hash of ``/etc/machine-id``; equal ones are clones of one card.
        host_keys: SHA-256 fingerprints of the SSH host keys; equal ones likewise.
        login_user: who logged in.
        sudo: what that user may do.
        python: version of ``python3``.
        javas: every Java found.
        java_home: ``JAVA_HOME`` as a program sees it that is started over SSH.
        links: network interfaces.
        own_addresses: what the own host name resolves to.
        clock_synchronised: whether the kernel says that a time service keeps the clock.
        clock_offset_seconds: how far its clock is ahead of the driver's.
        clock_error_seconds: how wrong that may be.
        media: block devices.
        mounts: file systems.
        folder: the folder that was asked for.
        folder_mount: mount point of the file system that holds it or will hold it.
        swaps: swap areas.
        cgroup_controllers: those that are on.
        memory_controller: whether memory of a group of processes can be limited.
        throttled: bits of the Raspberry Pi's ``get_throttled``; None on other machines.
        temperature_celsius: hottest sensor.
        package_managers: processes of apt and its kind that are at work.
        kernel_faults: lines of the kernel's log on failing storage, power or memory; None if the
            log may not be read.
    """

    name: str
    board: str
    soc: str
    cpu: str
    cores: int
    clock_least_hertz: int | None
    clock_most_hertz: int | None
    governor: str
    memory_bytes: int
    available_memory_bytes: int
    architecture: str
    userland_bits: int
    page_size_bytes: int
    os: str
    kernel: str
    firmware: str
    service_manager: str
    boot_id: str
    uptime_seconds: float | None
    machine_id: str
    host_keys: tuple[str, ...]
    login_user: str
    sudo: Sudo
    python: str
    javas: tuple[JavaHome, ...]
    java_home: str
    links: tuple[Link, ...]
    own_addresses: tuple[str, ...]
    clock_synchronised: bool | None
    clock_offset_seconds: float
    clock_error_seconds: float
    media: tuple[Medium, ...]
    mounts: tuple[Mount, ...]
    folder: str
    folder_mount: str
    swaps: tuple[Swap, ...]
    cgroup_controllers: tuple[str, ...]
    memory_controller: bool
    throttled: int | None
    temperature_celsius: float | None
    package_managers: tuple[str, ...]
    kernel_faults: tuple[str, ...] | None

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
    """The proof that an output was right.

    Attributes:
        method: one sentence saying how it was proved.
        expected_sha256: digest of the canonical expected output.
        actual_sha256: digest of the canonical actual output; equal to the expected one when right.
        records: number of output records compared.
    """

    method: str
    expected_sha256: str
    actual_sha256: str
    records: int


class Verdict(StrEnum):
    """Whether a number can be trusted, from telemetry.

    VALID: nothing was seen that disturbs it. TAINTED: it was measured while something disturbed it
    (heat, stolen time, other work); kept, labelled, out of statistics unless asked for. INVALID:
    it says nothing, for instance because telemetry does not cover the run. UNJUDGED: recorded
    before there were verdicts.
    """

    VALID = "valid"
    TAINTED = "tainted"
    INVALID = "invalid"
    UNJUDGED = "unjudged"


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
    """One declared ``[[meter]]`` of a ``cluster.toml``.

    Attributes:
        name: its name, for messages and figures.
        kind: name of the driver, a file of ``telemetry/meters/``.
        nodes: names of the nodes it covers; several for a meter of the whole cluster.
        switch: whether the network switch hangs on it too.
        options: the driver's own settings as text, e.g. ``url``; never a secret.
    """

    name: str
    kind: str
    nodes: tuple[str, ...]
    switch: bool = False
    options: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """What one meter recorded over one run.

    Attributes:
        meter: its name.
        kind: its driver.
        coverage: what it sees.
        nodes: the nodes it covers.
        switch: whether the network switch hangs on it too.
        accuracy: its stated accuracy in words, with the source.
        rate_hertz: readings per second as it took them.
        energy_joules: over the run; None where the reason says why.
        mean_watts: mean power over the run; None likewise.
        most_watts: highest reading; None likewise.
        readings: readings within the run.
        method: METERED or MODELLED.
        remarks: what was odd: gaps, resets, frozen values; one line each.
        reason: why there is no energy, in one line; empty if there is.
    """

    meter: str
    kind: str
    coverage: Coverage
    nodes: tuple[str, ...]
    switch: bool
    accuracy: str
    rate_hertz: float
    energy_joules: float | None
    mean_watts: float | None
    most_watts: float | None
    readings: int
    method: EnergyMethod = EnergyMethod.METERED
    remarks: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PowerSamples:
    """What one meter was seen to say during one run.

    Attributes:
        meter: its name.
        coverage: what it sees.
        nodes: the nodes it covers.
        seconds: when each reading was taken, rising; 0 is the start of the run, by the driver's
            monotonic clock, so that there may be readings before it and after its end.
        watts: power then; NaN where the meter gave none.
    """

    meter: str
    coverage: Coverage
    nodes: tuple[str, ...]
    seconds: numpy.typing.NDArray[np.float64]
    watts: numpy.typing.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Energy:
    """Energy of one run over the whole cluster.

    Attributes:
        energy_joules: sum over the meters; None unless every node is covered exactly once.
        method: METERED only if every part is.
        level: level of the EE HPC WG power measurement methodology that is reached: 1, 2 or 3;
            0 where none is.
        level_reason: why it is not higher, in one line.
        powers: what each meter recorded.
        reason: why there is no sum, in one line; empty if there is.
    """

    energy_joules: float | None
    method: EnergyMethod
    level: int
    level_reason: str
    powers: tuple[Power, ...]
    reason: str = ""


class ProbeMode(StrEnum):
    """QUICK: the whole set on one node in minutes. PAPER: as long and as often as the papers."""

    QUICK = "quick"
    PAPER = "paper"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeFigure:
    """One number of a probe.

    Attributes:
        name: what was measured, unit last: ``sysbench_cpu_events_per_second``.
        value: in that unit.
        conditions: what distinguishes it from its siblings: ``threads`` to ``4``.
    """

    name: str
    value: float
    conditions: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeRun:
    """One run of one probe on one node, or between two.

    Attributes:
        id: unique in the store, sortable by time.
        probe: its name.
        mode: quick or paper.
        node: the node it ran on.
        peer: the other node; empty where there is none.
        started_utc: ISO 8601 with offset.
        duration_seconds: driver's monotonic clock.
        cluster: the cluster's name.
        emulated: whether the node is a namespace on this machine; shown wherever figures appear.
        versions: the tools that measured, with their versions.
        hardware: one line on the node.
        figures: what was measured; empty where the reason says why.
        reason: why it failed, in one line; empty if it did not.
    """

    id: str
    probe: str
    mode: ProbeMode
    node: str
    peer: str = ""
    started_utc: str
    duration_seconds: float
    cluster: str
    emulated: bool
    versions: tuple[str, ...] = ()
    hardware: str = ""
    figures: tuple[ProbeFigure, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NodeSamples:
    """Telemetry of one node over one run.

    Attributes:
        node: its name; ``host`` is the machine that emulated nodes share.
        scope: ``machine``: the kernel's totals; ``node``: only what belongs to an emulated node.
        interval_seconds: pause between samples, as asked for at the start.
        cores: CPUs that the node may use.
        seconds: end of each sample's interval by the driver's monotonic clock; 0 is the start of
            the run, so that the first samples are before it.
        columns: by name (see docs/reference/telemetry.md) one value for each sample, over the
            interval that ends then; NaN where it is not known.
        clock_offset_seconds: how far the node's wall clock is ahead of the driver's.
        clock_error_seconds: how wrong the alignment of ``seconds`` may be.
        notes: foreign programs with the CPU time that they took, one a line: ``make 3.5 s``.
    """

    node: str
    scope: str
    interval_seconds: float
    cores: int
    seconds: numpy.typing.NDArray[np.float64]
    columns: Mapping[str, numpy.typing.NDArray[np.float64]]
    clock_offset_seconds: float = 0.0
    clock_error_seconds: float = 0.0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Telemetry:
    """Telemetry of one run.

    Attributes:
        duration_seconds: from the start of the run to its end, by the driver's monotonic clock.
        nodes: one entry for each node that gave samples, in the cluster's order, ``host`` last.
        phases: name to start and end of each submission, and as ``SUBMISSION/PHASE`` of the
            engine's own phases inside it, in seconds from the start of the run; see
            analysis/phases.py.
    """

    duration_seconds: float
    nodes: tuple[NodeSamples, ...]
    phases: Mapping[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What a valid attempt yields.

    Attributes:
        duration_seconds: driver's monotonic clock around the engine's own submission.
        input_bytes: bytes of input; 0 where unknown (the user's own program).
        output_bytes: bytes of final output in HDFS; 0 where unknown.
        counters: the engine's own counters as ``group/name``, unchanged.
        verification: the proof; None only for the user's own program, which has no known answer.
        exit_status: exit status of the submission.
        application_id: YARN's id of the (last) application; empty if it never got one.
        figures: what the workload itself measures, unit last in each name.
        phases_seconds: duration of each part: our own submissions, and the engine's phases as
            ``submission/phase`` where it gives them.
        intermediate_bytes: bytes the engine says it wrote to local storage that are not final
            output (spills, merges, shuffle files); None where it does not say.
        node_written_bytes: per node, bytes its processes wrote to storage during the run, by the
            kernel's accounting, final output and its replicas included.
        node_read_bytes: per node, bytes they read from storage, which is not the page cache.
        remarks: what was not as the policy asked, in one line each.
        verdict: whether it can be trusted.
        verdict_reasons: why it is not valid, in one line each.
        energy: over the run; None where nothing measures or models it.
        dilation: by how much the nodes were slower than the boards they stand for; every time and
            every rate here is already divided or multiplied by it, so that it is the board's. See
            ``undilated`` for what is not.
    """

    duration_seconds: float
    input_bytes: int
    output_bytes: int
    counters: dict[str, int] = field(default_factory=dict)
    verification: Verification | None
    exit_status: int
    application_id: str = ""
    figures: dict[str, float] = field(default_factory=dict)
    phases_seconds: dict[str, float] = field(default_factory=dict)
    intermediate_bytes: int | None = None
    node_written_bytes: dict[str, int] = field(default_factory=dict)
    node_read_bytes: dict[str, int] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    verdict: Verdict = Verdict.UNJUDGED
    verdict_reasons: tuple[str, ...] = ()
    energy: Energy | None = None
    dilation: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One try at a trial; never overwritten.

    Attributes:
        trial_id: the trial.
        number: from 1, per trial.
        state: see AttemptState.
        reason: why it is not ok, in one line; for an ok attempt, a remark or empty.
        started_utc: ISO 8601 with offset.
        ended_utc: ISO 8601 with offset; empty while running.
        artefacts: folder of raw artefacts, relative to the cluster's state folder.
        fingerprint: what it ran on.
    """

    trial_id: str
    number: int
    state: AttemptState
    reason: str
    started_utc: str
    ended_utc: str
    artefacts: str
    fingerprint: Fingerprint

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
