"""A machine for tests: healthy disks and hardware, and only the files and programs it was told."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path

from boardcluster.doctor.machine import Disk, Machine
from boardcluster.remote.gate import Completed

__all__ = ["FakeMachine"]


class FakeMachine(Machine):
    """Answers only what it was told; a program that it was not told about is an error.

    Attributes:
        files: path to content.
        disks: folder to file system; others get a large, empty one.
    """

    def __init__(
        self,
        *,
        is_root: bool = True,
        python: tuple[int, int, int] = (3, 11, 2),
        userland_bits: int = 64,
        processor: str = "x86_64",
        page_size_bytes: int = 4096,
    ) -> None:
        super().__init__()
        self.is_root = is_root
        self.python = python
        self.userland_bits = userland_bits
        self.processor = processor
        self.page_size_bytes = page_size_bytes
        self.files: dict[str, str] = {}
        self.disks: dict[Path, Disk] = {}
        self._answers: dict[tuple[str, ...], Completed] = {}
        self._lacking: set[str] = set()

    def tell(self, *argv: str, stdout: str = "", stderr: str = "", returncode: int = 0) -> None:
        """Prepare the answer to a command."""
        self._answers[argv] = Completed(
            argv=argv,
            returncode=returncode,
            stdout=stdout.encode(),
            stderr=stderr.encode(),
            duration_seconds=0.01,
        )

    def lack(self, program: str) -> None:
        """Make a program missing."""
        self._lacking.add(program)

    def text(self, path: str) -> str | None:
        """Return the content that was planted, if any."""
        return self.files.get(path)

    def paths(self, pattern: str) -> list[str]:
        """Return the planted files that match."""
        return sorted(path for path in self.files if fnmatch(path, pattern))

    def run(self, argv: Sequence[str]) -> Completed | None:
        """Give the prepared answer.

        Raises:
            LookupError: it was not told about this command.
        """
        if argv[0] in self._lacking:
            return None
        if tuple(argv) not in self._answers:
            raise LookupError(f"the fake machine was not told about: {' '.join(argv)}")
        return self._answers[tuple(argv)]

    def disk(self, folder: Path) -> Disk:
        """Return the planted file system, or a large and empty one."""
        return self.disks.get(folder) or Disk(
            folder=str(folder),
            total_bytes=10**12,
            available_bytes=9 * 10**11,
            writable=True,
        )
