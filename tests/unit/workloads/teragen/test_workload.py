"""TeraGen: what it runs, and that only the right rows are proved."""

from pathlib import Path

import pytest
from tests.unit.workloads.tera_world import OUTPUT, World, case_of, job_of

from boardcluster.errors import VerificationError
from boardcluster.records import Engine
from boardcluster.services.layout import Layout
from boardcluster.workloads import commands
from boardcluster.workloads.base import Need, StagedInput
from boardcluster.workloads.tera_rows import rows
from boardcluster.workloads.teragen.workload import WORKLOAD

ROWS = [row.tobytes() for row in rows(0, 1000)]


@pytest.fixture
def world(layout: Layout, tmp_path: Path) -> World:
    return World(layout=layout, folder=tmp_path)


def test_it_needs_room_for_its_output_alone() -> None:
    assert WORKLOAD.need(case_of(WORKLOAD)) == Need(input_bytes=0, run_bytes=200_000)


def test_nothing_is_put_into_hdfs_beforehand(world: World) -> None:
    staged = WORKLOAD.prepare(world.context, case_of(WORKLOAD))

    assert (staged.input_path, staged.input_bytes) == ("", 0)
    assert (world.ran, world.hdfs.files) == ([], {})


@pytest.mark.parametrize(("maps", "options"), [("0", []), ("6", ["-Dmapreduce.job.maps=6"])])
def test_mapreduce_runs_the_stock_example(world: World, maps: str, options: list[str]) -> None:
    job = job_of(case_of(WORKLOAD, parameters={"maps": maps}))
    (phase,) = WORKLOAD.phases(world.context, StagedInput(), job)

    jar = f"{world.layout.engines.hadoop_jars}/hadoop-mapreduce-examples-9.8.7.jar"
    tail = [jar, "teragen", *options, "1000", OUTPUT]
    assert list(phase.command[-len(tail) :]) == tail
    assert phase.command[phase.command.index("-cp") + 1].endswith(":/attempt/conf")


@pytest.mark.parametrize(("maps", "more"), [("0", []), ("6", ["6"])])
def test_spark_runs_our_job(
    world: World, maps: str, more: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "jobs_jar_on_nodes", lambda layout: "/jobs.jar")
    job = job_of(case_of(WORKLOAD, engine=Engine.SPARK, parameters={"maps": maps}))
    (phase,) = WORKLOAD.phases(world.context, StagedInput(), job)

    tail = ["/jobs.jar", "1000", OUTPUT, *more]
    assert list(phase.command[-len(tail) :]) == tail
    assert phase.command[phase.command.index("--class") + 1] == "io.boardcluster.jobs.TeraGen"
    assert "spark.yarn.tags=trial-1" in phase.command


@pytest.mark.parametrize("files", [1, 3])
def test_right_rows_are_proved(world: World, files: int) -> None:
    staged = WORKLOAD.prepare(world.context, case_of(WORKLOAD))
    world.write(OUTPUT, ROWS, files=files, kind="m")

    proof = WORKLOAD.verify(world.context, staged, job_of(case_of(WORKLOAD)), {})

    assert (proof.output_bytes, proof.verification.records) == (100_000, 1000)
    assert proof.verification.expected_sha256 == proof.verification.actual_sha256
    assert "independently" in proof.verification.method


@pytest.mark.parametrize(
    "wrong",
    [
        ROWS[:-1],
        [*ROWS, ROWS[0]],
        [*ROWS[:-1], ROWS[0]],
        [*ROWS[:-1], bytes(100)],
        [*ROWS[:-1], ROWS[-1][:50]],
        [],
    ],
)
def test_wrong_rows_are_never_proved(world: World, wrong: list[bytes]) -> None:
    staged = WORKLOAD.prepare(world.context, case_of(WORKLOAD))
    world.write(OUTPUT, wrong, kind="m")

    with pytest.raises(VerificationError):
        WORKLOAD.verify(world.context, staged, job_of(case_of(WORKLOAD)), {})


def test_nothing_is_proved_without_knowing_what_is_right(world: World) -> None:
    world.write(OUTPUT, ROWS, kind="m")

    with pytest.raises(VerificationError, match="never computed"):
        WORKLOAD.verify(world.context, StagedInput(), job_of(case_of(WORKLOAD)), {})
