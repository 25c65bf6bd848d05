"""TeraSort: what it runs, and that only the right rows in the right order are proved."""

from pathlib import Path

import pytest
from tests.unit.workloads.tera_world import OUTPUT, World, case_of, job_of

from boardcluster.errors import VerificationError
from boardcluster.records import Engine
from boardcluster.services.layout import Layout
from boardcluster.workloads import commands
from boardcluster.workloads.base import Need, StagedInput
from boardcluster.workloads.tera_rows import rows
from boardcluster.workloads.terasort.workload import WORKLOAD

SORTED = sorted(row.tobytes() for row in rows(0, 1000))
INPUT = "/boardcluster/input/tera-1000-r2-crc32c-b128m"


@pytest.fixture
def world(layout: Layout, tmp_path: Path) -> World:
    return World(layout=layout, folder=tmp_path)


@pytest.mark.parametrize(
    ("engine", "run_bytes"), [(Engine.MAPREDUCE, 620_000), (Engine.SPARK, 340_000)]
)
def test_it_needs_room_for_intermediate_data_too(engine: Engine, run_bytes: int) -> None:
    need = WORKLOAD.need(case_of(WORKLOAD, engine=engine))

    assert need == Need(input_bytes=200_000, run_bytes=run_bytes)


@pytest.mark.parametrize(("reduces", "options"), [("0", []), ("6", ["-Dmapreduce.job.reduces=6"])])
def test_mapreduce_runs_the_stock_example_with_the_replication_of_the_case(
    world: World, reduces: str, options: list[str]
) -> None:
    job = job_of(case_of(WORKLOAD, parameters={"reduces": reduces}))
    (phase,) = WORKLOAD.phases(world.context, StagedInput(input_path=INPUT), job)

    jar = f"{world.layout.engines.hadoop_jars}/hadoop-mapreduce-examples-9.8.7.jar"
    copies = "-Dmapreduce.terasort.output.replication=2"
    tail = [jar, "terasort", copies, *options, INPUT, OUTPUT]
    assert list(phase.command[-len(tail) :]) == tail
    assert phase.command[phase.command.index("-cp") + 1].endswith(":/attempt/conf")


@pytest.mark.parametrize(("reduces", "more"), [("0", []), ("6", ["6"])])
def test_spark_runs_our_job(
    world: World, reduces: str, more: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "jobs_jar_on_nodes", lambda layout: "/jobs.jar")
    job = job_of(case_of(WORKLOAD, engine=Engine.SPARK, parameters={"reduces": reduces}))
    (phase,) = WORKLOAD.phases(world.context, StagedInput(input_path=INPUT), job)

    tail = ["/jobs.jar", INPUT, OUTPUT, *more]
    assert list(phase.command[-len(tail) :]) == tail
    assert phase.command[phase.command.index("--class") + 1] == "io.boardcluster.jobs.TeraSort"
    assert "spark.yarn.tags=trial-1" in phase.command


def proved(world: World, content: list[bytes], *, files: int = 1) -> int:
    spec = case_of(WORKLOAD)
    staged = WORKLOAD.prepare(world.context, spec)
    world.write(OUTPUT, content, files=files)
    proof = WORKLOAD.verify(world.context, staged, job_of(spec), {})
    assert proof.verification.expected_sha256 == proof.verification.actual_sha256
    assert proof.output_bytes == 100_000
    return proof.verification.records


@pytest.mark.parametrize("files", [1, 3, 1000])
def test_sorted_rows_are_proved(world: World, files: int) -> None:
    assert proved(world, SORTED, files=files) == 1000


def test_two_exchanged_rows_are_found_and_named(world: World) -> None:
    wrong = [*SORTED[:500], SORTED[501], SORTED[500], *SORTED[502:]]
    with pytest.raises(VerificationError, match=r"1 places; .*\n  row 501 of part-r-00000"):
        proved(world, wrong)


def test_files_in_the_wrong_order_are_found(world: World) -> None:
    with pytest.raises(VerificationError, match=r"row 0 of part-r-00001"):
        proved(world, [*SORTED[500:], *SORTED[:500]], files=2)


@pytest.mark.parametrize("wrong", [SORTED[1:], [SORTED[0], *SORTED], [SORTED[1], *SORTED[1:]], []])
def test_sorted_but_other_rows_are_never_proved(world: World, wrong: list[bytes]) -> None:
    with pytest.raises(VerificationError, match="expected 1000 rows"):
        proved(world, wrong)
