"""Sizes, parameters and the expected totals that the three workloads share."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.workloads.tera_world import World, case_of

from boardcluster.errors import UsageError, VerificationError
from boardcluster.records import Engine
from boardcluster.services.layout import Layout
from boardcluster.workloads import load_workload, tera_proof
from boardcluster.workloads.base import check_parameters
from boardcluster.workloads.tera import rows_of
from boardcluster.workloads.tera_input import provide_rows
from boardcluster.workloads.tera_proof import expected_totals, read_output, read_totals
from boardcluster.workloads.tera_reading import Totals
from boardcluster.workloads.tera_rows import checksum_of_rows

TERASORT = load_workload("terasort")
INPUT = "/boardcluster/input/tera-1000-r2-crc32c-b128m"


@pytest.fixture
def world(layout: Layout, tmp_path: Path) -> World:
    return World(layout=layout, folder=tmp_path)


@pytest.mark.parametrize(
    ("name", "least"), [("teragen", 100), ("terasort", 10_000), ("teravalidate", 10_000)]
)
def test_a_size_without_enough_rows_is_refused(name: str, least: int) -> None:
    workload = load_workload(name)

    workload.check(case_of(workload, size_bytes=least))
    with pytest.raises(UsageError, match=f"at least {least} "):
        workload.check(case_of(workload, size_bytes=least - 1))


def test_bytes_that_make_no_whole_row_are_left_out() -> None:
    spec = case_of(TERASORT, size_bytes=10_199)

    assert rows_of(spec) == 101
    assert TERASORT.describe(spec) == "101 rows of 100 bytes"


@pytest.mark.parametrize(("name", "counted"), [("teragen", "maps"), ("terasort", "reduces")])
def test_there_are_never_more_tasks_than_rows(name: str, counted: str) -> None:
    workload = load_workload(name)

    workload.check(case_of(workload, size_bytes=10_000, parameters={counted: "100"}))
    with pytest.raises(UsageError, match=f"{name}.{counted} = 101; .* the 100 rows"):
        workload.check(case_of(workload, size_bytes=10_000, parameters={counted: "101"}))


@pytest.mark.parametrize("value", ["-1", "1.5", "", " 1", "10001", "0x1", "\u0661", "1000000"])
def test_a_number_of_tasks_is_a_whole_number(value: str) -> None:
    assert check_parameters(TERASORT, {"reduces": "10000"}) == {"reduces": "10000"}
    with pytest.raises(UsageError, match="a whole number from 0 to 10000"):
        check_parameters(TERASORT, {"reduces": value})


def test_expected_totals_are_computed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = expected_totals(1000, tmp_path)

    assert expected == tmp_path / "expected" / "tera" / "1000"
    assert read_totals(expected) == Totals(rows=1000, checksum=checksum_of_rows(1000))
    monkeypatch.setattr(tera_proof, "checksum_of_rows", lambda _: pytest.fail("computed again"))
    assert expected_totals(1000, tmp_path) == expected


def test_a_damaged_file_of_totals_is_computed_again(tmp_path: Path) -> None:
    path = expected_totals(1000, tmp_path)
    right = path.read_text()
    path.write_text("rows\t1000\nchecksum\t7\n")

    assert expected_totals(1000, tmp_path).read_text() == right


def test_the_input_is_generated_once_and_read_back(world: World) -> None:
    spec = case_of(TERASORT)

    staged = provide_rows(world.context, spec)

    assert (staged.input_path, staged.input_bytes) == (INPUT, 100_000)
    assert world.ran == [["teragen", "1000", f"{INPUT}.partial"]]
    assert {Path(name).parent.name for name in world.hdfs.files} == {Path(INPUT).name}
    assert provide_rows(world.context, spec) == staged
    assert len(world.ran) == 1


def test_the_other_engine_gets_the_same_input(world: World) -> None:
    first = provide_rows(world.context, case_of(TERASORT))

    assert provide_rows(world.context, case_of(TERASORT, engine=Engine.SPARK)) == first
    assert len(world.ran) == 1


def test_input_of_another_number_of_files_is_another_input(world: World) -> None:
    plain = case_of(TERASORT)
    folders = [
        provide_rows(world.context, replace(plain, input_maps=maps, engine=engine)).input_path
        for maps in (0, 5, 8)
        for engine in (Engine.SPARK, Engine.MAPREDUCE)
    ]

    five = "/boardcluster/input/tera-1000-m5-r2-crc32c-b128m"
    assert folders == [INPUT, INPUT, five, five, five.replace("m5", "m8"), five.replace("m5", "m8")]
    assert world.ran == [
        ["teragen", "1000", f"{INPUT}.partial"],
        ["teragen", "-Dmapreduce.job.maps=5", "1000", f"{five}.partial"],
        ["teragen", "-Dmapreduce.job.maps=8", "1000", f"{folders[-1]}.partial"],
    ]
    assert len([entry for entry in world.hdfs.list(five) if entry.name.startswith("part-")]) == 5


def test_wrong_input_never_gets_its_name(world: World) -> None:
    def spoil(folder: str) -> None:
        data = world.hdfs.files[f"{folder}/part-m-00001"]
        world.hdfs.files[f"{folder}/part-m-00001"] = data[:-1] + b"?"

    world.spoil = spoil
    with pytest.raises(VerificationError, match="the generated input has 1000 rows"):
        provide_rows(world.context, case_of(TERASORT))
    assert not world.hdfs.exists(INPUT)

    world.spoil = lambda _: None
    provide_rows(world.context, case_of(TERASORT))
    assert world.hdfs.exists(INPUT)


def test_input_that_lost_a_file_is_generated_again(world: World) -> None:
    provide_rows(world.context, case_of(TERASORT))
    del world.hdfs.files[f"{INPUT}/part-m-00001"]

    provide_rows(world.context, case_of(TERASORT))

    assert len(world.ran) == 2
    assert len(world.rows_in(INPUT)) == 1000


def test_an_output_is_read_in_name_order_and_leaves_nothing_behind(world: World) -> None:
    world.write("/sorted", sorted(world.rows_in(_generated(world))), files=7)

    reader = read_output(world.context, "/sorted")

    assert (reader.totals.rows, reader.misorders) == (1000, 0)
    assert list((world.context.work / "parts").iterdir()) == []


def test_an_output_that_was_not_committed_is_not_read(world: World) -> None:
    folder = _generated(world)
    del world.hdfs.files[f"{folder}/_SUCCESS"]

    with pytest.raises(VerificationError, match="no _SUCCESS mark"):
        read_output(world.context, folder)


def _generated(world: World) -> str:
    return provide_rows(world.context, case_of(TERASORT)).input_path
