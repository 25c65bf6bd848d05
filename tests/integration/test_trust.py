"""Planted faults on real nodes: each is found and named; without one, a run is valid.

The work is a loop in Python that keeps a worker busy, because what is tested is the watching.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from boardcluster.campaign.observation import Observed, observing
from boardcluster.fetch.cache import no_progress
from boardcluster.records import Verdict
from boardcluster.remote.base import ProcessRef
from boardcluster.remote.local import LocalRemote
from boardcluster.remote.netns import NetnsRemote
from boardcluster.remote.node_rpc import end_processes
from boardcluster.services import operation
from boardcluster.services.operation import LiveCluster
from tests.integration.conftest import Cli

RUN_SECONDS = 4.5
BUSY = "import time; end = time.monotonic() + {}\nwhile time.monotonic() < end: pass"
FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
GROUPS = (Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup/cpu,cpuacct"), Path("/sys/fs/cgroup"))
MACHINES_OWN = ("host: ", "together this explains")
"""How reasons begin that no test plants: others' work, time that other machines took."""

pytestmark = pytest.mark.alone


@pytest.fixture(scope="module")
def live(watched: Cli, cache: Path) -> LiveCluster:
    return operation.attach(watched.home, cache=cache, progress=no_progress)


@pytest.fixture
def folder(live: LiveCluster) -> Path:
    """A folder that the driver and every node see; an emulated node's /tmp is its own."""
    made = live.home / "attempts" / "trust"
    made.mkdir(parents=True, exist_ok=True)
    return made


def observed(
    live: LiveCluster,
    folder: Path,
    *,
    command: Sequence[str] = ("python3", "-c", BUSY.format(RUN_SECONDS)),
    fault: Callable[[], None] = lambda: None,
    hertz: float = 1.0,
) -> Observed:
    """Watch a run; the fault comes after a third of it."""
    with observing(live, folder, "trust-1", hertz=hertz) as observation:
        observation.settle()
        began = time.monotonic()
        timer = threading.Timer(RUN_SECONDS / 3, fault)
        timer.start()
        live.remotes["worker1"].run(command)
        ended = time.monotonic()
        timer.join()
        seen = observation.outcome(
            started_seconds=began, ended_seconds=ended, phases={"work": (began, ended)}
        )
    assert not list(folder.iterdir())
    return seen


def test_a_run_without_a_planted_fault_is_disturbed_by_the_machine_alone(
    live: LiveCluster, folder: Path
) -> None:
    """On a machine with nothing else to do it is valid; on any other, what it says is true."""
    seen = observed(live, folder)
    assert (seen.verdict is Verdict.VALID) == (not seen.reasons)
    assert seen.verdict is not Verdict.INVALID
    assert [row for row in seen.reasons if not row.startswith(MACHINES_OWN)] == []
    rows = {node.node: node for node in seen.telemetry.nodes}
    assert list(rows) == ["master", "worker1", "worker2", "host"]
    during = {name: (row.seconds > 0) & (row.seconds <= RUN_SECONDS) for name, row in rows.items()}
    used = rows["worker1"].columns["cpu_user_seconds"][during["worker1"]].sum()
    assert 0.1 * RUN_SECONDS < used < 1.3 * RUN_SECONDS  # the loop, and not the machine's total
    idle = rows["master"].columns["cpu_user_seconds"][during["master"]].sum()
    assert idle < 0.3 * RUN_SECONDS
    assert "cpu_idle_seconds" not in rows["worker1"].columns


def test_a_hog_on_the_machine_is_named(live: LiveCluster, folder: Path, tmp_path: Path) -> None:
    """As many as there are cores: beside an idle core it would be harmless."""
    here = LocalRemote("here")
    command = ["perl", "-e", "while (1) {}"]
    hogs = [
        here.start(command, log=str(tmp_path / f"log-{place}"))
        for place in range(os.cpu_count() or 1)
    ]
    try:
        seen = observed(live, folder)
    finally:
        end_processes(here, hogs, grace_seconds=1)
    assert seen.verdict is Verdict.TAINTED
    (reason,) = [reason for reason in seen.reasons if "other programs" in reason]
    assert reason.startswith("host: other programs used")
    assert "perl" in reason


def group_folder() -> tuple[Path, bool]:
    """Return a new group of processes whose CPU time can be limited; whether it is version 1."""
    for root in GROUPS:
        made = root / f"boardcluster-test-{os.getpid()}"
        with contextlib.suppress(OSError):
            made.mkdir()
            for name in ("cpu.cfs_quota_us", "cpu.max"):
                if (made / name).exists():
                    return made, name == "cpu.cfs_quota_us"
            made.rmdir()
    pytest.skip("no group of processes whose CPU time can be limited")


@pytest.mark.needs_root
def test_a_quota_that_is_cut_in_mid_run_is_named(live: LiveCluster, folder: Path) -> None:
    daemon = next(row for row in live.state.daemons if row.node == "worker1")
    group, first = group_folder()
    worker = live.as_root["worker1"]

    def cut() -> None:
        if first:
            (group / "cpu.cfs_quota_us").write_text("20000")
        else:
            (group / "cpu.max").write_text("20000 100000")

    try:
        worker.run(["sh", "-c", f"echo {daemon.process.pid} > {group}/cgroup.procs"])
        own = f"echo $$ > {group}/cgroup.procs; exec python3 -c '{BUSY.format(RUN_SECONDS)}'"
        as_root = replace(live, remotes=live.as_root)  # who alone may join the group
        seen = observed(as_root, folder, command=["sh", "-c", own], fault=cut)
    finally:
        worker.run(["sh", "-c", f"echo {daemon.process.pid} > {group.parent}/cgroup.procs"])
        group.rmdir()
    assert seen.verdict is Verdict.TAINTED
    reasons = [reason for reason in seen.reasons if "quota" in reason]
    assert all(reason.startswith("worker1: ") for reason in reasons)
    assert any("0.2" in reason for reason in reasons)


class Elsewhen(NetnsRemote):
    """An emulated node on which programs are started with a wall clock of their own."""

    def __init__(self, remote: Any, place: Path) -> None:
        self.__dict__.update(remote.__dict__)
        self._place = place

    def start(
        self,
        argv: Sequence[str],
        *,
        log: str,
        env: Mapping[str, str] | None = None,
        cwd: str = "/",
    ) -> ProcessRef:
        clock = {
            "LD_PRELOAD": str(FAKETIME),
            "FAKETIME_TIMESTAMP_FILE": str(self._place),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
        return super().start(argv, log=log, env={**(env or {}), **clock}, cwd=cwd)


@pytest.mark.skipif(FAKETIME is None, reason="needs libfaketime (make dev installs it as root)")
def test_a_step_of_the_clock_is_named(live: LiveCluster, folder: Path) -> None:
    folders = {node.name: node.folder for node in live.state.nodes}
    place = Path(folders["worker1"]) / "clock"
    place.write_text("+0\n")
    remote = Elsewhen(live.remotes["worker1"], place)
    stepping = replace(live, remotes={**live.remotes, "worker1": remote})
    seen = observed(stepping, folder, fault=lambda: void(place.write_text("-120\n")))
    assert seen.verdict is Verdict.TAINTED
    (reason,) = [reason for reason in seen.reasons if "clock" in reason]
    assert reason.startswith("worker1: ")
    assert "120 s" in reason


def void(_: object) -> None:
    """For what is called for its effect."""


def agent_of(node: str, live: LiveCluster) -> int:
    """Return the id, on this machine, of the agent that watches a node."""
    anchor = next(row.pid for row in live.state.nodes if row.name == node)
    space = Path(f"/proc/{anchor}/ns/pid").stat().st_ino
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if (
                entry.name.isdecimal()
                and (entry / "ns/pid").stat().st_ino == space
                and b"BOARDCLUSTER_ATTEMPT=trust-1" in (entry / "environ").read_bytes()
                and b'"interval_seconds"' in (entry / "cmdline").read_bytes()
            ):
                return int(entry.name)
    raise AssertionError(f"no agent on {node}")


def test_an_agent_that_is_killed_leaves_the_run_uncovered(live: LiveCluster, folder: Path) -> None:
    seen = observed(live, folder, fault=lambda: os.kill(agent_of("worker1", live), signal.SIGKILL))
    assert seen.verdict is Verdict.INVALID
    assert seen.reasons[0].startswith("worker1: ")
    assert "sample" in seen.reasons[0]


def test_an_agent_that_halts_for_a_while_leaves_a_gap(live: LiveCluster, folder: Path) -> None:
    def halt() -> None:
        agent = agent_of("worker1", live)
        os.kill(agent, signal.SIGSTOP)
        time.sleep(1.2)
        os.kill(agent, signal.SIGCONT)

    command = ("python3", "-c", BUSY.format(1.5 * RUN_SECONDS))
    seen = observed(live, folder, command=command, fault=halt, hertz=5.0)
    assert seen.verdict is Verdict.TAINTED
    assert any(reason.startswith("worker1: no samples from") for reason in seen.reasons)
