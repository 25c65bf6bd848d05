"""A campaign that is left alone: what is lost comes back, and the campaign goes on by itself."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from boardcluster.cluster.state import load_state
from boardcluster.fetch.cache import no_progress
from boardcluster.services import operation
from boardcluster.services.webhdfs import WebHdfs
from tests.integration.conftest import Cli
from tests.integration.services import state_of
from tests.integration.test_campaign import kill_daemon
from tests.waiting import wait_until

pytestmark = pytest.mark.needs_root

SUBNET = "198.18.222.0/24"
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


class Faults(threading.Thread):
    """Plants the next fault each time the next attempt at work has begun."""

    def __init__(self, program: Cli, faults: list[Callable[[], None]]) -> None:
        super().__init__(daemon=True)
        self._program = program
        self._faults = faults
        self._seen = self._attempts()
        self.planted = 0

    def _attempts(self) -> set[tuple[str, ...]]:
        found = (self._program.home / "attempts").glob("*/*/*/stderr.txt")
        return {path.parts[-4:-2] for path in found if "prepare" not in path.parts[-2]}

    def run(self) -> None:
        while self.planted < len(self._faults):
            attempts = self._attempts()
            if attempts - self._seen:
                self._seen |= attempts
                time.sleep(2)  # the job is on its way
                self._faults[self.planted]()
                self.planted += 1
            time.sleep(0.2)


@pytest.fixture(scope="module")
def alone(
    tmp_path_factory: pytest.TempPathFactory, cli: Callable[..., Cli]
) -> Iterator[tuple[Cli, list[tuple[str, str]]]]:
    """A campaign with two faults that nobody looked after, whose cluster is down again.

    A daemon is killed, then the master's own small disk fills. Returned are the states and reasons
    of its attempts.
    """
    folder = tmp_path_factory.mktemp("survival")
    program = cli(folder / "home")
    program("init", "--workers", "1", "--subnet", SUBNET)
    disk = program.home / "nodes" / "master"
    disk.mkdir(parents=True)
    size = f"size={DISK_BYTES}"
    subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(disk)], check=True)

    def kill_a_datanode() -> None:
        kill_daemon(state_of(program), "datanode", "worker1")

    def fill_the_masters_disk() -> None:
        seen = os.statvfs(disk)
        with (disk / "filler").open("wb") as stream:
            os.posix_fallocate(stream.fileno(), 0, seen.f_bavail * seen.f_frsize - 20_000_000)
        threading.Timer(18, (disk / "filler").unlink).start()

    try:
        file = folder / "alone.toml"
        file.write_text(CAMPAIGN)
        faults = Faults(program, [kill_a_datanode, fill_the_masters_disk])
        faults.start()
        program("run", str(file), "--yes")
        faults.join(5)
        assert faults.planted == 2
        rows = program.json("results", "--all")["results"]
        yield program, [(row["attempt"]["state"], row["attempt"]["reason"]) for row in rows]
    finally:
        program("down")
        subprocess.run(["umount", str(disk)], check=True)


def test_a_campaign_finishes_unattended(alone: tuple[Cli, list[tuple[str, str]]]) -> None:
    """Each fault costs one attempt, and the next fault finds the next one."""
    program, ended = alone
    assert [state for state, _ in ended] == ["invalid", "invalid", "ok"], ended
    killed, filled, _ = (reason for _, reason in ended)
    assert killed.startswith("node_lost: datanode on worker1")
    assert filled.startswith("storage: ")
    assert "master: its disk is" in filled or "safe mode" in filled  # which of them is seen first
    assert not list((program.home / "nodes").glob("*/logs/containers/application_*"))
    for name in ("namenode", "sparkhistory"):  # each logs to its file by itself
        assert " INFO " in (program.home / "nodes" / "master" / "logs" / f"{name}.log").read_text()


def test_missing_blocks_are_named_and_can_be_given_up(
    alone: tuple[Cli, list[tuple[str, str]]], cache: Path
) -> None:
    """The data of every DataNode is gone, as with one copy and a dead card: no wait helps."""
    program, _ = alone
    for folder in (program.home / "nodes").glob("worker*/data/datanode"):
        shutil.rmtree(folder)

    program("up", code=7)
    said = " ".join(program.stderr.split())
    assert "files lack blocks: " in said
    assert "/boardcluster/input/" in said
    assert "--leave-safe-mode" in said
    assert "not healthy" not in said, "it was not only given up at last"
    assert load_state(program.home) is None

    program("up", "--leave-safe-mode")
    assert "leaving safe mode: " in program.stderr
    assert program.json("status")["phase"] == "up"
    live = operation.attach(program.home, cache=cache, progress=no_progress)
    hdfs = WebHdfs(live.layout, live.master)
    (name,) = (row.name for row in hdfs.list("/boardcluster/input"))
    assert hdfs.list(f"/boardcluster/input/{name}") == [], "the next run makes it again"


SLEEPER = """\
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* The clocks of a machine that slept so many seconds as the file says: CLOCK_BOOTTIME and the wall
   clock counted them, CLOCK_MONOTONIC did not (clock_gettime(2)). */
int clock_gettime(clockid_t id, struct timespec *now)
{
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int status = real(id, now);
    if (id == CLOCK_BOOTTIME || id == CLOCK_REALTIME) {
        FILE *file = fopen(getenv("SLEPT_FILE"), "r");
        int seconds = 0;
        if (file) {
            if (fscanf(file, "%d", &seconds) != 1) seconds = 0;
            fclose(file);
        }
        now->tv_sec += seconds;
    }
    return status;
}
"""


def test_a_run_over_which_the_driver_slept_is_run_again(
    alone: tuple[Cli, list[tuple[str, str]]], tmp_path: Path, cli: Callable[..., Cli]
) -> None:
    """A real driver and a real job; its C library shows it the clocks of a machine that slept.

    A container cannot put its machine to sleep, and a time namespace cannot change its clocks once
    something runs in it.
    """
    source, library, slept = (tmp_path / name for name in ("sleep.c", "sleep.so", "slept"))
    source.write_text(SLEEPER)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True)
    program = cli(alone[0].home)
    program.env |= {"LD_PRELOAD": str(library), "SLEPT_FILE": str(slept)}
    file = tmp_path / "asleep.toml"
    file.write_text(
        CAMPAIGN.replace("repeat_tainted = 0", "repeat_tainted = 1").replace("alone", "asleep")
    )

    def fall_asleep() -> None:
        slept.write_text("70")

    faults = Faults(program, [fall_asleep])
    faults.start()
    with program.start("run", str(file), "--yes", "--json") as running:
        out, err = running.communicate(timeout=400)
    faults.join(5)
    rows = program.json("results", "--all", "--campaign", json.loads(out)["campaign"]["id"])
    ended = [(row["attempt"]["state"], row["attempt"]["reason"]) for row in rows["results"]]
    assert ended[0][0] == "invalid", out + err
    assert "this machine slept for 1 min 10 s" in ended[0][1]
    assert ended[1][0] == "ok", ended  # whatever else this machine does
    assert "slept" not in ended[1][1]


@pytest.mark.soak
def test_what_was_deleted_right_before_the_end_leaves_the_disks(
    tmp_path: Path, cli: Callable[..., Cli], cache: Path
) -> None:
    """A NameNode that starts ignores it in the first report of each DataNode."""
    program = cli(tmp_path / "home")
    program("init", "--workers", "1", "--subnet", "198.18.65.0/24")
    file = program.home / "cluster.toml"
    assert "dfs.blockreport.intervalMsec" not in file.read_text()
    with file.open("a") as stream:
        stream.write('\n[settings]\n"dfs.blockreport.intervalMsec" = 20000\n')

    def left() -> list[Path]:
        found = (program.home / "nodes" / "worker1" / "data" / "datanode").rglob("blk_*")
        return [path for path in found if path.stat().st_size == source.stat().st_size]

    source = tmp_path / "source"
    source.write_bytes(bytes(1_000_000))
    try:
        program("up")
        live = operation.attach(program.home, cache=cache, progress=no_progress)
        hdfs = WebHdfs(live.layout, live.master)
        hdfs.put(source, "/deleted")
        kill_daemon(live.state, "datanode", "worker1")
        hdfs.delete("/deleted")
        program("down")
        assert left()
        program("up")
        wait_until(lambda: not left(), "the second report", seconds=120)
    finally:
        program("down")


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
        assert "failed" not in [state for state, _ in ended], ended
    finally:
        thaw.cancel()
        subprocess.run(["fsfreeze", "--unfreeze", str(disk)], check=False)
        program("down")
        subprocess.run(["umount", str(disk)], check=True)
