"""This machine as a node."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from boardcluster.errors import NotThereError
from boardcluster.remote.base import ProcessRef
from boardcluster.remote.gate import Completed, Piped, run_logged, run_program, streaming
from boardcluster.remote.node_rpc import start_detached

__all__ = ["LocalRemote"]


class LocalRemote:
    """Run programs here, optionally behind a prefix that carries them somewhere else."""

    def __init__(self, name: str = "local", *, prefix: Sequence[str] = ()) -> None:
        self._name = name
        self._prefix = tuple(prefix)

    @property
    def name(self) -> str:
        """The node's name, for messages."""
        return self._name

    def _wrap(self, argv: Sequence[str], cwd: str | None) -> list[str]:
        inside = ("env", f"--chdir={cwd}", *argv) if cwd else tuple(argv)
        return [*self._prefix, *inside]

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
        """Run a program here, behind the prefix."""
        return run_program(
            self._wrap(argv, cwd),
            stdin=stdin,
            env=env,
            timeout_seconds=timeout_seconds,
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
        """Run a long program here, behind the prefix, its output going into files."""
        return run_logged(
            self._wrap(argv, cwd),
            stdout=stdout,
            stderr=stderr,
            env=env,
            timeout_seconds=timeout_seconds,
        )

    def streaming(
        self, argv: Sequence[str], *, stdin: bytes = b""
    ) -> contextlib.AbstractContextManager[Piped]:
        """Run a program here, behind the prefix, beside the block."""
        return streaming(self._wrap(argv, None), stdin=stdin)

    def start(
        self, argv: Sequence[str], *, log: str, env: Mapping[str, str] | None = None, cwd: str = "/"
    ) -> ProcessRef:
        """Start a program that outlives us, orphaned by a program of a moment."""
        return start_detached(self, argv, log=log, env=env, cwd=cwd)

    def put(self, source: Path, target: str) -> None:
        """Copy a file or folder: nodes on this machine share its file system."""
        _copy(source, self._seen_from_here(target))

    def get(self, source: str, target: Path) -> None:
        """Copy a file or folder of the node to another place of this machine."""
        found = self._seen_from_here(source)
        if not found.exists():
            raise NotThereError(f"{self._name}: {source} does not exist")
        _copy(found, target)

    def _seen_from_here(self, path: str) -> Path:
        """Return where a path of the node is found by this process."""
        return Path(path)

    @contextlib.contextmanager
    def temporary_upload(self, source: Path) -> Iterator[str]:
        """Yield the file itself."""
        yield str(source)

    @contextlib.contextmanager
    def download_on_exit(self, target: Path) -> Iterator[str]:
        """Yield the target itself."""
        yield str(target)

    def close(self) -> None:
        """Do nothing: nothing is held open."""


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target)
    else:
        shutil.copy2(source, target)
