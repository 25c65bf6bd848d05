"""A real cluster under watch: a planted setting is seen, named, and found by bisection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.conftest import Cli

SLOW = "mapreduce.client.progressmonitor.pollinterval"
"""In ms; a client that looks so seldom whether its job is done makes every job last so long."""
HARMLESS = "mapreduce.task.io.sort.factor=20"
ROUNDS_MOST = 10


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory, cli: Callable[..., Cli]) -> Iterator[Cli]:
    program = cli(tmp_path_factory.mktemp("watched") / "home")
    program("init", "--workers", "1", "--subnet", "198.18.219.0/24")
    try:
        program("up")
        yield program
    finally:
        program("down", "--wipe")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "night watch.toml"
    path.write_text(
        '[campaign]\nname = "night"\nrepetitions = 1\nrepeat_tainted = 0\n'
        '[[matrix]]\nworkload = "teragen"\nengine = "mapreduce"\nsize = "1 MB"\n'
    )
    return path


@pytest.mark.needs_root
@pytest.mark.soak
def test_a_slow_setting_leaves_the_limits_and_is_named(up: Cli, file: Path, tmp_path: Path) -> None:
    watch = ("watch-performance", str(file))
    for _ in range(ROUNDS_MOST):  # a run of which nothing is known is no part of a baseline
        done = up.json(*watch, "--baseline", "5", "--tainted")
        [cell] = done["watch"]["cells"]
        if cell["chart"]["limits_seconds"]:
            break
    assert cell["chart"]["limits_seconds"], cell["words"]
    assert done["out"] == []
    # On a busy machine the limits are wide. The client sleeps at least once, and so long.
    slow_seconds = 3 + 1.1 * cell["chart"]["limits_seconds"]["high"]
    spec = up.home / "cluster.toml"
    declared = spec.read_text()
    up("down")
    spec.write_text(f'{declared}\n[settings]\n"{SLOW}" = {round(1000 * slow_seconds)}\n')
    try:  # from here on each round brings the cluster up itself
        up(*watch, "--notify", f"touch '{tmp_path}/", code=2)
        program = tmp_path / "tell me"
        program.write_text(f'#!/bin/sh\nprintf "%s" "$1" >"{tmp_path}/told"\n')
        program.chmod(0o755)
        up(*watch, "--notify", f"'{program}'", code=12)
        sentence = (tmp_path / "told").read_text()
        assert sentence in up.stderr
        assert "teragen on mapreduce, 1 MB left its limits" in sentence
        assert f"{SLOW}: not set, then" in sentence
        shown = up.json(*watch, "--show")
        assert shown["out"] == ["teragen on mapreduce, 1 MB"]
        [cell] = shown["watch"]["cells"]
        assert cell["chart"]["change"]["before"] == len(shown["watch"]["rounds"]) - 1
        up("report")
        text = (up.home / "report" / "report.md").read_text()
        assert "## Watched over time" in text
        assert "left its limits" in text
    finally:
        spec.write_text(declared)


@pytest.mark.needs_root
@pytest.mark.soak
def test_bisection_finds_the_planted_setting(up: Cli, file: Path) -> None:
    up("up")
    settings = f"{HARMLESS},{SLOW}=60000"
    found = up.json("watch-performance", str(file), "--bisect", "cluster", settings, "--tainted")
    assert [row["key"] for row in found["found"]] == [SLOW]
    assert all(row["ratio"]["counts"][0] >= 3 for row in found["steps"] if row["ratio"])
    again = up.json("watch-performance", str(file), "--bisect", "cluster", settings, "--tainted")
    assert again == found
