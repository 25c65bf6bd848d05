"""Serve what nodes do now to Prometheus: an agent on each, asked for news again and again.

Each node has a thread of its own, so that one that hangs holds up neither the others nor an answer
to Prometheus: that is made from what was seen last.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from boardcluster.errors import AddressError, BoardclusterError, ProbeOutputError
from boardcluster.remote.base import ProcessRef
from boardcluster.remote.gate import end_programs
from boardcluster.remote.node_rpc import end_processes
from boardcluster.telemetry.collector import Target, start_agent
from boardcluster.telemetry.exposition import CONTENT_TYPE, Latest, NodeState, exposition
from boardcluster.waiting import wait_until

__all__ = ["ADDRESS", "Exporter", "Server"]

ADDRESS = "127.0.0.1"
"""Only this machine may look: the page names every node and daemon."""

_LOOK_SECONDS = 10.0
"""A node that does not answer in this time is not up."""
_FLUSH_SECONDS = 5.0  # the agent writes at least so often, see agent.py
_LATE_INTERVALS = 3
_STALE_INTERVALS = 3
"""What was seen longer ago is not served."""
_RETRY_SECONDS = 30.0
_FIRST_SECONDS = 1.0
"""An agent that has just been started is asked so often."""
_GRACE_SECONDS = 3.0
_CLOSE_SECONDS = 15.0
"""Longest wait for nodes at the end; one that still does not answer is left behind."""
_LEAVE_SECONDS = 0.5
"""For the programs that still ask it to end."""
_ROTATE_BYTES = 2 << 20
_MOST_BYTES = 4 * _ROTATE_BYTES  # an agent slows down when half of it is full
_ROTATE_SECONDS = 3600.0
_LONGEST_SECONDS = 2 * _ROTATE_SECONDS
"""The agents of an exporter that was killed end by themselves after this."""
_MARK = {"BOARDCLUSTER_METRICS": "1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What a node was last seen to do; replaced as a whole, so that it is read without a lock."""

    values: Mapping[str, float] = field(default_factory=dict)
    """By column."""
    error: str = ""
    """Why it is not up, in one line; empty if it is."""
    seconds: float = 0.0
    """When, by the monotonic clock."""


_NOT_YET = _Seen(error="it has not answered yet")


@dataclass(slots=True, kw_only=True)
class _Watched:
    """A node with its agent; all but ``seen`` is its own thread's."""

    target: Target
    """The node."""
    file: str
    """The agent's file, without ending."""
    process: ProcessRef | None = None
    """The agent; None while there is none."""
    started_seconds: float = 0.0
    """When it was started."""
    offset: int = 0
    """Bytes of its file that were read."""
    latest: Latest = field(default_factory=Latest)
    """What they said."""
    news_seconds: float = 0.0
    """When there was something new."""
    next_seconds: float = 0.0
    """Before this it is not tried again."""
    seen: _Seen = _NOT_YET
    """What is served."""


class Exporter:
    """Agents on nodes, and what they last wrote.

    Args:
        targets: the nodes by name.
        port: makes the names of the agents' files differ from those of another exporter.
        interval_seconds: from one sample to the next, and from one look to the next.
    """

    def __init__(
        self, targets: Mapping[str, Target], *, port: int, interval_seconds: float
    ) -> None:
        self._interval_seconds = interval_seconds
        self._nodes = {
            name: _Watched(target=target, file=f"{target.folder}/metrics-{port}")
            for name, target in targets.items()
        }
        self._ending = threading.Event()
        self._leaving = threading.Event()
        self._threads = [
            threading.Thread(target=self._watch, args=(row,), name=f"metrics {name}", daemon=True)
            for name, row in self._nodes.items()
        ]

    def start(self) -> None:
        """Start an agent on every node, and begin to look at them."""
        for thread in self._threads:
            thread.start()

    def settle(self, *, longest_seconds: float) -> None:
        """Wait until every node has given a sample or failed."""
        wait_until(
            lambda: all(row.seen is not _NOT_YET for row in self._nodes.values()),
            timeout_seconds=longest_seconds,
            poll_seconds=0.05,
        )

    def look(self) -> str:
        """Return what every node was last seen to do, in Prometheus' text format; asks none."""
        seen = {name: self._now(row.seen) for name, row in self._nodes.items()}
        return exposition(
            NodeState(
                node=name,
                scope=str(watched.target.request["scope"]),
                cores=watched.target.cores,
                up=not seen[name].error,
                values=seen[name].values,
            )
            for name, watched in self._nodes.items()
        )

    def errors(self) -> dict[str, str]:
        """Why nodes are not up, in one line each."""
        seen = {name: self._now(row.seen) for name, row in self._nodes.items()}
        return {name: row.error for name, row in seen.items() if row.error}

    def _now(self, seen: _Seen) -> _Seen:
        """What was seen of a node, if that is not too long ago."""
        age_seconds = time.monotonic() - seen.seconds
        if seen.error or age_seconds <= _STALE_INTERVALS * self._interval_seconds:
            return seen
        return _Seen(error=f"it has not answered for {age_seconds:.0f} s")

    def close(self) -> None:
        """End the agents and remove their files; a node that does not answer is left alone."""
        self._ending.set()
        deadline = time.monotonic() + _CLOSE_SECONDS
        started = [thread for thread in self._threads if thread.ident is not None]
        for thread in started:
            thread.join(max(0.0, deadline - time.monotonic()))
        late = [thread for thread in started if thread.is_alive()]
        if late:
            self._leaving.set()
            end_programs()
            time.sleep(_LEAVE_SECONDS)

    def _watch(self, watched: _Watched) -> None:
        """Look at one node until the end, then end its agent. Runs in a thread of its own."""
        due = time.monotonic()
        while not self._ending.is_set():
            self._look_at(watched)
            pause_seconds = self._interval_seconds
            if watched.process is not None and not watched.latest.samples:
                pause_seconds = min(pause_seconds, _FIRST_SECONDS)
            due = max(due + pause_seconds, time.monotonic())
            self._ending.wait(due - time.monotonic())
        self._end(watched)

    def _look_at(self, watched: _Watched) -> None:
        """Read what an agent wrote; start one where there is none."""
        now = time.monotonic()
        if watched.process is None and now < watched.next_seconds:
            return
        try:
            old = now - watched.started_seconds > _ROTATE_SECONDS
            if watched.process is not None and (old or watched.offset > _ROTATE_BYTES):
                self._end(watched)
            if watched.process is None:
                self._start(watched)
            self._read(watched)
        except Exception as error:  # noqa: BLE001  whatever a node does must not end its thread
            self._lost(watched, _line(error))
            return
        late_seconds = _LATE_INTERVALS * self._interval_seconds + _FLUSH_SECONDS
        if time.monotonic() - watched.news_seconds > late_seconds:
            self._lost(watched, f"no sample for {late_seconds:.0f} s")
        elif watched.latest.samples:
            watched.seen = _Seen(values=dict(watched.latest.values), seconds=time.monotonic())

    def _start(self, watched: _Watched) -> None:
        # One that an exporter left behind goes on writing to a file without a name.
        self._remove(watched)
        watched.latest, watched.offset = Latest(), 0
        watched.process = start_agent(
            watched.target,
            watched.file,
            _MARK,
            interval_seconds=self._interval_seconds,
            longest_seconds=_LONGEST_SECONDS,
            most_bytes=_MOST_BYTES,
        )
        watched.started_seconds = watched.news_seconds = time.monotonic()

    def _read(self, watched: _Watched) -> None:
        done = watched.target.remote.run(
            ["tail", "-c", f"+{watched.offset + 1}", f"{watched.file}.txt"],
            timeout_seconds=_LOOK_SECONDS,
            check=False,
        )
        if done.returncode != 0:
            if watched.latest.samples:
                raise ProbeOutputError(f"{watched.target.remote.name}: its agent's file is gone")
            return  # it was started a moment ago
        if done.stdout:
            # A character of several bytes may be cut; notes alone can hold one.
            watched.latest.feed(done.stdout.decode(errors="replace"))
            watched.offset += len(done.stdout)
            watched.news_seconds = time.monotonic()

    def _lost(self, watched: _Watched, reason: str) -> None:
        """Forget what a node said; its agent is ended if that can be, and started anew later."""
        watched.seen = _Seen(error=reason)
        watched.latest = Latest()
        watched.next_seconds = time.monotonic() + _RETRY_SECONDS
        self._end(watched)

    def _end(self, watched: _Watched) -> None:
        process, watched.process = watched.process, None
        if process is None or self._leaving.is_set():
            return
        try:
            end_processes(watched.target.remote, [process], grace_seconds=_GRACE_SECONDS)
            self._remove(watched)
        except Exception as error:  # noqa: BLE001  likewise
            watched.seen = _Seen(error=_line(error))

    def _remove(self, watched: _Watched) -> None:
        watched.target.remote.run(
            ["rm", "-f", f"{watched.file}.txt", f"{watched.file}.log"],
            timeout_seconds=_LOOK_SECONDS,
        )


def _line(error: Exception) -> str:
    if isinstance(error, BoardclusterError):
        return error.message.partition("\n")[0]
    return f"{type(error).__name__} while reading it"


class Server(ThreadingHTTPServer):
    """An HTTP server that answers ``/metrics``, on the loopback address alone.

    Args:
        port: where; 0 for any that is free.

    Raises:
        AddressError: the port is in use.
    """

    daemon_threads = True

    def __init__(self, port: int) -> None:
        self.exporter: Exporter | None = None
        try:
            super().__init__((ADDRESS, port), _Handler)
        except OSError as error:
            raise AddressError(
                f"port {port} of this machine cannot be used: {error.strerror}",
                hint="choose another with --port",
            ) from error

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self.server_address[1])

    def serve(self, exporter: Exporter) -> None:
        """Answer until an exception ends it: Ctrl-C, SIGTERM, or ``shutdown`` by another thread."""
        self.exporter = exporter
        with self:
            self.serve_forever(poll_interval=0.5)

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of a client that went away before it had its answer."""


class _Handler(BaseHTTPRequestHandler):
    timeout = _LOOK_SECONDS
    server: Server

    def do_GET(self) -> None:
        exporter = self.server.exporter
        host = self.headers.get("Host", ADDRESS).partition(":")[0]
        if host not in (ADDRESS, "localhost"):  # a page of elsewhere that resolves to this machine
            self._send(HTTPStatus.FORBIDDEN, "only for this machine\n")
        elif self.path.partition("?")[0] != "/metrics" or exporter is None:
            self._send(HTTPStatus.NOT_FOUND, "see /metrics\n")
        else:
            self._send(HTTPStatus.OK, exporter.look())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing: Prometheus asks every few seconds."""

    def _send(self, status: HTTPStatus, text: str) -> None:
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
