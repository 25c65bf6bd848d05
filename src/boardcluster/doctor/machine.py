"""What the checks may ask of a machine: its files, its programs, its disks. Only looking.

The checks take any ``Machine``, so tests plant faults in a fake one and a board over SSH is one
more implementation.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from boardcluster.errors import HostError, RemoteError
from boardcluster.remote.gate import Completed, run_program

__all__ = ["Disk", "LocalMachine", "Machine"]

_PATIENCE_SECONDS = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """The file system that a folder is on, or will be on.

    Attributes:
        place: the folder, or the nearest one above it that exists.
        total_bytes: its size.
        available_bytes: what an ordinary user may still write.
        writable: whether we may write in ``place``.
    """

    place: str
    total_bytes: int
    available_bytes: int
    writable: bool


class Machine(Protocol):
    """A machine to look at."""

    @property
    def is_root(self) -> bool:
        """Whether we are root there."""
        ...

    @property
    def python(self) -> tuple[int, int, int]:
        """Version of the Python that runs boardcluster."""
        ...

    @property
    def userland_bits(self) -> int:
        """Bits of a pointer in its programs: 64 or 32."""
        ...

    @property
    def processor(self) -> str:
        """What the kernel calls the processor, e.g. ``x86_64`` or ``aarch64``."""
        ...

    @property
    def page_size_bytes(self) -> int:
        """Size of a memory page."""
        ...

    def text(self, path: str) -> str | None:
        """Return the content of a small file, or None if it cannot be read."""
        ...

    def paths(self, pattern: str) -> list[str]:
        """Return the paths that match a shell pattern, sorted."""
        ...

    def run(self, argv: Sequence[str]) -> Completed | None:
        """Run a program that only looks; None if it is missing or does not end."""
        ...

    def disk(self, folder: Path) -> Disk:
        """Return the file system of a folder."""
        ...


class LocalMachine:
    """This machine.

    Args:
        root: folder that stands for ``/`` when files are read.
    """

    def __init__(self, *, root: Path = Path("/")) -> None:
        self._root = root

    @property
    def is_root(self) -> bool:
        """See Machine."""
        return os.geteuid() == 0

    @property
    def python(self) -> tuple[int, int, int]:
        """See Machine."""
        return sys.version_info[:3]

    @property
    def userland_bits(self) -> int:
        """See Machine."""
        return 64 if sys.maxsize > 2**32 else 32

    @property
    def processor(self) -> str:
        """See Machine."""
        return platform.machine()

    @property
    def page_size_bytes(self) -> int:
        """See Machine."""
        return os.sysconf("SC_PAGE_SIZE")

    def text(self, path: str) -> str | None:
        """See Machine."""
        try:
            return (self._root / path.lstrip("/")).read_text(errors="replace")
        except OSError:
            return None

    def paths(self, pattern: str) -> list[str]:
        """See Machine."""
        found = self._root.glob(pattern.lstrip("/"))
        return sorted(f"/{path.relative_to(self._root)}" for path in found)

    def run(self, argv: Sequence[str]) -> Completed | None:
        """See Machine."""
        try:
            return run_program(argv, check=False, timeout_seconds=_PATIENCE_SECONDS)
        except (HostError, RemoteError):
            return None

    def disk(self, folder: Path) -> Disk:
        """See Machine."""
        place = next(path for path in (folder, *folder.parents) if os.access(path, os.F_OK))
        seen = os.statvfs(place)
        return Disk(
            place=str(place),
            total_bytes=seen.f_blocks * seen.f_frsize,
            available_bytes=seen.f_bavail * seen.f_frsize,
            writable=os.access(place, os.W_OK | os.X_OK),
        )
