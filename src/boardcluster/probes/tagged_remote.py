"""A node whose programs can all be found and ended again: a Remote around a Remote."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from boardcluster.errors import RemoteError
from boardcluster.remote.base import ProcessRef, Remote
from boardcluster.remote.gate import Completed

__all__ = ["PROBE_VARIABLE", "PROBING_VARIABLE", "TaggedRemote"]

PROBE_VARIABLE = "BOARDCLUSTER_PROBE"
"""In the environment of whatever a probe starts; its value is the id of the run."""

PROBING_VARIABLE = "BOARDCLUSTER_PROBING"
"""Likewise; its value is the identity of the cluster, by which what a killed driver's probe started
is found and ended before anything else runs there."""


class TaggedRemote:
    """Put a mark into the environment of every program, and start none once work has to stop.

    Args:
        inner: the node.
        mark: the id of the run.
        stopping: set when everything is to end.
        dilation: by how much the node is slower than a board; time-outs are so many times longer.
        identity: of the cluster; empty for a machine in none.
    """

    def __init__(
        self,
        inner: Remote,
        *,
        mark: str,
        stopping: threading.Event,
        dilation: float = 1.0,
        identity: str = "",
    ) -> None:
        self._inner = inner
        self._mark = {PROBE_VARIABLE: mark}
        if identity:
            self._mark[PROBING_VARIABLE] = identity
        self._stopping = stopping
        self._dilation = dilation

    @property
    def name(self) -> str:
        """The node's name, for messages."""
        return self._inner.name

    def _environment(self, env: Mapping[str, str] | None) -> dict[str, str]:
        if self._stopping.is_set():
            raise RemoteError(
                f"{self.name}: no more programs are started, because the command was stopped"
            )
        return {**self._mark, **(env or {})}

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
        """Run a program to its end, marked."""
        return self._inner.run(
            argv,
            stdin=stdin,
            env=self._environment(env),
            cwd=cwd,
            timeout_seconds=timeout_seconds * self._dilation,
            check=check,
        )

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
        """Run a program to its end, marked, its output in files."""
        return self._inner.run_logged(
            argv,
            stdout=stdout,
            stderr=stderr,
            env=self._environment(env),
            cwd=cwd,
            timeout_seconds=timeout_seconds * self._dilation,
        )

    def start(
        self,
        argv: Sequence[str],
        *,
        log: str,
        env: Mapping[str, str] | None = None,
        cwd: str = "/",
    ) -> ProcessRef:
        """Start a marked program."""
        return self._inner.start(argv, log=log, env=self._environment(env), cwd=cwd)

    def put(self, source: Path, target: str) -> None:
        """Bring a file to the node."""
        self._inner.put(source, target)

    def get(self, source: str, target: Path) -> None:
        """Fetch a file from the node."""
        self._inner.get(source, target)

    def temporary_upload(self, source: Path) -> AbstractContextManager[str]:
        """Make a file readable on the node while the block runs."""
        return self._inner.temporary_upload(source)

    def download_on_exit(self, target: Path) -> AbstractContextManager[str]:
        """Let the node write a file while the block runs."""
        return self._inner.download_on_exit(target)

    def close(self) -> None:
        """Do nothing: the connection to the node belongs to the caller."""
