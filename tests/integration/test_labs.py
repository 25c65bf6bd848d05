"""The labs, sheet by sheet, as a student types them: an ordinary user on one cluster, no root.

What a sheet shows as output, or as lines of a report, must be there. Sizes and repetitions are
those of ``QUICKER``; everything else runs as it stands in the sheets.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.integration.conftest import NOBODY, as_nobody
from tests.tidy.docs_blocks import (
    Block,
    console_blocks,
    missing,
    parts,
    script,
    shown_files,
)

ROOT = Path(__file__).resolve().parents[2]
LABS = ROOT / "docs" / "labs"

IN_MEMORY = Path("/dev/shm/boardcluster-labs")
"""Sheet 2 makes it; one that was there before is somebody else's."""

SHEETS = (
    *("1-speed-up", "3-when-one-machine-wins", "5-watts-and-euros"),
    *("4-a-node-dies", "2-disk-or-processor"),
)
"""In this order the cluster is seldom started anew: 2 ends with another one in memory."""

LONG = ("1-speed-up", "5-watts-and-euros", "2-disk-or-processor", "4-a-node-dies")
"""A minute or more each, for runs on two clusters in turn or six starts of one; before a release.

The commands and files of every sheet are checked in tests/tidy. Clusters change with the number of
workers in test_campaign.py, too, and what dies in a sheet dies in test_campaign.py, test_faults.py
and test_survival.py.
"""

QUICKER = {
    "1-speed-up": {
        "run examples/labs/speed-up.toml": (
            "run examples/labs/speed-up.toml --only repetition=1 --only workers=2,3"
        ),
    },
    "2-disk-or-processor": {
        "run examples/labs/disk-or-processor.toml\n": (
            "run examples/labs/disk-or-processor.toml --only repetition=1 --only replication=0,1\n"
        ),
        "--only workload=dfsio": "--only repetition=1 --only replication=1",
    },
    "3-when-one-machine-wins": {
        "run examples/labs/cost.toml": (
            "run examples/labs/cost.toml --only repetition=1 --only workers=3 --only engine=spark"
            " --only size=64MB"
        ),
    },
    "4-a-node-dies": {"sleep 5": "sleep 2"},
    "5-watts-and-euros": {
        "--continue": "--continue --only repetition=1 --only workers=2,3",
    },
}
"""What is typed instead, by sheet. Also, the cluster is seldom taken down at the end."""

SMALLER = {
    "speed-up.toml": {"samples = [800_000_000, 1_000]": "samples = [1_000_000]"},
    "disk-or-processor.toml": {
        "samples = 800_000_000": "samples = 1_000_000",
        'size = "512 MB"': 'size = "64 MB"',
        'size = "256 MB"': 'size = "32 MB"',
    },
    "a-node-dies.toml": {'size = "256 MB"': 'size = "64 MB"'},
}
"""What is in the campaign files instead."""

AT_THE_END = "boardcluster down\n"

CHANGES_THE_CLUSTER = ("4-a-node-dies",)
"""After these the next sheet needs another cluster, as it does for a student."""

END_WHAT_RUNS = "trap 'status=$?; kill $(jobs -p) 2>/dev/null || true; wait; exit $status' EXIT\n"
"""A command that fails while a campaign runs in the background leaves no driver behind."""


def replaced(text: str, changes: dict[str, str]) -> str:
    for before, after in changes.items():
        assert before in text, before
        text = text.replace(before, after)
    return text


def preparation() -> tuple[Block, ...]:
    """The blocks of the labs' first page; its first command is for every new terminal."""
    blocks = console_blocks((LABS / "README.md").read_text())
    return tuple(block for block in blocks if not block.needs)


@dataclass(frozen=True)
class Student:
    """Somebody at a laptop, in a folder that looks like the clone."""

    place: Path
    user: tuple[str, ...]
    cache: Path
    java_home: Path

    def type(self, text: str) -> subprocess.CompletedProcess[str]:
        """Run a script in the student's shell; all that is printed comes in its order."""
        return subprocess.run(
            [*self.user, "bash", "-c", END_WHAT_RUNS + text],
            cwd=self.place,
            env={
                **os.environ,
                "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
                "HOME": str(self.place.parent),
                "XDG_DATA_HOME": str(self.place.parent / ".local" / "share"),
                "BOARDCLUSTER_CACHE": str(self.cache),
                "JAVA_HOME": str(self.java_home),
                "COLUMNS": "240",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
            check=False,
        )


@pytest.fixture(scope="module")
def student(cache: Path, java_home: Path, fetched: None) -> Iterator[Student]:
    """A student who has prepared the labs, as their first page says."""
    with (
        tempfile.TemporaryDirectory(prefix="boardcluster-labs-", dir="/var/tmp") as name,
        as_nobody(cache, Path(name)) as user,
    ):
        folder = Path(name)
        folder.chmod(0o755)
        place = folder / "clone"
        shutil.copytree(ROOT / "examples" / "labs", place / "examples" / "labs")
        for file, changes in SMALLER.items():
            path = place / "examples" / "labs" / file
            path.write_text(replaced(path.read_text(), changes))
        if os.geteuid() == 0:
            for path in (folder, place, *place.rglob("*")):
                os.chown(path, NOBODY, NOBODY)
        made = Student(place=place, user=user, cache=cache, java_home=java_home)
        was_there = IN_MEMORY.exists()
        try:
            done = made.type(script(preparation()))
            assert done.returncode == 0, done.stdout
            yield made
        finally:
            made.type("boardcluster down --wipe --cluster labs")
            if not was_there:
                made.type(f"boardcluster down --wipe --home {IN_MEMORY}")
                made.type(f"rm -rf {IN_MEMORY}")


def test_every_sheet_is_run() -> None:
    assert sorted(SHEETS) == sorted(path.stem for path in LABS.glob("[0-9]*.md"))


@pytest.mark.parametrize(
    "sheet",
    [pytest.param(name, marks=pytest.mark.soak) if name in LONG else name for name in SHEETS],
)
def test_a_lab_shows_what_its_sheet_says(sheet: str, student: Student) -> None:
    markdown = (LABS / f"{sheet}.md").read_text()
    blocks = console_blocks(markdown)
    text = replaced(script(blocks, marked=True), QUICKER[sheet])
    assert text.endswith(AT_THE_END)

    new_terminal = preparation()[0].commands[0]
    if sheet not in CHANGES_THE_CLUSTER:
        text = text.removesuffix(AT_THE_END)
    done = student.type(f"{new_terminal}\n{text}")

    assert done.returncode == 0, done.stdout[-20000:]
    printed = parts(done.stdout)
    checked = 0
    for block in blocks:
        if not block.needs:
            absent = missing(block.output, printed[block.line])
            assert not absent, f"line {block.line}: {absent}\n\n{printed[block.line]}"
            checked += bool(block.output)
    for path, shown in shown_files(markdown):
        written = (student.place / path).read_text()
        absent = missing(shown, written)
        assert not absent, f"{path}: {absent}\n\n{written}"
        checked += 1
    assert checked >= 2, "a sheet says what is to be seen"
