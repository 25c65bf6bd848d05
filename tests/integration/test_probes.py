"""Probes on emulated nodes: real tools, in each node's own network and folders."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from boardcluster.catalog.entry import read_board
from boardcluster.fetch.cache import no_progress
from boardcluster.probes import single_machine
from boardcluster.probes.registry import choose_probes
from boardcluster.probes.run import LiveSite, plan_probes, run_probes
from boardcluster.records import ProbeMode, ProbeRun
from boardcluster.remote.node_rpc import drop_caches
from boardcluster.services import operation
from tests.integration.conftest import Cli
from tests.waiting import wait_until

LINK_BITS_PER_SECOND = 1e9

pytestmark = pytest.mark.alone


@pytest.fixture(scope="module")
def up(watched: Cli) -> Cli:
    return watched


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


def test_one_program_on_a_node_does_the_work_of_a_cluster(
    up: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    size_bytes = 3_000_000
    monkeypatch.setattr(single_machine, "SIZES_BYTES", dict.fromkeys(ProbeMode, (size_bytes,)))
    live = operation.attach(up.home, cache=up.cache, progress=no_progress)
    (node,) = (node for node in live.spec.nodes if node.name == "worker1")
    site = LiveSite(
        node=node.name,
        remote=live.remotes[node.name],
        admin=live.as_root[node.name],
        cores=node.cores,
        memory_bytes=node.memory_bytes,
        folder=live.layout.on_medium(node, "scratch"),
        address="",
        hardware="",
        cluster=live.spec.name,
        emulated=True,
    )
    dropped = drop_caches(site.admin).dropped
    names = ("single-sort", "single-grep", "single-count")
    kept: list[ProbeRun] = []
    runs = run_probes(
        plan_probes([site], choose_probes(names), named=True),
        mode=ProbeMode.QUICK,
        keep=kept.append,
        tell=lambda _: None,
        settings={"cache": str(up.cache)},
    )
    assert tuple(kept) == runs
    assert {run.probe: run.reason for run in runs} == dict.fromkeys(names, "")
    for row in (row for run in runs for row in run.figures if row.name.endswith("_seconds")):
        assert 0 < row.value < 60
        assert row.conditions["size_bytes"] == str(size_bytes)
        assert row.conditions["cache"] == ("dropped" if dropped else "kept")
    assert not list(Path(site.folder).glob("*"))


def test_ctrl_c_ends_what_runs_on_the_node(up: Cli) -> None:
    with up.start("probe", "heat", "--node", "worker1") as process:
        wait_until(stressed, "stress-ng", seconds=60)
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
