"""What can be told of nodes' disks without root: attaching them is for the integration tests."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from boardcluster.cluster.limits import disks
from boardcluster.cluster.limits.disks import (
    attach_disk,
    check_tools,
    detach_leftovers,
    device_of,
    forget_device,
    held_bytes,
    noted_devices,
)
from boardcluster.errors import CapacityError, ClusterError, HostError, RemoteError
from boardcluster.remote.fake import FakeRemote
from boardcluster.remote.gate import Completed, run_program

GIB = 1 << 30


class Programs:
    """In place of local programs: remembers what ran; what is refused fails."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, ...]] = []
        self.prints: dict[str, bytes] = {}
        self.refused: set[str] = set()

    def run(self, argv: Sequence[str], *, check: bool = True, **_: Any) -> Completed:
        self.ran.append(tuple(argv))
        words = " ".join(argv[:2])
        failed = words in self.refused
        if failed and check:
            raise RemoteError(f"{words}: refused")
        return Completed(
            argv=tuple(argv),
            returncode=int(failed),
            stdout=self.prints.get(words, b""),
            stderr=b"",
            duration_seconds=0,
        )


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> Programs:
    made = Programs()
    monkeypatch.setattr(disks, "run_program", made.run)
    return made


@pytest.mark.parametrize(
    ("refused", "package"), [("losetup --version", "mount"), ("mkfs.ext4 -V", "e2fsprogs")]
)
def test_a_missing_program_is_named_with_its_package(
    programs: Programs, refused: str, package: str
) -> None:
    programs.refused.add(refused)
    with pytest.raises(HostError, match=refused.split(maxsplit=1)[0]) as caught:
        check_tools()
    assert caught.value.hint == f"install it: sudo apt install {package}"


def test_what_disks_hold_is_what_was_written_and_not_their_size(tmp_path: Path) -> None:
    for name, written in (("worker1", 3 << 20), ("worker2", 0), ("old", 1 << 20)):
        (tmp_path / name).mkdir()
        with (tmp_path / name / "disk.img").open("wb") as stream:
            stream.write(bytes([1]) * written)
            stream.truncate(GIB)
            os.fsync(stream.fileno())
    (tmp_path / "master").mkdir()
    held = held_bytes(tmp_path, ["master", "worker1", "worker2", "none"])
    assert 3 << 20 <= held < 4 << 20


def test_a_disk_of_another_size_is_kept_and_refused(tmp_path: Path, programs: Programs) -> None:
    with (tmp_path / "disk.img").open("wb") as stream:
        stream.truncate(2 * GIB)
    with pytest.raises(ClusterError, match=r"a disk of 2 GiB, but cluster.toml says 3 GiB") as err:
        attach_disk(tmp_path, FakeRemote("worker1"), size_bytes=3 * GIB)
    assert f"`boardcluster down --home {tmp_path.parent.parent} --wipe`" in err.value.hint
    assert (tmp_path / "disk.img").stat().st_size == 2 * GIB
    assert programs.ran == []


@pytest.mark.parametrize("size_bytes", [GIB, 2 * GIB])
def test_what_a_job_put_in_the_place_of_a_disk_is_not_mounted(
    size_bytes: int, tmp_path: Path, programs: Programs
) -> None:
    other = tmp_path / "of a job"
    with other.open("wb") as stream:
        stream.truncate(GIB)
    (tmp_path / "disk.img").symlink_to(other)
    with pytest.raises(ClusterError, match="is not a disk that boardcluster made"):
        attach_disk(tmp_path, FakeRemote("worker1"), size_bytes=size_bytes)
    assert programs.ran == []


def test_a_new_disk_is_never_made_through_a_link(tmp_path: Path, programs: Programs) -> None:
    other = tmp_path / "of this machine"
    other.write_text("kept")
    (tmp_path / "disk.new").symlink_to(other)
    programs.refused.add("mkfs.ext4 -q")
    with pytest.raises(CapacityError):
        attach_disk(tmp_path, FakeRemote("worker1"), size_bytes=GIB)
    assert other.read_text() == "kept"


def test_a_file_system_that_cannot_be_made_leaves_no_file(
    tmp_path: Path, programs: Programs
) -> None:
    programs.refused.add("mkfs.ext4 -q")
    with pytest.raises(CapacityError, match=r"disk\.img cannot be created: mkfs"):
        attach_disk(tmp_path, FakeRemote("worker1"), size_bytes=GIB)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_the_top_of_a_disk_stays_roots_and_what_is_in_it_is_the_users(tmp_path: Path) -> None:
    """Whoever owns the top can exchange what root keeps in it, such as GlusterFS's folder."""
    (tmp_path / "data").mkdir()

    def give() -> None:
        subprocess.run(["sh", "-c", disks._OWNED, str(tmp_path), "61000"], check=True)

    give()

    top = tmp_path.stat()
    assert (top.st_uid, top.st_gid, stat.S_IMODE(top.st_mode)) == (0, 61000, 0o1775)
    assert (tmp_path / "data").stat().st_uid == 61000
    (tmp_path / "gluster").mkdir()
    give()
    assert (tmp_path / "gluster").stat().st_uid == 0


@pytest.mark.skipif(shutil.which("mkfs.ext4") is None, reason="needs mkfs.ext4")
def test_a_new_disk_takes_little_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(argv: Sequence[str], **options: Any) -> Completed:
        if argv[0] == "losetup":
            raise RemoteError("no loop device is free")
        return run_program(argv, **options)

    monkeypatch.setattr(disks, "run_program", run)
    with pytest.raises(HostError, match="no loop device"):
        attach_disk(tmp_path, FakeRemote("worker1"), size_bytes=GIB)
    seen = (tmp_path / "disk.img").stat()
    assert seen.st_size == GIB
    assert seen.st_blocks * 512 < GIB / 20
    assert [path.name for path in tmp_path.iterdir()] == ["disk.img"]


def test_devices_are_noted_until_they_are_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disks, "_BLOCK_DEVICES", tmp_path / "block")
    nodes = tmp_path / "nodes"
    for name, device in (("master", "7:0\n"), ("worker1", "7:1\n"), ("worker2", "")):
        (nodes / name).mkdir(parents=True)
        if device:
            (nodes / name / "disk.device").write_text(device)
    own, others = nodes / "master" / "disk.img", tmp_path / "other" / "disk.img"
    others.parent.mkdir()
    (others.parent / "disk.device").write_text("7:1\n")
    for device, file in (("7:0", own), ("7:1", others)):
        (tmp_path / "block" / device / "loop").mkdir(parents=True)
        (tmp_path / "block" / device / "loop" / "backing_file").write_text(f"{file}\n")

    assert noted_devices(nodes) == {"master": "7:0"}  # the other is another cluster's by now
    # What somebody else mounted on it since would stay as slow as our disk was.
    (tmp_path / "block" / "7:1" / "loop" / "backing_file").write_text(f"{tmp_path}/photos.img\n")
    assert noted_devices(nodes) == {"master": "7:0", "worker1": "7:1"}
    shutil.rmtree(tmp_path / "block")
    assert noted_devices(nodes) == {"master": "7:0", "worker1": "7:1"}
    forget_device(nodes / "master")
    forget_device(nodes / "master")
    assert device_of(nodes / "master") == ""
    assert noted_devices(tmp_path / "nowhere") == {}


def test_what_was_attached_but_not_mounted_is_detached(tmp_path: Path, programs: Programs) -> None:
    (tmp_path / "master").mkdir()
    (tmp_path / "worker1").mkdir()
    image = tmp_path / "master" / "disk.img"
    image.touch()
    programs.prints["losetup --noheadings"] = b"/dev/loop4\n/dev/loop5\n"
    detach_leftovers(tmp_path)
    look, *detached = programs.ran
    assert look[-1] == str(image)
    assert detached == [("losetup", "--detach", f"/dev/loop{number}") for number in (4, 5)]


def link_to_file_beside(place: Path) -> None:
    beside = place.with_name("another's")
    beside.write_text("7:0")
    place.symlink_to(beside)


def second_name_of_file_beside(place: Path) -> None:
    beside = place.with_name("another's")
    beside.write_text("7:0")
    place.hardlink_to(beside)


def file_of_another_user(place: Path) -> None:
    place.write_text("7:0")
    os.chown(place, 61000, 61000)


@pytest.mark.parametrize(
    "leave",
    [
        os.mkfifo,
        os.mkdir,
        link_to_file_beside,
        second_name_of_file_beside,
        pytest.param(
            file_of_another_user,
            marks=pytest.mark.skipif(os.geteuid() != 0, reason="gives a file away"),
        ),
    ],
)
def test_what_a_job_left_under_the_names_of_a_disk_is_ignored(
    tmp_path: Path, programs: Programs, leave: Callable[[Path], None]
) -> None:
    """A pipe would never be read to its end, and a link may lead to another program's image."""
    folder = tmp_path / "worker1"
    folder.mkdir()
    leave(folder / "disk.device")
    leave(folder / "disk.img")

    assert device_of(folder) == ""
    assert noted_devices(tmp_path) == {}
    forget_device(folder)
    detach_leftovers(tmp_path)
    assert programs.ran == []
    assert os.path.lexists(folder / "disk.device")
