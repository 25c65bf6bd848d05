"""The command line, as benchmarks run it, and the version that it is."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

CLI = (sys.executable, "-m", "boardcluster")


def run(
    home: Path,
    *arguments: str,
    codes: Sequence[int] = (0,),
    program: Sequence[str] = CLI,
    **options: Any,
) -> subprocess.CompletedProcess[str]:
    """Run the command line on a home; end this program if it does not end with one of the codes.

    It cannot ask: at a terminal, a benchmark would wait for an answer, or measure without it. After
    Ctrl-C, which it gets as well, it is waited for until it has cleaned up; subprocess.run
    would kill it after a quarter of a second or at once, and its cluster would stay up.

    Args:
        home: the home.
        *arguments: of the command line.
        codes: exit codes that are right.
        program: another version's command line.
        **options: of Popen, as where its output goes.

    Returns:
        What it wrote to pipes, and its exit code.
    """
    argv = [*program, *arguments]
    env = {**os.environ, "BOARDCLUSTER_HOME": str(home)}
    process = subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, text=True, **options)
    try:
        out, err = process.communicate()
    except KeyboardInterrupt:
        process.communicate()
        raise
    if process.returncode not in codes:
        said = "".join(f"\n{text}" for text in (out, err) if text)
        sys.exit(f"{' '.join(arguments)} ended with {process.returncode}{said}")
    return subprocess.CompletedProcess(argv, process.returncode, out, err)


def checked_out() -> str:
    """Return the commit of this checkout, with a + if files differ from it; empty outside git."""
    argv = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    folder = Path(__file__).parent
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout.strip()
