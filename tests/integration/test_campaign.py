"""Campaigns that survive: kills at every commit point, lost nodes, other forms, full disks."""

from __future__ import annotations

import datetime
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from boardcluster.cluster.kinds.emulated import nodes as emulated
from boardcluster.cluster.state import LiveState, load_state
from boardcluster.remote.node_rpc import rpc
from tests.integration.conftest import Cli, finish, is_unwatched
from tests.integration.test_faults import still_running
from tests.unit.campaign import test_killed as killed
from tests.waiting import wait_until

QUICK = """\
[campaign]
name = "{name}"
repeat_tainted = 0  # this machine has other work
telemetry_hertz = 10
seed = 3
repetitions = {repetitions}

[[matrix]]
workload = "netpipe"
parameters.netpipe.largest_bytes = "1 MiB"
parameters.netpipe.repeats = 1
"""

LONG_PI = """\
[campaign]
name = "long-pi"
repeat_tainted = 0
repetitions = 1

[[matrix]]
workload = "pi"
engine = "mapreduce"
parameters.pi.maps = 2
parameters.pi.samples = 50000000
"""

_STORE = "boardcluster.store.database"
POINTS = [
    (f"{_STORE}:transaction", "after", 2),  # the plan is stored
    ("boardcluster.campaign.job:JobRun.prepare", "after", 1),
    ("boardcluster.campaign.job:JobRun.run", "before", 1),
    ("boardcluster.campaign.execution:Execution._gather", "before", 1),
    ("boardcluster.campaign.job:JobRun.prove", "after", 1),
    (f"{_STORE}:write_record", "after", 2),  # the end is in its file, and not in the tables
]
"""Where the driver is killed: function, moment, how many calls in.

Every commit point, with nodes that are made up: tests/unit/campaign/test_killed.py.
"""

EVERY_POINT = [
    POINTS[0],
    *(point for point in killed.POINTS if point[0] != f"{_STORE}:write_record"),
    (f"{_STORE}:write_record", "before", 1),
    (f"{_STORE}:write_record", "after", 1),
    (f"{_STORE}:write_record", "before", 2),
    (f"{_STORE}:write_record", "after", 2),
]
"""All of them, with real daemons; a resume stores no plan, so its first record is an attempt."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, cli: Callable[..., Cli]) -> Iterator[Cli]:
    """One cluster for all; a test brings it up if it wants it up."""
    program = cli(tmp_path_factory.mktemp("campaign") / "home")
    program("init", "--workers", "2", "--subnet", "198.18.207.0/24")
    try:
        yield program
    finally:
        program("down", "--wipe")


def written(folder: Path, text: str) -> str:
    path = folder / "campaign.toml"
    path.write_text(text)
    return str(path)


def kill_at(program: Cli, point: tuple[str, str, int], *arguments: str) -> None:
    place, when, call = point
    command = [
        *(sys.executable, "-m", "tests.integration.killer"),
        *(place, when, str(call), "--", "run", *arguments),
    ]
    done = subprocess.run(command, env=program.env, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, f"{point}: {done.returncode}\n{done.stderr}"


def attempts_of(program: Cli, campaign: str) -> list[dict[str, Any]]:
    """Every attempt of a campaign, oldest first."""
    rows = program.json("results", "--all", "--campaign", campaign)["results"]
    return [row["attempt"] for row in rows]


@pytest.mark.parametrize(
    ("name", "points"),
    [("points", POINTS), pytest.param("every-point", EVERY_POINT, marks=pytest.mark.soak)],
)
def test_killed_at_commit_points_the_results_are_the_same(
    site: Cli, tmp_path: Path, name: str, points: list[tuple[str, str, int]]
) -> None:
    """I1 to I4, with real daemons: one trial for each point, killed there and resumed."""
    site("up")
    planned = len(points)
    file = written(tmp_path, QUICK.format(name=name, repetitions=planned))
    for number, point in enumerate(points):
        kill_at(site, point, file, *(("--resume",) if number else ()))
    done, _ = finish(site, file)
    assert done["summary"]["ok"] == done["summary"]["planned"] == planned

    attempts = attempts_of(site, done["campaign"]["id"])
    unwatched = sum(is_unwatched(row) for row in attempts)
    by_trial: dict[str, list[str]] = {}
    for attempt in attempts:
        by_trial.setdefault(attempt["trial_id"], []).append(attempt["state"])
    assert len(by_trial) == planned
    for trial, states in by_trial.items():
        assert states[-1] == "ok", trial
        assert set(states[:-1]) <= {"invalid"}, trial
    most = planned + len(points) + unwatched
    assert len(attempts) <= most, "a kill may cost one attempt and no more"
    assert still_running(site) == []
    site("results", "--rebuild")
    assert attempts_of(site, done["campaign"]["id"]) == attempts


def test_an_edited_campaign_and_an_empty_selection_are_refused(site: Cli, tmp_path: Path) -> None:
    site("up")
    file = written(tmp_path, QUICK.format(name="edited", repetitions=2))
    site("run", file, "--only", "repetition=1")
    assert "2 runs have no verified result" not in site.stderr
    site("run", file, code=2)
    assert "--resume" in site.stderr
    site("run", file, "--resume", "--only", "engine=spark", code=9)
    Path(file).write_text(QUICK.format(name="edited", repetitions=3))
    site("run", file, "--resume", code=2)
    assert "edited" in site.stderr
    assert "--new" in site.stderr
    Path(file).write_text(
        QUICK.format(name="edited", repetitions=2) + "# a comment means nothing\n"
    )
    summary = site.json("run", file, "--resume")["summary"]
    assert (summary["ok"], summary["planned"]) == (2, 2)
    site("run", file, "--resume", code=9)
    assert "nothing left to run" in site.stderr
    shown = site.json("run", file, "--dry-run", "--new")
    assert len(shown["trials"]) == 2


def begin(program: Cli, file: str, *options: str) -> tuple[subprocess.Popen[str], LiveState]:
    """Start a campaign and wait until its job runs on the cluster."""
    before = len(list((program.home / "attempts").glob("*/*/*/stderr.txt")))
    process = program.start("run", file, *options)

    def submitted() -> bool:
        assert process.poll() is None, process.communicate()
        return len(list((program.home / "attempts").glob("*/*/*/stderr.txt"))) > before

    wait_until(submitted, seconds=90, what="the job")
    time.sleep(6)
    state = load_state(program.home)
    assert state is not None
    return process, state


def kill_daemon(state: LiveState, name: str, node: str) -> None:
    daemon = next(row for row in state.daemons if (row.name, row.node) == (name, node))
    place = next(row for row in state.nodes if row.name == node)
    victim = [[daemon.process.pid, daemon.process.start_ticks]]
    remote = emulated.remote_of(place, state)
    rpc(remote, {"do": "end", "processes": victim, "grace_seconds": 0})


def latest(program: Cli) -> str:
    """The id of the campaign that began last."""
    ids = [str(row["id"]) for row in program.json("results")["campaigns"]]
    return max(ids)  # they begin with the time


def ended_seconds(program: Cli) -> float:
    """The moment at which the latest attempt ended, as seconds since 1970."""
    attempt = attempts_of(program, latest(program))[-1]
    assert attempt["state"] == "invalid"
    return datetime.datetime.fromisoformat(attempt["ended_utc"]).timestamp()


def test_a_lost_daemon_is_found_in_seconds_and_a_resume_goes_on(site: Cli, tmp_path: Path) -> None:
    """With a policy to stop. A DataNode: test_survival.py, where the campaign goes on by itself.

    That a node is lost as a whole, or its network: test_boards_cluster.py.
    """
    site("up")
    file = written(tmp_path, LONG_PI.replace("repetitions", 'on_loss = "stop"\nrepetitions', 1))
    process, state = begin(site, file)
    moment = time.time()
    kill_daemon(state, "nodemanager", "worker1")
    _, err = process.communicate(timeout=240)
    assert process.returncode == 7, err
    assert "nodemanager on worker1" in err
    lost = attempts_of(site, latest(site))[-1]
    assert lost["state"] == "invalid"
    assert lost["reason"].startswith("node_lost: nodemanager on worker1")
    # HDFS would take 630 s and YARN 600 s. The end includes killing what was submitted.
    assert ended_seconds(site) - moment < 120
    assert site.json("status")["phase"] == "degraded"
    site("up", code=7)
    assert "not healthy: nodemanager on worker1 ended" in site.stderr

    summary = site.json("run", file, "--resume")["summary"]
    assert (summary["ok"], summary["planned"]) == (1, 1)
    states = [attempt["state"] for attempt in attempts_of(site, latest(site))]
    assert states == ["invalid", "ok"]
    assert site.json("status")["phase"] == "up", "the cluster was up before"


FORMS = """\
[campaign]
name = "forms"
repeat_tainted = 0
repetitions = 1
cache = "drop"

[[matrix]]
workload = "teragen"
engine = "mapreduce"
size = "1 MB"
workers = 1

[[matrix]]
workload = "teragen"
engine = "mapreduce"
size = "1 MB"
master = "combined"
replication = 1
checksum = "null"
"""


def hdfs_of(program: Cli) -> dict[str, int]:
    """The files of the declared form's HDFS, with the moment at which each was written last."""
    files = [path for path in program.home.glob("nodes/*/data/**/*") if path.is_file()]
    return {str(path): path.stat().st_mtime_ns for path in files}


def test_a_campaign_takes_the_cluster_through_its_forms_and_leaves_it_as_found(
    site: Cli, tmp_path: Path
) -> None:
    site("up")
    site("down")
    declared = hdfs_of(site)
    done = site.json("run", written(tmp_path, FORMS))
    assert done["summary"]["ok"] == 2
    nodes = {
        (row["trial"]["workers"], row["trial"]["master"]): row["attempt"]["fingerprint"]["nodes"]
        for row in done["results"]
    }
    assert nodes == {(1, "declared"): 2, (2, "combined"): 2}
    assert site.json("status")["phase"] == "down", "the cluster was down before"
    combined = next(r for r in done["results"] if r["trial"]["master"] == "combined")
    conf = site.home / combined["attempt"]["artefacts"] / "conf" / "hdfs-site.xml"
    assert "<value>NULL</value>" in conf.read_text()
    # Each form has its own HDFS; the declared one is not touched by the others.
    folders = {path.name for path in (site.home / "nodes" / "worker1").glob("data*")}
    assert folders == {"data", "data-1w", "data-2w-combined"}
    assert declared
    assert hdfs_of(site) == declared


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system of its own, for the data of one worker."""
    image = tmp_path / "image"
    with image.open("wb") as stream:
        stream.truncate(3_000_000_000)  # HDFS keeps 1 GiB of each volume free
    subprocess.run(["mkfs.ext4", "-q", "-m", "0", str(image)], check=True)
    folder = tmp_path / "home" / "nodes" / "worker1" / "data"
    folder.mkdir(parents=True)
    subprocess.run(["mount", "-o", "loop,errors=remount-ro", str(image), str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.needs_root
def test_what_a_worker_cannot_hold_or_schedule_or_write(
    disk: Path, tmp_path: Path, cli: Callable[..., Cli]
) -> None:
    """One worker whose disk is too small, fills up and breaks; and jobs that cannot run there."""
    program = cli(tmp_path / "home")
    try:
        program("init", "--workers", "1", "--subnet", "198.18.208.0/24")
        # YARN looks at disks every two minutes by itself; a job may wait for a full one for ever.
        with (program.home / "cluster.toml").open("a") as stream:
            stream.write(
                '\n[settings]\n"yarn.nodemanager.disk-health-checker.interval-ms" = 5000\n'
            )
        program("up")
        oom = program_of_mine(program, "-Dmapreduce.task.io.sort.mb=1500", timeout=120)
        assert oom["state"] == "failed"
        assert oom["reason"].startswith("oom (raise ")
        most = yarn_maximum(program)
        stalled = program_of_mine(program, f"-Dmapreduce.map.memory.mb={most}", timeout=25)
        assert stalled["state"] == "invalid"
        assert stalled["reason"].startswith("stalled: not done after 25 s; last seen: application_")
        program("run", "teragen", "--size", "4GB", "--engine", "mapreduce", code=9)
        refused = program.json("results")["results"][-1]["attempt"]
        assert refused["reason"].startswith("storage: output and intermediate data take 4 GB")

        filler = disk / "filler"
        row = broken_in_mid_run(program, lambda: fill(filler))
        # Now, or by then not quite: the job that failed has deleted what it wrote.
        assert "worker1: its disk is" in row["attempt"]["reason"]
        filler.unlink()
        program("down")  # HDFS and YARN would believe in the full disk for some minutes more
        program("up")
        abort = ["mount", "-o", "remount,abort", str(disk)]
        row = broken_in_mid_run(program, lambda: subprocess.run(abort, check=True))
        assert "worker1: its disk cannot be written to" in row["attempt"]["reason"]
    finally:
        program("down")


def yarn_maximum(program: Cli) -> str:
    """The largest container that YARN grants, in MB: here the whole of the only worker."""
    text = (program.home / "nodes" / "worker1" / "conf" / "yarn-site.xml").read_text()
    value = text.split("<name>yarn.scheduler.maximum-allocation-mb</name>")[1]
    return value.split("<value>")[1].split("<")[0]


def program_of_mine(program: Cli, setting: str, *, timeout: int) -> dict[str, Any]:
    """Submit a job with a setting that does not work; return its attempt."""
    jar = next(program.cache.glob("engines/*3.4.2*/**/hadoop-mapreduce-examples-*.jar"))
    program("submit", "mapreduce", "--timeout", str(timeout), "--", str(jar), "pi",
            "-Dmapreduce.map.maxattempts=1", setting, "1", "10", code=9)  # fmt: skip
    attempt: dict[str, Any] = program.json("results")["results"][-1]["attempt"]
    return attempt


def fill(target: Path) -> None:
    """Take what is left of a disk, at once."""

    def taken() -> bool:  # while others write: what was free a moment ago may be gone
        left_bytes = shutil.disk_usage(target.parent).free - (4 << 20)
        words = ["fallocate", "-l", str(max(left_bytes, 1)), str(target)]
        return subprocess.run(words, check=False, capture_output=True).returncode == 0

    wait_until(taken, "a full disk")


def broken_in_mid_run(program: Cli, fault: Callable[[], object]) -> dict[str, Any]:
    """Break something while a job writes; return the result, which must be no result."""

    def submissions() -> set[Path]:
        return set((program.home / "attempts").glob("*/1/*/stderr.txt"))

    before = submissions()
    arguments = ("run", "teragen", "--size", "1GB", "--engine", "mapreduce", "--repetitions", "1")
    with program.start(*arguments) as process:
        wait_until(lambda: submissions() != before, seconds=60, what="the job")
        time.sleep(7)
        fault()
        try:
            _, err = process.communicate(timeout=300)
        except subprocess.TimeoutExpired:
            process.terminate()  # or `with` would wait for it without an end
            raise
    assert process.returncode == 7, err
    row: dict[str, Any] = program.json("results")["results"][-1]
    assert row["attempt"]["state"] == "invalid"
    assert row["attempt"]["reason"].startswith("storage: ")
    assert row["measurement"] is None
    return row
