"""The replicated database on boards that are reached by real SSH only: closed, gone afterwards."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.boards import Boards
from tests.integration.test_boards_cluster import Lab
from tests.integration.test_services_database import written
from tests.waiting import wait_until

pytestmark = [pytest.mark.needs_root, pytest.mark.soak]

TRY = """\
import socket, sys
for port in range(8010, 8016):
    try:
        socket.create_connection((sys.argv[1], port), timeout=1)
        print("reached", port)
    except OSError as error:
        print(type(error).__name__)
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, cache: Path, fetched: None) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("database")
    with Boards(4, folder=folder, subnet="198.18.47.0/24") as boards:
        lab = Lab(boards, folder / "home", cache)
        lab.declare()
        lab("up", "--yes")
        try:
            yield lab
        finally:
            lab("down")


def listeners(lab: Lab, index: int) -> set[str]:
    """Ports of the database that somebody listens on."""
    shown = lab.on(index, "ss -ltnpH 'sport >= 8010 and sport <= 8015'")
    return {row.split()[3].rpartition(":")[2] for row in shown.splitlines()}


@pytest.mark.parametrize("fault", ["none", "kill"])
def test_a_database_on_boards_is_proved_closed_and_leaves_nothing(
    lab: Lab, tmp_path: Path, fault: str
) -> None:
    file = written(tmp_path, f"boards-{fault}", fault=fault, transactions=4000, seconds=16)
    strangers: list[str] = []
    found: set[str] = set()  # users

    def look() -> None:
        """While it runs: as whom, and whether a stranger reaches it."""
        wait_until(lambda: listeners(lab, 0) >= {"8010"}, seconds=240, what="the balancer")
        users = [lab.on(index, "ps -C mariadbd,haproxy -o user=").split() for index in range(4)]
        found.update(name for row in users for name in row)
        for index in (0, 1):
            address = lab.boards.nodes[index].address
            command = [*lab.boards.outside_prefix, "python3", "-c", TRY, address]
            done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
            strangers.extend(done.stdout.split("\n"))

    watcher = threading.Thread(target=look)
    watcher.start()
    done = lab.json("run", file)
    watcher.join()

    (row,) = done["results"]
    assert row["attempt"]["state"] == "ok", row["attempt"]["reason"]
    assert found
    assert "root" not in found
    assert set(strangers) == {"TimeoutError", ""}
    assert [listeners(lab, index) for index in range(4)] == [set()] * 4
