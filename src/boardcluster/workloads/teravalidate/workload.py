"""The verbs of _TeraValidate."""

from __future__ import annotations

import hashlib
from pathlib import Path

from boardcluster.errors import VerificationError
from boardcluster.fetch.cache import sha256_of
from boardcluster.records import Engine, Verification
from boardcluster.workloads.base import (
    Context,
    Job,
    JobSpec,
    Need,
    Outcomes,
    Phase,
    Proof,
    StagedInput,
)
from boardcluster.workloads.commands import job_phase
from boardcluster.workloads.outputs import fetch_parts
from boardcluster.workloads.tera import (
    TeraWorkload,
    intermediate_bytes,
)
from boardcluster.workloads.teravalidate.input import provide_planted

__all__ = ["WORKLOAD"]

_METHOD = (
    "the report equals, byte for byte, the one that follows from two faults planted into the "
    "sorted input: one misorder with its file and keys, and the checksum without one lost row"
)
_SHOWN_CHARACTERS = 500


class _TeraValidate(TeraWorkload):
    name = "teravalidate"

    def need(self, spec: JobSpec) -> Need:
        # The rows of TeraGen and the sorted ones are kept. A run itself adds a report of about a
        # hundred bytes, but the first sort, with Hadoop, leaves intermediate data meanwhile.
        return Need(
            input_bytes=2 * spec.size_bytes * spec.replication,
            run_bytes=intermediate_bytes(spec, Engine.MAPREDUCE),
        )

    def prepare(self, context: Context, spec: JobSpec) -> StagedInput:
        return provide_planted(context, spec)

    def phases(self, context: Context, staged: StagedInput, job: Job) -> tuple[Phase, ...]:
        paths = [staged.input_path, job.output_path]
        return job_phase(
            context,
            job,
            name="validate",
            example=["teravalidate", *paths],
            main="io.boardcluster.jobs.TeraValidate",
            spark=paths,
        )

    def verify(self, context: Context, staged: StagedInput, job: Job, outcomes: Outcomes) -> Proof:
        del outcomes  # the report is in HDFS
        answer = staged.answer()
        expected = answer.read_bytes()
        parts = fetch_parts(context, job.output_path)
        size_bytes = sum(part.stat().st_size for part in parts)
        # An unbounded report is never read: a validator may find a fault in every row.
        report = b"".join(_head(part, len(expected) + _SHOWN_CHARACTERS) for part in parts)
        if report != expected:
            raise VerificationError(
                f"the report of {job.spec.engine} has {size_bytes} bytes and begins with\n"
                f"{report[:_SHOWN_CHARACTERS].decode(errors='backslashreplace')}\n"
                f"expected\n{expected.decode()}",
                hint="look at the job's log",
            )
        verification = Verification(
            method=_METHOD,
            expected_sha256=sha256_of(answer),
            actual_sha256=hashlib.sha256(report).hexdigest(),
            records=report.count(b"\n"),
        )
        return Proof(verification=verification, output_bytes=size_bytes)


def _head(path: Path, size_bytes: int) -> bytes:
    with path.open("rb") as stream:
        return stream.read(size_bytes)


WORKLOAD = _TeraValidate()
