"""The HTTP farm on boards that are reached by real SSH only: closed, and gone afterwards."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.boards import Boards
from tests.integration.test_boards_cluster import Lab
from tests.waiting import wait_until

pytestmark = [pytest.mark.needs_root, pytest.mark.soak]

CAMPAIGN = """\
[campaign]
name = "boards-farm"
repeat_tainted = 0  # this machine has other work
repetitions = 1

[[matrix]]
workload = "webserve"
parameters.webserve.requests = 1000
# Costly pages: the farm stays slower than its client, whatever else runs on this machine.
parameters.webserve.computed_percent = 20
parameters.webserve.rounds = 2000
parameters.webserve.seconds = 2
"""

TRY = """\
import socket, sys
try:
    socket.create_connection((sys.argv[1], 8000), timeout=2)
    print("reached")
except OSError as error:
    print(type(error).__name__)
"""


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory, cache: Path, fetched: None) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("farm")
    with Boards(2, folder=folder, subnet="198.18.46.0/24") as boards:
        lab = Lab(boards, folder / "home", cache)
        # No engine's job runs here, so class-data archives would take longer than they save.
        lab.declare("--profile", "upstream")
        lab("up", "--yes")
        try:
            yield lab
        finally:
            lab("down")


def listeners(lab: Lab, index: int) -> set[str]:
    """Port and user of whoever listens on a port of the farm."""
    shown = lab.on(index, "ss -ltnpH 'sport >= 8000 and sport <= 8002'")
    return {row.split()[3].rpartition(":")[2] for row in shown.splitlines()}


def test_a_farm_on_boards_is_proved_closed_and_leaves_nothing(farm: Lab, tmp_path: Path) -> None:
    file = tmp_path / "farm.toml"
    file.write_text(CAMPAIGN)
    seen: dict[str, object] = {}
    found: set[str] = set()  # users

    def look() -> None:
        """While it serves: who listens, as whom, and whether a stranger reaches it."""
        wait_until(lambda: listeners(farm, 0) >= {"8000"}, seconds=240, what="the balancer")
        seen["ports"] = [listeners(farm, index) for index in range(2)]
        users = [farm.on(index, "ps -C nginx,haproxy -o user=").split() for index in range(2)]
        found.update(name for row in users for name in row)
        address = farm.boards.nodes[0].address
        command = [*farm.boards.outside_prefix, "python3", "-c", TRY, address]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        seen["stranger"] = done.stdout.strip()

    watcher = threading.Thread(target=look)
    watcher.start()
    done = farm.json("run", str(file))
    watcher.join()

    (row,) = done["results"]
    assert row["attempt"]["state"] == "ok", row["attempt"]["reason"]
    assert row["measurement"]["figures"]["failed_requests"] == 0
    assert seen["ports"] == [{"8000"}, {"8001"}] or seen["ports"] == [{"8000", "8001"}, {"8001"}]
    assert found
    assert "root" not in found
    assert seen["stranger"] == "TimeoutError"
    assert [listeners(farm, index) for index in range(2)] == [set(), set()]
