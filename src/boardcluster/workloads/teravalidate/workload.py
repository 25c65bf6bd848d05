"""The verbs of TeraValidate."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from boardcluster.errors import VerificationError
from boardcluster.fetch.cache import sha256_of
from boardcluster.records import Engine, Verification
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
from boardcluster.workloads.outputs import fetch_parts
from boardcluster.workloads.tera import (
    LEAST_SORTED_BYTES,
    check_rows,
    describe_rows,
    example_command,
    intermediate_bytes,
    job_command,
)
from boardcluster.workloads.teravalidate.input import provide_planted

__all__ = ["WORKLOAD", "TeraValidate"]

_METHOD = (
    "the report equals, byte for byte, the one that follows from two faults planted into the "
    "sorted input: one misorder with its file and keys, and the checksum without one lost row"
)
_SHOWN_CHARACTERS = 500


class TeraValidate:
    """See the package's docstring."""

    name = "teravalidate"
    engines = (Engine.MAPREDUCE, Engine.SPARK)
    takes = Takes.ROWS
    parameters: Mapping[str, Parameter] = {}
    tools: Mapping[str, str] = {}

    def check(self, case: Case) -> None:
        """See Workload."""
        check_rows(self.name, case, least_bytes=LEAST_SORTED_BYTES)

    def need(self, case: Case) -> Need:
        """See Workload.

        The rows of TeraGen and the sorted ones are kept. A run itself adds a report of about a
        hundred bytes, but the first sort, with Hadoop, leaves up to 4.2 times its input as
        intermediate data meanwhile (Lee and Park 2026, Table 13).
        """
        return Need(
            input_bytes=2 * case.size_bytes * case.replication,
            run_bytes=intermediate_bytes(case, Engine.MAPREDUCE),
        )

    def describe(self, case: Case) -> str:
        """See Workload."""
        return describe_rows(case)

    def prepare(self, context: Context, case: Case) -> Prepared:
        """See Workload. Both engines validate the same files, sorted by stock TeraSort."""
        return provide_planted(context, case)

    def phases(self, context: Context, prepared: Prepared, job: Job) -> tuple[Phase, ...]:
        """See Workload."""
        layout = context.live.layout
        paths = [prepared.input_path, job.output_path]
        if job.case.engine is Engine.MAPREDUCE:
            arguments = ["teravalidate", *paths]
            command = example_command(layout, conf=job.conf, arguments=arguments)
        else:
            command = job_command(
                layout, job, main="io.boardcluster.jobs.TeraValidate", arguments=paths
            )
        return (Phase(name="validate", command=command),)

    def verify(
        self,
        context: Context,
        prepared: Prepared,
        job: Job,
        outcomes: Mapping[str, PhaseOutcome],
    ) -> Proof:
        """See Workload."""
        del outcomes  # the report is in HDFS
        if prepared.expected is None:
            raise VerificationError(
                "nobody knows what the report must say", hint="prepare the trial first"
            )
        parts = fetch_parts(context, job.output_path)
        size_bytes = sum(part.stat().st_size for part in parts)
        expected = prepared.expected.read_bytes()
        # An unbounded report is never read: a validator may find a fault in every row.
        report = b"".join(_head(part, len(expected) + _SHOWN_CHARACTERS) for part in parts)
        if report != expected:
            raise VerificationError(
                f"the report of {job.case.engine} has {size_bytes} bytes and begins with\n"
                f"{report[:_SHOWN_CHARACTERS].decode(errors='backslashreplace')}\n"
                f"expected\n{expected.decode()}",
                hint="look at the job's log",
            )
        verification = Verification(
            method=_METHOD,
            expected_sha256=sha256_of(prepared.expected),
            actual_sha256=hashlib.sha256(report).hexdigest(),
            records=report.count(b"\n"),
        )
        return Proof(verification=verification, output_bytes=size_bytes)


def _head(path: Path, size_bytes: int) -> bytes:
    with path.open("rb") as stream:
        return stream.read(size_bytes)


WORKLOAD = TeraValidate()
