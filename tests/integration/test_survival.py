"""A campaign that is left alone: what is lost comes back, and the campaign goes on by itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from boardcluster.cluster.kinds.emulated import nodes as emulated
from boardcluster.cluster.state import LiveState, load_state
from boardcluster.fetch.cache import no_progress
from boardcluster.services import operation
from boardcluster.services.webhdfs import WebHdfs
from tests.integration.conftest import Cli

pytestmark = pytest.mark.needs_root

SUBNET = "198.18.62.0/24"
DISK_BYTES = 420_000_000
"""Of the master: the NameNode gives up below 100 MiB."""

CAMPAIGN = """\
[campaign]
name = "alone"
repetitions = 1
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
        threading.Timer(30, subprocess.run, ([*inside, "up"],), {"check": True}).start()

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
    assert [state for state, _ in ended][-1:] == ["ok"], ended
    reasons = [reason for state, reason in ended if state != "ok"]
    assert len(reasons) == 3, ended
    assert any("datanode on worker1" in reason for reason in reasons)
    assert any("worker2" in reason and "node_lost" in reason for reason in reasons)
    assert any("storage: master: its disk is" in reason for reason in reasons)
    assert not list((program.home / "nodes").glob("*/logs/containers/application_*"))


@pytest.mark.soak
def test_a_medium_that_stands_still_for_a_while_costs_one_attempt(
    tmp_path: Path, cli: Callable[..., Cli]
) -> None:
    """The disk of a worker answers nothing for 70 s; the job fails by it, or is merely slow."""
    program = cli(tmp_path / "home")
    program("init", "--workers", "2", "--subnet", "198.18.64.0/24")
    disk, image = program.home / "nodes" / "worker2", tmp_path / "image"
    disk.mkdir(parents=True)
    with image.open("wb") as stream:
        stream.truncate(2_000_000_000)
    subprocess.run(["mkfs.ext4", "-q", str(image)], check=True)
    subprocess.run(["mount", "-o", "loop", str(image), str(disk)], check=True)
    thaw = threading.Timer(70, subprocess.run, (["fsfreeze", "--unfreeze", str(disk)],))

    def freeze() -> None:
        subprocess.run(["fsfreeze", "--freeze", str(disk)], check=True)
        thaw.start()

    try:
        file = tmp_path / "alone.toml"
        file.write_text(CAMPAIGN.replace("repeat_tainted = 0", "repeat_tainted = 1"))
        faults = Faults(program, [freeze])
        faults.start()
        program("run", str(file), "--yes")
        faults.join(5)
        rows = program.json("results", "--all")["results"]
        ended = [(row["attempt"]["state"], row["attempt"]["reason"]) for row in rows]
        assert ended[-1][0] == "ok", ended
        assert len(ended) > 1, ended
        assert "failed" not in [state for state, _ in ended], ended
    finally:
        thaw.cancel()
        subprocess.run(["fsfreeze", "--unfreeze", str(disk)], check=False)
        program("down")
        subprocess.run(["umount", str(disk)], check=True)


def test_missing_blocks_are_named_and_can_be_given_up(
    tmp_path: Path, cli: Callable[..., Cli], cache: Path
) -> None:
    """Replication 1, and the only DataNode's data is gone: no wait brings it back."""
    program = cli(tmp_path / "home")
    program("init", "--workers", "1", "--subnet", "198.18.63.0/24")
    try:
        program("up")
        live = operation.attach(program.home, cache=cache, progress=no_progress)
        file = tmp_path / "file"
        file.write_bytes(b"x" * 1000)
        hdfs = WebHdfs(live.layout, live.master)
        for name in ("one", "two"):  # of one block alone the NameNode needs 99.9 %, which is none
            hdfs.put(file, f"/mine/{name}", replication=1)
        hdfs.put(file, "/boardcluster/input/some/part-0", replication=1)
        program("down")
        shutil.rmtree(program.home / "nodes" / "worker1" / "data" / "datanode")

        began = time.monotonic()
        program("up", code=7)
        assert time.monotonic() - began < 120
        lost = "3 files miss blocks: /boardcluster/input/some/part-0, /mine/one, /mine/two"
        assert lost in program.stderr
        assert "boardcluster up --leave-safe-mode" in " ".join(program.stderr.split())
        assert load_state(program.home) is None

        program("up", "--leave-safe-mode")
        assert f"leaving safe mode: {lost}" in program.stderr
        assert program.json("status")["phase"] == "up"
        live = operation.attach(program.home, cache=cache, progress=no_progress)
        hdfs = WebHdfs(live.layout, live.master)
        assert not hdfs.exists("/boardcluster/input/some/part-0"), "the next run makes it again"
        for name in (
            "namenode",
            "sparkhistory",
        ):  # each logs to its file by itself, and prints there
            log = program.home / "nodes" / "master" / "logs" / f"{name}.log"
            assert " INFO " in log.read_text()
    finally:
        program("down", "--wipe")
