"""The load generator against servers that do what servers must not."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from boardcluster.fetch.cache import no_progress
from boardcluster.remote.local import LocalRemote
from boardcluster.services.http.loadgen import have_loadgen
from boardcluster.services.http.result import LoadResult, read_result

BODY = bytes(range(200)) * 5

Answer = Callable[[int], bytes]
"""From the number of a request to what is sent back; nothing closes the connection."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Built from its source, whatever the user's cache has."""
    cache = tmp_path_factory.mktemp("cache")
    here = LocalRemote("here")
    return have_loadgen(here, cache=cache, folder="", shared=True, progress=no_progress)


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    (tmp_path / "page").write_bytes(BODY)
    (tmp_path / "plan").write_text("1 /pages/1000-0 page\n")
    return tmp_path / "plan"


def whole(body: bytes, status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


@contextmanager
def answering(answer: Answer) -> Iterator[int]:
    """Serve in threads, one for each connection; yield the port."""
    listener = socket.create_server(("127.0.0.1", 0))
    numbers = iter(range(1_000_000))
    lock = threading.Lock()

    def one(link: socket.socket) -> None:
        with link:
            while link.recv(65536):
                with lock:  # what is late delays all that comes after
                    said = answer(next(numbers))
                if not said:
                    return
                link.sendall(said)

    def accept() -> None:
        while True:
            try:
                link, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=one, args=(link,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def loaded(program: str, plan: Path, port: int, *options: str) -> LoadResult:
    out = plan.with_name("result.json")
    words = [f"plan={plan}", f"out={out}", f"target=127.0.0.1:{port}", *options]
    subprocess.run([program, "run", *words], check=True, timeout=120)
    return read_result(out.read_text(), phase="load")


def test_right_answers_are_counted_with_their_bytes(program: str, plan: Path) -> None:
    with answering(lambda _: whole(BODY)) as port:
        found = loaded(program, plan, port, "connections=4", "requests=200")
    assert (found.good, found.failed, found.sent) == (200, 0, 200)
    assert found.body_bytes == 200 * len(BODY)
    assert sum(good for good, _ in found.series) == 200


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (whole(BODY[:500] + b"\xff" + BODY[501:]), "body", "byte 500 is 0xff, expected 0x64"),
        (whole(BODY[:-1]), "body", "999 bytes long, expected 1000"),
        (whole(BODY + b"x"), "body", "1001 bytes long, expected 1000"),
        (whole(BODY) + b"xy", "body", "/pages/1000-0: 2 bytes after its end"),
        (whole(b""), "body", "0 bytes long, expected 1000"),
        (whole(b"busy", "503 Service Unavailable"), "status", "status 503"),
        (b"HTTP/1.1 200 OK\r\n\r\n", "closed", "an answer without a length"),
        (b"", "closed", "the connection was closed"),
    ],
    ids=["changed", "short", "long", "more", "empty", "status", "no length", "closed"],
)
def test_what_is_wrong_is_counted_by_its_kind(
    program: str, plan: Path, answer: bytes, kind: str, words: str
) -> None:
    with answering(lambda number: answer if number == 7 else whole(BODY)) as port:
        found = loaded(program, plan, port, "connections=1", "requests=20")
    assert (found.good, found.failed, found.errors[kind]) == (19, 1, 1)
    assert words in (found.first_wrong if kind == "body" else found.first_error)


def test_an_answer_that_never_comes_and_a_port_where_nobody_is(program: str, plan: Path) -> None:
    never = threading.Event()

    def answer(number: int) -> bytes:
        if number == 3:
            never.wait(1.5)
        return whole(BODY)

    with answering(answer) as port:
        found = loaded(program, plan, port, "connections=1", "requests=10", "timeout=0.5")
        assert found.errors["timeout"] >= 1
    found = loaded(program, plan, port, "connections=1", "requests=3")
    assert (found.good, found.errors["connect"]) == (0, 3)
    found = loaded(program, plan, port, "connections=1", "requests=3", "pause=0.2")
    assert found.seconds > 0.35  # two pauses


def test_an_answer_that_takes_long_has_time_while_more_of_it_comes(
    program: str, plan: Path
) -> None:
    said = whole(BODY)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with listener.accept()[0] as link:
                link.recv(65536)
                for place in range(0, len(said), 100):
                    link.sendall(said[place : place + 100])
                    time.sleep(0.15)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        port = listener.getsockname()[1]
        found = loaded(program, plan, port, "connections=1", "requests=1", "timeout=1")
        thread.join()
    assert (found.good, found.failed) == (1, 0)
    assert found.seconds > 1.4


def test_a_pause_of_the_server_is_in_the_latency_of_all_that_was_due_meanwhile(
    program: str, plan: Path
) -> None:
    """Without coordinated omission: 100 requests are due in a second in which nothing answers.

    A client that waits for one answer before it asks again would find one that is late.
    """

    def answer(number: int) -> bytes:
        if number == 50:
            time.sleep(1.0)
        return whole(BODY)

    with answering(answer) as port:
        found = loaded(program, plan, port, "connections=200", "rate=100", "seconds=3")
    assert (found.good, found.failed) == (300, 0)
    late = sum(count for upper, count in found.latency if upper >= 100_000)
    assert late >= 85  # the last tenth of a second of the pause delays by less than that
    # It asks for as much as was wanted, and takes as long as that takes.
    assert found.seconds >= 2.9


def limited(program: str, limits: str, *words: str) -> list[str]:
    return ["sh", "-c", f'ulimit {limits} && exec "$@"', "sh", program, *words]


@pytest.mark.parametrize(
    ("limits", "loop"),
    [("-Sn 40", "requests=600"), ("-n 40", "rate=600")],
    ids=["soft", "hard, open loop"],
)
def test_few_open_files_mean_no_failure(program: str, plan: Path, limits: str, loop: str) -> None:
    out = plan.with_name("result.json")
    with answering(lambda _: whole(BODY)) as port:
        words = [f"plan={plan}", f"out={out}", "connections=60", loop, "seconds=1"]
        command = limited(program, limits, "run", *words, f"target=127.0.0.1:{port}")
        subprocess.run(command, check=True, timeout=120)
    found = read_result(out.read_text(), phase="load")
    assert (found.good, found.failed) == (600, 0)
    used = json.loads(out.read_text())["connections"]
    assert used <= 24 if limits == "-n 40" else used == 60


def test_a_closed_loop_with_fewer_connections_than_asked_is_refused(
    program: str, plan: Path
) -> None:
    out = plan.with_name("result.json")
    words = ["run", f"plan={plan}", f"out={out}", "connections=60", "requests=600"]
    command = limited(program, "-n 40", *words, "target=127.0.0.1:1")
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert "60 connections are more than the 24 that the limit of open files allows" in done.stderr
    assert not out.exists()


@pytest.mark.parametrize("limits", ["-n 4096", "-Sn 40"], ids=["many files", "soft limit"])
def test_the_null_server_serves_what_the_plan_says(program: str, plan: Path, limits: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = subprocess.Popen(limited(program, limits, "serve", f"plan={plan}", f"port={port}"))
    try:
        found = loaded(program, plan, port, "connections=60", "requests=500", "wait=30")
    finally:
        server.terminate()
        server.wait()
    assert (found.good, found.failed) == (500, 0)
