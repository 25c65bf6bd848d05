"""The verbs of TeraSort."""

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
    LEAST_SORTED_BYTES,
    check_rows,
    count_of,
    count_parameter,
    describe_rows,
    intermediate_bytes,
    job_command,
    sort_command,
)
from boardcluster.workloads.tera_input import provide_rows
from boardcluster.workloads.tera_proof import prove

__all__ = ["WORKLOAD", "TeraSort"]

_METHOD = (
    "no key is smaller than the key before it, over all files in name order; number of rows and "
    "sum of their CRC-32 equal those computed independently from the published algorithm of gensort"
)


class TeraSort:
    """See the package's docstring."""

    name = "terasort"
    engines = (Engine.MAPREDUCE, Engine.SPARK)
    takes = Takes.ROWS
    parameters: Mapping[str, Parameter] = {
        "reduces": count_parameter("How many key ranges, and so output files, the sort has.")
    }
    tools: Mapping[str, str] = {}

    def check(self, case: Case) -> None:
        """See Workload."""
        check_rows(self.name, case, least_bytes=LEAST_SORTED_BYTES, counted="reduces")

    def need(self, case: Case) -> Need:
        """See Workload.

        Output with its replicas, and intermediate data of up to 4.2 times the input on Hadoop and
        1.4 times on Spark (Lee and Park 2026, Table 13).
        """
        stored = case.size_bytes * case.replication
        run_bytes = stored + intermediate_bytes(case, case.engine)
        return Need(input_bytes=stored, run_bytes=run_bytes)

    def describe(self, case: Case) -> str:
        """See Workload."""
        return describe_rows(case)

    def prepare(self, context: Context, case: Case) -> Prepared:
        """See Workload. Both engines sort the same rows, made by stock TeraGen."""
        return provide_rows(context, case)

    def phases(self, context: Context, prepared: Prepared, job: Job) -> tuple[Phase, ...]:
        """See Workload."""
        layout = context.live.layout
        reduces = count_of(job.case, "reduces")
        paths = [prepared.input_path, job.output_path]
        if job.case.engine is Engine.MAPREDUCE:
            command = sort_command(
                layout, conf=job.conf, case=job.case, reduces=reduces, paths=paths
            )
        else:
            arguments = [*paths, *([str(reduces)] if reduces else [])]
            command = job_command(
                layout, job, main="io.boardcluster.jobs.TeraSort", arguments=arguments
            )
        return (Phase(name="sort", command=command),)

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
            ordered=True,
        )


WORKLOAD = TeraSort()
