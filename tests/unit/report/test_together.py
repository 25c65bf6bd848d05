"""Work on several processes: answers in order, errors as they are, and nobody left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from boardcluster.report.together import together

PROGRAM = """
import time
from boardcluster.report.together import together
if __name__ == "__main__":
    together(time.sleep, [60.0] * 16, many=1)
"""


def children_of(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.parametrize("many", [1, 100])
def test_answers_come_in_the_order_of_the_items(many: int) -> None:
    told: list[tuple[int, int]] = []
    found = together(abs, range(-9, 0), many=many, follow=lambda *row: told.append(row))
    assert found == list(range(9, 0, -1))
    assert told == ([(done, 9) for done in range(1, 10)] if many == 1 else [])


def test_what_goes_wrong_is_raised() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        together(int, ["1", "two", "3"], many=1)


def test_processes_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    with subprocess.Popen([sys.executable, str(program)]) as parent:
        deadline = time.monotonic() + 30
        workers: list[int] = []
        while len(workers) < 2 and time.monotonic() < deadline:
            time.sleep(0.2)
            workers = children_of(parent.pid)
        time.sleep(3)  # until they have begun to watch
        workers = children_of(parent.pid)
        parent.send_signal(signal.SIGKILL)
    while any(Path(f"/proc/{pid}/stat").exists() for pid in workers):
        assert time.monotonic() < deadline + 10, f"left behind: {workers}"
        time.sleep(0.2)
    assert len(workers) >= min(2, os.cpu_count() or 1)
