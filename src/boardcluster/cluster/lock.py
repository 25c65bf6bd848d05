"""One driver per cluster, held by a lock of the kernel that dies with its holder."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path

from boardcluster.cluster.state import boot_id
from boardcluster.errors import LockedError
from boardcluster.fetch.cache import make_folder, writing

__all__ = ["driver_lock"]


@contextlib.contextmanager
def driver_lock(home: Path, *, doing: str) -> Iterator[None]:
    """Hold the cluster while the block runs.

    The file also says who holds it (process, boot, what for), for the message to the second
    driver. A holder that was killed leaves the text but not the lock, so no lock is ever stale.

    Raises:
        LockedError: another driver holds it; names it.
        HostError: the folder or the file cannot be made.
    """
    make_folder(home)
    path = home / "driver.lock"
    with writing(path):
        stream = path.open("ab", buffering=0)
    with stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise LockedError(
                f"another boardcluster is busy with this cluster: {_holder(path)}",
                hint="wait for it or end it, then try again",
            ) from error
        holder = {"pid": os.getpid(), "boot_id": boot_id(), "doing": doing}
        with contextlib.suppress(OSError):  # on a full disk `down` must still get the lock
            stream.truncate(0)
            stream.write(json.dumps(holder).encode())
        yield


def _holder(path: Path) -> str:
    try:
        holder = json.loads(path.read_text())
        return f"`boardcluster {holder['doing']}`, process {holder['pid']}"
    except (OSError, ValueError, KeyError):
        return "unknown process"
