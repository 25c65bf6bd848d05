"""TeraValidate: its faulty input, what it runs, and that only the right report is proved."""

import hashlib
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from tests.unit.workloads.tera_world import OUTPUT, World, case_of, job_of

from boardcluster.errors import VerificationError
from boardcluster.records import Checksum, Engine
from boardcluster.services.layout import Layout
from boardcluster.workloads import commands
from boardcluster.workloads.base import Need, Proof, StagedInput
from boardcluster.workloads.teravalidate.workload import WORKLOAD

GENERATED = "/boardcluster/input/tera-1000-r2-crc32c-b128m"
PLANTED = "/boardcluster/input/tera-1000-planted-4-r2-crc32c-b128m"


@pytest.fixture
def world(layout: Layout, tmp_path: Path) -> World:
    return World(layout=layout, folder=tmp_path)


def test_it_needs_room_for_two_inputs_and_the_sort_that_makes_the_second() -> None:
    assert WORKLOAD.need(case_of(WORKLOAD)) == Need(input_bytes=400_000, run_bytes=420_000)


def test_the_input_is_sorted_by_the_stock_example_and_has_two_faults(world: World) -> None:
    staged = WORKLOAD.prepare(world.context, case_of(WORKLOAD))

    assert (staged.input_path, staged.input_bytes) == (PLANTED, 99_900)
    copies = "-Dmapreduce.terasort.output.replication=2"
    assert world.ran == [
        ["teragen", "1000", f"{GENERATED}.partial"],
        ["terasort", copies, "-Dmapreduce.job.reduces=4", GENERATED, f"{PLANTED}.partial"],
    ]
    right, faulty = sorted(world.rows_in(GENERATED)), world.rows_in(PLANTED)
    assert len(set(right) - set(faulty)) == 1
    out_of_order = sum(after[:10] < before[:10] for before, after in pairwise(faulty))
    assert out_of_order == 1
    assert not world.hdfs.exists(f"{PLANTED}.partial")
    assert not world.hdfs.exists(f"{PLANTED}/_partition.lst")
    assert set(world.hdfs.put_copies.values()) == {2}


def test_the_expected_report_lies_beside_the_data_and_in_the_cache(world: World) -> None:
    staged = WORKLOAD.prepare(world.context, case_of(WORKLOAD))

    assert staged.expected is not None
    report = staged.expected.read_bytes()
    assert report == world.hdfs.files[f"{PLANTED}/_expected_report"]
    assert staged.expected.name == hashlib.sha256(report).hexdigest()
    assert report.startswith(b"checksum\t")
    assert report.count(b"\nerror\tmisorder in part-r-0000") == 1


def test_everything_is_made_once_for_both_engines(world: World) -> None:
    first = WORKLOAD.prepare(world.context, case_of(WORKLOAD))

    assert WORKLOAD.prepare(world.context, case_of(WORKLOAD, engine=Engine.SPARK)) == first
    assert len(world.ran) == 2


@pytest.mark.parametrize("lost", ["_expected_report", "part-r-00002"])
def test_data_and_report_are_made_together_again_if_either_is_lost(world: World, lost: str) -> None:
    first = WORKLOAD.prepare(world.context, case_of(WORKLOAD))
    del world.hdfs.files[f"{PLANTED}/{lost}"]

    assert WORKLOAD.prepare(world.context, case_of(WORKLOAD)) == first
    assert [words[0] for words in world.ran] == ["teragen", "terasort", "terasort"]


def test_faults_are_never_planted_into_wrong_data(world: World) -> None:
    def spoil(folder: str) -> None:
        if "planted" in folder:
            first, second = f"{folder}/part-r-00000", f"{folder}/part-r-00001"
            files = world.hdfs.files
            files[first], files[second] = files[second], files[first]

    world.spoil = spoil
    with pytest.raises(VerificationError, match="the sorted input is not sorted"):
        WORKLOAD.prepare(world.context, case_of(WORKLOAD))
    assert not world.hdfs.exists(PLANTED)


def test_the_sorted_rows_have_one_file_per_core_but_never_tiny_ones(world: World) -> None:
    wide = replace(case_of(WORKLOAD), workers=8, worker_cores=4)
    small = case_of(WORKLOAD, size_bytes=10_000)

    assert "-planted-20-" in WORKLOAD.prepare(world.context, wide).input_path
    assert "-planted-2-" in WORKLOAD.prepare(world.context, small).input_path


def test_other_block_checksums_take_the_file_systems_own_client(world: World) -> None:
    staged = WORKLOAD.prepare(world.context, case_of(WORKLOAD, checksum=Checksum.NULL))

    assert staged.input_path.endswith("-r2-null-b128m")
    assert [words[0] for words in world.ran] == ["teragen", "terasort", "-put"]
    *_, (_, source, target) = world.ran
    assert source.startswith("/lent/")
    assert target.startswith(f"{staged.input_path}.partial/part-r-")
    assert world.master.files == {}  # the master had it only for that
    assert len(world.rows_in(staged.input_path)) == 999


def test_mapreduce_runs_the_stock_example(world: World) -> None:
    job = job_of(case_of(WORKLOAD))
    (phase,) = WORKLOAD.phases(world.context, StagedInput(input_path=PLANTED), job)

    jar = f"{world.layout.engines.hadoop_jars}/hadoop-mapreduce-examples-9.8.7.jar"
    assert list(phase.command[-4:]) == [jar, "teravalidate", PLANTED, OUTPUT]


def test_spark_runs_our_job(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "jobs_jar_on_nodes", lambda layout: "/jobs.jar")
    job = job_of(case_of(WORKLOAD, engine=Engine.SPARK))
    (phase,) = WORKLOAD.phases(world.context, StagedInput(input_path=PLANTED), job)

    assert list(phase.command[-3:]) == ["/jobs.jar", PLANTED, OUTPUT]
    assert phase.command[phase.command.index("--class") + 1] == "io.boardcluster.jobs.TeraValidate"


def verified(world: World, *parts: bytes) -> Proof:
    spec = case_of(WORKLOAD)
    staged = WORKLOAD.prepare(world.context, spec)
    world.hdfs.files[f"{OUTPUT}/_SUCCESS"] = b""
    for number, data in enumerate(parts):
        world.hdfs.files[f"{OUTPUT}/part-r-{number:05}"] = data
    return WORKLOAD.verify(world.context, staged, job_of(spec), {})


def report_of(world: World) -> bytes:
    staged = WORKLOAD.prepare(world.context, case_of(WORKLOAD))
    assert staged.expected is not None
    return staged.expected.read_bytes()


def test_the_right_report_is_proved(world: World) -> None:
    report = report_of(world)

    proof = verified(world, report, b"")

    assert (proof.output_bytes, proof.verification.records) == (len(report), 2)
    digest = hashlib.sha256(report).hexdigest()
    assert proof.verification.expected_sha256 == proof.verification.actual_sha256 == digest


def test_a_validator_that_misses_a_fault_is_found(world: World) -> None:
    checksum, error = report_of(world).splitlines(keepends=True)

    for wrong in (checksum, error, error + checksum, checksum + error + error, b""):
        with pytest.raises(VerificationError, match="the report of mapreduce has"):
            verified(world, wrong)


def test_a_validator_that_ignores_the_lost_row_is_found(world: World) -> None:
    error = report_of(world).splitlines(keepends=True)[1]
    whole = (world.folder / "cache" / "expected" / "tera" / "1000").read_bytes().splitlines()[1]

    with pytest.raises(VerificationError):
        verified(world, whole + b"\n" + error)


def test_only_the_head_of_an_endless_report_is_shown(world: World) -> None:
    with pytest.raises(VerificationError) as caught:
        verified(world, report_of(world) + b"error\tx\n" * 100_000)

    assert "has 800" in caught.value.message
    assert len(caught.value.message) < 2000
