"""The node-side program, run for real through ``ask`` on this machine."""

import ast
import http.server
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from boardcluster.errors import RemoteError
from boardcluster.remote import nodeside
from boardcluster.remote.ask import (
    HttpAnswer,
    ask,
    end_processes,
    http_get_all,
    listening,
    processes,
)
from boardcluster.remote.ask import http as ask_http
from boardcluster.remote.base import ProcessRef
from boardcluster.remote.local import LocalRemote

HERE = LocalRemote("here")
STUBBORN = """
import signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(60)
"""


def ref_of(process: "subprocess.Popen[bytes]") -> ProcessRef:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return ProcessRef(process.pid, int(fields[19]))


@pytest.fixture
def sleeper() -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


@pytest.fixture
def stubborn() -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen([sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process
        process.kill()


def test_imports_nothing_but_the_standard_library() -> None:
    tree = ast.parse(Path(nodeside.__file__).read_text())
    roots = set()
    for found in ast.walk(tree):
        if isinstance(found, ast.Import):
            roots |= {alias.name.split(".")[0] for alias in found.names}
        elif isinstance(found, ast.ImportFrom):
            assert found.level == 0
            roots.add(str(found.module).split(".")[0])

    assert "json" in roots
    assert roots <= sys.stdlib_module_names


def test_runs_isolated_without_site_packages() -> None:
    text = Path(nodeside.__file__).read_text()
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", text],
        input=b'{"do": "listening", "ports": []}',
        capture_output=True,
        env={},
        cwd="/",
        check=True,
        timeout=30,
    )

    assert json.loads(done.stdout) == []
    assert done.stderr == b""


def test_is_small_enough_for_one_argument() -> None:
    # Linux: MAX_ARG_STRLEN, 32 pages.
    assert Path(nodeside.__file__).stat().st_size < 131_072 // 4


def test_an_unknown_verb_is_a_remote_error() -> None:
    with pytest.raises(RemoteError, match="KeyError: 'dance'"):
        ask(HERE, {"do": "dance"})


def test_processes_tells_the_living_from_the_dead_and_the_reborn(
    sleeper: "subprocess.Popen[bytes]",
) -> None:
    alive = ref_of(sleeper)
    with subprocess.Popen(["sleep", "60"]) as other:
        dead = ref_of(other)
        other.kill()
    impostor = ProcessRef(alive.pid, alive.start_ticks + 1)

    views = processes(HERE, [dead, alive, impostor])

    assert [view.alive for view in views] == [False, True, False]
    assert views[1].resident_bytes > 100_000
    assert 0 < views[1].proportional_bytes <= views[1].resident_bytes
    assert views[2].resident_bytes == 0


def test_a_zombie_is_not_alive(sleeper: "subprocess.Popen[bytes]") -> None:
    ref = ref_of(sleeper)
    sleeper.kill()
    deadline = time.monotonic() + 10
    stat = Path(f"/proc/{ref.pid}/stat")
    while stat.read_text().rsplit(")", 1)[1].split()[0] != "Z" and time.monotonic() < deadline:
        time.sleep(0.01)

    (view,) = processes(HERE, [ref])

    assert not view.alive


def test_a_process_whose_name_looks_like_a_stat_line_is_read_right(tmp_path: Path) -> None:
    program = tmp_path / "a) Z 1 (b"
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([program, "60"]) as process:
        # Popen returns after exec, so the name is the new one.
        (view,) = processes(HERE, [ref_of(process)])
        process.kill()

    assert view.alive


def test_end_asks_first(sleeper: "subprocess.Popen[bytes]") -> None:
    assert end_processes(HERE, [ref_of(sleeper)], grace_seconds=10) == 0

    assert sleeper.wait(10) == -signal.SIGTERM


def test_end_kills_the_stubborn_after_the_grace(
    stubborn: "subprocess.Popen[bytes]", sleeper: "subprocess.Popen[bytes]"
) -> None:
    started = time.monotonic()
    killed = end_processes(HERE, [ref_of(stubborn), ref_of(sleeper)], grace_seconds=0.4)

    assert killed == 1
    assert time.monotonic() - started >= 0.4
    assert stubborn.wait(10) == -signal.SIGKILL
    assert sleeper.wait(10) == -signal.SIGTERM


def test_end_spares_a_process_that_only_has_the_same_id(
    sleeper: "subprocess.Popen[bytes]",
) -> None:
    ref = ref_of(sleeper)

    assert end_processes(HERE, [ProcessRef(ref.pid, ref.start_ticks - 1)], grace_seconds=0.1) == 0
    assert sleeper.poll() is None


def test_end_survives_a_process_that_ended_a_moment_ago(
    sleeper: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = ProcessRef(2**22 + 1, 1)
    alive = ref_of(sleeper)
    monkeypatch.setattr(
        nodeside, "same", lambda pid, ticks: pid == gone.pid or sleeper.poll() is None
    )
    request = {
        "processes": [[gone.pid, gone.start_ticks], [alive.pid, alive.start_ticks]],
        "grace_seconds": 0.2,
    }

    nodeside.end(request)

    assert sleeper.wait(10) == -signal.SIGTERM


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_listening_sees_a_real_socket(family: socket.AddressFamily) -> None:
    host = "127.0.0.1" if family == socket.AF_INET else "::1"
    with socket.socket(family) as server, socket.socket(family) as client:
        try:
            server.bind((host, 0))
        except OSError:
            pytest.skip(f"this machine has no {host}")
        server.listen()
        client.connect(server.getsockname())  # has a port, but nobody can connect to it
        port, other = server.getsockname()[1], client.getsockname()[1]

        assert listening(HERE, [other, port]) == [port]
        assert listening(HERE, []) == []


class Handler(http.server.BaseHTTPRequestHandler):
    seen: list[tuple[str, str, dict[str, str], bytes]]

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.seen.append((self.command, self.path, dict(self.headers), body))
        if self.path.startswith("/missing"):
            self.send_error(404, "not here")
            return
        if self.path.startswith("/moved"):
            self.send_response(307)
            self.send_header("Location", "http://elsewhere:9864/place?x=1")
            self.end_headers()
            return
        content = b"x" * 3_000_000 if self.path == "/large" else b'{"answer": 42}'
        self.send_response(201 if self.command == "PUT" else 200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_PUT = do_DELETE = answer  # noqa: N815  http.server's names

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def server() -> Iterator[str]:
    Handler.seen = []
    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as daemon:
        thread = threading.Thread(target=daemon.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{daemon.server_port}"
        daemon.shutdown()
        thread.join()


def test_http_get(server: str) -> None:
    answer = ask_http(HERE, "GET", f"{server}/path?q=1&r=a%2Fb")

    assert answer == HttpAnswer(status=200, body='{"answer": 42}', location=None)
    assert answer.json() == {"answer": 42}
    method, path, headers, _ = Handler.seen[0]
    assert (method, path) == ("GET", "/path?q=1&r=a%2Fb")
    assert headers["Accept"] == "application/json"


def test_http_put_with_body_and_headers(server: str) -> None:
    answer = ask_http(
        HERE, "PUT", f"{server}/x", body="größe", headers={"Content-Type": "text/plain"}
    )

    assert answer.status == 201
    method, _, headers, body = Handler.seen[0]
    assert (method, body) == ("PUT", "größe".encode())
    assert headers["Content-Type"] == "text/plain"


def test_http_sends_a_file(server: str, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(os.urandom(3_000_000))

    assert ask_http(HERE, "PUT", f"{server}/file", source=source).status == 201
    _, _, headers, body = Handler.seen[0]
    assert body == source.read_bytes()
    assert headers["Content-Length"] == "3000000"


def test_http_stores_the_body_in_a_file(server: str, tmp_path: Path) -> None:
    target = tmp_path / "target"

    answer = ask_http(HERE, "GET", f"{server}/large", target=target)

    assert (answer.status, answer.body) == (200, "")
    assert target.read_bytes() == b"x" * 3_000_000


def test_http_stores_no_error_page_as_data(server: str, tmp_path: Path) -> None:
    target = tmp_path / "target"

    answer = ask_http(HERE, "GET", f"{server}/missing", target=target)

    assert answer.status == 404
    assert "not here" in answer.body
    assert not target.exists()


def test_http_gives_the_location_and_does_not_follow_it(server: str) -> None:
    answer = ask_http(HERE, "PUT", f"{server}/moved")

    assert (answer.status, answer.location) == (307, "http://elsewhere:9864/place?x=1")
    assert len(Handler.seen) == 1


def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_http_to_nobody_is_status_0_and_says_why() -> None:
    answer = ask_http(HERE, "GET", f"http://127.0.0.1:{unused_port()}/")

    assert (answer.status, answer.location) == (0, None)
    assert "ConnectionRefusedError" in answer.body


def test_http_to_a_silent_daemon_ends_in_time() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        answer = ask_http(HERE, "GET", url, timeout_seconds=0.3)

    assert answer.status == 0
    assert "imed out" in answer.body


def test_http_get_all_keeps_the_order_and_goes_on_after_a_failure(server: str) -> None:
    nobody = f"http://127.0.0.1:{unused_port()}/"

    answers = http_get_all(HERE, [f"{server}/missing", nobody, f"{server}/there"])

    assert [answer.status for answer in answers] == [404, 0, 200]


def test_an_answer_that_is_not_json_is_a_remote_error() -> None:
    with pytest.raises(RemoteError, match="not JSON: '<html>'"):
        HttpAnswer(status=200, body="<html>", location=None).json()
