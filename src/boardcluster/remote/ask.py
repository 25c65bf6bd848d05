"""Ask a node something through the program in nodeside.py."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from boardcluster.errors import RemoteError
from boardcluster.remote.base import ProcessRef, Remote

__all__ = [
    "HttpAnswer",
    "ProcessView",
    "ask",
    "end_processes",
    "http",
    "http_get_all",
    "listening",
    "processes",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessView:
    """A process as its node sees it.

    Attributes:
        alive: whether exactly this process still runs.
        resident_bytes: resident set, shared pages counted in full.
        proportional_bytes: resident set, shared pages divided by their users.
    """

    alive: bool
    resident_bytes: int
    proportional_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAnswer:
    """An answer of a daemon.

    Attributes:
        status: HTTP status; 0 when nobody answered.
        body: the body, or why nobody answered.
        location: the Location header, if any.
    """

    status: int
    body: str
    location: str | None

    def json(self) -> Any:
        """Parse the body.

        Raises:
            RemoteError: it is not JSON.
        """
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise RemoteError(
                f"a daemon answered with something that is not JSON: {self.body[:200]!r}"
            ) from error


@functools.cache
def _program() -> str:
    return resources.files("boardcluster.remote").joinpath("nodeside.py").read_text()


def ask(remote: Remote, request: dict[str, Any], *, timeout_seconds: float = 60.0) -> Any:
    """Send one request to the node-side program and return its answer.

    Raises:
        RemoteError: the node cannot be reached or the program failed.
    """
    done = remote.run(
        ["python3", "-I", "-S", "-c", _program()],
        stdin=json.dumps(request).encode(),
        timeout_seconds=timeout_seconds,
    )
    return json.loads(done.stdout)


def processes(remote: Remote, refs: list[ProcessRef]) -> list[ProcessView]:
    """Look at processes of a node, in the order given."""
    rows = ask(remote, {"do": "processes", "processes": [[r.pid, r.start_ticks] for r in refs]})
    return [ProcessView(**row) for row in rows]


def end_processes(remote: Remote, refs: list[ProcessRef], *, grace_seconds: float) -> int:
    """End exactly these processes; return how many had to be killed."""
    request = {
        "do": "end",
        "processes": [[r.pid, r.start_ticks] for r in refs],
        "grace_seconds": grace_seconds,
    }
    answer = ask(remote, request, timeout_seconds=grace_seconds + 30)
    return int(answer["killed"])


def listening(remote: Remote, ports: list[int]) -> list[int]:
    """Return those of the ports that somebody on the node listens on."""
    return list(ask(remote, {"do": "listening", "ports": ports}))


def http(
    remote: Remote,
    method: str,
    url: str,
    *,
    body: str | None = None,
    headers: dict[str, str] | None = None,
    source: Path | None = None,
    target: Path | None = None,
    timeout_seconds: float = 20.0,
) -> HttpAnswer:
    """Make one HTTP request from the node; never raises for what the daemon answers."""
    item: dict[str, Any] = {
        "method": method,
        "url": url,
        "body": body,
        "headers": headers or {},
        "source": str(source) if source else None,
        "target": str(target) if target else None,
        "timeout": timeout_seconds,
    }
    patience_seconds = 3600.0 if source or target else timeout_seconds + 10
    (row,) = ask(remote, {"do": "http", "requests": [item]}, timeout_seconds=patience_seconds)
    return HttpAnswer(**row)


def http_get_all(
    remote: Remote, urls: list[str], *, timeout_seconds: float = 5.0
) -> list[HttpAnswer]:
    """Fetch several small documents from the node in one go, in the order given."""
    items = [{"method": "GET", "url": url, "timeout": timeout_seconds} for url in urls]
    rows = ask(
        remote,
        {"do": "http", "requests": items},
        timeout_seconds=timeout_seconds * len(urls) + 10,
    )
    return [HttpAnswer(**row) for row in rows]
