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
from boardcluster.store.local_disk import require_local_disk

__all__ = ["driver_at_work", "driver_lock"]

_LOCKS = Path("/proc/locks")


@contextlib.contextmanager
def driver_lock(home: Path, *, doing: str) -> Iterator[None]:
    """Hold the cluster while the block runs.

    The file also says who holds it (process, boot, what for), for the message to the second
    driver. A holder that was killed leaves the text but not the lock, so no lock is ever stale.

    Raises:
        LockedError: another driver holds it; names it.
        HostError: the folder or the file cannot be made, or is on a network file system.
    """
    require_local_disk(home)
    make_folder(home)
    path = home / "driver.lock"
    with writing(path):
        stream = path.open("ab", buffering=0)
    with stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise LockedError(
                f"another boardcluster is using this cluster: {_holder(path)}",
                hint="wait for it to end, or stop it, then try again",
            ) from error
        holder = {"pid": os.getpid(), "boot_id": boot_id(), "doing": doing}
        with contextlib.suppress(OSError):  # on a full disk `down` must still get the lock
            stream.truncate(0)
            stream.write(json.dumps(holder).encode())
        yield


def driver_at_work(home: Path) -> str:
    """Return which command holds the cluster now, e.g. ``run``; empty if none does.

    The kernel's list of locks is read instead of trying the lock, which would keep a driver out
    that begins at that moment.
    """
    path = home / "driver.lock"
    try:
        seen, text, locks = path.stat(), path.read_text(), _LOCKS.read_text()
    except OSError:
        return ""
    try:
        holder = json.loads(text)
        pid, doing = str(holder["pid"]), str(holder["doing"])
    except (ValueError, KeyError, TypeError):  # it has the lock, and is about to say who it is
        pid, doing = "", "unknown"
    device = f"{os.major(seen.st_dev):02x}:{os.minor(seen.st_dev):02x}"
    for line in locks.splitlines():
        # 3: FLOCK  ADVISORY  WRITE 26911 fe:00:10282339 0 EOF
        parts = line.split()
        if len(parts) < 6 or parts[1] != "FLOCK":
            continue
        where, _, inode = parts[5].rpartition(":")
        # Some file systems have another device there than in `stat`; then the process tells.
        if inode == str(seen.st_ino) and (where == device or parts[4] == pid):
            return doing
    return ""


def _holder(path: Path) -> str:
    try:
        holder = json.loads(path.read_text())
        return f"`boardcluster {holder['doing']}`, process {holder['pid']}"
    except (OSError, ValueError, KeyError):
        return "unknown process"
