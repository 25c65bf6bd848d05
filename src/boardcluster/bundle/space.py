"""Whether a disk has room for what a bundle is unpacked into."""

from __future__ import annotations

import contextlib
import errno
import shutil
from collections.abc import Iterator
from pathlib import Path

from boardcluster.errors import CapacityError, HostError
from boardcluster.units import format_bytes

__all__ = ["TEMPORARY", "require_space_for", "unpacking"]

TEMPORARY = "the variable TMPDIR"
"""What names the folder for temporary files."""

_SPARE_BYTES = 64 << 20


def require_space_for(folder: Path, *, files_bytes: int, database_bytes: int, option: str) -> None:
    """Refuse beforehand what a disk cannot hold.

    Args:
        folder: a folder on it.
        files_bytes: size of the files to unpack.
        database_bytes: size of the database that is made of them.
        option: what names another folder, for the hint.

    Raises:
        CapacityError: it has less; says how much each is.
    """
    free = shutil.disk_usage(folder).free
    wanted = files_bytes + database_bytes + _SPARE_BYTES
    if wanted > free:
        raise CapacityError(
            f"the bundle needs {format_bytes(wanted)} in {folder}, which has {format_bytes(free)}",
            hint=f"free space, or name a folder on a larger disk with {option}",
        )


@contextlib.contextmanager
def unpacking(folder: Path, *, option: str) -> Iterator[None]:
    """Say what is wrong where a bundle cannot be unpacked.

    Args:
        folder: the folder that it is for.
        option: what names another folder, for the hint.

    Raises:
        CapacityError: the disk became full.
        HostError: it cannot be written.
    """
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise CapacityError(
                f"the disk became full while writing {folder}",
                hint=f"free space, or name a folder on a larger disk with {option}",
            ) from error
        raise HostError(
            f"cannot write {folder}: {error.strerror or error}",
            hint=f"name another one with {option}",
        ) from error
