"""The nouns of boardcluster as frozen dataclasses.

Every room may import this module and it imports none of them. Units stand last in every name
(``_seconds``, ``_bytes``, ``_watts``). What is declared lives here; what is alive (processes,
namespaces, connections) lives in the room that owns it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

__all__ = [
    "Attempt",
    "AttemptState",
    "CachePolicy",
    "Campaign",
    "CampaignKind",
    "CampaignSpec",
    "Checksum",
    "ClusterSpec",
    "Dataset",
    "Engine",
    "Fingerprint",
    "MasterPlacement",
    "Matrix",
    "Measurement",
    "NetworkSpec",
    "NodeSpec",
    "Policy",
    "Result",
    "Role",
    "Security",
    "Trial",
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

    EMULATED: its network exists only inside this machine. CLOSED: boards with every control of
    docs/explanation/security.md. INSECURE_LAB: boards as the papers had them, open to their whole
    network; only for comparison, and shown wherever its results appear.
    """

    EMULATED = "emulated"
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
    """

    name: str
    roles: frozenset[Role]
    cores: int
    memory_bytes: int
    host: str = ""
    address: str = ""
    folder: str = ""


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
class ClusterSpec:
    """A validated ``cluster.toml``.

    Attributes:
        name: name of the cluster, also of its state folder.
        kind: how the nodes exist: ``emulated`` on this machine, or ``boards`` over SSH.
        engines: id of the engine pair, the name of a lock file.
        profile: name of the engine configuration.
        network: its network.
        security: who may reach the cluster.
        nodes: every node, master first, in file order after it.
    """

    name: str
    kind: str
    engines: str
    profile: str
    network: NetworkSpec
    nodes: tuple[NodeSpec, ...]
    security: Security = Security.EMULATED

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
    """

    timeout_seconds: float = 3600.0
    cache: CachePolicy = CachePolicy.KEEP
    trim: bool = False
    cool_down_seconds: float = 0.0
    cool_below_celsius: float = 0.0
    cool_wait_seconds: float = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """One ``[[matrix]]`` of a ``campaign.toml``: every combination of its lists is a cell.

    Attributes:
        workloads: names, or names joined by ``+`` for a mix.
        engines: engines; empty means all that the workload has.
        profiles: engine configurations; empty means the cluster's own.
        sizes_bytes: input sizes; ignored by workloads without input.
        workers: numbers of workers; empty means all.
        concurrencies: jobs of a mix at once; empty means all at once, and one after the other.
        replications: copies of each HDFS block; 0 is the profile's own number.
        checksums: block checksums.
        masters: where the master runs.
        repetitions: measured runs of each cell.
        warm_ups: runs of each cell before its measured ones.
        input: the text that text workloads read: empty for the flights, else a path.
        parameters: ``workload.parameter`` to its values.
    """

    workloads: tuple[str, ...]
    engines: tuple[Engine, ...] = ()
    profiles: tuple[str, ...] = ()
    sizes_bytes: tuple[int, ...]
    workers: tuple[int, ...] = ()
    concurrencies: tuple[int, ...] = ()
    replications: tuple[int, ...] = (0,)
    checksums: tuple[Checksum, ...] = (Checksum.CRC32C,)
    masters: tuple[MasterPlacement, ...] = (MasterPlacement.DECLARED,)
    repetitions: int
    warm_ups: int = 0
    input: str = ""
    parameters: dict[str, tuple[str, ...]] = field(default_factory=dict)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A trial with one of its attempts; ``attempt`` is None while the trial is pending.

    ``measurement`` is None unless the attempt's state is ok (or the user's program ended with a
    non-zero status, whose time is kept).
    """

    trial: Trial
    attempt: Attempt | None
    measurement: Measurement | None
