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
from tests.waiting import wait_until

from boardcluster.errors import AddressError, UnreachableError
from boardcluster.remote.local import LocalRemote
from boardcluster.telemetry import metrics
from boardcluster.telemetry.collector import Target
from boardcluster.telemetry.metrics import Exporter, Server


class Node(LocalRemote):
    """This machine under a name; it can go away, or take everything and answer nothing."""

    gone = False
    hangs = False

    def run(self, *args: Any, **named: Any) -> Any:
        if self.gone:
            raise UnreachableError(f"{self.name}: no answer")
        if self.hangs:
            super().run(["sleep", "60"], timeout_seconds=named.get("timeout_seconds", 60.0))
        return super().run(*args, **named)


@pytest.fixture
def node() -> Node:
    return Node("pi1")


@pytest.fixture
def other() -> Node:
    return Node("pi2")


def watching(folder: Path, *nodes: Node) -> Exporter:
    targets = {
        node.name: Target(
            remote=node,
            request={"scope": "machine", "groups": {}, "lives_with": os.getpid()},
            folder=str(folder / node.name),
            cores=2,
        )
        for node in nodes
    }
    for node in nodes:
        (folder / node.name).mkdir()
    return Exporter(targets, port=9400, interval_seconds=0.1)


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "_RETRY_SECONDS", 0.0)
    monkeypatch.setattr(metrics, "_STALE_INTERVALS", 20)


@pytest.fixture
def exporter(node: Node, tmp_path: Path) -> Iterator[Exporter]:
    made = watching(tmp_path, node)
    made.start()
    yield made
    node.gone = False
    made.close()
    assert not list(tmp_path.glob("*/metrics-*"))


def until(exporter: Exporter, holds: Callable[[Series], bool]) -> Series:
    """Look until a condition holds."""

    def look() -> Series:
        found = read(exporter.look())
        return found if holds(found) else {}

    return wait_until(look, "the exporter", seconds=20, pause_seconds=0.1)


def is_up(found: Series, name: str = "pi1") -> bool:
    return found["boardcluster_up", (("node", name),)] == 1


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
    asked: list[tuple[list[str], int]] = []
    run = node.run

    def spy(argv: list[str], **named: Any) -> Any:
        done = run(argv, **named)
        asked.append((argv, len(done.stdout)))
        return done

    node.run = spy  # type: ignore[method-assign]
    wait_until(lambda: sum(size for _, size in asked), "something new", seconds=20)
    (first, _) = asked[0]
    place = int(first[2])
    assert place > 1
    for argv, size in asked:
        assert argv == ["tail", "-c", f"+{place}", f"{tmp_path}/pi1/metrics-9400.txt"]
        place += size


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
    with (tmp_path / "pi1" / "metrics-9400.txt").open("a") as stream:
        stream.write("\x00garbage\n")
    until(exporter, lambda found: not is_up(found))
    until(exporter, is_up)


def test_a_long_file_is_begun_anew(
    exporter: Exporter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    until(exporter, is_up)
    before = agent_of(exporter)
    monkeypatch.setattr(metrics, "_ROTATE_BYTES", 10)
    until_ended(before)
    monkeypatch.setattr(metrics, "_ROTATE_BYTES", 1 << 30)
    until(exporter, is_up)
    watched = exporter._nodes["pi1"]
    until(exporter, lambda _: watched.process is not None and watched.latest.samples > 0)
    assert agent_of(exporter) != before


def test_agents_end_with_the_exporter(exporter: Exporter, tmp_path: Path) -> None:
    until(exporter, is_up)
    pid = agent_of(exporter)
    exporter.close()
    until_ended(pid)
    assert not list(tmp_path.glob("*/metrics-*"))


def test_a_node_that_hangs_is_down_and_delays_nobody(
    node: Node, other: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = watching(tmp_path, node, other)
    made.start()
    until(made, lambda found: is_up(found) and is_up(found, "pi2"))
    other.hangs = True
    began = time.monotonic()
    until(made, lambda found: not is_up(found, "pi2"))
    assert time.monotonic() - began < 8, "not only at its time-out"
    said = made.errors()["pi2"]
    assert said.startswith("it has not answered for ")
    assert int(said.split()[-2]) >= 2, "not before it is stale"
    user = ("boardcluster_cpu_seconds_total", (("node", "pi1"), ("state", "user")))
    since = time.monotonic()
    found = read(made.look())
    assert time.monotonic() - since < 5, "a look waits for no node"
    until(made, lambda now: is_up(now) and now[user] > found[user])
    assert ("boardcluster_cpu_seconds_total", (("node", "pi2"), ("state", "user"))) not in found

    monkeypatch.setattr(metrics, "_CLOSE_SECONDS", 1.0)
    pid = agent_of(made)
    since = time.monotonic()
    made.close()
    assert time.monotonic() - since < 8, "not only at its time-out"
    until_ended(pid)
    assert not list((tmp_path / "pi1").iterdir())
    assert not [row for row in threading.enumerate() if row.name.startswith("metrics ")]


def test_a_node_that_hangs_from_the_start_is_named_and_left(
    node: Node, other: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "_CLOSE_SECONDS", 3.0)
    other.hangs = True
    made = watching(tmp_path, node, other)
    made.start()
    began = time.monotonic()
    made.settle(longest_seconds=2.0)
    assert 1.5 < time.monotonic() - began < 8, "not only at its time-out"
    until(made, is_up)
    assert made.errors() == {"pi2": "it has not answered yet"}
    made.close()
    assert not list((tmp_path / "pi1").iterdir())


def test_an_exporter_that_was_never_started_can_be_closed(node: Node, tmp_path: Path) -> None:
    made = watching(tmp_path, node)
    assert not is_up(read(made.look()))
    made.close()


def test_whatever_a_node_does_its_thread_goes_on(exporter: Exporter, node: Node) -> None:
    until(exporter, is_up)
    run = node.run

    def broken(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError

    node.run = broken  # type: ignore[method-assign]
    until(exporter, lambda found: not is_up(found))
    node.run = run  # type: ignore[method-assign]
    until(exporter, is_up)


def until_ended(pid: int) -> None:
    def is_gone() -> bool:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
        return not Path(f"/proc/{pid}").exists()

    wait_until(is_gone, "the agent's end")


@pytest.fixture
def served(exporter: Exporter) -> Iterator[Server]:
    server = Server(0)
    thread = threading.Thread(target=server.serve, args=(exporter,))
    thread.start()
    yield server
    server.shutdown()
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
