"""Probes on emulated nodes: real tools, in each node's own network and folders."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from boardcluster.catalog.entry import read_board
from tests.integration.conftest import Cli

SUBNET = "198.18.62.0/24"
LINK_BITS_PER_SECOND = 1e9


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory, cli: Callable[..., Cli]) -> Iterator[Cli]:
    program = cli(tmp_path_factory.mktemp("probes") / "home")
    program("init", "--workers", "2", "--subnet", SUBNET)
    try:
        program("up")
        yield program
    finally:
        program("down", "--wipe")


def figures(row: dict[str, Any], name: str) -> list[float]:
    return [figure["value"] for figure in row["figures"] if figure["name"] == name]


def test_the_network_between_two_nodes_is_what_was_declared(up: Cli) -> None:
    asked = ("--node", "worker1", "--node", "worker2")
    rows = up.json("probe", "iperf3", "tcp-latency", *asked)["runs"]
    assert [(row["node"], row["peer"]) for row in rows if row["probe"] == "iperf3"] == [
        ("worker1", "worker2"),
        ("worker2", "worker1"),
    ]
    for row in rows:
        assert (row["reason"], row["emulated"]) == ("", True)
        assert row["versions"] or row["probe"] == "tcp-latency"
    rates = [
        rate
        for row in rows
        if row["probe"] == "iperf3"
        for rate in figures(row, "iperf3_bits_per_second")
    ]
    assert len(rates) == 4
    assert all(0.85 * LINK_BITS_PER_SECOND < rate < LINK_BITS_PER_SECOND for rate in rates)
    stored = up.json("probe", "--show")["runs"]
    assert {row["id"] for row in rows} <= {row["id"] for row in stored}


def test_a_measured_node_becomes_a_board_of_the_catalog(up: Cli, tmp_path: Path) -> None:
    path = tmp_path / "board.toml"
    (row,) = json.loads(
        up("probe", "stream", "--node", "worker1", "--save-board", str(path), "--json")
    )["runs"]
    assert figures(row, "stream_triad_bytes_per_second")
    entry = read_board(path)
    assert entry.emulated
    kept = [
        each.figure.value
        for each in entry.figures
        if each.figure.name == "stream_triad_bytes_per_second"
    ]
    assert kept == pytest.approx(figures(row, "stream_triad_bytes_per_second"), rel=1e-3)


def test_ctrl_c_ends_what_runs_on_the_node(up: Cli) -> None:
    with up.start("probe", "heat", "--node", "worker1") as process:
        deadline = time.monotonic() + 60
        while not stressed():
            assert time.monotonic() < deadline, "stress-ng never began"
            time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 130
    assert not stressed()
    left = up.home / "nodes" / "worker1" / "data"
    assert not list(left.glob("**/probe*"))


def stressed() -> bool:
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                words = (entry / "cmdline").read_bytes()
                environment = (entry / "environ").read_bytes()
            except OSError:
                continue
            if b"stress-ng" in words and b"BOARDCLUSTER" in environment:
                return True
    return False
