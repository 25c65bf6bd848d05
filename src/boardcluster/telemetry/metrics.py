"""Serve what nodes do now to Prometheus: an agent on each, asked for news when somebody looks."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from boardcluster.cluster.boards import each_node
from boardcluster.errors import AddressError, BoardclusterError, ProbeOutputError
from boardcluster.remote.ask import end_processes
from boardcluster.remote.base import ProcessRef
from boardcluster.telemetry.collector import Target, start_agent
from boardcluster.telemetry.exposition import CONTENT_TYPE, Latest, NodeState, exposition

__all__ = ["ADDRESS", "Exporter", "Server"]

ADDRESS = "127.0.0.1"
"""Only this machine may look: the page names every node and daemon."""

_LOOK_SECONDS = 10.0
"""A node that does not answer in this time is not up."""
_FLUSH_SECONDS = 5.0  # the agent writes so often, see agent.py
_LATE_INTERVALS = 3
_RETRY_SECONDS = 30.0
_GRACE_SECONDS = 3.0
_TOGETHER_SECONDS = 0.5
"""Looks that follow each other faster than this get the same answer."""
_ROTATE_BYTES = 2 << 20
_MOST_BYTES = 4 * _ROTATE_BYTES  # an agent slows down when half of it is full
_ROTATE_SECONDS = 3600.0
_LONGEST_SECONDS = 2 * _ROTATE_SECONDS
"""The agents of an exporter that was killed end by themselves after this."""
_MARK = {"BOARDCLUSTER_METRICS": "1"}


@dataclass(slots=True, kw_only=True)
class _Watched:
    """A node with its agent.

    Attributes:
        target: the node.
        file: the agent's file, without ending.
        process: the agent; None while there is none.
        started_seconds: when it was started.
        offset: bytes of its file that were read.
        latest: what they said.
        news_seconds: when there was something new.
        next_seconds: before this it is not tried again.
        error: why it is not up, in one line.
    """

    target: Target
    file: str
    process: ProcessRef | None = None
    started_seconds: float = 0.0
    offset: int = 0
    latest: Latest = field(default_factory=Latest)
    news_seconds: float = 0.0
    next_seconds: float = 0.0
    error: str = ""


class Exporter:
    """Agents on nodes, and what they last wrote.

    Args:
        targets: the nodes by name.
        port: makes the names of the agents' files differ from those of another exporter.
        interval_seconds: from one sample to the next.
    """

    def __init__(
        self, targets: Mapping[str, Target], *, port: int, interval_seconds: float
    ) -> None:
        self._interval_seconds = interval_seconds
        self._nodes = {
            name: _Watched(target=target, file=f"{target.folder}/metrics-{port}")
            for name, target in targets.items()
        }
        self._lock = threading.Lock()
        self._looked_seconds = -_TOGETHER_SECONDS

    def look(self) -> str:
        """Ask every node for news; return all of it in Prometheus' text format."""
        with self._lock:
            now = time.monotonic()
            if now - self._looked_seconds >= _TOGETHER_SECONDS:
                each_node(self._nodes, self._look_at)
                self._looked_seconds = time.monotonic()
            return exposition(
                NodeState(
                    node=name,
                    scope=str(watched.target.request["scope"]),
                    cores=watched.target.cores,
                    up=not watched.error,
                    values=watched.latest.values,
                )
                for name, watched in self._nodes.items()
            )

    def errors(self) -> dict[str, str]:
        """Why nodes are not up, in one line each."""
        return {name: row.error for name, row in self._nodes.items() if row.error}

    def close(self) -> None:
        """End the agents and remove their files; a node that does not answer is left alone."""
        with self._lock:
            each_node(self._nodes, lambda name: self._end(self._nodes[name]))

    def _look_at(self, name: str) -> None:
        """Read what an agent wrote; start one where there is none."""
        watched = self._nodes[name]
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
        except BoardclusterError as error:
            self._lost(watched, error.message.splitlines()[0])
            return
        late_seconds = _LATE_INTERVALS * self._interval_seconds + _FLUSH_SECONDS
        if time.monotonic() - watched.news_seconds > late_seconds:
            self._lost(watched, f"no sample for {late_seconds:.0f} s")
        elif watched.latest.samples:
            watched.error = ""

    def _start(self, watched: _Watched) -> None:
        # One that an exporter left behind goes on writing to a file without a name.
        remote = watched.target.remote
        remote.run(
            ["rm", "-f", f"{watched.file}.txt", f"{watched.file}.log"],
            timeout_seconds=_LOOK_SECONDS,
        )
        watched.latest, watched.offset = Latest(), 0
        watched.error = watched.error or "its agent has just been started"
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
        watched.error = reason
        watched.latest = Latest()
        watched.next_seconds = time.monotonic() + _RETRY_SECONDS
        self._end(watched)

    def _end(self, watched: _Watched) -> None:
        process, watched.process = watched.process, None
        if process is None:
            return
        remote = watched.target.remote
        try:
            end_processes(remote, [process], grace_seconds=_GRACE_SECONDS)
            remote.run(
                ["rm", "-f", f"{watched.file}.txt", f"{watched.file}.log"],
                timeout_seconds=_LOOK_SECONDS,
            )
        except BoardclusterError as error:
            watched.error = error.message.splitlines()[0]


class Server:
    """An HTTP server that answers ``/metrics``, on the loopback address alone.

    Args:
        port: where; 0 for any that is free.

    Raises:
        AddressError: the port is in use.
    """

    def __init__(self, port: int) -> None:
        self._exporter: Exporter | None = None
        try:
            self._server = ThreadingHTTPServer((ADDRESS, port), self._handler())
        except OSError as error:
            raise AddressError(
                f"port {port} of this machine cannot be used: {error.strerror}",
                hint="choose another with --port",
            ) from error
        self._server.daemon_threads = True

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._server.server_address[1])

    def serve(self, exporter: Exporter) -> None:
        """Answer until an exception ends it: Ctrl-C, SIGTERM."""
        self._exporter = exporter
        try:
            self._server.serve_forever(poll_interval=0.5)
        finally:
            self.close()

    def stop(self) -> None:
        """Make ``serve``, in another thread, return."""
        self._server.shutdown()

    def close(self) -> None:
        """Give the port back."""
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            timeout = _LOOK_SECONDS

            def do_GET(self) -> None:
                server.answer(self)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Say nothing: Prometheus asks every few seconds."""

        return Handler

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        """Answer one request."""
        host = request.headers.get("Host", ADDRESS).partition(":")[0]
        if host not in (ADDRESS, "localhost"):  # a page of elsewhere that resolves to this machine
            _send(request, HTTPStatus.FORBIDDEN, "only for this machine\n")
        elif request.path.partition("?")[0] != "/metrics" or self._exporter is None:
            _send(request, HTTPStatus.NOT_FOUND, "see /metrics\n")
        else:
            _send(request, HTTPStatus.OK, self._exporter.look())


def _send(request: BaseHTTPRequestHandler, status: HTTPStatus, text: str) -> None:
    data = text.encode()
    request.send_response(status)
    request.send_header("Content-Type", CONTENT_TYPE)
    request.send_header("Content-Length", str(len(data)))
    request.end_headers()
    request.wfile.write(data)
