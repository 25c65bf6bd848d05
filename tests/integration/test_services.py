"""The HTTP farm on a real cluster: what it serves is right, and what is wrong is found."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.conftest import Cli
from tests.integration.services import (
    figures_of_fault,
    held_port,
    kill_while_it_serves,
    latest,
    reaching,
    serving,
    state_of,
)
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
    assert serving(site, PORTS) == {}


@pytest.mark.parametrize("fault", ["kill", "link"])
def test_both_faults_pass_and_what_they_did_is_told(site: Cli, tmp_path: Path, fault: str) -> None:
    # Long enough for a second without the server on any machine: it is the fault that waits.
    file = written(tmp_path, f"fault-{fault}", fault=fault, requests=10_000, seconds=8)
    phases = ("saturation", "load_50_percent")
    figures = figures_of_fault(site, file, *phases)
    for phase in phases:
        away = figures[f"{phase}_server_away_seconds"]
        assert figures[f"{phase}_recovery_seconds"] >= away
        assert figures[f"{phase}_failed_requests"] >= 0
    assert serving(site, PORTS) == {}


def test_a_body_that_a_server_spoils_is_found(site: Cli, tmp_path: Path) -> None:
    page = site.home / "nodes" / "worker2" / "http" / "pages" / "1000-0"
    if not page.exists():  # a run before this one has made it
        site("run", written(tmp_path, "before"))
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
    assert serving(site, PORTS) == {}


def test_a_request_that_the_client_did_not_make_is_found(site: Cli, tmp_path: Path) -> None:
    """Somebody else asks the balancer once, while it is measured."""
    master = reaching(site, "master")
    address = next(row.address for row in state_of(site).nodes if row.name == "master")
    attempts = site.home / "attempts"
    before = set(attempts.glob("*/*/saturation"))

    def one_more() -> None:
        wait_until(
            lambda: set(attempts.glob("*/*/saturation")) - before, seconds=120, what="the load"
        )
        program = f"import urllib.request as u; u.urlopen('http://{address}:8000/pages/1000-0')"
        master.run(["python3", "-c", program])

    other = threading.Thread(target=one_more)
    other.start()
    try:
        # Short loads: of longer ones requests time out where this machine has become slow since it
        # was found how many it serves, and the attempt fails of that.
        site("run", written(tmp_path, "one-more"), code=9)
    finally:
        other.join()
    attempt = latest(site)["attempt"]
    assert attempt["state"] == "failed"
    words = r"the client made (\d+) requests, and the balancer counted (\d+)"
    found = re.fullmatch(words, attempt["reason"])
    assert found, attempt["reason"]
    assert int(found[2]) == int(found[1]) + 1


def test_a_farm_of_a_killed_driver_is_found_and_ended(site: Cli, tmp_path: Path) -> None:
    file = written(tmp_path, "killed")
    kill_while_it_serves(site, file)
    assert serving(site, PORTS) == {"master": [8000], "worker1": [8001], "worker2": [8001]}

    summary = site.json("run", file, "--resume")["summary"]

    assert (summary["ok"], summary["planned"]) == (1, 1)
    assert serving(site, PORTS) == {}


def test_a_port_in_use_and_a_page_that_is_too_large_are_refused(site: Cli, tmp_path: Path) -> None:
    with held_port(reaching(site, "worker1"), 8001):
        site("run", written(tmp_path, "taken"), code=9)
        reason = latest(site)["attempt"]["reason"]
        assert "on node worker1 another program already listens on port 8001" in reason
    large = tmp_path / "large.toml"
    large.write_text(
        Path(written(tmp_path, "large")).read_text()
        + 'parameters.webserve.largest_page = "64 GiB"\n'
    )
    site("run", str(large), code=5)
    assert "are more than a quarter of the smallest node's" in site.stderr
