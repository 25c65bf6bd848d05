"""Text goes into HDFS once per content, replicas and checksums, and appears only when whole."""

import hashlib
from pathlib import Path

import pytest
from tests.builders import make_dataset
from tests.unit.workloads.text_world import TextWorld, case_of

from boardcluster.errors import RemoteError, RunError, UsageError
from boardcluster.records import Checksum, Engine
from boardcluster.services.layout import Layout
from boardcluster.workloads.base import StagedInput
from boardcluster.workloads.inputs import check_size, input_folder, put_file, put_text, text_of

TEXT = b"b a b\na b c\n"
SHA256 = hashlib.sha256(TEXT).hexdigest()
FOLDER = f"/boardcluster/input/{SHA256[:32]}-r2-crc32c-b128m"
NULL_FOLDER = f"/boardcluster/input/{SHA256[:32]}-r2-null-b128m"


@pytest.fixture
def world(layout: Layout, tmp_path: Path) -> TextWorld:
    path = tmp_path / "flights"
    path.write_bytes(TEXT)
    return TextWorld(layout, tmp_path, make_dataset(path, sha256=SHA256))


def test_the_input_is_stored_under_its_content(world: TextWorld) -> None:
    staged = put_text(world.context, case_of())

    assert staged == StagedInput(input_path=FOLDER, input_bytes=len(TEXT))
    assert world.hdfs.stored == {f"{FOLDER}/part-0": TEXT}
    assert world.said == [
        ("putting the input into HDFS", 0),
        ("putting the input into HDFS", len(TEXT)),
    ]


def test_a_second_time_nothing_is_stored(world: TextWorld) -> None:
    first = put_text(world.context, case_of())
    world.hdfs.operations.clear()
    world.said.clear()

    assert put_text(world.context, case_of(Engine.MAPREDUCE)) == first
    assert world.hdfs.operations == ["GETFILESTATUS", "GETCONTENTSUMMARY"]
    assert world.said == []


@pytest.mark.parametrize("copies", [1, 3])
def test_copies_are_the_cases_and_have_a_folder_of_their_own(copies: int, world: TextWorld) -> None:
    put_text(world.context, case_of())
    staged = put_text(world.context, case_of(replication=copies))

    assert staged.input_path == f"/boardcluster/input/{SHA256[:32]}-r{copies}-crc32c-b128m"
    assert world.hdfs.copies == {
        f"{FOLDER}/part-0": "2",
        f"{staged.input_path}/part-0": str(copies),
    }
    assert len(world.hdfs.stored) == 2


def test_input_of_the_wrong_size_is_replaced(world: TextWorld) -> None:
    world.hdfs.stored[f"{FOLDER}/part-0"] = TEXT[:-3]

    put_text(world.context, case_of())

    assert world.hdfs.stored == {f"{FOLDER}/part-0": TEXT}


def test_text_without_checksums_is_put_by_the_file_systems_own_client(world: TextWorld) -> None:
    staged = put_text(world.context, case_of(checksum=Checksum.NULL))

    assert staged.input_path == NULL_FOLDER
    assert world.hdfs.stored == {f"{NULL_FOLDER}/part-0": TEXT}
    ((engine, phase),) = world.ran
    assert (engine, phase.yarn) == (Engine.MAPREDUCE, False)
    assert phase.command[-4:] == (
        "org.apache.hadoop.fs.FsShell",
        "-put",
        "/lent/flights",
        f"{NULL_FOLDER}.partial",
    )
    # The conf of the trial says the kind of checksums.
    assert phase.command[phase.command.index("-cp") + 1].endswith(":/attempt/conf")
    assert "CREATE" not in world.hdfs.operations


@pytest.mark.parametrize(
    ("checksum", "halves"),
    [
        (Checksum.NULL, [".partial"]),
        # WebHDFS has a half of its own, which then becomes ours.
        (Checksum.CRC32C, [".partial", ".partial.partial"]),
    ],
)
def test_what_a_killed_driver_left_is_replaced(
    checksum: Checksum, halves: list[str], world: TextWorld
) -> None:
    folder = f"/boardcluster/input/{SHA256[:32]}-r2-{checksum}-b128m"
    world.hdfs.folders |= {"/boardcluster/input", folder}
    world.hdfs.stored |= {f"{folder}{half}": TEXT[:5] for half in halves}

    put_text(world.context, case_of(checksum=checksum))

    assert world.hdfs.stored == {f"{folder}/part-0": TEXT}


@pytest.mark.parametrize("checksum", Checksum)
def test_the_master_has_the_text_only_while_it_is_put(checksum: Checksum, world: TextWorld) -> None:
    put_text(world.context, case_of(checksum=checksum))

    assert world.hdfs.files == {}


def test_a_text_that_breaks_off_leaves_no_input(world: TextWorld) -> None:
    world.hdfs.takes_data = False

    with pytest.raises(RemoteError, match=r"storing /boardcluster/input/.*broken pipe"):
        put_text(world.context, case_of())
    assert world.hdfs.stored == {}
    assert world.hdfs.files == {}


@pytest.mark.parametrize("copies", [1, 3])
def test_a_file_is_stored_under_its_own_name_with_the_cases_copies(
    copies: int, world: TextWorld
) -> None:
    source = world.folder / "faulty"
    source.write_bytes(b"other")
    world.hdfs.folders.add("/in")

    put_file(world.context, case_of(replication=copies), source, "/in/part-r-00001")

    assert world.hdfs.stored == {"/in/part-r-00001": b"other"}
    assert world.hdfs.copies == {"/in/part-r-00001": str(copies)}
    assert (world.ran, world.hdfs.files) == ([], {})


def test_a_file_without_checksums_is_stored_by_the_file_systems_own_client(
    world: TextWorld,
) -> None:
    source = world.folder / "faulty"
    source.write_bytes(b"other")
    world.hdfs.folders.add("/in")

    put_file(world.context, case_of(checksum=Checksum.NULL), source, "/in/part-r-00001")

    assert world.hdfs.stored == {"/in/part-r-00001": b"other"}
    ((engine, phase),) = world.ran
    assert (engine, phase.name, phase.yarn) == (Engine.MAPREDUCE, "put", False)
    assert phase.command[-3:] == ("-put", "/lent/faulty", "/in/part-r-00001")
    assert world.hdfs.files == {}


def test_a_client_that_fails_leaves_no_input(world: TextWorld) -> None:
    def fail() -> None:
        raise RunError("put: exit status 1")

    world.fails = fail

    with pytest.raises(RunError):
        put_text(world.context, case_of(checksum=Checksum.NULL))
    assert world.hdfs.stored == {}
    assert world.hdfs.files == {}


def test_a_dead_hdfs_is_a_remote_error(world: TextWorld) -> None:
    world.hdfs.answers = False

    with pytest.raises(RemoteError, match="looking at /boardcluster/input"):
        put_text(world.context, case_of())


def test_no_text_is_said(world: TextWorld) -> None:
    world.dataset = None

    with pytest.raises(UsageError, match="no text was prepared"):
        text_of(world.context)
    with pytest.raises(UsageError, match="no text was prepared"):
        put_text(world.context, case_of())


def test_folders_of_inputs_tell_apart_what_reads_differently() -> None:
    folders = {
        input_folder(name, case_of(replication=replication, checksum=checksum))
        for name in ("rows", "text")
        for replication in (1, 2)
        for checksum in Checksum
    }

    assert len(folders) == 8
    assert "/boardcluster/input/rows-r1-null-b128m" in folders


@pytest.mark.parametrize("size_bytes", [-1, 0, 99])
def test_a_size_that_holds_no_data_is_refused(size_bytes: int) -> None:
    with pytest.raises(UsageError) as caught:
        check_size("sort", case_of(size_bytes=size_bytes), least_bytes=100, unit="one row")

    assert caught.value.message == (
        f"sort: a size of {size_bytes} bytes; allowed: at least 100 (one row)"
    )


def test_the_smallest_size_is_enough() -> None:
    check_size("sort", case_of(size_bytes=100), least_bytes=100, unit="one row")
