"""Small servers on loopback that answer as meters do, or as they should not."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from boardcluster.records import MeterSpec
from boardcluster.telemetry.meters.base import Meter
from boardcluster.telemetry.meters.registry import kind_of, settings_of

RECORDED = Path(__file__).parent / "recorded"


def recorded(name: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((RECORDED / f"{name}.json").read_text())
    return value


def opened(kind: str, **options: str) -> Meter:
    spec = MeterSpec(name="meter", kind=kind, nodes=("pi0",), options=options)
    return kind_of(spec).open(settings_of(spec), None)


@dataclass
class Answer:
    """One answer over HTTP."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    drip_seconds: float = 0.0

    @classmethod
    def of(cls, value: Any, **more: Any) -> Answer:
        return cls(body=json.dumps(value).encode(), **more)


@dataclass
class Request:
    method: str
    path: str
    headers: Any
    body: bytes


class _Handler(BaseHTTPRequestHandler):
    def _answer(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        request = Request(self.command, self.path, self.headers, self.rfile.read(length))
        server: Any = self.server
        server.requests.append(request)
        answer = server.answer(request)
        with contextlib.suppress(OSError):
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            if not answer.drip_seconds:
                self.wfile.write(answer.body)
                return
            for byte in answer.body:
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
                time.sleep(answer.drip_seconds)

    do_GET = do_POST = _answer  # noqa: N815  the server's names

    def log_message(self, *arguments: Any) -> None:
        del arguments


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, answer: Callable[[Request], Answer]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.requests: list[Request] = []

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away in the middle is part of a test, and no news."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextlib.contextmanager
def web(answer: Callable[[Request], Answer]) -> Iterator[Server]:
    with Server(answer) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@contextlib.contextmanager
def tcp(answer: Callable[[bytes], bytes]) -> Iterator[int]:
    """Serve the framing of the old Kasa protocol: four bytes of length, then the message."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ending = threading.Event()
        listener.settimeout(0.05)

        def serve() -> None:
            while not ending.is_set():
                try:
                    link, _ = listener.accept()
                except TimeoutError:
                    continue
                with link:
                    link.settimeout(2)
                    (length,) = struct.unpack(">I", link.recv(4))
                    link.sendall(answer(link.recv(length)))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield int(listener.getsockname()[1])
        finally:
            ending.set()
            thread.join()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
