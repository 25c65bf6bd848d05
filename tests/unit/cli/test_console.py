"""What a person sees, on a terminal and elsewhere."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from boardcluster.cli.console import Reporter, print_json, print_table
from boardcluster.records import Engine


def reporter(*, terminal: bool) -> tuple[Reporter, io.StringIO]:
    made, out = Reporter(), io.StringIO()
    made._console = Console(file=out, force_terminal=terminal, width=100, highlight=False)
    return made, out


def test_elsewhere_progress_is_plain_lines_at_quarters() -> None:
    made, out = reporter(terminal=False)
    with made.following():
        for done in range(0, 1_000_001, 10_000):
            made.progress("fetching", done, 1_000_000)
    lines = out.getvalue().splitlines()
    assert [line.split("] ")[1] for line in lines] == [
        f"fetching: {percent} % of 1 MB" for percent in (0, 25, 50, 75, 100)
    ]
    assert "\x1b" not in out.getvalue()


@pytest.mark.parametrize("terminal", [True, False])
def test_a_message_is_a_line_once_and_stays(terminal: bool) -> None:
    made, out = reporter(terminal=terminal)
    with made.following():
        made.progress("corrupt in the cache: x.jar", 0, 0)
        made.progress("corrupt in the cache: x.jar", 0, 0)
    assert out.getvalue().count("corrupt in the cache: x.jar") == 1


def test_on_a_terminal_counts_are_counts_and_bytes_are_bytes() -> None:
    made, out = reporter(terminal=True)
    with made.following() as live:
        live.progress("runs", 1, 6)
        live.progress("fetching", 2_000_000, 4_000_000)
        assert live._live is not None
        live._live.refresh()
    assert "1 of 6" in out.getvalue()
    assert "2 of 4 MB" in out.getvalue()


def test_a_table_without_a_terminal_is_not_cut(capsys: pytest.CaptureFixture[str]) -> None:
    words = "a reason that is rather long " * 4
    print_table("runs", ["state", "reason"], [["failed", words.strip()]])
    assert words.strip() in capsys.readouterr().out


def test_json_is_plain(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"engine": Engine.SPARK, "rows": [("é", 1)]})
    assert json.loads(capsys.readouterr().out) == {"engine": "spark", "rows": [["é", 1]]}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shell_completion_names_the_commands(shell: str, tmp_path: Path) -> None:
    env = {**os.environ, "_BOARDCLUSTER_COMPLETE": f"complete_{shell}", "HOME": str(tmp_path)}
    env |= {"COMP_WORDS": "boardcluster st", "COMP_CWORD": "1"}
    env |= {"_TYPER_COMPLETE_ARGS": "boardcluster st", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    program = Path(sys.executable).parent / "boardcluster"
    done = subprocess.run([program], capture_output=True, text=True, env=env, check=False)
    assert "status" in done.stdout
    assert "submit" not in done.stdout
