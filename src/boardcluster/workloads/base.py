"""What a workload is: a handful of verbs. The campaign driver owns time, order and storage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol, TypeAlias

from boardcluster.errors import UsageError, VerificationError
from boardcluster.fetch.cache import Progress
from boardcluster.records import Checksum, Dataset, Engine, Verification
from boardcluster.services.operation import LiveCluster
from boardcluster.services.webhdfs import WebHdfs

__all__ = [
    "Case",
    "Context",
    "Job",
    "Need",
    "Outcomes",
    "Parameter",
    "Phase",
    "PhaseOutcome",
    "Prepared",
    "Proof",
    "Takes",
    "Workload",
    "check_parameters",
    "number_parameter",
]


class Takes(StrEnum):
    """What the size of a case means to a workload."""

    TEXT = "bytes of text that it reads"
    ROWS = "bytes of 100-byte records"
    FILES = "bytes of all files together"
    MATRIX = "bytes of the matrix; 0 takes a share of the nodes' memory"
    NOTHING = "nothing: the size is ignored and stored as 0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A setting of a workload, written in a campaign as ``parameters.<workload>.<name>``.

    Attributes:
        default: its value where none is given, as text.
        allowed: what is allowed, in words.
        meaning: what it sets, one sentence.
        is_allowed: whether a text is a value of it.
    """

    default: str
    allowed: str
    meaning: str
    is_allowed: Callable[[str], bool]


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
class Case:
    """What one job of a trial is to do. Pure data.

    Attributes:
        engine: the engine it runs on.
        size_bytes: see Takes.
        replication: copies of each HDFS block, as it will be.
        checksum: checksums of the blocks it writes and reads.
        block_bytes: size of the blocks it writes; decides how its input is split.
        parameters: every parameter of the workload with its value, without the workload's name.
        workers: number of workers.
        worker_memory_bytes: declared memory of the smallest worker.
        worker_cores: declared cores of the smallest worker.
    """

    engine: Engine
    size_bytes: int
    replication: int
    checksum: Checksum
    parameters: Mapping[str, str]
    workers: int
    worker_memory_bytes: int
    worker_cores: int
    block_bytes: int = 128 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """Space in HDFS and on the nodes' local disks, over all nodes.

    Attributes:
        input_bytes: kept between runs, replicas included.
        run_bytes: most that one run adds to it: output with replicas, and intermediate data.
    """

    input_bytes: int = 0
    run_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """One program to run and time. Pure data; the driver runs it.

    Attributes:
        name: short, for people; unique in its job.
        command: the program, started in ``folder`` of the node.
        node: the node it runs on; empty is the master.
        beside: programs that serve it: (node, command); started first, ended with it.
        mpi_hosts: nodes on which ``mpirun`` may start its daemons; empty for anything else.
        files: files to write into its working folder first: name to content.
        results: files it leaves in its working folder that are part of the answer.
        drops_caches: whether page caches must be dropped just before, whatever the policy.
        yarn: whether YARN must have seen it; else it did not run on the cluster.
    """

    name: str
    command: tuple[str, ...]
    node: str = ""
    beside: tuple[tuple[str, tuple[str, ...]], ...] = ()
    mpi_hosts: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    results: tuple[str, ...] = ()
    drops_caches: bool = False
    yarn: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseOutcome:
    """What a phase left behind, for its workload to judge; it ended with status 0.

    Attributes:
        name: of the phase.
        duration_seconds: driver's monotonic clock around it.
        stdout: file with what it printed.
        stderr: file with what it complained about.
        counters: the engine's own counters; empty where there are none.
        results: ``Phase.results`` fetched to the driver: name to file.
    """

    name: str
    duration_seconds: float
    stdout: Path
    stderr: Path
    counters: Mapping[str, int] = field(default_factory=dict)
    results: Mapping[str, Path] = field(default_factory=dict)


Outcomes: TypeAlias = Mapping[str, PhaseOutcome]
"""What each phase of a job left behind, by the phase's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a workload may use.

    Attributes:
        live: the running cluster.
        hdfs: its file system.
        cache: the driver's cache folder, for expected answers (``cache/expected/<workload>/``).
        progress: told what is being done.
        dataset: the prepared text, for workloads that take TEXT; None for others.
        run_job: runs a phase that prepares input, outside all measurement; RunError if it fails.
            Its first argument is the engine, its second the conf folder to command maker.
        work: folder of the driver for scratch files; deleted after the job.
    """

    live: LiveCluster
    hdfs: WebHdfs
    cache: Path
    progress: Progress
    dataset: Dataset | None
    run_job: Callable[[Engine, Callable[[str], Phase]], PhaseOutcome]
    work: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """Input that is in place.

    Attributes:
        input_path: where it is in HDFS; empty where there is none.
        input_bytes: its size; 0 where there is none.
        expected: what the output must be, in the workload's own form; None if verify needs none.
    """

    input_path: str = ""
    input_bytes: int = 0
    expected: Path | None = None

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
    """One submission of a workload.

    Attributes:
        case: what to do.
        conf: folder, on the driver and the master, of the configuration to submit with.
        tag: YARN tag by which it is found again.
        output_path: folder in HDFS that is this job's alone; it does not exist beforehand and is
            deleted afterwards.
    """

    case: Case
    conf: str
    tag: str
    output_path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """A right answer.

    Attributes:
        verification: how it was proved.
        output_bytes: size of the final output in HDFS without replicas; 0 where there is none.
        figures: what the workload itself measures; unit last in each name, e.g.
            ``write_throughput_mebibytes_per_second``.
    """

    verification: Verification
    output_bytes: int = 0
    figures: Mapping[str, float] = field(default_factory=dict)


class Workload(Protocol):
    """One benchmark on one or more engines.

    A workload derives from this class and says what it is and what it does in `phases` and
    `verify`. All else has a default, for a workload with neither parameters nor input.

    Attributes:
        name: name of its folder.
        engines: engines it runs on.
        takes: what the size means.
        parameters: its settings by name.
        tools: programs every worker must have, with the Debian package of each.
    """

    name: str
    engines: tuple[Engine, ...]
    takes: Takes
    parameters: Mapping[str, Parameter] = {}
    tools: Mapping[str, str] = {}

    def check(self, case: Case) -> None:
        """Refuse, before anything starts, a case that cannot run. Pure.

        Raises:
            UsageError: a size or a parameter makes no sense; says what is allowed.
            CapacityError: the nodes cannot hold it; shows the arithmetic.
        """
        del case  # every size and every combination of parameters can run

    def need(self, case: Case) -> Need:
        """Return the space that a case needs. Pure."""
        del case
        return Need()

    def describe(self, case: Case) -> str:
        """Say what follows from a case and helps to judge it beforehand; empty if nothing. Pure."""
        del case
        return ""

    def prepare(self, context: Context, case: Case) -> Prepared:
        """Put the input into HDFS and find out what the output must be; both are kept."""
        del context, case
        return Prepared()

    def phases(self, context: Context, prepared: Prepared, job: Job) -> tuple[Phase, ...]:
        """Return the programs of the job, in order; each is timed."""
        ...

    def verify(self, context: Context, prepared: Prepared, job: Job, outcomes: Outcomes) -> Proof:
        """Prove that the output is right.

        Raises:
            VerificationError: it is not; says where it differs.
        """
        ...


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
