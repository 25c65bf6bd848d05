"""What the checks may ask of this machine: its files, its programs, its disks.

Checks ask through ``Machine`` only, so that tests can plant faults in a fake one.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from boardcluster.errors import HostError, RemoteError
from boardcluster.remote.gate import Completed, run_program

__all__ = ["Disk", "Machine"]

_PATIENCE_SECONDS = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """The file system that a folder is on, or will be on."""

    folder: str
    """The folder, or the nearest one above it that exists."""
    total_bytes: int
    """Its size."""
    available_bytes: int
    """What an ordinary user may still write."""
    writable: bool
    """Whether we may write in ``folder``."""


class Machine:
    """This machine, or in tests one that is derived from it.

    Args:
        root: folder to use instead of ``/`` when files are read.

    Attributes:
        is_root: whether we are root here.
        python: version of the Python that runs boardcluster.
        userland_bits: bits of a pointer in its programs: 64 or 32.
        processor: what the kernel calls the processor, e.g. ``x86_64`` or ``aarch64``.
        page_size_bytes: size of a memory page.
    """

    def __init__(self, *, root: Path = Path("/")) -> None:
        self._root = root
        self.is_root = os.geteuid() == 0
        self.python: tuple[int, int, int] = sys.version_info[:3]
        self.userland_bits = 64 if sys.maxsize > 2**32 else 32
        self.processor = platform.machine()
        self.page_size_bytes = os.sysconf("SC_PAGE_SIZE")

    def text(self, path: str) -> str | None:
        """Return the content of a small file, or None if it cannot be read."""
        try:
            return (self._root / path.lstrip("/")).read_text(errors="replace")
        except OSError:
            return None

    def paths(self, pattern: str) -> list[str]:
        """Return the paths that match a shell pattern, sorted."""
        found = self._root.glob(pattern.lstrip("/"))
        return sorted(f"/{path.relative_to(self._root)}" for path in found)

    def run(self, argv: Sequence[str]) -> Completed | None:
        """Run a program that changes nothing; None if it is missing or does not end in 20 s."""
        try:
            return run_program(argv, check=False, timeout_seconds=_PATIENCE_SECONDS)
        except (HostError, RemoteError):
            return None

    def disk(self, folder: Path) -> Disk:
        """Return the file system of a folder."""
        there = next(path for path in (folder, *folder.parents) if os.access(path, os.F_OK))
        status = os.statvfs(there)
        return Disk(
            folder=str(there),
            total_bytes=status.f_blocks * status.f_frsize,
            available_bytes=status.f_bavail * status.f_frsize,
            writable=os.access(there, os.W_OK | os.X_OK),
        )
