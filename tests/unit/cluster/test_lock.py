"""One driver per cluster: the second is refused, and a killed one leaves no lock."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from boardcluster.cluster import lock
from boardcluster.cluster.lock import driver_at_work, driver_lock
from boardcluster.cluster.state import boot_id
from boardcluster.errors import HostError, LockedError

HOLDER = """
import sys
from pathlib import Path
from boardcluster.cluster.lock import driver_lock
with driver_lock(Path(sys.argv[1]), doing="run wordcount"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Another process that holds the lock until its standard input ends."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        yield process
        process.kill()


def test_a_second_driver_is_refused_and_told_of_the_first(
    holder: "subprocess.Popen[bytes]", tmp_path: Path
) -> None:
    with pytest.raises(LockedError) as caught, driver_lock(tmp_path, doing="down"):
        pytest.fail("two drivers at once")

    assert f"`boardcluster run wordcount`, process {holder.pid}" in caught.value.message
    assert "wait" in caught.value.hint


def test_a_refused_driver_does_not_overwrite_who_holds_it(
    holder: "subprocess.Popen[bytes]", tmp_path: Path
) -> None:
    for _ in range(2):
        with pytest.raises(LockedError, match=f"process {holder.pid}"):
            driver_lock(tmp_path, doing="down").__enter__()


def test_a_killed_holder_leaves_no_lock(holder: "subprocess.Popen[bytes]", tmp_path: Path) -> None:
    holder.kill()
    holder.wait(10)

    with driver_lock(tmp_path, doing="down"):
        record = json.loads((tmp_path / "driver.lock").read_text())
    assert record == {"pid": os.getpid(), "boot_id": boot_id(), "doing": "down"}


def test_the_lock_ends_with_the_block_even_after_an_error(tmp_path: Path) -> None:
    home = tmp_path / "new" / "home"
    with pytest.raises(KeyError), driver_lock(home, doing="up"):
        raise KeyError

    with driver_lock(home, doing="run"), pytest.raises(LockedError, match="boardcluster run"):
        driver_lock(home, doing="down").__enter__()


def test_programs_started_under_the_lock_do_not_keep_it(tmp_path: Path) -> None:
    with driver_lock(tmp_path, doing="up"):
        child = subprocess.Popen(["sleep", "60"])
    try:
        with driver_lock(tmp_path, doing="down"):
            pass
    finally:
        child.kill()
        child.wait(10)


@pytest.mark.parametrize("name", ["home", "home/below", "x" * 300])
def test_a_home_that_cannot_be_made_is_no_defect(name: str, tmp_path: Path) -> None:
    (tmp_path / "home").write_text("mine")

    with pytest.raises(HostError, match="cannot create the folder"):
        driver_lock(tmp_path / name, doing="up").__enter__()

    assert (tmp_path / "home").read_text() == "mine"


def test_a_lock_that_cannot_be_opened_is_no_defect(tmp_path: Path) -> None:
    (tmp_path / "driver.lock").mkdir()

    with pytest.raises(HostError, match=r"driver\.lock"):
        driver_lock(tmp_path, doing="up").__enter__()


def test_a_full_disk_does_not_keep_from_the_lock(tmp_path: Path) -> None:
    (tmp_path / "driver.lock").symlink_to("/dev/full")  # refuses every write: ENOSPC

    entered = False
    with driver_lock(tmp_path, doing="down"):
        entered = True
    assert entered


@pytest.mark.parametrize("text", ["", "{", "{}", '{"pid": 1}'])
def test_an_unreadable_holder_is_unknown(
    text: str, holder: "subprocess.Popen[bytes]", tmp_path: Path
) -> None:
    (tmp_path / "driver.lock").write_text(text)

    with pytest.raises(LockedError, match="unknown process"):
        driver_lock(tmp_path, doing="down").__enter__()


def test_who_is_at_work_is_known_without_touching_the_lock(
    holder: "subprocess.Popen[bytes]", tmp_path: Path
) -> None:
    assert driver_at_work(tmp_path) == "run wordcount"

    holder.kill()
    holder.wait()
    assert (tmp_path / "driver.lock").read_text()  # what a killed holder leaves counts for nothing
    assert driver_at_work(tmp_path) == ""


def test_a_home_that_nobody_ever_held_has_nobody_at_work(tmp_path: Path) -> None:
    assert driver_at_work(tmp_path / "absent") == ""
    with driver_lock(tmp_path / "other", doing="up"):
        (tmp_path / "driver.lock").write_text('{"pid": 1, "doing": "run"}')
        assert driver_at_work(tmp_path) == ""


def test_a_holder_that_has_not_said_who_it_is_is_at_work(tmp_path: Path) -> None:
    with driver_lock(tmp_path, doing="up"):
        (tmp_path / "driver.lock").write_text("")
        assert driver_at_work(tmp_path) == "unknown"


def test_a_file_system_with_another_device_in_the_list_of_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with driver_lock(tmp_path, doing="run"):
        inode = (tmp_path / "driver.lock").stat().st_ino
        listed = tmp_path / "locks"
        monkeypatch.setattr(lock, "_LOCKS", listed)
        rows = {
            f"1: FLOCK  ADVISORY  WRITE {os.getpid()} 99:01:{inode} 0 EOF": "run",
            f"1: FLOCK  ADVISORY  WRITE 1 99:01:{inode} 0 EOF": "",  # the same number elsewhere
            f"1: -> FLOCK  ADVISORY  WRITE {os.getpid()} 99:01:{inode} 0 EOF": "",  # it waits
            f"1: POSIX  ADVISORY  WRITE {os.getpid()} 99:01:{inode} 0 EOF": "",
        }
        for row, expected in rows.items():
            listed.write_text(f"{row}\n")
            assert driver_at_work(tmp_path) == expected, row
