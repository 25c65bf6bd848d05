"""The verbs of TeraGen."""

from __future__ import annotations

from collections.abc import Mapping

from boardcluster.records import Engine
from boardcluster.workloads.base import (
    Case,
    Context,
    Job,
    Need,
    Parameter,
    Phase,
    PhaseOutcome,
    Prepared,
    Proof,
    Takes,
)
from boardcluster.workloads.tera import (
    check_rows,
    count_of,
    count_parameter,
    describe_rows,
    example_command,
    job_command,
    rows_of,
)
from boardcluster.workloads.tera_proof import expected_totals, prove
from boardcluster.workloads.tera_rows import ROW_BYTES

__all__ = ["WORKLOAD", "TeraGen"]

_METHOD = (
    "number of rows and sum of their CRC-32 equal those computed independently from the "
    "published algorithm of gensort"
)


class TeraGen:
    """See the package's docstring."""

    name = "teragen"
    engines = (Engine.MAPREDUCE, Engine.SPARK)
    takes = Takes.ROWS
    parameters: Mapping[str, Parameter] = {
        "maps": count_parameter("How many tasks, and so files, the rows are divided among.")
    }
    tools: Mapping[str, str] = {}

    def check(self, case: Case) -> None:
        """See Workload."""
        check_rows(self.name, case, least_bytes=ROW_BYTES, counted="maps")

    def need(self, case: Case) -> Need:
        """See Workload.

        Its intermediate data does not grow with the size (Lee and Park 2026, Table 12: 92 to
        552 MB for 1 to 32 GB), so only the output and its replicas count.
        """
        return Need(input_bytes=0, run_bytes=case.size_bytes * case.replication)

    def describe(self, case: Case) -> str:
        """See Workload."""
        return describe_rows(case)

    def prepare(self, context: Context, case: Case) -> Prepared:
        """See Workload. There is no input; the checksum is computed once per number of rows."""
        context.progress("computing the checksum independently", 0, 0)
        return Prepared(expected=expected_totals(rows_of(case), context.cache))

    def phases(self, context: Context, prepared: Prepared, job: Job) -> tuple[Phase, ...]:
        """See Workload."""
        del prepared  # it has no input
        layout = context.live.layout
        rows, maps = str(rows_of(job.case)), count_of(job.case, "maps")
        if job.case.engine is Engine.MAPREDUCE:
            options = [f"-Dmapreduce.job.maps={maps}"] if maps else []
            arguments = ["teragen", *options, rows, job.output_path]
            command = example_command(layout, conf=job.conf, arguments=arguments)
        else:
            arguments = [rows, job.output_path, *([str(maps)] if maps else [])]
            command = job_command(
                layout, job, main="io.boardcluster.jobs.TeraGen", arguments=arguments
            )
        return (Phase(name="generate", command=command),)

    def verify(
        self,
        context: Context,
        prepared: Prepared,
        job: Job,
        outcomes: Mapping[str, PhaseOutcome],
    ) -> Proof:
        """See Workload."""
        del outcomes  # what it printed says nothing about its output
        return prove(
            context,
            prepared,
            job.output_path,
            what=f"the output of {job.case.engine}",
            method=_METHOD,
            ordered=False,
        )


WORKLOAD = TeraGen()
