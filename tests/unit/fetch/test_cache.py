"""Locks and stamps of cache folders."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from boardcluster.errors import InstallError
from boardcluster.fetch.cache import (
    hold_lock,
    made_once,
    make_folder,
    sha256_of,
    sidecar_of,
    verified_stamp,
    write_stamp,
    write_whole,
)

HOLDER = """
import sys
from pathlib import Path
from boardcluster.fetch.cache import hold_lock
with hold_lock(Path(sys.argv[1]), purpose="test"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_lock_excludes_another_process_and_dies_with_it(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"

        with (
            pytest.raises(InstallError, match="another process held"),
            hold_lock(lock, purpose="test", timeout_seconds=0.1),
        ):
            pass

        holder.kill()
    with hold_lock(lock, purpose="test", timeout_seconds=0.1):
        assert lock.exists()


def test_a_stamp_holds_for_the_same_content_only(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"content")
    stamp = write_stamp(
        path, sidecar=sidecar_of(path), sha256=sha256_of(path), about={"made": "here"}
    )

    assert verified_stamp(path, sidecar=sidecar_of(path)) == stamp
    path.write_bytes(b"content")  # a new time
    kept = verified_stamp(path, sidecar=sidecar_of(path))
    assert kept is not None
    assert (kept.sha256, kept.about) == (stamp.sha256, {"made": "here"})
    path.write_bytes(b"CONTENT")
    assert verified_stamp(path, sidecar=sidecar_of(path)) is None
    path.unlink()
    assert verified_stamp(path, sidecar=sidecar_of(path)) is None


def test_two_that_write_one_file_at_the_same_time_leave_a_whole_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other begins and ends, as another thread, just before the first puts its own in place."""
    path, others = tmp_path / "kept.json", ["another, which is longer"]
    replace, ident = Path.replace, threading.get_ident()

    def interrupted(self: Path, target: Path) -> Path:
        if others:
            monkeypatch.setattr(threading, "get_ident", lambda: ident + 1)
            write_whole(path, others.pop())
            assert path.read_text() == "another, which is longer"
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", interrupted)
    write_whole(path, "the first")
    assert path.read_text() == "the first"
    assert list(tmp_path.iterdir()) == [path]


def test_what_was_not_made_to_the_end_leaves_no_part(tmp_path: Path) -> None:
    def make(part: Path) -> None:
        part.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made_once(tmp_path / "expected", make, purpose="a test")
    assert [path.name for path in tmp_path.iterdir()] == [".expected.lock"]


@pytest.mark.parametrize(("uid", "mode"), [(0, 0o755), (1000, 0o700)])
def test_others_can_read_what_root_puts_into_the_cache(
    uid: int, mode: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jobs on root's emulated nodes are another user; root may have a umask that shuts it out."""
    monkeypatch.setattr("boardcluster.fetch.cache.os.geteuid", lambda: uid)
    before = os.umask(0o077)
    try:
        make_folder(tmp_path / "cache" / "sources", shared=True)
        make_folder(tmp_path / "home")
    finally:
        left = os.umask(before)

    modes = {name: (tmp_path / name).stat().st_mode & 0o777 for name in ("cache", "cache/sources")}
    assert modes == dict.fromkeys(modes, mode)
    assert (tmp_path / "home").stat().st_mode & 0o777 == 0o700  # results are nobody else's
    assert left == 0o077
