"""A campaign that is left alone: what is lost comes back, and the campaign goes on by itself."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from boardcluster.cluster.kinds.emulated import nodes as emulated
from boardcluster.cluster.state import LiveState, load_state
from tests.integration.conftest import Cli

pytestmark = pytest.mark.needs_root

SUBNET = "198.18.62.0/24"
DISK_BYTES = 420_000_000
"""Of the master: the NameNode gives up below 100 MiB."""

CAMPAIGN = """\
[campaign]
name = "alone"
repetitions = 3
repeat_tainted = 0
loss_wait = "90 s"

[[matrix]]
workload = "wordcount"
engine = "mapreduce"
size = "8 MB"
"""


@pytest.fixture
def program(tmp_path: Path, cli: Callable[..., Cli]) -> Iterator[Cli]:
    """A cluster that is down, whose master has a small disk of its own."""
    made = cli(tmp_path / "home")
    made("init", "--workers", "2", "--subnet", SUBNET)
    disk = made.home / "nodes" / "master"
    disk.mkdir(parents=True)
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(disk)], check=True
    )
    try:
        yield made
    finally:
        made("down")
        subprocess.run(["umount", str(disk)], check=True)


def state_of(program: Cli) -> LiveState:
    state = load_state(program.home)
    assert state is not None
    return state


class Faults(threading.Thread):
    """Plants the next fault each time the next attempt at work has begun."""

    def __init__(self, program: Cli, faults: list[Callable[[], None]]) -> None:
        super().__init__(daemon=True)
        self._program = program
        self._faults = faults
        self.planted = 0

    def run(self) -> None:
        seen: set[tuple[str, ...]] = set()
        while self.planted < len(self._faults):
            found = (self._program.home / "attempts").glob("*/*/*/stderr.txt")
            attempts = {path.parts[-4:-2] for path in found if "prepare" not in path.parts[-2]}
            if attempts - seen:
                seen |= attempts
                time.sleep(3)  # YARN has the job by now
                self._faults[self.planted]()
                self.planted += 1
            time.sleep(0.2)


def test_a_campaign_finishes_unattended(program: Cli, tmp_path: Path) -> None:
    """A daemon killed, then a link cut, then the master's disk full: each costs one attempt."""

    def kill_a_datanode() -> None:
        state = state_of(program)
        names = ("datanode", "worker1")
        (daemon,) = (row for row in state.daemons if (row.name, row.node) == names)
        node = next(row for row in state.nodes if row.name == "worker1")
        emulated.remote_of(node, state).run(["kill", "-KILL", str(daemon.process.pid)])

    def cut_a_link() -> None:
        node = next(row for row in state_of(program).nodes if row.name == "worker2")
        inside = ["nsenter", "-t", str(node.pid), "-n", "ip", "link", "set", "eth0"]
        subprocess.run([*inside, "down"], check=True)
        threading.Timer(16, subprocess.run, ([*inside, "up"],), {"check": True}).start()

    def fill_the_masters_disk() -> None:
        filler = program.home / "nodes" / "master" / "filler"
        seen = os.statvfs(filler.parent)
        with filler.open("wb") as stream:
            os.posix_fallocate(stream.fileno(), 0, seen.f_bavail * seen.f_frsize - 20_000_000)
        threading.Timer(25, filler.unlink).start()

    file = tmp_path / "alone.toml"
    file.write_text(CAMPAIGN)
    faults = Faults(program, [kill_a_datanode, cut_a_link, fill_the_masters_disk])
    faults.start()
    program("run", str(file), "--yes")
    faults.join(5)
    assert faults.planted == 3

    rows = program.json("results", "--all")["results"]
    ended = [(row["attempt"]["state"], row["attempt"]["reason"]) for row in rows]
    assert [state for state, _ in ended].count("ok") == 3, ended
    reasons = [reason for state, reason in ended if state != "ok"]
    assert len(reasons) == 3, ended
    assert any("datanode on worker1" in reason for reason in reasons)
    assert any("worker2" in reason and "node_lost" in reason for reason in reasons)
    assert any("storage: master: its disk is" in reason for reason in reasons)
    assert not list((program.home / "nodes").glob("*/logs/containers/application_*"))
