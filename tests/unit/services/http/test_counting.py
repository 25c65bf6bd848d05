"""What a server has counted, asked for straight."""

import socket
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from boardcluster.services.http import counting, faulting

STATUS = """\
Active connections: 1
server accepts handled requests
 7 7 42
Reading: 0 Writing: 1 Waiting: 0
"""


class _Status(BaseHTTPRequestHandler):
    """Answers as nginx's stub_status does."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(STATUS.encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def status() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), _Status) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/status"
        server.shutdown()
        thread.join()


def test_a_server_is_asked_past_the_proxy_of_the_environment(
    status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment of programs on nodes keeps the proxy, which what is fetched may need."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(urllib.request, "_opener", None)  # it keeps the proxies of its first use

    assert counting.server(status) == 42
    assert faulting.requests_of(status, r"\d+ \d+ (\d+)", 2) == 42


def test_a_server_that_is_away_keeps_nobody_from_counting() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    assert counting.server(f"http://127.0.0.1:{port}/status") == -1
