"""A real tuning on a small emulated cluster: killed in the middle, continued, proved."""

from __future__ import annotations

import signal
import subprocess
import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from boardcluster.tuning.record import Outcome, TuningRecord, read_records
from tests.integration.conftest import Cli
from tests.waiting import wait_until

TUNE = ("tune", "wordcount", "--engine", "spark", "--size", "2MB", "--seed", "1", "--tainted")


@pytest.fixture
def program(tmp_path: Path, cli: Callable[..., Cli]) -> Iterator[Cli]:
    made = cli(tmp_path / "home")
    made("init", "--workers", "1", "--subnet", "198.18.218.0/24")
    try:
        made("up")
        yield made
    finally:
        made("down")


def counted(record: TuningRecord) -> int:
    return sum(run.outcome is Outcome.OK for run in record.runs)


def wait_for_runs(program: Cli, process: subprocess.Popen[str], count: int) -> None:
    wait_until(
        lambda: sum(map(counted, read_records(program.home))) >= count,
        f"{count} runs",
        seconds=240,
        failed=process.poll,
        pause_seconds=0.2,
    )


def killed_tuning(program: Cli, runs: int) -> TuningRecord:
    """Begin a tuning and kill it in the middle of what comes after so many runs."""
    with program.start(*TUNE, "--budget", "20min") as process:
        wait_for_runs(program, process, runs)
        time.sleep(4)
        process.send_signal(signal.SIGKILL)
    [record] = read_records(program.home)
    return record


def check_continued(program: Cli, killed: TuningRecord) -> None:
    """Everything that was there before the kill is there, once, and what came later is new."""
    [record] = read_records(program.home)
    assert record.request == killed.request
    assert record.runs[: len(killed.runs)] == killed.runs
    assert counted(record) > counted(killed)
    assert len({row.run for row in record.runs}) == len(record.runs)
    rows = program.json("results", "--all")["results"]
    results = [row for row in rows if row["attempt"]]  # what was planned next has none
    assert {row["attempt"]["state"] for row in results} <= {"ok", "invalid"}
    verified = [row for row in results if row["attempt"]["state"] == "ok"]
    assert len(verified) >= counted(record)
    assert all(row["measurement"]["verification"] for row in verified)


@pytest.mark.needs_root
def test_a_killed_tuning_goes_on_and_ends_with_ctrl_c(program: Cli) -> None:
    killed = killed_tuning(program, 1)
    with program.start(*TUNE, "--continue", "--budget", "30min") as process:
        wait_for_runs(program, process, counted(killed) + 1)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    check_continued(program, killed)


@pytest.mark.needs_root
@pytest.mark.soak  # a proof of five pairs takes ten runs
def test_a_killed_tuning_goes_on_and_ends_with_a_proof(program: Cli) -> None:
    killed = killed_tuning(program, 2)
    took = next(row.wall_seconds for row in killed.runs if row.outcome is Outcome.OK)
    done = program.json(*TUNE, "--continue", "--budget", f"{killed.spent_seconds + 13 * took:.0f}")
    check_continued(program, killed)
    assert done["tuning"]["rows"][0]["purpose"] == "base"
    if done["tuning"]["proof"]:
        assert done["proof"]["pairs"] >= 5
    if profile := done["tuning"]["profile"]:
        written = tomllib.loads(Path(profile).read_text())
        assert written["base"] == "default"
        assert written["tuned"]["high"] < 1
