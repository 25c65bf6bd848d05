"""The verbs of TestDFSIO."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from boardcluster.errors import UsageError, VerificationError
from boardcluster.fetch.cache import require_space
from boardcluster.records import Engine, Verification
from boardcluster.services.yarn import hadoop_command
from boardcluster.workloads.base import (
    Context,
    InputKind,
    Job,
    JobSpec,
    Need,
    Outcomes,
    Parameter,
    Phase,
    PhaseOutcome,
    Proof,
    StagedInput,
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
    input_kind = InputKind.FILES
    parameters: Mapping[str, Parameter] = {
        "files": number_parameter(
            "Number of files, and so of tasks; they share the size equally.",
            default=4,
            least=1,
            most=10_000,
        )
    }

    def check(self, spec: JobSpec) -> None:
        if _file_bytes(spec) < _LEAST_FILE_BYTES:
            files = _files(spec)
            raise UsageError(
                f"dfsio: {spec.size_bytes} bytes / {files} files = {_file_bytes(spec)} bytes each; "
                f"allowed: at least {_LEAST_FILE_BYTES}, TestDFSIO's buffer",
                hint="give a larger size, or fewer dfsio.files",
            )

    def need(self, spec: JobSpec) -> Need:
        return Need(run_bytes=_total_bytes(spec) * spec.replication)

    def describe(self, spec: JobSpec) -> str:
        return f"{_files(spec):,} files of {_file_bytes(spec):,} bytes"

    def prepare(self, context: Context, spec: JobSpec) -> StagedInput:
        del context  # what is read is what the first phase writes
        return StagedInput(input_bytes=_total_bytes(spec))

    def phases(self, context: Context, staged: StagedInput, job: Job) -> tuple[Phase, ...]:
        del staged  # nothing is there beforehand
        mapreduce = job.spec.engine is Engine.MAPREDUCE
        return tuple(
            Phase(
                name=half,
                command=(_stock if mapreduce else _ours)(context, job, half),
                results=(f"{half}.txt",) if mapreduce else (),
                drops_caches=half == "read",
            )
            for half in _HALVES
        )

    def verify(self, context: Context, staged: StagedInput, job: Job, outcomes: Outcomes) -> Proof:
        del staged  # the job spec says it all
        spec = job.spec
        figures: dict[str, float] = {}
        for half in _HALVES:
            measured = _measured(context, job, outcomes[half])
            if (measured.files, measured.total_bytes) != (_files(spec), _total_bytes(spec)):
                raise VerificationError(
                    f"{half}: {measured.files} files with {measured.total_bytes} bytes; "
                    f"expected: {_files(spec)} files with {_total_bytes(spec)} bytes",
                    hint="look at the job's log",
                )
            figures |= measured.figures(half)
        verification = _verify_content(context, job)
        return Proof(verification=verification, output_bytes=_total_bytes(spec), figures=figures)


def _files(spec: JobSpec) -> int:
    return int(spec.parameters["files"])


def _file_bytes(spec: JobSpec) -> int:
    """Return the size of each file; a rest that does not divide is left out."""
    return spec.size_bytes // _files(spec)


def _total_bytes(spec: JobSpec) -> int:
    return _file_bytes(spec) * _files(spec)


def _stock(context: Context, job: Job, half: str) -> tuple[str, ...]:
    """Return the command of Hadoop's own TestDFSIO, its data below the job's folder.

    Its jar names another main class, whose further test classes are not installed, so it is not run
    as ``hadoop jar`` does; the job finds its jar by the class.
    """
    layout = context.live.layout
    arguments = [
        f"-Dtest.build.data={job.output_path}",
        f"-{half}",
        *("-nrFiles", str(_files(job.spec))),
        *("-size", f"{_file_bytes(job.spec)}B"),
        *("-resFile", f"{half}.txt"),
    ]
    jar = layout.engines.hadoop_test_jar("hadoop-mapreduce-client-jobclient")
    main = "org.apache.hadoop.fs.TestDFSIO"
    command = hadoop_command(layout, conf=job.conf, main=main, arguments=arguments, jars=[str(jar)])
    return tuple(command)


def _ours(context: Context, job: Job, half: str) -> tuple[str, ...]:
    """Return the command of Spark's job, which uses the same names of files."""
    arguments = [half, job.output_path, str(_files(job.spec)), str(_file_bytes(job.spec))]
    return spark_command(
        context.live.layout, job, main="io.boardcluster.jobs.Dfsio", arguments=arguments
    )


def _measured(context: Context, job: Job, outcome: PhaseOutcome) -> Measured:
    half = outcome.name
    if job.spec.engine is Engine.SPARK:
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
    engine, size_bytes = job.spec.engine, _file_bytes(job.spec)
    folder = f"{job.output_path}/io_data"
    names = sorted(f"test_io_{number}" for number in range(_files(job.spec)))
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
        context.progress("reading the files back", number * size_bytes, _total_bytes(job.spec))
        context.hdfs.get(f"{folder}/{name}", copy)
        found = read_content(copy, name=name, engine=engine, size_bytes=size_bytes)
        copy.unlink()
        expected.update(f"{name}\t{size_bytes}\t{right}\n".encode())
        actual.update(f"{name}\t{size_bytes}\t{found}\n".encode())
    context.progress("reading the files back", _total_bytes(job.spec), _total_bytes(job.spec))
    return Verification(
        method=_METHOD,
        expected_sha256=expected.hexdigest(),
        actual_sha256=actual.hexdigest(),
        records=len(names),
    )


WORKLOAD = _Dfsio()
