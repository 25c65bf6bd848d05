"""A node for unit tests. It fails on any command it was not told about."""

from __future__ import annotations

import contextlib
import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from boardcluster.errors import NotThereError, RemoteError
from boardcluster.remote.base import ProcessRef
from boardcluster.remote.gate import Completed, Piped

__all__ = ["FakeRemote"]


class FakeRemote:
    """Answers only what it was told, and records what it was asked.

    Commands are matched by their words; requests to the node-side program by their verb, as
    ``("node_agent", VERB)``.
    """

    def __init__(self, name: str = "fake") -> None:
        self._name = name
        self._answers: dict[tuple[str, ...], list[tuple[int, bytes]]] = {}
        self.calls: list[tuple[str, ...]] = []
        self.requests: list[dict[str, Any]] = []
        self.files: dict[str, bytes] = {}

    @property
    def name(self) -> str:
        """The node's name, for messages."""
        return self._name

    def tell(self, *argv: str, stdout: str = "", returncode: int = 0) -> None:
        """Prepare one answer; answers to the same command are given in order, the last stays."""
        self._answers.setdefault(argv, []).append((returncode, stdout.encode()))

    def tell_node_agent(self, verb: str, answer: object) -> None:
        """Prepare one answer of the node-side program."""
        self.tell("node_agent", verb, stdout=json.dumps(answer))

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,  # noqa: ARG002  the protocol's
        cwd: str | None = None,  # noqa: ARG002
        timeout_seconds: float = 60.0,  # noqa: ARG002
        check: bool = True,
    ) -> Completed:
        """Give the next prepared answer to a command or a request."""
        key = tuple(argv)
        if key[:4] == ("python3", "-I", "-S", "-c"):
            request = json.loads(stdin)
            self.requests.append(request)
            key = ("node_agent", request["do"])
        self.calls.append(key)
        if key not in self._answers:
            raise RemoteError(f"{self._name}: the fake node was not told about: {' '.join(key)}")
        answers = self._answers[key]
        returncode, stdout = answers.pop(0) if len(answers) > 1 else answers[0]
        if check and returncode != 0:
            raise RemoteError(f"{self._name}: command failed with status {returncode}")
        return Completed(
            argv=tuple(argv), returncode=returncode, stdout=stdout, stderr=b"", duration_seconds=0.0
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
        """Give the next prepared answer, its output in the file."""
        done = self.run(argv, env=env, cwd=cwd, timeout_seconds=timeout_seconds, check=False)
        stdout.write_bytes(done.stdout)
        stderr.write_bytes(b"")
        return done

    @contextlib.contextmanager
    def streaming(self, argv: Sequence[str], *, stdin: bytes = b"") -> Iterator[Piped]:  # noqa: ARG002
        """Give the next prepared answer to ``("streaming",)``, and then end."""
        done = self.run(("streaming",))
        self.calls[-1] = tuple(argv)
        read, write = os.pipe()
        try:
            os.write(write, done.stdout)
            os.close(write)
            os.set_blocking(read, False)
            yield Piped(output=read, input=io.BytesIO())
        finally:
            os.close(read)

    def start(
        self,
        argv: Sequence[str],
        *,
        log: str,  # noqa: ARG002
        env: Mapping[str, str] | None = None,
        cwd: str = "/",
    ) -> ProcessRef:
        """Count as started whatever has a prepared answer."""
        self.run(argv, env=env, cwd=cwd)
        return ProcessRef(len(self.calls), 1)

    def put(self, source: Path, target: str) -> None:
        """Remember the bytes of files."""
        for path in sorted(source.rglob("*")) if source.is_dir() else [source]:
            if path.is_file():
                inner = f"/{path.relative_to(source)}" if source.is_dir() else ""
                self.files[f"{target}{inner}"] = path.read_bytes()

    def get(self, source: str, target: Path) -> None:
        """Write the bytes that are remembered."""
        if source not in self.files:
            raise NotThereError(f"{self._name}: {source} does not exist")
        target.write_bytes(self.files[source])

    @contextlib.contextmanager
    def temporary_upload(self, source: Path) -> Iterator[str]:
        """Remember a file under the path it is lent at."""
        path = f"/lent/{source.name}"
        self.put(source, path)
        yield path

    @contextlib.contextmanager
    def download_on_exit(self, target: Path) -> Iterator[str]:
        """Yield a path; the content is what ``files`` has there in the end."""
        path = f"/collected/{target.name}"
        yield path
        self.get(path, target)

    def close(self) -> None:
        """Do nothing: nothing is held open."""
