"""The verbs of TestDFSIO."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from boardcluster.errors import UsageError, VerificationError
from boardcluster.fetch.cache import require_space
from boardcluster.records import Engine, Verification
from boardcluster.services.yarn import hadoop_command
from boardcluster.workloads.base import (
    Case,
    Context,
    Job,
    Need,
    Outcomes,
    Parameter,
    Phase,
    PhaseOutcome,
    Prepared,
    Proof,
    Takes,
    Workload,
    number_parameter,
)
from boardcluster.workloads.commands import spark_command
from boardcluster.workloads.dfsio.content import digest_of_content, read_content
from boardcluster.workloads.dfsio.measured import Measured, of_mapreduce, of_spark

__all__ = ["WORKLOAD"]

_HALVES = ("write", "read")
_LEAST_FILE_BYTES = 1_000_000
"""The buffer of TestDFSIO: a smaller file is one call, too short for its clock of milliseconds."""

_METHOD = (
    "every file was read back and equals, byte by byte, what its engine must write; the numbers of "
    "files and bytes that were written and that were read equal those asked for"
)


class _Dfsio(Workload):
    name = "dfsio"
    engines = (Engine.MAPREDUCE, Engine.SPARK)
    takes = Takes.FILES
    parameters: Mapping[str, Parameter] = {
        "files": number_parameter(
            "Number of files, and so of tasks, that share the size equally.",
            default=4,
            least=1,
            most=10_000,
        )
    }

    def check(self, case: Case) -> None:
        if _file_bytes(case) < _LEAST_FILE_BYTES:
            files = _files(case)
            raise UsageError(
                f"dfsio: {case.size_bytes} bytes / {files} files = {_file_bytes(case)} bytes each; "
                f"allowed: at least {_LEAST_FILE_BYTES}, TestDFSIO's buffer",
                hint="give a larger size, or fewer dfsio.files",
            )

    def need(self, case: Case) -> Need:
        return Need(run_bytes=_total_bytes(case) * case.replication)

    def describe(self, case: Case) -> str:
        return f"{_files(case):,} files of {_file_bytes(case):,} bytes"

    def prepare(self, context: Context, case: Case) -> Prepared:
        del context  # what is read is what the first phase writes
        return Prepared(input_bytes=_total_bytes(case))

    def phases(self, context: Context, prepared: Prepared, job: Job) -> tuple[Phase, ...]:
        del prepared  # nothing is there beforehand
        mapreduce = job.case.engine is Engine.MAPREDUCE
        return tuple(
            Phase(
                name=half,
                command=(_stock if mapreduce else _ours)(context, job, half),
                results=(f"{half}.txt",) if mapreduce else (),
                drops_caches=half == "read",
            )
            for half in _HALVES
        )

    def verify(self, context: Context, prepared: Prepared, job: Job, outcomes: Outcomes) -> Proof:
        del prepared  # the case says it all
        case = job.case
        figures: dict[str, float] = {}
        for half in _HALVES:
            measured = _measured(context, job, outcomes[half])
            if (measured.files, measured.total_bytes) != (_files(case), _total_bytes(case)):
                raise VerificationError(
                    f"{half}: {measured.files} files with {measured.total_bytes} bytes; "
                    f"expected: {_files(case)} files with {_total_bytes(case)} bytes",
                    hint="look at the job's log",
                )
            figures |= measured.figures(half)
        verification = _verify_content(context, job)
        return Proof(verification=verification, output_bytes=_total_bytes(case), figures=figures)


def _files(case: Case) -> int:
    return int(case.parameters["files"])


def _file_bytes(case: Case) -> int:
    """Return the size of each file; a rest that does not divide is left out."""
    return case.size_bytes // _files(case)


def _total_bytes(case: Case) -> int:
    return _file_bytes(case) * _files(case)


def _stock(context: Context, job: Job, half: str) -> tuple[str, ...]:
    """Return the command of Hadoop's own TestDFSIO, its data below the job's folder.

    Its jar names another main class, whose further test classes are not installed, so it is not run
    as ``hadoop jar`` does; the job finds its jar by the class.
    """
    layout = context.live.layout
    arguments = [
        f"-Dtest.build.data={job.output_path}",
        f"-{half}",
        *("-nrFiles", str(_files(job.case))),
        *("-size", f"{_file_bytes(job.case)}B"),
        *("-resFile", f"{half}.txt"),
    ]
    jar = layout.engines.hadoop_test_jar("hadoop-mapreduce-client-jobclient")
    main = "org.apache.hadoop.fs.TestDFSIO"
    command = hadoop_command(layout, conf=job.conf, main=main, arguments=arguments, jars=[str(jar)])
    return tuple(command)


def _ours(context: Context, job: Job, half: str) -> tuple[str, ...]:
    """Return the command of Spark's job, which uses the same names of files."""
    arguments = [half, job.output_path, str(_files(job.case)), str(_file_bytes(job.case))]
    return spark_command(
        context.live.layout, job, main="io.boardcluster.jobs.Dfsio", arguments=arguments
    )


def _measured(context: Context, job: Job, outcome: PhaseOutcome) -> Measured:
    half = outcome.name
    if job.case.engine is Engine.SPARK:
        return of_spark(outcome.stdout, half=half)
    totals = context.work / f"io_{half}"
    context.hdfs.get(f"{job.output_path}/io_{half}/part-00000", totals)
    return of_mapreduce(totals, outcome.results[f"{half}.txt"])


def _verify_content(context: Context, job: Job) -> Verification:
    """Read every file back, one on the driver's disk at a time, and compare it.

    Raises:
        VerificationError: a file is missing, too many, or not what it must be.
        CapacityError: the driver's disk cannot hold one file.
        RemoteError: HDFS does not answer.
    """
    engine, size_bytes = job.case.engine, _file_bytes(job.case)
    folder = f"{job.output_path}/io_data"
    names = sorted(f"test_io_{number}" for number in range(_files(job.case)))
    there = sorted(
        entry.name
        for entry in context.hdfs.list(folder)
        if entry.is_file and not entry.name.startswith("_")
    )
    if there != names:
        missing, extra = sorted(set(names) - set(there)), sorted(set(there) - set(names))
        raise VerificationError(
            f"{folder}: missing: {missing[:3]}; not expected: {extra[:3]}",
            hint="look at the job's log",
        )
    require_space(context.work, need_bytes=size_bytes, purpose=f"reading a file of {folder}")
    right = digest_of_content(engine, size_bytes)
    expected, actual = hashlib.sha256(), hashlib.sha256()
    copy = context.work / "file"
    for number, name in enumerate(names):
        context.progress("reading the files back", number * size_bytes, _total_bytes(job.case))
        context.hdfs.get(f"{folder}/{name}", copy)
        found = read_content(copy, name=name, engine=engine, size_bytes=size_bytes)
        copy.unlink()
        expected.update(f"{name}\t{size_bytes}\t{right}\n".encode())
        actual.update(f"{name}\t{size_bytes}\t{found}\n".encode())
    return Verification(
        method=_METHOD,
        expected_sha256=expected.hexdigest(),
        actual_sha256=actual.hexdigest(),
        records=len(names),
    )


WORKLOAD = _Dfsio()
