"""Locks and stamps of cache folders."""

import subprocess
import sys
from pathlib import Path

import pytest

from boardcluster.errors import InstallError
from boardcluster.fetch.cache import (
    hold_lock,
    sha256_of,
    sidecar_of,
    verified_stamp,
    write_stamp,
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
