"""Downloads against a real HTTP server on the loopback interface that misbehaves on request."""

import hashlib
import json
import re
import shutil
import threading
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from boardcluster.errors import BoardclusterError, CapacityError, InstallError, UsageError
from boardcluster.fetch.http import download

CONTENT = bytes(range(256)) * 4000  # 1,024,000 bytes
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Server(ThreadingHTTPServer):
    """Serves one content; each request consumes one of the planned misbehaviours."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content = CONTENT
        self.etag = '"v1"'
        self.ranges = True
        self.length = True
        self.plan: list[Callable[[Handler], bool]] = []
        self.requests: list[tuple[str, str]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/data/flights.bz2?token=secret"

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away in the middle is part of a test, and no news."""


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    cut_bytes: int | None = None

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        pass

    def do_GET(self) -> None:
        server = self.server
        wanted = self.headers.get("Range", "")
        condition = self.headers.get("If-Range", "")
        server.requests.append((wanted, condition))
        self.close_connection = True
        if server.plan and server.plan.pop(0)(self):
            return
        match = re.fullmatch(r"bytes=(\d+)-", wanted)
        start = 0
        if match and server.ranges and condition in ("", server.etag):
            start = int(match[1])
            if start >= len(server.content):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(server.content)}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(206)
            last = len(server.content) - 1
            self.send_header("Content-Range", f"bytes {start}-{last}/{len(server.content)}")
        else:
            self.send_response(200)
        body = server.content[start:]
        if server.length:
            self.send_header("Content-Length", str(len(body)))
        if server.etag:
            self.send_header("ETag", server.etag)
        self.end_headers()
        self.wfile.write(body[: self.cut_bytes])


def cut(size_bytes: int) -> Callable[[Handler], bool]:
    def behave(handler: Handler) -> bool:
        handler.cut_bytes = size_bytes
        return False

    return behave


def status(code: int) -> Callable[[Handler], bool]:
    def behave(handler: Handler) -> bool:
        handler.send_response(code)
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        return True

    return behave


def wrong_range(handler: Handler) -> bool:
    handler.send_response(206)
    handler.send_header("Content-Range", "bytes 7-9/10")
    handler.send_header("Content-Length", "3")
    handler.end_headers()
    handler.wfile.write(b"xyz")
    return True


def hang_up(handler: Handler) -> bool:
    return True


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def fetch(server: Server, folder: Path, **options: object) -> Path:
    arguments: dict[str, object] = {
        "sha256": SHA256,
        "backoff_seconds": 0.001,
        "timeout_seconds": 5.0,
        "opener": urllib.request.build_opener(urllib.request.ProxyHandler({})),
        **options,
    }
    return download(server.url, target=folder / "flights.bz2", **arguments)  # type: ignore[arg-type]


def assert_whole(path: Path) -> None:
    assert path.read_bytes() == CONTENT
    names = {other.name for other in path.parent.iterdir()}
    assert names == {"flights.bz2", "flights.bz2.json", "flights.bz2.lock"}


def test_fetches_once(server: Server, tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []

    path = fetch(
        server, tmp_path, size_bytes=len(CONTENT), progress=lambda *step: seen.append(step)
    )
    again = fetch(server, tmp_path)

    assert again == path
    assert_whole(path)
    assert len(server.requests) == 1
    assert seen[-1] == ("downloading flights.bz2", len(CONTENT), len(CONTENT))


def test_a_connection_dropped_in_the_middle_is_resumed(server: Server, tmp_path: Path) -> None:
    server.plan = [cut(300_000), cut(200_000)]

    assert_whole(fetch(server, tmp_path))
    assert server.requests == [
        ("", ""),
        ("bytes=300000-", '"v1"'),
        ("bytes=500000-", '"v1"'),
    ]


def test_a_later_process_resumes(server: Server, tmp_path: Path) -> None:
    server.plan = [cut(300_000), hang_up, hang_up]
    with pytest.raises(InstallError, match="300000 bytes are kept"):
        fetch(server, tmp_path, attempts=2)

    assert_whole(fetch(server, tmp_path))
    assert server.requests[-1] == ("bytes=300000-", '"v1"')


def test_content_changed_between_two_tries(server: Server, tmp_path: Path) -> None:
    def change(handler: Handler) -> bool:
        server.content, server.etag = CONTENT, '"v2"'
        return False

    server.content = b"z" * 500_000
    server.plan = [cut(100_000), change]

    assert_whole(fetch(server, tmp_path))
    assert server.requests[1] == ("bytes=100000-", '"v1"')


def test_a_server_that_ignores_range(server: Server, tmp_path: Path) -> None:
    server.ranges = False
    server.plan = [cut(300_000)]

    assert_whole(fetch(server, tmp_path))


def test_resume_without_a_usable_validator(server: Server, tmp_path: Path) -> None:
    server.etag = 'W/"weak"'
    server.plan = [cut(300_000)]

    assert_whole(fetch(server, tmp_path))
    assert server.requests[1] == ("bytes=300000-", "")


def test_a_server_that_sends_another_range(server: Server, tmp_path: Path) -> None:
    server.plan = [cut(300_000), wrong_range]

    assert_whole(fetch(server, tmp_path))
    assert server.requests[2] == ("", "")


def test_a_partial_file_longer_than_the_content(server: Server, tmp_path: Path) -> None:
    server.plan = [cut(300_000), hang_up]
    with pytest.raises(InstallError):
        fetch(server, tmp_path, attempts=1)
    with (tmp_path / "flights.bz2.part").open("ab") as stream:
        stream.truncate(len(CONTENT) + 5)

    assert_whole(fetch(server, tmp_path))


def test_a_partial_file_of_another_url_is_not_used(server: Server, tmp_path: Path) -> None:
    (tmp_path / "flights.bz2.part").write_bytes(b"from elsewhere")
    (tmp_path / "flights.bz2.part.json").write_text(
        json.dumps({"url_sha256": "0" * 64, "validator": '"v1"'})
    )

    assert_whole(fetch(server, tmp_path))
    assert server.requests == [("", "")]


def test_corrupt_content_is_fetched_once_more(server: Server, tmp_path: Path) -> None:
    def mend(handler: Handler) -> bool:
        server.content = CONTENT
        return False

    server.content = b"x" + CONTENT[1:]
    server.plan = [lambda handler: False, mend]

    assert_whole(fetch(server, tmp_path))
    assert server.requests == [("", ""), ("", "")]


def test_content_that_stays_corrupt_is_refused(server: Server, tmp_path: Path) -> None:
    server.content = b"x" + CONTENT[1:]

    with pytest.raises(InstallError, match=f"wrong content, twice: expected SHA-256 {SHA256}"):
        fetch(server, tmp_path)

    assert len(server.requests) == 2
    assert {path.name for path in tmp_path.iterdir()} == {"flights.bz2.lock"}


def test_a_corrupt_partial_file_is_found_and_replaced(server: Server, tmp_path: Path) -> None:
    server.plan = [cut(300_000), hang_up]
    with pytest.raises(InstallError):
        fetch(server, tmp_path, attempts=1)
    with (tmp_path / "flights.bz2.part").open("r+b") as stream:
        stream.write(b"damage")

    assert_whole(fetch(server, tmp_path))
    assert server.requests[2:] == [("bytes=300000-", '"v1"'), ("", "")]


def test_a_damaged_target_is_fetched_again(server: Server, tmp_path: Path) -> None:
    (tmp_path / "flights.bz2").write_bytes(CONTENT[:-1])

    assert_whole(fetch(server, tmp_path))


def test_a_target_put_there_by_hand_is_used(server: Server, tmp_path: Path) -> None:
    (tmp_path / "flights.bz2").write_bytes(CONTENT)

    assert_whole(fetch(server, tmp_path))
    assert server.requests == []


@pytest.mark.parametrize("code", [400, 401, 403, 404, 410])
def test_a_refusal_is_final(server: Server, tmp_path: Path, code: int) -> None:
    server.plan = [status(code)]

    with pytest.raises(InstallError, match=f"the server answered {code}") as caught:
        fetch(server, tmp_path)

    assert len(server.requests) == 1
    assert "secret" not in str(caught.value)


def test_an_overloaded_server_is_asked_again(server: Server, tmp_path: Path) -> None:
    server.plan = [status(503), status(429), hang_up]

    assert_whole(fetch(server, tmp_path))


def test_retries_are_bounded(server: Server, tmp_path: Path) -> None:
    server.plan = [status(503)] * 50

    with pytest.raises(InstallError, match="503"):
        fetch(server, tmp_path, attempts=3)

    assert len(server.requests) == 3


def test_a_server_that_trickles_is_bounded_too(server: Server, tmp_path: Path) -> None:
    server.plan = [cut(1)] * 1000

    with pytest.raises(InstallError, match="100 bytes are kept"):
        fetch(server, tmp_path, backoff_seconds=0.0)

    assert len(server.requests) == 100


def test_a_server_that_hangs(server: Server, tmp_path: Path) -> None:
    release = threading.Event()

    def hang(handler: Handler) -> bool:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        release.wait(20)
        return True

    server.plan = [hang]
    try:
        with pytest.raises(InstallError, match="timed out"):
            fetch(server, tmp_path, attempts=1, timeout_seconds=0.2)
    finally:
        release.set()


def test_no_server_at_all(server: Server, tmp_path: Path) -> None:
    with pytest.raises(InstallError, match="refused") as caught:
        download(
            "http://127.0.0.1:9/x",
            target=tmp_path / "flights.bz2",
            sha256=SHA256,
            attempts=2,
            backoff_seconds=0.001,
            opener=urllib.request.build_opener(urllib.request.ProxyHandler({})),
        )

    assert "check the network" in caught.value.hint


@pytest.mark.parametrize("length", [True, False])
def test_another_size_than_expected(server: Server, tmp_path: Path, length: bool) -> None:
    server.length = length

    with pytest.raises(InstallError, match="expected"):
        fetch(server, tmp_path, size_bytes=1000)

    assert not (tmp_path / "flights.bz2.part").exists()


def test_a_server_that_tells_no_length(server: Server, tmp_path: Path) -> None:
    server.length = False

    assert_whole(fetch(server, tmp_path))


def test_a_full_disk_is_foreseen(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = type(shutil.disk_usage(tmp_path))(total=10**9, used=0, free=64_500_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage)

    with pytest.raises(CapacityError, match=r"1\.02 MB \+ 64 MB"):
        fetch(server, tmp_path)


@pytest.mark.parametrize(
    ("url", "sha256"),
    [("file:///etc/passwd", SHA256), ("ftp://127.0.0.1/x", SHA256), ("https://x/", "abc")],
)
def test_wrong_arguments(tmp_path: Path, url: str, sha256: str) -> None:
    with pytest.raises(UsageError):
        download(url, target=tmp_path / "x", sha256=sha256)


def test_two_at_once_fetch_once(server: Server, tmp_path: Path) -> None:
    errors: list[BoardclusterError] = []

    def run() -> None:
        try:
            fetch(server, tmp_path)
        except BoardclusterError as error:
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert errors == []
    assert len(server.requests) == 1
    assert_whole(tmp_path / "flights.bz2")
