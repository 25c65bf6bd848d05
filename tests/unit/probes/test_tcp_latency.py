"""TCP latency: the program itself on this machine, what is made of its answer, and bad answers."""

import json
import socket
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.probes.answering import Answering, done, make_site

from boardcluster.errors import ProbeOutputError, RemoteError, UsageError
from boardcluster.probes import tcp_latency
from boardcluster.probes.base import Site
from boardcluster.probes.node import ask_program, program_command
from boardcluster.probes.tcp_latency import PROBE, LatencyPlan, measure, parse_latencies
from boardcluster.records import ProbeMode
from boardcluster.remote.base import ProcessRef
from boardcluster.remote.local import LocalRemote
from boardcluster.remote.node_rpc import processes

PLAN = LatencyPlan(sizes_bytes=(100, 10_000), samples=200, warm_up=5, most_seconds=1.0)
ROUNDS = [2000, 4000, 6000, 8000, 100_000]


class Started(LocalRemote):
    """This machine; remembers what it started."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.refs: list[ProcessRef] = []

    def start(self, *args: Any, **named: Any) -> ProcessRef:
        self.refs.append(super().start(*args, **named))
        return self.refs[-1]


def here(folder: Path, peer: Site | None = None, name: str = "node1") -> Site:
    folder.mkdir()
    remote = Started(name)
    site = make_site(Answering({}, name), folder=str(folder), address="127.0.0.1", peer=peer)
    return replace(site, remote=remote, admin=remote)


# The program, on this machine


def test_measures_over_the_network_and_over_loopback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(tcp_latency._PLANS, ProbeMode.QUICK, PLAN)
    peer = here(tmp_path / "b", name="node2")
    site = here(tmp_path / "a", peer)

    figures = measure(site)

    found = {
        (row.name, row.conditions["payload_bytes"], row.conditions["path"]): row.value
        for row in figures
    }
    assert len(found) == len(figures) == 16
    for size in ("100", "10000"):
        for path in ("network", "loopback"):
            median = found["tcp_latency_median_seconds", size, path]
            assert 1e-7 < median <= found["tcp_latency_p99_seconds", size, path] < 1
            assert found["tcp_latency_samples", size, path] == 200
    for remote in (site.remote, peer.remote):
        assert isinstance(remote, Started)
        assert len(remote.refs) == 1
        assert not any(view.alive for view in processes(remote, remote.refs))


def serve(port: int, *, longest_seconds: int = 20) -> "subprocess.Popen[bytes]":
    request = {
        "do": "serve",
        "address": "127.0.0.1",
        "port": port,
        "longest_seconds": longest_seconds,
    }
    command = program_command("tcp_latency", request)
    return subprocess.Popen([sys.executable, *command[1:]], stdout=subprocess.PIPE)


def connect(port: int) -> socket.socket:
    for _ in range(200):
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=5)
        except ConnectionRefusedError:
            threading.Event().wait(0.01)
    raise AssertionError("nobody listens")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def test_the_server_answers_only_whole_messages_and_ends_when_told() -> None:
    port = free_port()
    with serve(port) as server:
        with connect(port) as connection:
            connection.sendall((6).to_bytes(4, "big") + b"abc")
            connection.settimeout(0.1)
            with pytest.raises(TimeoutError):
                connection.recv(6)
            connection.settimeout(5)
            connection.sendall(b"def")
            assert connection.recv(6, socket.MSG_WAITALL) == b"abcdef"
        with connect(port) as connection:
            connection.sendall((1 << 30).to_bytes(4, "big"))
            assert connection.recv(1) == b"", "a size that nobody asked for is not served"
        with connect(port) as connection:
            connection.sendall(bytes(4))
        assert server.wait(5) == 0
        assert server.stdout is not None
        assert json.load(server.stdout) == {"messages": 1}


def test_the_server_of_a_driver_that_is_gone_ends_by_itself() -> None:
    with serve(free_port(), longest_seconds=1) as server:
        assert server.wait(5) == -14, "ended by its alarm"


def test_an_answer_that_is_not_json_names_the_node() -> None:
    remote = Answering({"measure": lambda *_: done("Welcome!\n")})
    with pytest.raises(ProbeOutputError, match=r"node1: the answer of tcp_latency.py is not JSON"):
        ask_program(remote, "tcp_latency", {"do": "measure"}, timeout_seconds=1)


def test_nobody_at_the_other_end_is_an_error() -> None:
    request = {
        "do": "measure",
        "address": "127.0.0.1",
        "port": free_port(),
        "longest_seconds": 5,
        "sizes_bytes": [100],
        "samples": 1,
        "warm_up": 0,
        "most_seconds": 1,
    }
    with pytest.raises(RemoteError, match="ConnectionRefusedError"):
        ask_program(LocalRemote(), "tcp_latency", request, timeout_seconds=10)


# The answer


def test_half_of_a_round_trip_is_the_time_one_way() -> None:
    (latency,) = parse_latencies([[100, ROUNDS]], replace(PLAN, sizes_bytes=(100,)))
    assert latency.samples == 5
    assert latency.median_seconds == 3e-6
    assert latency.mean_seconds == pytest.approx(12e-6)
    assert latency.p99_seconds == 50e-6


def test_the_99th_percentile_is_that_of_the_nearest_rank() -> None:
    rounds = list(range(200, 0, -1))
    (latency,) = parse_latencies([[100, rounds]], replace(PLAN, sizes_bytes=(100,)))
    assert latency.p99_seconds == pytest.approx(198 / 2e9)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, "answered 'None'"),
        ({"100": ROUNDS}, "answered"),
        ([[100]], "answered"),
        ([[100, 5], [10_000, 5]], "answered"),
        ([[100, ROUNDS]], r"for the sizes \[100\], asked for \[100, 10000\]"),
        ([[100, ROUNDS], [9999, ROUNDS]], "for the sizes"),
        ([[100, []], [10_000, ROUNDS]], "gave 0 round trips of 100 bytes"),
        ([[100, [1] * 201], [10_000, ROUNDS]], "gave 201 round trips of 100 bytes, at most 200"),
        ([[100, [1, -5]], [10_000, ROUNDS]], r"not nanoseconds: \[-5\]"),
        ([[100, [1, 0.5]], [10_000, ROUNDS]], r"not nanoseconds: \[0.5\]"),
        ([[100, [1, "1,5"]], [10_000, ROUNDS]], "not nanoseconds"),
        ([[100, [True]], [10_000, ROUNDS]], "not nanoseconds"),
    ],
)
def test_refuses_what_is_no_answer(answer: Any, words: str) -> None:
    with pytest.raises(ProbeOutputError, match=words):
        parse_latencies(answer, PLAN)


def test_payloads_are_those_of_the_paper() -> None:
    for plan in tcp_latency._PLANS.values():
        assert plan.sizes_bytes[0] == 100
        assert plan.sizes_bytes[-1] == 10_000
    assert set(range(1000, 10_001, 1000)) <= set(tcp_latency._PLANS[ProbeMode.PAPER].sizes_bytes)


def test_one_node_is_not_enough() -> None:
    with pytest.raises(UsageError, match="tcp-latency needs two nodes"):
        measure(make_site(Answering({})))
    assert PROBE.pair
