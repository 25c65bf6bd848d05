"""The HTTP farm on a real cluster: what it serves is right, and what is wrong is found."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from boardcluster.cluster.kinds.emulated import nodes as emulated
from boardcluster.cluster.state import LiveState, load_state
from boardcluster.remote.base import Remote
from boardcluster.remote.node_rpc import listening
from tests.integration.conftest import Cli
from tests.waiting import wait_until

CAMPAIGN = """\
[campaign]
name = "{name}"
repeat_tainted = 0  # this machine has other work
repetitions = 1

[[matrix]]
workload = "webserve"
fault = "{fault}"
parameters.webserve.requests = {requests}
# Costly pages: the farm stays slower than its client, whatever else runs on this machine.
parameters.webserve.computed_percent = 20
parameters.webserve.rounds = 2000
parameters.webserve.seconds = {seconds}
parameters.webserve.down_seconds = 1
"""

PORTS = [8000, 8001, 8002]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, cli: Callable[..., Cli]) -> Iterator[Cli]:
    """One cluster for all."""
    program = cli(tmp_path_factory.mktemp("services") / "home")
    program("init", "--workers", "2", "--subnet", "198.18.211.0/24")
    try:
        program("up")
        yield program
    finally:
        program("down", "--wipe")


def written(
    folder: Path, name: str, *, fault: str = "none", requests: int = 2000, seconds: int = 1
) -> str:
    path = folder / "campaign.toml"
    path.write_text(CAMPAIGN.format(name=name, fault=fault, requests=requests, seconds=seconds))
    return str(path)


def state_of(program: Cli) -> LiveState:
    state = load_state(program.home)
    assert state is not None
    return state


def reaching(program: Cli, name: str) -> Remote:
    state = state_of(program)
    node = next(row for row in state.nodes if row.name == name)
    return emulated.remote_of(node, state)


def serving(program: Cli) -> dict[str, list[int]]:
    """The farm's ports that somebody listens on, by node."""
    names = [node.name for node in state_of(program).nodes]
    found = {name: listening(reaching(program, name), PORTS) for name in names}
    return {name: ports for name, ports in found.items() if ports}


def latest(program: Cli) -> dict[str, Any]:
    row: dict[str, Any] = program.json("results", "--all")["results"][-1]
    return row


def test_a_farm_serves_is_proved_and_leaves_nothing(site: Cli, tmp_path: Path) -> None:
    done = site.json("run", written(tmp_path, "plain"))
    (row,) = done["results"]
    assert row["attempt"]["state"] == "ok"
    figures, measured = row["measurement"]["figures"], row["measurement"]
    # The time is that of the timed requests alone, as the client and the driver both measure it.
    seconds = 2000 / figures["requests_per_second"]
    assert seconds <= measured["duration_seconds"] < seconds + 5
    assert figures["failed_requests"] == 0
    for share in (25, 50, 75, 90):
        order = [figures[f"load_{share}_latency_{p}_microseconds"] for p in ("p50", "p99", "p999")]
        assert 0 < order[0] <= order[1] <= order[2]
        assert figures[f"load_{share}_requests_per_second"] > 0
    folder = site.home / row["attempt"]["artefacts"]
    kept = json.loads((folder / "load-90-percent" / "result.json").read_text())
    assert sum(count for _, count in kept["latency_microseconds"]) == kept["good"] > 0
    assert serving(site) == {}


def test_both_faults_pass_and_what_they_did_is_told(site: Cli, tmp_path: Path) -> None:
    for fault in ("kill", "link"):
        # Long enough for a second without the server on any machine: it is the fault that waits.
        file = written(tmp_path, f"fault-{fault}", fault=fault, requests=20_000, seconds=12)
        site("run", file)
        row = latest(site)
        assert row["attempt"]["state"] == "ok", row["attempt"]["reason"]
        figures = row["measurement"]["figures"]
        for phase in ("saturation", "load_50_percent"):
            assert figures[f"{phase}_server_away_seconds"] >= 1
            away = figures[f"{phase}_server_away_seconds"]
            assert figures[f"{phase}_recovery_seconds"] >= away
            assert figures[f"{phase}_failed_requests"] >= 0
        assert serving(site) == {}


def test_a_body_that_a_server_spoils_is_found(site: Cli, tmp_path: Path) -> None:
    site("run", written(tmp_path, "before"))
    page = site.home / "nodes" / "worker2" / "http" / "pages" / "1000-0"
    right = page.read_bytes()
    try:
        page.write_bytes(right[:500] + bytes([right[500] ^ 1]) + right[501:])
        site("run", written(tmp_path, "spoilt"), code=9)
    finally:
        page.write_bytes(right)
    attempt = latest(site)["attempt"]
    assert attempt["state"] == "failed"
    assert "bodies are not the page that was asked for" in attempt["reason"]
    assert "/pages/1000-0: byte 500 is 0x" in attempt["reason"]
    assert serving(site) == {}


def test_a_request_that_the_client_did_not_make_is_found(site: Cli, tmp_path: Path) -> None:
    """Somebody else asks the balancer once, while it is measured."""
    master = reaching(site, "master")
    address = next(row.address for row in state_of(site).nodes if row.name == "master")
    attempts = site.home / "attempts"
    before = set(attempts.glob("*/*/load-25-percent"))

    def one_more() -> None:
        wait_until(
            lambda: set(attempts.glob("*/*/load-25-percent")) - before, seconds=120, what="load"
        )
        program = f"import urllib.request as u; u.urlopen('http://{address}:8000/pages/1000-0')"
        master.run(["python3", "-c", program])

    other = threading.Thread(target=one_more)
    other.start()
    try:
        site("run", written(tmp_path, "one-more", seconds=4), code=9)
    finally:
        other.join()
    attempt = latest(site)["attempt"]
    assert attempt["state"] == "failed"
    words = attempt["reason"].split()
    made, counted = int(words[3]), int(words[-1])
    assert attempt["reason"].startswith("the client made "), attempt["reason"]
    assert counted == made + 1


def test_a_farm_of_a_killed_driver_is_found_and_ended(site: Cli, tmp_path: Path) -> None:
    file = written(tmp_path, "killed")
    place = "boardcluster.campaign.execution:Execution._gather"
    command = [
        *(sys.executable, "-m", "tests.integration.killer"),
        *(place, "before", "3", "--", "run", file),
    ]
    done = subprocess.run(command, env=site.env, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert serving(site) == {"master": [8000], "worker1": [8001], "worker2": [8001]}

    summary = site.json("run", file, "--resume")["summary"]

    assert (summary["ok"], summary["planned"]) == (1, 1)
    assert serving(site) == {}


def test_a_port_in_use_and_a_page_that_is_too_large_are_refused(site: Cli, tmp_path: Path) -> None:
    worker = reaching(site, "worker1")
    holder = "import socket, time; s = socket.create_server(('0.0.0.0', 8001)); time.sleep(600)"
    process = worker.start(["python3", "-c", holder], log="/dev/null")
    try:
        wait_until(lambda: listening(worker, [8001]), seconds=30, what="the port")
        site("run", written(tmp_path, "taken"), code=9)
        reason = latest(site)["attempt"]["reason"]
        assert "on node worker1 another program already listens on port 8001" in reason
    finally:
        worker.run(["kill", str(process.pid)])
    large = tmp_path / "large.toml"
    large.write_text(
        Path(written(tmp_path, "large")).read_text()
        + 'parameters.webserve.largest_page = "64 GiB"\n'
    )
    site("run", str(large), code=5)
    assert "are more than a quarter of a worker's" in site.stderr
