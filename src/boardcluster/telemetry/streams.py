"""What happens on every node now: a relay on each, read by one thread.

See ``relay.py`` for what it says. A relay that ends, because its node is out of reach, is started
again after a while.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from boardcluster.errors import BoardclusterError
from boardcluster.remote.base import StreamingRemote
from boardcluster.remote.gate import Piped
from boardcluster.remote.node_rpc import node_program, without_limits
from boardcluster.telemetry.collector import Target

__all__ = ["NodeStreams", "RelayOrder"]

_RETRY_SECONDS = 10.0
_IDLE_SECONDS = 0.5
_COMM = "boardcl-relay"  # as in agent.py, which does not count such processes
_CHUNK_BYTES = 1 << 16
_LINE_BYTES_MAX = 1 << 20
"""A node may write without ever ending a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayOrder:
    """What to pass on of one node."""

    target: Target
    """The node, and what its agent is asked for."""
    own: bool = True
    """Whether to take samples while no run does."""
    daemons: Sequence[tuple[str, int, int]] = ()
    """Name, process id and start time in ticks of each of its daemons."""
    logs: Sequence[str] = ()
    """Patterns of log files on the node."""
    match: str = ""
    """What a line of a log must hold to be passed on: a regular expression."""


@dataclass(slots=True, kw_only=True)
class _Stream:
    order: RelayOrder
    stack: contextlib.ExitStack | None = None
    piped: Piped | None = None
    rest: bytes = b""
    due_seconds: float = 0.0


@dataclass(slots=True)
class NodeStreams:
    """Relays on nodes, at work until ``close``.

    Args:
        orders: what to pass on, by node.
        take: told of each line in the thread that reads: node, letter and text. The letter is that
            of ``relay.py``, or ``X`` with the reason when a node says nothing any more.
        interval_seconds: from one look of a relay to the next.
    """

    orders: Mapping[str, RelayOrder]
    take: Callable[[str, str, str], None]
    interval_seconds: float = 1.0
    _ending: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _streams: dict[str, _Stream] = field(default_factory=dict)
    _telling: threading.Lock = field(default_factory=threading.Lock)
    """So that the folder that was named last is told last."""
    _folders: dict[str, str] = field(default_factory=dict)
    """Where relays look now, by node; the order's own folder for those that are missing."""

    def start(self) -> None:
        """Start the relays and the thread that reads what they write."""
        self._streams = {name: _Stream(order=order) for name, order in self.orders.items()}
        self._thread = threading.Thread(target=self._read, name="streams of nodes", daemon=True)
        self._thread.start()

    def look_in(self, node: str, folder: str) -> None:
        """Let a relay look for samples of runs in another folder from now on.

        One that is only being started, or that is started again, looks there, too.
        """
        with self._telling:
            self._folders[node] = folder
            if (stream := self._streams.get(node)) is not None:
                _tell_folder(stream, folder)

    def close(self) -> None:
        """End the relays and the thread."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join()

    def _read(self) -> None:
        streams = self._streams
        with selectors.DefaultSelector() as selector:
            try:
                while not self._ending.is_set():
                    self._start_missing(streams, selector)
                    if not selector.get_map():
                        self._ending.wait(_IDLE_SECONDS)
                        continue
                    for key, _ in selector.select(_IDLE_SECONDS):
                        self._take_from(str(key.data), streams[str(key.data)], selector)
            finally:
                for stream in streams.values():
                    if stream.stack is not None:
                        stream.stack.close()

    def _start_missing(
        self, streams: Mapping[str, _Stream], selector: selectors.BaseSelector
    ) -> None:
        now = time.monotonic()
        for name, stream in streams.items():
            if stream.stack is not None or now < stream.due_seconds:
                continue
            stack = contextlib.ExitStack()
            folder = self._folders.get(name, stream.order.target.folder)
            try:
                stream.piped = stack.enter_context(self._relay(stream.order, folder))
            except BoardclusterError as error:
                stack.close()
                stream.due_seconds = now + _RETRY_SECONDS
                self.take(name, "X", error.message.partition("\n")[0])
                continue
            stream.stack, stream.rest = stack, b""
            selector.register(stream.piped.output, selectors.EVENT_READ, name)
            with self._telling:
                if (now_in := self._folders.get(name, folder)) != folder:  # named while it started
                    _tell_folder(stream, now_in)

    def _relay(self, order: RelayOrder, folder: str) -> contextlib.AbstractContextManager[Piped]:
        remote = without_limits(order.target.remote)
        assert isinstance(remote, StreamingRemote)  # noqa: S101  every kind of node can
        package = "boardcluster.telemetry"
        request = {
            "agent": node_program("agent", package=package),
            "sample": dict(order.target.request),
            "folder": folder,
            "own": order.own,
            "interval_seconds": self.interval_seconds,
            "daemons": list(order.daemons),
            "logs": list(order.logs),
            "match": order.match,
            "comm": _COMM,
        }
        program = node_program("relay", package=package)
        return remote.streaming(
            ["python3", "-I", "-S", "-c", program], stdin=f"{json.dumps(request)}\n".encode()
        )

    def _take_from(self, name: str, stream: _Stream, selector: selectors.BaseSelector) -> None:
        assert stream.piped is not None  # noqa: S101  it was registered
        try:
            data = os.read(stream.piped.output, _CHUNK_BYTES)
        except BlockingIOError:
            return
        *lines, stream.rest = (stream.rest + data).split(b"\n")
        for line in lines:
            letter, _, text = line.decode(errors="replace").partition(" ")
            self.take(name, letter, text)
        if data and len(stream.rest) <= _LINE_BYTES_MAX:
            return
        selector.unregister(stream.piped.output)
        if stream.stack is not None:
            stream.stack.close()
        stream.stack, stream.piped, stream.due_seconds = (
            None,
            None,
            time.monotonic() + _RETRY_SECONDS,
        )
        self.take(name, "X", "it cannot be reached")


def _tell_folder(stream: _Stream, folder: str) -> None:
    """Tell a relay where to look; nothing if there is none."""
    piped = stream.piped
    if piped is not None:
        with contextlib.suppress(OSError, ValueError):  # it ended a moment ago
            piped.input.write(f"{json.dumps({'folder': folder})}\n".encode())
            piped.input.flush()
