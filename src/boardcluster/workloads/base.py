"""What a workload is: a handful of verbs. The campaign driver owns time, order and storage."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

from boardcluster.errors import UsageError, VerificationError
from boardcluster.fetch.cache import Progress
from boardcluster.records import (
    Checksum,
    ClusterSpec,
    Dataset,
    Engine,
    PlannedFault,
    Role,
    Variant,
    Verification,
)

if TYPE_CHECKING:  # what starts clusters is slow to load
    from boardcluster.services.operation import LiveCluster
    from boardcluster.services.webhdfs import WebHdfs

__all__ = [
    "BOTH_VARIANTS",
    "Context",
    "InputKind",
    "InstallContext",
    "Job",
    "JobSpec",
    "Need",
    "Outcomes",
    "Parameter",
    "Phase",
    "PhaseOutcome",
    "Proof",
    "StagedInput",
    "Workload",
    "check_fault",
    "check_parameters",
    "check_variant",
    "number_parameter",
]


BOTH_VARIANTS = (Variant.FAST, Variant.TEXTBOOK)
"""Of a workload that also has a program written as textbooks do."""


class InputKind(StrEnum):
    """What the size of a job spec means to a workload."""

    TEXT = "bytes of text that it reads"
    ROWS = "bytes of 100-byte records"
    FILES = "bytes of all files together"
    MATRIX = "bytes of the matrix; 0 takes a share of the nodes' memory"
    NOTHING = "nothing: the size is ignored and stored as 0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A setting of a workload, written in a campaign as ``parameters.<workload>.<name>``."""

    default: str
    """Its value where none is given, as text."""
    allowed: str
    """What is allowed, in words."""
    meaning: str
    """What it sets, one sentence."""
    is_allowed: Callable[[str], bool]
    """Whether a text is a value of it."""


def number_parameter(
    meaning: str, *, default: int, least: int, most: int, note: str = ""
) -> Parameter:
    """Return a parameter that is a whole number.

    Args:
        meaning: what it sets, one sentence.
        default: its value where none is given.
        least: smallest value.
        most: largest value.
        note: added to what is allowed, with its own separator.
    """

    def is_allowed(text: str) -> bool:
        # Not isdecimal() alone: it allows the digits of every script.
        short = text.isascii() and text.isdecimal() and len(text) <= len(str(most))
        return short and least <= int(text) <= most

    return Parameter(
        default=str(default),
        allowed=f"a whole number from {least} to {most}{note}",
        meaning=meaning,
        is_allowed=is_allowed,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """What one job of a trial is to do. Pure data."""

    engine: Engine
    """The engine it runs on."""
    size_bytes: int
    """Size of its input, or of what it makes; 0 for a job that has neither."""
    replication: int
    """Copies of each HDFS block, as it will be."""
    checksum: Checksum
    """Checksums of the blocks it writes and reads."""
    parameters: Mapping[str, str]
    """Every parameter of the workload with its value, without the workload's name."""
    workers: int
    """Number of workers."""
    least_memory_bytes: int
    """Least declared memory of a node, the master included."""
    worker_cores: int
    """Fewest declared cores of a worker."""
    smallest_memory_bytes: int
    """Declared memory of the worker that has the least beside system and daemons."""
    smallest_roles: frozenset[Role] = frozenset({Role.WORKER})
    """Roles of that worker, which may be the master."""
    block_bytes: int = 128 << 20
    """Size of the blocks it writes; decides how its input is split."""
    input_maps: int = 0
    """Maps that generate its rows, and so their files; 0 leaves the number to Hadoop."""
    variant: Variant = Variant.FAST
    """Which program runs."""
    fault: PlannedFault = PlannedFault.NONE
    """What happens to the last worker in the middle of the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """Space in HDFS and on the nodes' local disks, over all nodes."""

    input_bytes: int = 0
    """Kept between runs, replicas included."""
    run_bytes: int = 0
    """Most that one run adds to it: output with replicas, and intermediate data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """One program to run and time. Pure data; the driver runs it."""

    name: str
    """Short, for people; unique in its job."""
    command: tuple[str, ...]
    """The program, started in ``folder`` of the node."""
    node: str = ""
    """The node it runs on; empty is the master."""
    servers: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Programs that serve it: (node, command); started first, ended with it."""
    servers_as_root: bool = False
    """Whether they do what the kernel allows root alone, as to a link."""
    mpi_hosts: tuple[str, ...] = ()
    """Nodes on which ``mpirun`` may start its daemons; empty for anything else."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Files to write into its working folder first: name to content."""
    results: tuple[str, ...] = ()
    """Files it leaves in its working folder that are part of the answer."""
    dated: bool = False
    """Whether it prints begin and end of its own phases, as ``campaign.spans.printed_spans`` reads
    them."""
    drops_caches: bool = False
    """Whether page caches must be dropped just before, whatever the policy."""
    yarn: bool = True
    """Whether YARN must have seen it; else it did not run on the cluster."""
    aside: bool = False
    """Whether it is no part of the measurement: neither of its time nor of its energy."""
    as_root: bool = False
    """Whether it does what the kernel allows root alone, as beside a mount; never for a job."""
    outside: bool = False
    """Whether it stands for somebody outside the cluster, so that a limited node is not charged for
    it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseOutcome:
    """What a phase left behind, for its workload to judge; it ended with status 0."""

    name: str
    """Of the phase."""
    duration_seconds: float
    """Driver's monotonic clock around it."""
    stdout: Path
    """File with what it printed."""
    stderr: Path
    """File with what it complained about."""
    counters: Mapping[str, int] = field(default_factory=dict)
    """The engine's own counters; empty where there are none."""
    results: Mapping[str, Path] = field(default_factory=dict)
    """``Phase.results`` fetched to the driver: name to file."""


Outcomes: TypeAlias = Mapping[str, PhaseOutcome]
"""What each phase of a job left behind, by the phase's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a workload may use."""

    live: LiveCluster
    """The running cluster."""
    hdfs: WebHdfs
    """Its file system."""
    cache: Path
    """The driver's cache folder, for expected answers (``cache/expected/<workload>/``)."""
    progress: Progress
    """Told what is being done."""
    dataset: Dataset | None
    """The prepared text, for workloads that take TEXT; None for others."""
    run_job: Callable[[Engine, Callable[[str], Phase]], PhaseOutcome]
    """Runs a phase that prepares input, outside all measurement; RunError if it fails. Its first
    argument is the engine, its second the conf folder to command maker."""
    work: Path
    """Folder of the driver for scratch files; deleted after the job."""
    mark: Mapping[str, str] = field(default_factory=dict)
    """Variables of everything that is started for the attempt, by which it is found again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallContext:
    """What a workload may use before an attempt begins."""

    live: LiveCluster
    """The running cluster."""
    cache: Path
    """The driver's cache folder."""
    progress: Progress
    """Told what is being done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedInput:
    """Input that is in place."""

    input_path: str = ""
    """Where it is in HDFS; empty where there is none."""
    input_bytes: int = 0
    """Its size; 0 where there is none."""
    expected: Path | None = None
    """What the output must be, in the workload's own form; None if verify needs none."""

    def answer(self) -> Path:
        """Return the file that says what the output must be.

        Raises:
            VerificationError: `prepare` made none.
        """
        if self.expected is None:
            raise VerificationError(
                "the expected output was never computed", hint="prepare the trial first"
            )
        return self.expected


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One submission of a workload."""

    spec: JobSpec
    """What to do."""
    conf: str
    """Folder, on the driver and the master, of the configuration to submit with."""
    tag: str
    """YARN tag by which it is found again."""
    output_path: str
    """Folder in HDFS that is this job's alone; it does not exist beforehand and is deleted
    afterwards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """A right answer."""

    verification: Verification
    """How it was proved."""
    output_bytes: int = 0
    """Size of the final output in HDFS without replicas; 0 where there is none."""
    figures: Mapping[str, float] = field(default_factory=dict)
    """What the workload itself measures; unit last in each name, e.g.
    ``write_throughput_mebibytes_per_second``."""
    remarks: tuple[str, ...] = ()
    """What whoever reads the figures must know."""


class Workload(Protocol):
    """One benchmark on one or more engines.

    A workload derives from this class and says what it is and what it does in `phases` and
    `verify`. All else has a default, for a workload with neither parameters nor input.
    """

    name: str
    """Name of its folder."""
    engines: tuple[Engine, ...]
    """Engines it runs on."""
    input_kind: InputKind
    """What the size means."""
    reads_input: bool = True
    """Whether the size is that of an input; else it is that of what it makes."""
    workers_least: int = 1
    """Fewest workers that it runs on."""
    predicted_instead: str = ""
    """What `predict` says of it instead of a time; empty where a time can be predicted."""
    parameters: Mapping[str, Parameter] = {}
    """Its settings by name."""
    work_parameters: Collection[str] = ()
    """Those that change what is to be done, not how: ratios of their times mean nothing."""
    variants: tuple[Variant, ...] = (Variant.FAST,)
    """Programs that it has."""
    faults: tuple[PlannedFault, ...] = (PlannedFault.NONE,)
    """What may happen to a worker while it runs."""
    tools: Mapping[str, str] = {}
    """Programs every worker must have, with the Debian package of each."""
    master_tools: Mapping[str, str] = {}
    """Likewise those that the master must have."""

    def tools_for(self, spec: JobSpec) -> Mapping[str, str]:
        """Return the programs that every worker must have for a job spec, each with its package."""
        del spec
        return self.tools

    def check(self, spec: JobSpec) -> None:
        """Refuse, before anything starts, a job spec that cannot run. Pure.

        Raises:
            UsageError: a size or a parameter makes no sense; says what is allowed.
            CapacityError: the nodes cannot hold it; shows the arithmetic.
        """
        del spec  # every size and every combination of parameters can run

    def install(self, context: InstallContext, spec: JobSpec) -> str:
        """Have on every worker what it runs and no package brings; called before each attempt.

        Returns:
            The BLAS that comes with it, for the fingerprint; empty where that of the nodes counts.

        Raises:
            HostError: it cannot be had; says what is missing and what helps.
        """
        del context, spec
        return ""

    def need(self, spec: JobSpec) -> Need:
        """Return the space that a job spec needs. Pure."""
        del spec
        return Need()

    def describe(self, spec: JobSpec) -> str:
        """Say what follows from a job spec and helps to judge it beforehand; empty if nothing.

        Pure.
        """
        del spec
        return ""

    def prepare(self, context: Context, spec: JobSpec) -> StagedInput:
        """Put the input into HDFS and find out what the output must be; both are kept."""
        del context, spec
        return StagedInput()

    def serving(
        self, context: Context, staged: StagedInput, job: Job
    ) -> contextlib.AbstractContextManager[object]:
        """Have a service run while the block does; nothing of it is left afterwards.

        The phases run inside, what starts and ends the service is not timed.

        Raises:
            HostError: a program is missing, or does not start; says what helps.
            AddressError: a port is taken.
        """
        del context, staged, job
        return contextlib.nullcontext()

    def phases(self, context: Context, staged: StagedInput, job: Job) -> tuple[Phase, ...]:
        """Return the programs of the job, in order; each is timed."""
        ...

    def verify(self, context: Context, staged: StagedInput, job: Job, outcomes: Outcomes) -> Proof:
        """Prove that the output is right.

        Raises:
            VerificationError: it is not; says where it differs.
        """
        ...


def check_variant(workload: Workload, variant: Variant) -> None:
    """Refuse a program that a workload does not have.

    Raises:
        UsageError: says which it has.
    """
    if variant not in workload.variants:
        has = ", ".join(f'"{each}"' for each in workload.variants)
        raise UsageError(
            f'{workload.name} has no program of the variant "{variant}"',
            hint=f"leave {workload.name} out, or choose a variant that it has: {has}",
        )


def check_fault(workload: Workload, fault: PlannedFault, spec: ClusterSpec) -> None:
    """Refuse a fault that a workload does not have, or that the nodes would not survive.

    Raises:
        UsageError: says which are possible.
    """
    if fault not in workload.faults:
        has = ", ".join(f'"{each}"' for each in workload.faults)
        raise UsageError(
            f'{workload.name} has no fault "{fault}"',
            hint=f"leave {workload.name} out, or choose a fault that it has: {has}",
        )
    if fault is PlannedFault.LINK and spec.capabilities.network != "own":
        raise UsageError(
            'the fault "link" takes a node\'s network away, by which these nodes are reached',
            hint='use emulated nodes, or the fault "kill"',
        )


def check_parameters(workload: Workload, given: Mapping[str, str]) -> dict[str, str]:
    """Return every parameter of a workload with its value.

    Args:
        workload: the workload.
        given: parameters that were set, without the workload's name.

    Raises:
        UsageError: an unknown name or a wrong value; says what is allowed.
    """
    for name, value in given.items():
        parameter = workload.parameters.get(name)
        if parameter is None:
            known = ", ".join(workload.parameters) or "none"
            raise UsageError(
                f"{workload.name} has no parameter {name!r}", hint=f"its parameters: {known}"
            )
        if not parameter.is_allowed(value):
            raise UsageError(
                f"{workload.name}.{name} = {value!r}; allowed: {parameter.allowed}",
                hint=f"for example {workload.name}.{name} = {parameter.default!r}",
            )
    defaults = {name: parameter.default for name, parameter in workload.parameters.items()}
    return {**defaults, **given}
