"""The verbs of _TeraGen."""

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
    rows_of,
)
from boardcluster.workloads.tera_proof import expected_totals, prove
from boardcluster.workloads.tera_rows import ROW_BYTES

__all__ = ["WORKLOAD"]

_METHOD = (
    "number of rows and sum of their CRC-32 equal those computed independently from the "
    "published algorithm of gensort"
)


class _TeraGen(TeraWorkload):
    name = "teragen"
    reads_input = False
    least_bytes = ROW_BYTES
    counted = "maps"
    variants = BOTH_VARIANTS
    parameters: Mapping[str, Parameter] = {
        "maps": count_parameter("Number of tasks, and so of files, that share the rows.")
    }

    def need(self, spec: JobSpec) -> Need:
        # Its intermediate data does not grow with the size (Lee and Park 2026, Table 12: 92 to
        # 552 MB for 1 to 32 GB), so only the output and its replicas count.
        return Need(run_bytes=spec.size_bytes * spec.replication)

    def prepare(self, context: Context, spec: JobSpec) -> StagedInput:
        context.progress("computing the checksum independently", 0, 0)
        return StagedInput(expected=expected_totals(rows_of(spec), context.cache))

    def phases(self, context: Context, staged: StagedInput, job: Job) -> tuple[Phase, ...]:
        del staged  # it has no input
        maps = count_of(job.spec, "maps")
        arguments = [str(rows_of(job.spec)), job.output_path]
        return job_phase(
            context,
            job,
            name="generate",
            example=["teragen", *([f"-Dmapreduce.job.maps={maps}"] if maps else []), *arguments],
            main="io.boardcluster.jobs.TeraGen",
            textbook="io.boardcluster.textbook.TeraGen",
            spark=[*arguments, *([str(maps)] if maps else [])],
        )

    def verify(self, context: Context, staged: StagedInput, job: Job, outcomes: Outcomes) -> Proof:
        del outcomes  # what it printed says nothing about its output
        return prove(
            context,
            staged,
            job.output_path,
            what=f"the output of {job.spec.engine}",
            method=_METHOD,
            ordered=False,
        )


WORKLOAD = _TeraGen()
