"""Other engine pairs, other profiles: the same code."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.conftest import Cli

SUBNET = "198.18.203.0/24"


@pytest.fixture
def make(tmp_path: Path, cli: Callable[..., Cli]) -> Iterator[Callable[..., Cli]]:
    made: list[Cli] = []

    def start(*options: str) -> Cli:
        program = cli(tmp_path / f"home{len(made)}")
        made.append(program)
        program("init", "--subnet", SUBNET, *options)
        program("up")
        return program

    try:
        yield start
    finally:
        for program in made:
            program("down", "--wipe")


def counted(program: Cli, *options: str) -> None:
    done = program.json("run", "wordcount", "--size", "8MB", "--repetitions", "1", *options)
    assert done["summary"]["ok"] == done["summary"]["planned"] > 0


def test_the_second_pair_is_only_another_lock_file(
    make: Callable[..., Cli], cli: Callable[..., Cli], tmp_path: Path
) -> None:
    """With the profile of 2021, which is warned about, and refused where it would hang."""
    pair = ("--engines", "hadoop-3.3.6-spark-3.5.9", "--profile", "paper-2021")
    alone = cli(tmp_path / "alone")
    alone("init", "--workers", "1", *pair, code=5)
    assert "3072" in alone.stderr
    assert "4096" in alone.stderr

    program = make("--workers", "2", *pair)
    counted(program)
    rows = program.json("results")["results"]
    assert {row["trial"]["engine"] for row in rows} == {"mapreduce", "spark"}
    for row in rows:
        fingerprint = row["attempt"]["fingerprint"]
        assert (fingerprint["hadoop"], fingerprint["spark"]) == ("3.3.6", "3.5.9")
        assert fingerprint["profile"] == "paper-2021"

    # Spark 2.3.0 copied its jars before each job, so Spark copies as many bytes of its own.
    defaults = (program.home / "conf" / "master" / "spark-defaults.conf").read_text()
    [line] = re.findall(r"^spark\.yarn\.dist\.files (.*)$", defaults, re.MULTILINE)
    jars = [Path(uri.removeprefix("file://")) for uri in line.split(",")]
    assert 0.99 * 234_516_466 < sum(jar.stat().st_size for jar in jars) <= 234_516_466
    logs = [path.read_text() for path in (program.home / "attempts").glob("*/*/*/stderr.txt")]
    for jar in jars:
        assert sum(f"Uploading resource file:{jar}" in text for text in logs) == 1, jar


@pytest.mark.soak
@pytest.mark.parametrize("profile", ["upstream", "paper-2026"])
def test_a_fixed_profile_runs_verified_work(make: Callable[..., Cli], profile: str) -> None:
    counted(make("--workers", "1", "--profile", profile))
