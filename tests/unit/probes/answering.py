"""A node that answers by functions, for what a probe runs; it fails on any other command."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from boardcluster.errors import RemoteError, RemoteTimeoutError
from boardcluster.probes.base import Site
from boardcluster.records import ProbeMode
from boardcluster.remote.base import ProcessRef
from boardcluster.remote.fake import FakeRemote
from boardcluster.remote.gate import Completed

__all__ = ["RECORDINGS", "Answer", "Answering", "done", "make_site", "recording"]

RECORDINGS = Path(__file__).parent / "recordings"

Answer = Callable[[tuple[str, ...], dict[str, Any]], Completed]
"""Takes the command and, of a node-side program, the request."""


def recording(name: str) -> str:
    return (RECORDINGS / name).read_text()


def done(stdout: str | object = "", *, status: int = 0, stderr: str = "") -> Completed:
    text = stdout if isinstance(stdout, str) else json.dumps(stdout)
    return Completed(
        argv=(),
        returncode=status,
        stdout=text.encode(),
        stderr=stderr.encode(),
        duration_seconds=0.0,
    )


class Answering(FakeRemote):
    """Keys of ``answers`` are programs, and verbs of node-side programs."""

    def __init__(self, answers: Mapping[str, Answer], name: str = "node1") -> None:
        super().__init__(name)
        self.answers = dict(answers)
        self.ran: list[tuple[str, ...]] = []
        self.started: list[tuple[str, ...]] = []
        self.ended: list[list[int]] = []
        self.environments: list[Mapping[str, str]] = []
        self.hanging = ""

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
        words = tuple(argv)
        request: dict[str, Any] = {}
        key = words[0]
        if words[:4] == ("python3", "-I", "-S", "-c"):
            request = json.loads(stdin)
            key = request["do"]
        if key == "end":
            self.ended += request["processes"]
        else:
            self.ran.append(words if not request else (key,))
            self.environments.append(env or {})
        if key == self.hanging:
            raise RemoteTimeoutError(f"{key} did not end within {timeout_seconds:g} s")
        if key not in self.answers:
            raise RemoteError(f"{self.name}: the node was not told about: {' '.join(words)[:200]}")
        answer = self.answers[key](words, request)
        if check and answer.returncode != 0:
            raise RemoteError(f"{self.name}: {key} failed with status {answer.returncode}")
        return answer

    def start(
        self,
        argv: Sequence[str],
        *,
        log: str,
        env: Mapping[str, str] | None = None,
        cwd: str = "/",
    ) -> ProcessRef:
        self.started.append(tuple(argv))
        return ProcessRef(100 + len(self.started), 7)


def make_site(remote: FakeRemote, *, mode: ProbeMode = ProbeMode.QUICK, **changes: Any) -> Site:
    values: dict[str, Any] = {
        "node": remote.name,
        "remote": remote,
        "admin": remote,
        "cores": 4,
        "memory_bytes": 8 << 30,
        "folder": "/data/probe",
        "address": "198.18.0.2",
        "mode": mode,
        "tell": lambda _: None,
    }
    return Site(**{**values, **changes})
