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

__all__ = ["driver_lock"]


@contextlib.contextmanager
def driver_lock(home: Path, *, doing: str) -> Iterator[None]:
    """Hold the cluster while the block runs.

    The file also says who holds it (process, boot, what for), for the message to the second
    driver. A holder that was killed leaves the text but not the lock, so no lock is ever stale.

    Raises:
        LockedError: another driver holds it; names it.
    """
    home.mkdir(parents=True, exist_ok=True)
    with (home / "driver.lock").open("a+") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise LockedError(
                f"another boardcluster is busy with this cluster: {_holder(stream.name)}",
                hint="wait for it or end it, then try again",
            ) from error
        stream.truncate(0)
        stream.write(json.dumps({"pid": os.getpid(), "boot_id": boot_id(), "doing": doing}))
        stream.flush()
        yield


def _holder(path: str) -> str:
    try:
        holder = json.loads(Path(path).read_text())
        return f"`boardcluster {holder['doing']}`, process {holder['pid']}"
    except (OSError, ValueError, KeyError):
        return "unknown process"
