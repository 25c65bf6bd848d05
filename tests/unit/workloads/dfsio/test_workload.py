"""The verbs of TestDFSIO against an HDFS in memory."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.workloads.tera_world import OUTPUT, World, case_of, job_of

from boardcluster.errors import CapacityError, UsageError, VerificationError
from boardcluster.records import Engine
from boardcluster.services.layout import Layout
from boardcluster.workloads import commands
from boardcluster.workloads.base import JobSpec, Need, PhaseOutcome, Proof, StagedInput
from boardcluster.workloads.dfsio import workload as module
from boardcluster.workloads.dfsio.workload import WORKLOAD

SIZE = 3_000_005
FILE_BYTES = 1_500_002


@pytest.fixture
def world(layout: Layout, tmp_path: Path) -> World:
    return World(layout=layout, folder=tmp_path)


def case(engine: Engine, files: str = "2") -> JobSpec:
    return case_of(WORKLOAD, size_bytes=SIZE, engine=engine, parameters={"files": files})


def content(engine: Engine) -> bytes:
    row = bytes(1) if engine is Engine.MAPREDUCE else bytes(range(48, 98))
    return (row * FILE_BYTES)[:FILE_BYTES]


def finished(world: World, engine: Engine) -> dict[str, PhaseOutcome]:
    """Leave behind what two right halves leave."""
    for number in range(2):
        world.hdfs.files[f"{OUTPUT}/io_data/test_io_{number}"] = content(engine)
    outcomes = {}
    for half, milliseconds in (("write", 3000), ("read", 1000)):
        total = 2 * FILE_BYTES
        sums = {"f:rate": "1000.0", "f:sqrate": "500.0", "l:size": total, "l:tasks": 2}
        lines = [f"{name}\t{value}\n" for name, value in {**sums, "l:time": milliseconds}.items()]
        world.hdfs.files[f"{OUTPUT}/io_{half}/part-00000"] = "".join(lines).encode()
        result = world.folder / f"{half}.txt"
        result.write_text("     Test exec time sec: 4.5\n")
        stdout = world.folder / f"{half}.stdout"
        row = {
            "operation": half,
            "files": 2,
            "total_bytes": total,
            "throughput_mebibytes_per_second": total / (1 << 20) / (milliseconds / 1000),
            "average_io_rate_mebibytes_per_second": 0.5,
            "io_rate_deviation_mebibytes_per_second": 0.0,
            "execution_seconds": 4.5,
            "files_bytes": [FILE_BYTES] * 2,
            "files_milliseconds": [milliseconds // 2] * 2,
        }
        stdout.write_text(json.dumps(row, separators=(",", ":")) + "\n")
        outcomes[half] = PhaseOutcome(
            name=half,
            duration_seconds=9.0,
            stdout=stdout,
            stderr=stdout,
            results={result.name: result},
        )
    return outcomes


def judged(world: World, engine: Engine, outcomes: Mapping[str, PhaseOutcome]) -> Proof:
    staged = WORKLOAD.prepare(world.context, case(engine))
    return WORKLOAD.verify(world.context, staged, job_of(case(engine)), outcomes)


ENGINES = pytest.mark.parametrize("engine", [Engine.MAPREDUCE, Engine.SPARK])


@ENGINES
def test_right_files_are_proved_and_measured(world: World, engine: Engine) -> None:
    proof = judged(world, engine, finished(world, engine))

    verification = proof.verification
    assert verification.expected_sha256 == verification.actual_sha256
    assert (verification.records, proof.output_bytes) == (2, 2 * FILE_BYTES)
    mebibytes = 2 * FILE_BYTES / (1 << 20)
    assert proof.figures == {
        "write_throughput_mebibytes_per_second": pytest.approx(mebibytes / 3),
        "write_average_io_rate_mebibytes_per_second": 0.5,
        "write_io_rate_deviation_mebibytes_per_second": 0.0,
        "write_execution_seconds": 4.5,
        "read_throughput_mebibytes_per_second": pytest.approx(mebibytes),
        "read_average_io_rate_mebibytes_per_second": 0.5,
        "read_io_rate_deviation_mebibytes_per_second": 0.0,
        "read_execution_seconds": 4.5,
    }
    assert not (world.folder / "work" / "file").exists()


@ENGINES
@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("test_io_1", b"x" * FILE_BYTES, "test_io_1: byte 0 is 120"),
        ("test_io_1", b"", "has 0 bytes"),
        ("test_io_1", None, r"missing: \['test_io_1'\]"),
        ("test_io_2", b"", r"not expected: \['test_io_2'\]"),
    ],
)
def test_wrong_files_are_never_proved(
    world: World, engine: Engine, name: str, data: bytes | None, message: str
) -> None:
    outcomes = finished(world, engine)
    if data is None:
        del world.hdfs.files[f"{OUTPUT}/io_data/{name}"]
    else:
        world.hdfs.files[f"{OUTPUT}/io_data/{name}"] = data

    with pytest.raises(VerificationError, match=message):
        judged(world, engine, outcomes)


def test_the_mark_of_a_committed_output_is_no_file_of_the_benchmark(world: World) -> None:
    outcomes = finished(world, Engine.SPARK)
    world.hdfs.files[f"{OUTPUT}/io_data/_SUCCESS"] = b""

    assert judged(world, Engine.SPARK, outcomes).verification.records == 2


@pytest.mark.parametrize("half", ["write", "read"])
def test_a_half_that_moved_other_bytes_is_never_proved(world: World, half: str) -> None:
    outcomes = finished(world, Engine.MAPREDUCE)
    path = f"{OUTPUT}/io_{half}/part-00000"
    wrong = world.hdfs.files[path].replace(b"l:size\t3000004", b"l:size\t3000003")
    assert wrong != world.hdfs.files[path]
    world.hdfs.files[path] = wrong

    with pytest.raises(VerificationError, match=f"{half}: 2 files with 3000003 bytes"):
        judged(world, Engine.MAPREDUCE, outcomes)


def test_a_file_that_the_drivers_disk_cannot_hold_is_not_fetched(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(folder: Path, *, need_bytes: int, purpose: str) -> None:
        assert need_bytes == FILE_BYTES
        raise CapacityError(f"{folder}: {purpose}")

    monkeypatch.setattr(module, "require_space", refuse)
    with pytest.raises(CapacityError):
        judged(world, Engine.SPARK, finished(world, Engine.SPARK))


def test_mapreduce_runs_stock_testdfsio_below_the_jobs_own_folder(world: World) -> None:
    write, read = WORKLOAD.phases(world.context, StagedInput(), job_of(case(Engine.MAPREDUCE)))

    jar = world.layout.engines.hadoop_test_jar("hadoop-mapreduce-client-jobclient")
    for phase, half in ((write, "write"), (read, "read")):
        place = phase.command.index("org.apache.hadoop.fs.TestDFSIO")
        assert list(phase.command[place + 1 :]) == [
            f"-Dtest.build.data={OUTPUT}",
            f"-{half}",
            *("-nrFiles", "2", "-size", "1500002B", "-resFile", f"{half}.txt"),
        ]
        assert phase.command[phase.command.index("-cp") + 1].endswith(f":/attempt/conf:{jar}")
        assert (phase.name, phase.results, phase.yarn) == (half, (f"{half}.txt",), True)


def test_spark_runs_our_job(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "jobs_jar_on_nodes", lambda layout: "/jobs.jar")
    phases = WORKLOAD.phases(world.context, StagedInput(), job_of(case(Engine.SPARK)))

    for phase, half in zip(phases, ("write", "read"), strict=True):
        assert list(phase.command[-5:]) == ["/jobs.jar", half, OUTPUT, "2", "1500002"]
        assert phase.command[phase.command.index("--class") + 1] == "io.boardcluster.jobs.Dfsio"
        assert "spark.yarn.tags=trial-1" in phase.command
        assert (phase.name, phase.results) == (half, ())


@ENGINES
def test_page_caches_are_dropped_before_reading_alone(
    world: World, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "jobs_jar_on_nodes", lambda layout: "/jobs.jar")
    phases = WORKLOAD.phases(world.context, StagedInput(), job_of(case(engine)))

    assert [phase.drops_caches for phase in phases] == [False, True]


def test_the_size_is_shared_by_the_files_and_a_rest_left_out(world: World) -> None:
    asked = case(Engine.SPARK)

    assert WORKLOAD.prepare(world.context, asked) == StagedInput(input_bytes=2 * FILE_BYTES)
    assert WORKLOAD.need(asked) == Need(input_bytes=0, run_bytes=4 * FILE_BYTES)
    assert WORKLOAD.describe(asked) == "2 files of 1,500,002 bytes"
    assert world.hdfs.files == {}


def test_files_below_one_buffer_are_refused() -> None:
    WORKLOAD.check(case(Engine.SPARK, "3"))
    with pytest.raises(UsageError, match=r"3000005 bytes / 4 files = 750001 bytes each"):
        WORKLOAD.check(case(Engine.SPARK, "4"))
    with pytest.raises(UsageError, match="0 bytes each"):
        WORKLOAD.check(replace(case(Engine.SPARK), size_bytes=0))


@pytest.mark.parametrize("files", ["0", "-1", "10001", "", "2.0", "\u0663"])
def test_a_wrong_number_of_files_is_refused(files: str) -> None:
    with pytest.raises(UsageError, match=r"dfsio\.files = "):
        case(Engine.SPARK, files)
