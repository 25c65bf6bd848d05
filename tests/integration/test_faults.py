"""What SAFETY promises when things die: the driver, a daemon, patience."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from boardcluster.cluster import processes
from boardcluster.cluster.kinds.emulated import nodes as emulated
from boardcluster.cluster.state import load_state
from boardcluster.remote.node_rpc import http
from tests.integration.conftest import Cli
from tests.waiting import wait_until


def started_daemons(home: Path) -> int:
    state = load_state(home)
    return len(state.daemons) if state else 0


@pytest.fixture
def small(tmp_path: Path, cli: Callable[..., Cli]) -> Iterator[Cli]:
    """A cluster that is down, of the test's own."""
    program = cli(tmp_path / "home")
    program("init", "--workers", "1", "--subnet", "198.18.202.0/24")
    try:
        yield program
    finally:
        program("down", "--wipe")


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory, cli: Callable[..., Cli]) -> Iterator[Cli]:
    """A cluster that is up, common to the tests of this module that leave it up."""
    program = cli(tmp_path_factory.mktemp("faults") / "home")
    program("init", "--workers", "1", "--subnet", "198.18.209.0/24")
    try:
        program("up")
        yield program
    finally:
        program("down", "--wipe")


def alive(program: Cli) -> bool:
    state = load_state(program.home)
    return bool(state and processes.leftover_processes(state.identity))


def still_running(program: Cli) -> list[str]:
    """Applications that YARN still runs, and submissions whose driver is gone."""
    state = load_state(program.home)
    assert state is not None
    master = emulated.remote_of(state.nodes[0], state)
    answer = http(master, "GET", "http://master:8088/ws/v1/cluster/apps?states=RUNNING,ACCEPTED")
    rows = (answer.json().get("apps") or {}).get("app") or []
    clients = master.run(["ps", "-eo", "args"]).text
    orphans = [row for row in clients.splitlines() if "RunJar" in row or "SparkSubmit" in row]
    return [row["id"] for row in rows] + orphans


@pytest.mark.parametrize(
    ("signum", "code", "daemons"),
    [
        (signal.SIGINT, 130, 4),
        (signal.SIGTERM, 143, 0),
        pytest.param(signal.SIGINT, 130, 0, marks=pytest.mark.soak),
        pytest.param(signal.SIGTERM, 143, 4, marks=pytest.mark.soak),
    ],
)
def test_interrupted_up_leaves_nothing(
    small: Cli, signum: signal.Signals, code: int, daemons: int
) -> None:
    with small.start("up") as process:
        wait_until(
            lambda: load_state(small.home) is not None and started_daemons(small.home) >= daemons,
            seconds=60,
            what=f"{daemons} daemons",
        )
        state = load_state(small.home)
        process.send_signal(signum)
        process.communicate(timeout=60)
    assert process.returncode == code
    assert state is not None
    assert processes.leftover_processes(state.identity) == []
    assert load_state(small.home) is None


def test_driver_killed_while_starting_then_status_down_up(small: Cli) -> None:
    for daemons in (1, 5):
        with small.start("up") as process:
            wait_until(
                lambda least=daemons: started_daemons(small.home) >= least,  # type: ignore[misc]
                seconds=60,
                what=f"{daemons} daemons",
            )
            process.kill()
            process.communicate()
        assert alive(small)
        assert small.json("status")["phase"] in ("starting", "dead")
        small("run", "wordcount", code=7)
        assert "not up" in small.stderr
        if daemons == 1:
            small("down")
            assert load_state(small.home) is None
    small("up")
    assert small.json("status")["phase"] == "up"


def test_driver_killed_or_interrupted_in_mid_run(up: Cli) -> None:
    job = ("--size", "16MB", "--repetitions", "1", "--engine", "mapreduce")
    arguments = ("run", "wordcount", *job)

    def running() -> bool:
        return any((up.home / "attempts").glob("*/1/*/stderr.txt"))

    with up.start(*arguments) as process:
        wait_until(running, seconds=60, what="the first run")
        second = up.start("run", "wordcount")
        _, err = second.communicate(timeout=60)
        assert second.returncode == 7
        assert "boardcluster run" in err
        assert str(process.pid) in err
        time.sleep(4)
        process.kill()
        process.communicate()
    (row,) = up.json("results")["results"]
    assert row["attempt"]["state"] == "running"

    with up.start(*arguments) as process:
        wait_until(
            lambda: len(list((up.home / "attempts").glob("*/1/*/stderr.txt"))) == 2,
            seconds=60,
            what="the second run",
        )
        time.sleep(4)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 130
    assert still_running(up) == [], "the killed driver's job runs beside the next one"
    states = [r["attempt"]["state"] for r in up.json("results")["results"]]
    assert states == ["invalid", "invalid"]
    reasons = [r["attempt"]["reason"] for r in up.json("results")["results"]]
    assert all("interrupted" in reason for reason in reasons)

    done = up.json(*arguments)
    assert done["summary"]["ok"] == 1


def test_a_stalled_run_is_invalid_and_its_application_is_killed(up: Cli) -> None:
    up("run", "wordcount", "--size", "16MB", "--repetitions", "1", "--engine", "spark",
          "--timeout", "4", code=9)  # fmt: skip
    row = up.json("results")["results"][-1]
    assert row["attempt"]["state"] == "invalid"
    assert "stalled" in row["attempt"]["reason"]
    done = up.json("run", "wordcount", "--size", "1MB", "--repetitions", "1", "--engine", "spark")
    assert done["summary"]["ok"] == 1


def test_down_finds_a_cluster_whose_state_names_dead_processes(up: Cli) -> None:
    """Nodes killed behind our back: `status` says so and `down` clears up. The last with `up`."""
    state = load_state(up.home)
    assert state is not None
    for node in state.nodes:
        os.kill(node.pid, signal.SIGKILL)
    wait_until(
        lambda: not any(processes.is_alive(n.pid, n.start_ticks) for n in state.nodes),
        seconds=60,
        what="the nodes to die",
    )
    assert up.json("status")["phase"] == "dead"
    up("down")
    assert up.json("status")["phase"] == "down"


@pytest.mark.soak
@pytest.mark.parametrize("words", ["run 1 of 2", "DataNodes"])
def test_interrupted_demo_leaves_nothing_but_its_results(
    tmp_path: Path, cli: Callable[..., Cli], words: str
) -> None:
    """Ctrl-C while it runs, and while it starts; as it comes up on a local node: test_local.py."""
    program = cli(tmp_path / "home")
    arguments = ("demo", "--workers", "1", "--size", "1MB", "--repetitions", "1")
    with program.start(*arguments) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if words in line:
                break
        state = load_state(program.home)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 130
    assert state is not None
    assert processes.leftover_processes(state.identity) == []
    assert load_state(program.home) is None
    assert not (program.home / "nodes").exists()


@pytest.mark.needs_root
def test_a_full_disk_is_refused_and_can_be_freed(tmp_path: Path, cli: Callable[..., Cli]) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=30m", "tmpfs", str(disk)], check=True)
    try:
        program = cli(disk / "home")
        program("init", "--workers", "1", "--subnet", "198.18.206.0/24")
        program("up", code=5)
        assert "free" in program.stderr
        assert load_state(program.home) is None
        program("down", "--wipe")
    finally:
        subprocess.run(["umount", str(disk)], check=True)
