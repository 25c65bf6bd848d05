"""The verbs every way of reaching a node has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from boardcluster.remote.gate import Completed

__all__ = ["ProcessRef", "Remote"]


@dataclass(frozen=True, slots=True)
class ProcessRef:
    """A process that cannot be mistaken for a later one with the same id.

    Attributes:
        pid: process id as the node itself sees it.
        start_ticks: start time in clock ticks since boot (``/proc/PID/stat``, field 22).
    """

    pid: int
    start_ticks: int


@runtime_checkable
class Remote(Protocol):
    """A node that can be reached. Implementations: local, netns, fake; next: ssh."""

    @property
    def name(self) -> str:
        """The node's name, for messages."""
        ...

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout_seconds: float = 60.0,
        check: bool = True,
    ) -> Completed:
        """Run a program on the node to its end and capture its output.

        Raises:
            HostError: the program does not exist on this machine.
            RemoteError: it failed (only with check), did not end in time, or the node is gone.
        """
        ...

    def run_logged(
        self,
        argv: Sequence[str],
        *,
        stdout: Path,
        stderr: Path,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout_seconds: float,
    ) -> Completed:
        """Run a long program, its output streaming into files of the driver.

        Raises:
            RemoteError: it did not end in time or the node is gone.
        """
        ...

    def start(
        self,
        argv: Sequence[str],
        *,
        log: str,
        env: Mapping[str, str] | None = None,
        cwd: str = "/",
    ) -> ProcessRef:
        """Start a program that outlives us; its output is appended to a file on the node.

        Raises:
            RemoteError: it could not be started.
        """
        ...

    def put(self, source: Path, target: str) -> None:
        """Copy a file or folder of the driver to the node; a folder's content is replaced."""
        ...

    def get(self, source: str, target: Path) -> None:
        """Copy a file or folder of the node to the driver.

        Raises:
            RemoteError: the source does not exist.
        """
        ...

    def close(self) -> None:
        """Release the connection; the node and its processes go on."""
        ...
