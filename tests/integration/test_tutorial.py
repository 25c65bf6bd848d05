"""The tutorial, command by command, as a newcomer types it: an ordinary user, without root."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.integration.conftest import NOBODY, as_nobody
from tests.tidy.docs_blocks import console_blocks, script

ROOT = Path(__file__).resolve().parents[2]
QUICKER = {
    "make demo\n": "",
    "--size 64MB --repetitions 2": "--size 1MB --repetitions 1",
    "init --workers 2": "init --workers 1 --subnet 198.18.205.0/24",
}
"""The runs are the longest steps and are run in full by hand; the subnet must be free here.

Such a user runs the demo in test_python.py, from a wheel.
"""

TAKE_DOWN = "trap 'status=$?; boardcluster down --wipe || true; exit $status' EXIT\n"
"""A command that fails in the middle leaves no cluster behind."""


@pytest.fixture
def user(cache: Path, open_folder: Path, fetched: None) -> Iterator[tuple[str, ...]]:
    with as_nobody(cache, open_folder) as prefix:
        yield prefix


def test_every_command_of_the_tutorial_works(
    open_folder: Path, user: tuple[str, ...], cache: Path, java_home: Path
) -> None:
    text = script(console_blocks((ROOT / "docs/tutorial/first-cluster.md").read_text()))
    for long, quick in QUICKER.items():
        assert long in text
        text = text.replace(long, quick)
    place = open_folder / "clone"
    place.mkdir()
    (place / "examples").symlink_to(ROOT / "examples")
    if os.geteuid() == 0:
        for path in (open_folder, place):
            os.chown(path, NOBODY, NOBODY)
    shell = partial(
        subprocess.run,
        cwd=place,
        env={
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(open_folder),
            "XDG_DATA_HOME": str(open_folder),
            "BOARDCLUSTER_CACHE": str(cache),
            "JAVA_HOME": str(java_home),
        },
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    try:
        done = shell([*user, "bash", "-c", TAKE_DOWN + text])
    except BaseException:  # the shell was killed, and with it what takes the clusters down
        shell([*user, "boardcluster", "down", "--wipe"])
        raise
    assert done.returncode == 0, f"{done.stdout[-20000:]}\n{done.stderr[-3000:]}"
    home = open_folder / "boardcluster" / "default"
    assert (home / "report" / "report.html").stat().st_size > 10_000
    assert not (home / "nodes").exists()
