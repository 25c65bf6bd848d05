"""Files of an emulated node: with a disk of its own, they are seen through its first process."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from boardcluster.errors import CapacityError, DriverSpaceError, NotThereError, RemoteError
from boardcluster.remote import gate, local, netns
from boardcluster.remote.gate import Completed
from boardcluster.remote.netns import NetnsRemote, NetnsUserRemote, enter
from boardcluster.remote.node_rpc import boot_of

JOINING = ("sh", "-c", "join", "--")


def test_the_prefix_joins_groups_first_and_then_enters() -> None:
    remote = NetnsRemote("worker1", pid=2**22 + 1, own_user=False, joining=("env", "--"))
    with pytest.raises(RemoteError) as caught:
        remote.run(["true"])
    assert "env -- nsenter -t 4194305 -n -m -u -p -- true" in caught.value.message


def test_a_user_namespace_is_entered_with_its_rights() -> None:
    assert enter(7, own_user=True, kinds="nm") == (
        *("nsenter", "-t", "7", "-U", "--preserve-credentials", "-n", "-m", "--"),
    )


@pytest.fixture
def seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a limited node, whose first process is 7, has as its root."""
    root = tmp_path / "proc" / "7" / "root"
    root.mkdir(parents=True)

    def place(text: str) -> Path:
        return tmp_path / text.lstrip("/") if text.startswith("/proc/") else Path(text)

    monkeypatch.setattr(netns, "Path", place)
    return root


def test_files_of_a_limited_node_go_through_its_first_process(seen: Path, tmp_path: Path) -> None:
    remote = NetnsRemote("worker1", pid=7, own_user=False, joining=JOINING)
    source = tmp_path / "source"
    source.write_text("text")

    remote.put(source, "/disk/made/file")
    assert (seen / "disk/made/file").read_text() == "text"
    assert not Path("/disk/made").exists()
    remote.get("/disk/made", tmp_path / "back")
    assert (tmp_path / "back/file").read_text() == "text"
    with pytest.raises(NotThereError, match="worker1: /disk/none does not exist"):
        remote.get("/disk/none", tmp_path / "none")


def test_a_disk_that_is_full_is_the_one_that_is_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise DriverSpaceError("a disk became full: tar", hint="free space there")

    def run(argv: Sequence[str], **_: object) -> Completed:
        return Completed(
            argv=tuple(argv), returncode=0, stdout=b"", stderr=b"", duration_seconds=0.0
        )

    remote = NetnsUserRemote("worker1", pid=7, user=1, folder="/disk")
    source = tmp_path / "source"
    source.write_text("text")
    monkeypatch.setattr(netns, "pipe", full)
    monkeypatch.setattr(remote, "run", run)

    with pytest.raises(CapacityError, match="worker1: a disk became full: tar") as caught:
        remote.put(source, "/disk/made/file")
    assert caught.type is CapacityError  # the node's
    with pytest.raises(DriverSpaceError):
        remote.get("/disk/made", tmp_path / "back")


def test_files_of_a_node_without_limits_are_this_machines(seen: Path, tmp_path: Path) -> None:
    remote = NetnsRemote("worker1", pid=7, own_user=False)
    source = tmp_path / "source"
    source.write_text("text")
    remote.put(source, str(tmp_path / "target"))
    assert (tmp_path / "target").read_text() == "text"
    assert list(seen.iterdir()) == []


def test_the_real_root_of_a_process_is_found(tmp_path: Path) -> None:
    remote = NetnsRemote("here", pid=os.getpid(), own_user=False, joining=JOINING)
    (tmp_path / "file").write_text("text")
    remote.get(str(tmp_path / "file"), tmp_path / "copy")
    assert (tmp_path / "copy").read_text() == "text"


def test_a_node_pays_for_what_it_starts_and_not_for_what_watches_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran: list[list[str]] = []

    def answer(argv: list[str], **_: Any) -> Completed:
        ran.append(argv)
        text = b'{"boot_id": "b", "pid": 5, "start_ticks": 6}'
        return Completed(argv=(), returncode=0, stdout=text, stderr=b"", duration_seconds=0)

    monkeypatch.setattr(local, "run_program", answer)
    remote = NetnsRemote("worker1", pid=7, own_user=False, joining=JOINING)

    assert boot_of(remote) == "b"
    remote.start(["java"], log="/log")
    remote.run(["sysbench"])

    joined = [tuple(argv[: len(JOINING)]) == tuple(JOINING) for argv in ran]
    assert joined == [False, True, True]
    assert all("nsenter" in argv for argv in ran)


@pytest.mark.parametrize("status", [0, 1, 2])
def test_a_file_that_grows_while_it_is_copied_is_no_failure(
    status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """tar then ends with 1; with 2 it could not read something."""
    monkeypatch.setattr(netns, "enter", lambda *_, **__: ())
    monkeypatch.setattr(netns, "become", lambda _: ())
    tar = tmp_path / "programs" / "tar"
    tar.parent.mkdir()
    tar.write_text(f'#!/bin/sh\n{shutil.which("tar")} "$@"\nexit {status}\n')
    tar.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tar.parent}:{os.environ['PATH']}")
    (tmp_path / "log").write_text("line\n")
    remote = NetnsUserRemote("worker1", pid=7, user=61000, folder=str(tmp_path))

    if status == 2:
        with pytest.raises(RemoteError):
            remote.get(str(tmp_path / "log"), tmp_path / "got")
        return
    remote.get(str(tmp_path / "log"), tmp_path / "got")
    assert (tmp_path / "got").read_text() == "line\n"


def test_what_was_lent_is_removed_after_ctrl_c_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    remote = NetnsUserRemote("worker1", pid=7, user=998, folder="/data")
    seen: list[tuple[str, bool]] = []
    monkeypatch.setattr(remote, "run", lambda argv: seen.append((argv[0], gate._cleans_up.get())))

    with pytest.raises(KeyError), remote.download_on_exit(tmp_path / "x"):
        raise KeyError

    assert seen == [("mkdir", False), ("rm", True)]
