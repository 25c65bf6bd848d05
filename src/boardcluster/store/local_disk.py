"""Whether a folder is on a disk of this machine, as SQLite's write-ahead log needs."""

from __future__ import annotations

import os
from pathlib import Path

from boardcluster.errors import HostError

__all__ = ["require_local_disk"]

_MOUNTS = Path("/proc/self/mountinfo")
_NETWORK = frozenset(
    {
        *("9p", "afs", "beegfs", "ceph", "cifs", "coda", "fuse.glusterfs", "fuse.rclone"),
        *("fuse.s3fs", "fuse.sshfs", "gfs2", "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2"),
        *("orangefs", "smb3", "smbfs"),
    }
)


def require_local_disk(folder: Path) -> None:
    """Refuse a state folder on a file system that other machines share.

    Processes that use one database in WAL mode share memory, which a network file system does not
    give them: results would be lost without a word (https://www.sqlite.org/wal.html, "All processes
    using a database must be on the same host computer").

    Raises:
        HostError: it is on such a file system.
    """
    place = folder
    while not _is_there(place):
        place = place.parent
    kind = _file_system(place)
    if kind in _NETWORK:
        raise HostError(
            f"{folder} is on a network file system ({kind}), where SQLite's write-ahead log cannot "
            "keep results safe",
            hint="choose a folder on a disk of this machine with --home, or set XDG_DATA_HOME; "
            "`boardcluster export` and reports may be written anywhere",
        )


def _is_there(place: Path) -> bool:
    try:
        return place.exists()
    except OSError:  # its name is too long, for example; whoever makes the folder says so
        return False


def _file_system(place: Path) -> str:
    """Return the type of the file system that a path is on; empty if the kernel does not say.

    It is found by the device of stat(2), since names can be mounted over (proc(5), mountinfo).
    """
    device = place.stat().st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    try:
        rows = [line.split() for line in _MOUNTS.read_text().splitlines()]
    except OSError:
        return ""
    found = [row[row.index("-") + 1] for row in rows if len(row) > 2 and row[2] == wanted]
    return found[-1] if found else ""
