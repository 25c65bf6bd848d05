"""The verbs every way of reaching a node has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from boardcluster.remote.gate import Completed, Piped

__all__ = ["LimitedRemote", "ProcessRef", "Remote", "StreamingRemote"]


@dataclass(frozen=True, slots=True)
class ProcessRef:
    """A process that cannot be mistaken for a later one with the same id."""

    pid: int
    """Process id as the node itself sees it."""
    start_ticks: int
    """Start time in clock ticks since boot (``/proc/PID/stat``, field 22)."""


@runtime_checkable
class Remote(Protocol):
    """A node that can be reached. Implementations: local, netns, ssh, fake."""

    @property
    def name(self) -> str:
        """The node's name, for messages."""

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

        Args:
            argv: program and arguments.
            stdin: bytes for its standard input.
            env: further variables. No secrets: on the way they may stand in an argument list.
            cwd: working folder.
            timeout_seconds: after this it is ended, on the node.
            check: raise if the exit status is not zero.

        Raises:
            HostError: a program that does not exist on this machine.
            RemoteError: it failed (only with check), did not end in time, does not exist on
                another machine, or the node is gone.
        """

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
        """Run a long program, its output going into files of the driver.

        Over ssh, the output arrives when the program has ended, the program survives a broken
        connection, and its standard input is empty.

        Raises:
            RemoteError: it did not end in time or the node is gone.
        """

    def start(
        self, argv: Sequence[str], *, log: str, env: Mapping[str, str] | None = None, cwd: str = "/"
    ) -> ProcessRef:
        """Start a program that outlives us; its output is appended to a file on the node.

        Raises:
            RemoteError: it could not be started.
        """

    def put(self, source: Path, target: str) -> None:
        """Copy a file or folder of the driver to the node; a folder's content is replaced."""

    def get(self, source: str, target: Path) -> None:
        """Copy a file or folder of the node to the driver.

        Raises:
            RemoteError: the source does not exist.
        """

    def temporary_upload(self, source: Path) -> AbstractContextManager[str]:
        """Yield a path of the node at which a file or folder of the driver can be read.

        It is there only during the block.
        """

    def download_on_exit(self, target: Path) -> AbstractContextManager[str]:
        """Yield a path of the node to write a file to; it becomes the driver's ``target``.

        That happens when the block ends well. The path is there only during the block.
        """

    def close(self) -> None:
        """Release the connection; the node and its processes go on."""


@runtime_checkable
class LimitedRemote(Protocol):
    """A way to a node that is charged for what runs there: an emulated board with limits."""

    @property
    def unlimited(self) -> Remote:
        """The same node, but what runs there is not charged to it.

        For whoever watches it: a board that is slowed down must not pay for that.
        """


@runtime_checkable
class StreamingRemote(Protocol):
    """A way to a node that can show what a program writes while it runs."""

    def streaming(
        self, argv: Sequence[str], *, stdin: bytes = b""
    ) -> AbstractContextManager[Piped]:
        """Run a program beside the block, and see what it writes as it comes.

        Its standard input begins with ``stdin`` and ends with the block, upon which it is to end by
        itself. A node that is out of reach writes nothing, and ends.
        """
