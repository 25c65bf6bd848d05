"""Ask a node something through the program in node_agent.py."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib import resources
from typing import Any

from boardcluster.errors import RemoteError
from boardcluster.remote.base import LimitedRemote, ProcessRef, Remote
from boardcluster.remote.gate import Completed
from boardcluster.waiting import DATA_SECONDS_MOST

__all__ = [
    "CacheDrop",
    "HttpAnswer",
    "ProcessView",
    "Reached",
    "Reaching",
    "StorageTotals",
    "Trimmed",
    "boot_of",
    "drop_caches",
    "end_marked",
    "end_processes",
    "excerpt",
    "hottest_celsius",
    "http",
    "http_get_all",
    "json_of",
    "listening",
    "node_program",
    "processes",
    "reach",
    "rpc",
    "start_detached",
    "storage",
    "trim",
    "without_limits",
]

_SLOW_SECONDS = 900.0
"""For what waits on storage: writing gigabytes back, or discarding a whole card's free blocks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessView:
    """A process as its node sees it."""

    alive: bool
    """Whether exactly this process still runs."""
    resident_bytes: int
    """Resident set, shared pages counted in full."""
    proportional_bytes: int
    """Resident set, shared pages divided by their users."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAnswer:
    """An answer of a daemon."""

    status: int
    """HTTP status; 0 when nobody answered."""
    body: str
    """The body, or why nobody answered."""
    location: str | None
    """The Location header, if any."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageTotals:
    """What the processes of a node have read and written, by the kernel's accounting.

    Source: Linux, Documentation/filesystems/proc.rst, ``/proc/PID/io``.
    """

    read_bytes: int
    """Fetched from storage, so not found in the page cache."""
    written_bytes: int
    """As ``charged_bytes``, but of each process no more than it passed to write calls."""
    charged_bytes: int
    """Made dirty in the page cache, or written directly. The kernel charges a whole folio when a
    few bytes of it are written after it was clean."""
    cancelled_bytes: int
    """Of those, bytes that were deleted before they got to storage."""
    read_call_bytes: int
    """Asked for in read calls, from anything: files, cache, sockets, pipes."""
    written_call_bytes: int
    """Passed to write calls, to anything."""
    unreadable_processes: int
    """Processes of other users, which are not in the sums."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheDrop:
    """Whether a kernel dropped its page cache."""

    dropped: bool
    """Whether it did."""
    reason: str
    """Why it did not."""
    boot_id: str
    """The kernel's boot; nodes that share a kernel have the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trimmed:
    """What became of one file system's unused blocks."""

    mount: str
    """Where it is mounted."""
    device: str
    """Its block device as ``MAJOR:MINOR``."""
    trimmed_bytes: int
    """Bytes that were discarded."""
    reason: str
    """Why none were; empty if the file system did as asked."""


class Reached(StrEnum):
    """What became of a TCP connection.

    OK: made. REFUSED: the host answers and nobody listens there. UNREACHABLE: no answer in time,
    no route, or no such host.
    """

    OK = "ok"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaching:
    """One try at a TCP connection."""

    state: Reached
    """What became of it."""
    words: str
    """The system's words, unless it was made."""


@functools.cache
def node_program(name: str = "node_agent", *, package: str = "boardcluster.remote") -> str:
    """Return the text of a program that runs on nodes, a file of this folder or another's."""
    return resources.files(package).joinpath(f"{name}.py").read_text()


def without_limits(remote: Remote) -> Remote:
    """Return the way to run on a node what only watches it."""
    return remote.unlimited if isinstance(remote, LimitedRemote) else remote


def rpc(
    remote: Remote,
    request: dict[str, Any],
    *,
    program: str = "node_agent",
    timeout_seconds: float = 60.0,
) -> Any:
    """Send one request to a node-side program, a file of this folder, and return its answer.

    An emulated board with limits is not charged for it, unless it starts something.

    Raises:
        RemoteError: the node cannot be reached, the program failed, or a login script of the node
            writes into its answer.
    """
    asked = remote if request.get("do") == "start" else without_limits(remote)
    done = asked.run(
        ["python3", "-I", "-S", "-c", node_program(program)],
        stdin=json.dumps(request).encode(),
        timeout_seconds=timeout_seconds,
    )
    return json_of(remote, done)


def json_of(remote: Remote, done: Completed) -> Any:
    """Return the JSON that a program of ours wrote on a node.

    Raises:
        RemoteError: a login script of the node writes into its answer.
    """
    try:
        return json.loads(done.stdout)
    except ValueError as error:
        raise RemoteError(
            f"{remote.name}: the answer is not JSON: {done.text[:200]!r}",
            hint=f"make the shell's start-up files on {remote.name} (.bashrc) print nothing",
        ) from error


def start_detached(
    remote: Remote,
    argv: Sequence[str],
    *,
    log: str,
    env: Mapping[str, str] | None = None,
    cwd: str = "/",
) -> ProcessRef:
    """Do ``Remote.start`` through the node-side program.

    Raises:
        RemoteError: it could not be started, or ended at once.
    """
    request = {"do": "start", "argv": list(argv), "log": log, "env": dict(env or {}), "cwd": cwd}
    answer = rpc(remote, request)
    if answer["start_ticks"] is None:
        raise RemoteError(f"{remote.name}: {argv[0]} ended immediately", hint=f"see {log}")
    return ProcessRef(int(answer["pid"]), int(answer["start_ticks"]))


def processes(remote: Remote, refs: list[ProcessRef]) -> list[ProcessView]:
    """Look at processes of a node, in the order given."""
    rows = rpc(remote, {"do": "processes", "processes": [[r.pid, r.start_ticks] for r in refs]})
    return [ProcessView(**row) for row in rows]


def end_processes(remote: Remote, refs: list[ProcessRef], *, grace_seconds: float) -> int:
    """End exactly these processes; return how many had to be killed."""
    request = {
        "do": "end",
        "processes": [[r.pid, r.start_ticks] for r in refs],
        "grace_seconds": grace_seconds,
    }
    answer = rpc(remote, request, timeout_seconds=grace_seconds + 30)
    return int(answer["killed"])


def end_marked(remote: Remote, mark: str, *, grace_seconds: float, timeout_seconds: float) -> None:
    """End every process of a node that carries a mark.

    Args:
        remote: the node.
        mark: the mark, a variable of their environment as ``NAME=VALUE``.
        grace_seconds: from asking them to end until they are killed.
        timeout_seconds: for all of it.
    """
    request = {"do": "end_marked", "mark": mark, "grace_seconds": grace_seconds}
    rpc(remote, request, timeout_seconds=timeout_seconds)


def listening(remote: Remote, ports: list[int]) -> list[int]:
    """Return those of the ports that somebody on the node listens on."""
    return list(rpc(remote, {"do": "listening", "ports": ports}))


def http(
    remote: Remote,
    method: str,
    url: str,
    *,
    body: str | None = None,
    headers: dict[str, str] | None = None,
    source: str = "",
    target: str = "",
    timeout_seconds: float = 20.0,
) -> HttpAnswer:
    """Make one HTTP request from the node; never raises for what the daemon answers.

    Args:
        remote: the node.
        method: the method.
        url: the address, as the node knows it.
        body: text to send.
        headers: further headers.
        source: file of the node to send; empty for none.
        target: file of the node for what is received; empty to return it.
        timeout_seconds: for each answer of the daemon.
    """
    item: dict[str, Any] = {
        "method": method,
        "url": url,
        "body": body,
        "headers": headers or {},
        "source": source or None,
        "target": target or None,
        "timeout": timeout_seconds,
    }
    patience_seconds = DATA_SECONDS_MOST if source or target else timeout_seconds + 10
    (row,) = rpc(remote, {"do": "http", "requests": [item]}, timeout_seconds=patience_seconds)
    return HttpAnswer(**row)


def http_get_all(
    remote: Remote,
    urls: list[str],
    *,
    timeout_seconds: float = 5.0,
    total_seconds: float = math.inf,
) -> list[HttpAnswer]:
    """Fetch several small documents from the node in one go, in the order given.

    Args:
        remote: the node.
        urls: what is fetched, one after the other.
        timeout_seconds: for each.
        total_seconds: for all of them.

    Raises:
        RemoteTimeoutError: together they took too long.
    """
    items = [{"method": "GET", "url": url, "timeout": timeout_seconds} for url in urls]
    longest_seconds = min(total_seconds, timeout_seconds * len(urls) + 10)
    rows = rpc(remote, {"do": "http", "requests": items}, timeout_seconds=longest_seconds)
    return [HttpAnswer(**row) for row in rows]


def boot_of(remote: Remote) -> str:
    """Return the boot id of the kernel that a node runs on."""
    return str(rpc(remote, {"do": "boot"})["boot_id"])


def storage(remote: Remote) -> StorageTotals:
    """Return what the node's processes have read and written, ended children included."""
    row = rpc(remote, {"do": "storage"})
    return StorageTotals(
        read_bytes=row["read_bytes"],
        written_bytes=row["bounded"],
        charged_bytes=row["write_bytes"],
        cancelled_bytes=row["cancelled_write_bytes"],
        read_call_bytes=row["rchar"],
        written_call_bytes=row["wchar"],
        unreadable_processes=row["unreadable"],
    )


def drop_caches(remote: Remote) -> CacheDrop:
    """Write back and drop the page cache of the kernel that a node runs on, if that is allowed."""
    return CacheDrop(**rpc(remote, {"do": "drop_caches"}, timeout_seconds=_SLOW_SECONDS))


def trim(remote: Remote, folders: Sequence[str], *, skip: Sequence[str] = ()) -> list[Trimmed]:
    """Discard the unused blocks of every file system that holds one of the folders.

    The folders need not exist. Devices in ``skip``, as ``MAJOR:MINOR``, are left out.
    """
    request = {"do": "trim", "folders": list(folders), "skip": list(skip)}
    return [Trimmed(**row) for row in rpc(remote, request, timeout_seconds=_SLOW_SECONDS)]


def hottest_celsius(remote: Remote) -> float | None:
    """Return the temperature of the node's hottest sensor; None where there is none."""
    value = rpc(remote, {"do": "temperatures"})["hottest_celsius"]
    return None if value is None else float(value)


def excerpt(
    remote: Remote, source: str, target: str, *, file_bytes: int, total_bytes: int
) -> tuple[int, int] | None:
    """Gather the files below a folder of a node in another of its folders, within a bound.

    Args:
        remote: the node.
        source: the folder.
        target: where to gather them, on the same file system; what was there is deleted.
        file_bytes: of a longer file the end is taken.
        total_bytes: of all together; what does not fit is left out.

    Returns:
        How many files were cut, and how many left out; None if there is no such folder.
    """
    request = {
        "do": "excerpt",
        "source": source,
        "target": target,
        "file_bytes": file_bytes,
        "total_bytes": total_bytes,
    }
    answer = rpc(remote, request, timeout_seconds=_SLOW_SECONDS)
    return None if answer is None else (int(answer["cut"]), int(answer["left_out"]))


def reach(
    remote: Remote, targets: Sequence[tuple[str, int]], *, timeout_seconds: float
) -> list[Reaching]:
    """Try a TCP connection from the node to each (host, port), all at once, in the order given."""
    request = {
        "do": "reach",
        "targets": [list(target) for target in targets],
        "timeout_seconds": timeout_seconds,
    }
    rows = rpc(remote, request, timeout_seconds=timeout_seconds + 20)
    return [Reaching(state=Reached(row["state"]), words=row["words"]) for row in rows]
