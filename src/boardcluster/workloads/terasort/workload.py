"""The verbs of _TeraSort."""

from __future__ import annotations

from collections.abc import Mapping

from boardcluster.workloads.base import (
    BOTH_VARIANTS,
    Context,
    Job,
    JobSpec,
    Need,
    Outcomes,
    Parameter,
    Phase,
    Proof,
    StagedInput,
)
from boardcluster.workloads.commands import job_phase
from boardcluster.workloads.tera import (
    TeraWorkload,
    count_of,
    count_parameter,
    intermediate_bytes,
    sort_arguments,
)
from boardcluster.workloads.tera_input import provide_rows
from boardcluster.workloads.tera_proof import prove

__all__ = ["WORKLOAD"]

_METHOD = (
    "no key is smaller than the key before it, over all files in name order; number of rows and "
    "sum of their CRC-32 equal those computed independently from the published algorithm of gensort"
)


class _TeraSort(TeraWorkload):
    name = "terasort"
    counted = "reduces"
    variants = BOTH_VARIANTS
    parameters: Mapping[str, Parameter] = {
        "reduces": count_parameter("How many key ranges, and so output files, the sort has.")
    }

    def need(self, spec: JobSpec) -> Need:
        stored = spec.size_bytes * spec.replication
        run_bytes = stored + intermediate_bytes(spec, spec.engine)
        return Need(input_bytes=stored, run_bytes=run_bytes)

    def prepare(self, context: Context, spec: JobSpec) -> StagedInput:
        return provide_rows(context, spec)

    def phases(self, context: Context, staged: StagedInput, job: Job) -> tuple[Phase, ...]:
        reduces = count_of(job.spec, "reduces")
        paths = [staged.input_path, job.output_path]
        return job_phase(
            context,
            job,
            name="sort",
            example=sort_arguments(job.spec, reduces=reduces, paths=paths),
            main="io.boardcluster.jobs.TeraSort",
            textbook="io.boardcluster.textbook.TeraSort",
            spark=[*paths, *([str(reduces)] if reduces else [])],
        )

    def verify(self, context: Context, staged: StagedInput, job: Job, outcomes: Outcomes) -> Proof:
        del outcomes  # what it printed says nothing about its output
        return prove(
            context,
            staged,
            job.output_path,
            what=f"the output of {job.spec.engine}",
            method=_METHOD,
            ordered=True,
        )


WORKLOAD = _TeraSort()
