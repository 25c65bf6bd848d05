"""What a job committed is fetched whole and in order; nothing else is."""

from pathlib import Path

import pytest
from tests.unit.workloads.text_world import OUTPUT, TextWorld

from boardcluster.errors import CapacityError, RemoteError, VerificationError
from boardcluster.services.layout import Layout
from boardcluster.workloads.outputs import committed_parts, fetch_parts


@pytest.fixture
def world(layout: Layout, tmp_path: Path) -> TextWorld:
    world = TextWorld(layout, tmp_path, None)
    for name, data in (
        ("part-r-00002", b"c"),
        ("part-r-00000", b"a"),
        ("_SUCCESS", b""),
        ("_temporary", b"x"),
        ("part-r-00001", b""),
    ):
        world.hdfs.stored[f"{OUTPUT}/{name}"] = data
    return world


def test_parts_are_fetched_in_order(world: TextWorld) -> None:
    files = fetch_parts(world.context, OUTPUT)

    assert [path.name for path in files] == ["part-r-00000", "part-r-00001", "part-r-00002"]
    assert [path.read_bytes() for path in files] == [b"a", b"", b"c"]
    assert all(path.is_relative_to(world.folder / "work") for path in files)


def test_only_the_parts_are(world: TextWorld) -> None:
    assert [part.name for part in committed_parts(world.context, OUTPUT)] == [
        "part-r-00000",
        "part-r-00001",
        "part-r-00002",
    ]


def test_many_parts_stay_in_order(world: TextWorld) -> None:
    for number in range(40):
        world.hdfs.stored[f"{OUTPUT}/part-r-{number:05}"] = str(number).encode()

    contents = [path.read_bytes() for path in fetch_parts(world.context, OUTPUT)]

    assert contents == [str(number).encode() for number in range(40)]


def test_numbers_of_six_digits_come_after_those_of_five(world: TextWorld) -> None:
    for number in (99_999, 100_000):
        world.hdfs.stored[f"{OUTPUT}/part-r-{number:05}"] = b""
    names = [part.name for part in committed_parts(world.context, OUTPUT)]
    assert names[-2:] == ["part-r-99999", "part-r-100000"]


def test_an_output_that_was_not_committed_is_not_looked_at(world: TextWorld) -> None:
    del world.hdfs.stored[f"{OUTPUT}/_SUCCESS"]

    for look in (committed_parts, fetch_parts):
        with pytest.raises(VerificationError, match=f"{OUTPUT} has no _SUCCESS mark"):
            look(world.context, OUTPUT)
    assert "OPEN" not in world.hdfs.operations


def test_an_output_is_not_fetched_onto_a_disk_that_cannot_hold_it_and_its_sorting(
    world: TextWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def refuse(folder: Path, *, need_bytes: int, purpose: str) -> None:
        asked.append(need_bytes)
        raise CapacityError(f"{purpose} needs room in {folder}", hint="free some")

    monkeypatch.setattr("boardcluster.workloads.outputs.require_space", refuse)
    with pytest.raises(CapacityError, match=f"reading {OUTPUT} needs room"):
        fetch_parts(world.context, OUTPUT)
    assert asked == [6]
    assert "OPEN" not in world.hdfs.operations


def test_reading_a_large_output_is_followed(
    world: TextWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("boardcluster.workloads.outputs._TOLD_BYTES", 2)
    fetch_parts(world.context, OUTPUT)
    assert world.said == [
        *(("reading the output", done) for done in (1, 1, 2)),
        ("comparing the output", 0),
    ]


def test_no_output_at_all_is_a_remote_error(world: TextWorld) -> None:
    with pytest.raises(RemoteError, match="listing /out/none failed"):
        fetch_parts(world.context, "/out/none")


def test_a_second_fetch_is_not_misled_by_files_of_the_first(world: TextWorld) -> None:
    fetch_parts(world.context, OUTPUT)
    del world.hdfs.stored[f"{OUTPUT}/part-r-00002"]
    world.hdfs.stored[f"{OUTPUT}/part-r-00000"] = b"new"

    files = fetch_parts(world.context, OUTPUT)

    assert [path.read_bytes() for path in files] == [b"new", b""]
    assert len(list(files[0].parent.iterdir())) == 2


def test_outputs_of_two_folders_do_not_mix(world: TextWorld) -> None:
    for name, data in (("_SUCCESS", b""), ("part-r-00000", b"other")):
        world.hdfs.stored[f"/out/y/{name}"] = data

    (one, *_), (two,) = (fetch_parts(world.context, folder) for folder in (OUTPUT, "/out/y"))

    assert (one.read_bytes(), two.read_bytes()) == (b"a", b"other")
