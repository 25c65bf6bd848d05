"""A workload whose every verb is a script: it runs well and proves its output unless told so."""

import contextlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.builders import make_dataset, make_proof

from boardcluster.records import Dataset, Engine, PlannedFault, Variant, Verification
from boardcluster.workloads.base import (
    Context,
    InputKind,
    InstallContext,
    Job,
    JobSpec,
    Need,
    Parameter,
    Phase,
    PhaseOutcome,
    Proof,
    StagedInput,
)

PROOF = make_proof()
PARAMETER = Parameter(
    default="4",
    allowed="a whole number",
    meaning="how many there are",
    is_allowed=str.isdecimal,
)


def nothing(*_: object) -> None:
    """Do nothing."""


@dataclass
class FakeWorkload:
    """See the module's docstring.

    Attributes:
        space: what need() answers.
        words: what describe() answers.
        blas: what install() answers.
        lacking: what install() raises.
        refuses: what check() raises.
        made: its phases; None is one good submission.
        preparing: what prepare() does besides.
        proving: what verify() does besides, with what it is given.
        verdicts: what the n-th verify() raises, from 1.
        figures: what it measures itself.
        checked: cases that were checked.
        contexts: what prepare() was given.
        verified: jobs that were to be proved.
        outcomes: what verify() was given of the phases, each time.
    """

    name: str = "fake"
    engines: tuple[Engine, ...] = (Engine.MAPREDUCE, Engine.SPARK)
    input_kind: InputKind = InputKind.ROWS
    reads_input: bool = True
    workers_least: int = 1
    predicted_instead: str = ""
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    work_parameters: Collection[str] = ()
    variants: tuple[Variant, ...] = (Variant.FAST,)
    faults: tuple[PlannedFault, ...] = (PlannedFault.NONE,)
    tools: Mapping[str, str] = field(default_factory=dict)
    master_tools: Mapping[str, str] = field(default_factory=dict)
    space: Need = field(default_factory=lambda: Need(input_bytes=1000, run_bytes=0))
    words: str = ""
    blas: str = ""
    lacking: Exception | None = None
    refuses: Exception | None = None
    made: tuple[Phase, ...] | None = None
    preparing: Callable[[Context, JobSpec], None] = nothing
    proving: Callable[[Context, Job], None] = nothing
    verdicts: dict[int, BaseException] = field(default_factory=dict)
    figures: dict[str, float] = field(default_factory=dict)
    proof: Verification = PROOF
    checked: list[JobSpec] = field(default_factory=list)
    contexts: list[Context] = field(default_factory=list)
    verified: list[Job] = field(default_factory=list)
    outcomes: list[Mapping[str, PhaseOutcome]] = field(default_factory=list)

    def check(self, job_spec: JobSpec) -> None:
        self.checked.append(job_spec)
        if self.refuses:
            raise self.refuses

    def need(self, job_spec: JobSpec) -> Need:
        return self.space

    def tools_for(self, job_spec: JobSpec) -> Mapping[str, str]:
        return self.tools

    def install(self, context: InstallContext, job_spec: JobSpec) -> str:
        if self.lacking:
            raise self.lacking
        return self.blas

    def serving(
        self, context: Context, staged: StagedInput, job: Job
    ) -> contextlib.AbstractContextManager[object]:
        return contextlib.nullcontext()

    def describe(self, job_spec: JobSpec) -> str:
        return self.words

    def prepare(self, context: Context, job_spec: JobSpec) -> StagedInput:
        self.contexts.append(context)
        self.preparing(context, job_spec)
        return StagedInput(input_path="/in", input_bytes=1000)

    def phases(self, context: Context, staged: StagedInput, job: Job) -> tuple[Phase, ...]:
        if self.made is not None:
            return self.made
        command = (self.name, job.spec.engine, staged.input_path, job.output_path)
        return (Phase(name="count", command=command),)

    def verify(
        self,
        context: Context,
        staged: StagedInput,
        job: Job,
        outcomes: Mapping[str, PhaseOutcome],
    ) -> Proof:
        self.verified.append(job)
        self.outcomes.append(dict(outcomes))
        (context.work / "large").write_text("only needed for the proof")
        self.proving(context, job)
        if verdict := self.verdicts.get(len(self.verified)):
            raise verdict
        return Proof(verification=self.proof, output_bytes=4321, figures=self.figures)


def dataset_in(folder: Path) -> Dataset:
    """Return a text that nobody reads."""
    return make_dataset(folder / "flights")
