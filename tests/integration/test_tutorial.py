"""The tutorial, command by command, as a newcomer types it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.tidy.docs_blocks import console_blocks, script

ROOT = Path(__file__).resolve().parents[2]
QUICKER = {
    "make demo\n": "boardcluster demo --workers 2 --size 8MB --repetitions 1\n",
    "--size 64MB --repetitions 2": "--size 8MB --repetitions 1",
    "init --workers 2": "init --workers 2 --subnet 198.18.205.0/24",
}
"""The runs are the longest steps and are run in full by hand; the subnet must be free here."""


def test_every_command_of_the_tutorial_works(tmp_path: Path) -> None:
    text = script(console_blocks((ROOT / "docs/tutorial/first-cluster.md").read_text()))
    for long, quick in QUICKER.items():
        assert long in text
        text = text.replace(long, quick)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", text],
        cwd=ROOT,
        env={**os.environ, "PATH": path, "XDG_DATA_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    assert (tmp_path / "boardcluster" / "demo" / "report" / "report.html").is_file()
    assert (tmp_path / "boardcluster" / "default" / "report" / "report.html").is_file()
    assert not (tmp_path / "boardcluster" / "default" / "nodes").exists()
