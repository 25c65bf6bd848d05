"""The exporter with real agents on this machine: read, lost, started anew, ended."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.telemetry.test_exposition import Series, read

from boardcluster.errors import AddressError, UnreachableError
from boardcluster.remote.local import LocalRemote
from boardcluster.telemetry import metrics
from boardcluster.telemetry.collector import Target
from boardcluster.telemetry.metrics import Exporter, Server


class Node(LocalRemote):
    """This machine under a name; it can go away."""

    gone = False

    def run(self, *args: Any, **named: Any) -> Any:
        if self.gone:
            raise UnreachableError(f"{self.name}: no answer")
        return super().run(*args, **named)


@pytest.fixture
def node() -> Node:
    return Node("pi1")


@pytest.fixture
def exporter(node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Exporter]:
    monkeypatch.setattr(metrics, "_TOGETHER_SECONDS", 0.0)
    monkeypatch.setattr(metrics, "_RETRY_SECONDS", 0.0)
    target = Target(
        remote=node,
        request={"scope": "machine", "groups": {}, "lives_with": os.getpid()},
        folder=str(tmp_path),
        cores=2,
    )
    made = Exporter({"pi1": target}, port=9400, interval_seconds=0.1)
    yield made
    node.gone = False
    made.close()
    assert not list(tmp_path.glob("metrics-*"))


def until(exporter: Exporter, holds: Callable[[Series], bool]) -> Series:
    """Look until a condition holds, 20 s at most."""
    for _ in range(200):
        found = read(exporter.look())
        if holds(found):
            return found
        time.sleep(0.1)
    raise AssertionError(f"never: {exporter.errors()}")


def is_up(found: Series) -> bool:
    return found["boardcluster_up", (("node", "pi1"),)] == 1


def agent_of(exporter: Exporter) -> int:
    process = exporter._nodes["pi1"].process
    assert process
    return process.pid


def test_a_node_is_up_and_its_counters_rise(exporter: Exporter) -> None:
    user = ("boardcluster_cpu_seconds_total", (("node", "pi1"), ("state", "user")))
    first = until(exporter, is_up)[user]
    until(exporter, lambda found: found[user] > first)
    assert exporter.errors() == {}


def test_only_what_is_new_is_read(exporter: Exporter, node: Node, tmp_path: Path) -> None:
    until(exporter, is_up)
    offset = exporter._nodes["pi1"].offset
    assert 0 < offset <= (tmp_path / "metrics-9400.txt").stat().st_size
    asked: list[list[str]] = []
    run = node.run

    def spy(argv: list[str], **named: Any) -> Any:
        asked.append(argv)
        return run(argv, **named)

    node.run = spy  # type: ignore[method-assign]
    exporter.look()
    assert asked == [["tail", "-c", f"+{offset + 1}", f"{tmp_path}/metrics-9400.txt"]]


def test_a_node_that_goes_away_is_down_and_comes_back(exporter: Exporter, node: Node) -> None:
    until(exporter, is_up)
    node.gone = True
    found = until(exporter, lambda found: not is_up(found))
    assert exporter.errors() == {"pi1": "pi1: no answer"}
    assert not [name for name, _ in found if "cpu_seconds" in name]
    node.gone = False
    until(exporter, is_up)


def test_an_agent_that_was_killed_is_missed_and_replaced(
    exporter: Exporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "_FLUSH_SECONDS", 0.5)
    until(exporter, is_up)
    killed = agent_of(exporter)
    os.kill(killed, signal.SIGKILL)
    until(exporter, lambda found: not is_up(found))
    until(exporter, is_up)
    assert agent_of(exporter) != killed


def test_a_garbled_file_is_one_lost_node(exporter: Exporter, tmp_path: Path) -> None:
    until(exporter, is_up)
    with (tmp_path / "metrics-9400.txt").open("a") as stream:
        stream.write("\x00garbage\n")
    until(exporter, lambda found: not is_up(found))
    until(exporter, is_up)


def test_a_long_file_is_begun_anew(
    exporter: Exporter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    until(exporter, is_up)
    before = agent_of(exporter)
    monkeypatch.setattr(metrics, "_ROTATE_BYTES", 10)
    exporter.look()
    monkeypatch.setattr(metrics, "_ROTATE_BYTES", 1 << 30)
    until(exporter, is_up)
    assert agent_of(exporter) != before


def test_agents_end_with_the_exporter(exporter: Exporter, tmp_path: Path) -> None:
    until(exporter, is_up)
    pid = agent_of(exporter)
    exporter.close()
    until_ended(pid)
    assert not list(tmp_path.glob("metrics-*"))


def until_ended(pid: int) -> None:
    for _ in range(50):
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
        if not Path(f"/proc/{pid}").exists():
            return
        time.sleep(0.1)
    raise AssertionError(f"{pid} is still there")


@pytest.fixture
def served(exporter: Exporter) -> Iterator[Server]:
    server = Server(0)
    thread = threading.Thread(target=server.serve, args=(exporter,))
    thread.start()
    yield server
    server.stop()
    thread.join(timeout=10)
    assert not thread.is_alive()


def ask(server: Server, path: str, *, host: str = "") -> tuple[int, str, str]:
    connection = http.client.HTTPConnection(metrics.ADDRESS, server.port, timeout=20)
    try:
        connection.request("GET", path, headers={"Host": host} if host else {})
        answer = connection.getresponse()
        return answer.status, answer.getheader("Content-Type", ""), answer.read().decode()
    finally:
        connection.close()


def test_prometheus_gets_its_format_and_nobody_else_gets_anything(served: Server) -> None:
    status, kind, text = ask(served, "/metrics")
    assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert ("boardcluster_cpu_cores", (("node", "pi1"),)) in read(text)
    assert ask(served, "/")[0] == 404
    assert ask(served, "/metrics", host="evil.example")[0] == 403
    assert ask(served, "/metrics", host=f"localhost:{served.port}")[0] == 200


def test_a_port_in_use_is_named(served: Server) -> None:
    with pytest.raises(AddressError, match=f"port {served.port} ") as caught:
        Server(served.port)
    assert "--port" in caught.value.hint
