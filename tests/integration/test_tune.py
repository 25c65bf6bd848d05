"""A real tuning on a small emulated cluster: killed in the middle, continued, proved."""

from __future__ import annotations

import signal
import time
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from boardcluster.tuning.record import Outcome, read_records
from tests.integration.conftest import Cli

TUNE = ("tune", "wordcount", "--engine", "spark", "--size", "2MB", "--seed", "1", "--tainted")


def wait_for_runs(home: Path, count: int) -> None:
    until = time.monotonic() + 240
    while sum(run.outcome is Outcome.OK for row in read_records(home) for run in row.runs) < count:
        assert time.monotonic() < until, "no run ended in time"
        time.sleep(0.2)


@pytest.mark.needs_root
def test_a_killed_tuning_goes_on_and_ends_with_a_proof(
    tmp_path: Path, cli: Callable[..., Cli]
) -> None:
    program = cli(tmp_path / "home")
    try:
        program("init", "--workers", "1", "--subnet", "198.18.218.0/24")
        program("up")
        # A proof of five pairs is what takes the time here; the budget is for two runs before it.
        with program.start(*TUNE, "--budget", "10min") as process:
            wait_for_runs(program.home, 2)
            time.sleep(4)
            process.send_signal(signal.SIGKILL)
        [killed] = read_records(program.home)
        took = next(row.wall_seconds for row in killed.runs if row.outcome is Outcome.OK)
        done = program.json(
            *TUNE, "--continue", "--budget", f"{killed.spent_seconds + 13 * took:.0f}"
        )
        [record] = read_records(program.home)
        assert record.request == killed.request
        assert record.runs[: len(killed.runs)] == killed.runs
        assert len({row.run for row in record.runs}) == len(record.runs)
        assert done["tuning"]["rows"][0]["purpose"] == "base"
        results = program.json("results", "--all")["results"]
        assert {row["attempt"]["state"] for row in results} <= {"ok", "invalid"}
        verified = [row for row in results if row["attempt"]["state"] == "ok"]
        assert all(row["measurement"]["verification"] for row in verified)
        if done["tuning"]["proof"]:
            assert done["proof"]["pairs"] >= 5
        if profile := done["tuning"]["profile"]:
            written = tomllib.loads(Path(profile).read_text())
            assert written["base"] == "default"
            assert written["tuned"]["high"] < 1
    finally:
        program("down")
