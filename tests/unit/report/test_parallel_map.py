"""Work on several processes: answers in order, errors as they are, and nobody left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.process_tree import children_of
from tests.waiting import wait_until

from boardcluster.report.parallel_map import parallel_map

PROGRAM = """
import time
from boardcluster.report.parallel_map import parallel_map
if __name__ == "__main__":
    parallel_map(time.sleep, [60.0] * 16, many=1)
"""


def threads_of(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


@pytest.mark.parametrize("many", [1, 100])
def test_answers_come_in_the_order_of_the_items(many: int) -> None:
    told: list[tuple[int, int]] = []
    found = parallel_map(abs, range(-9, 0), many=many, follow=lambda *row: told.append(row))
    assert found == list(range(9, 0, -1))
    assert told == ([(done, 9) for done in range(1, 10)] if many == 1 else [])


def test_what_goes_wrong_is_raised() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        parallel_map(int, ["1", "two", "3"], many=1)


def test_processes_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    with subprocess.Popen([sys.executable, str(program)]) as parent:
        many = min(2, os.cpu_count() or 1)
        # One that watches its parent has a thread for that; a third child only counts semaphores.
        wait_until(
            lambda: len([pid for pid in children_of(parent.pid) if threads_of(pid) > 1]) >= many,
            "workers that watch",
            seconds=30,
        )
        workers = children_of(parent.pid)
        parent.send_signal(signal.SIGKILL)
    wait_until(
        lambda: not [pid for pid in workers if Path(f"/proc/{pid}/stat").exists()],
        "the workers' end",
        seconds=40,
    )
    assert len(workers) >= many


def test_a_script_without_a_guard_is_not_run_again(tmp_path: Path) -> None:
    script = tmp_path / "three_lines.py"
    script.write_text(
        "from boardcluster.report.parallel_map import parallel_map\n"
        "print('runs', flush=True)\n"
        "print(parallel_map(abs, [-1, -2, -3], many=1))\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr) == ("runs\n[1, 2, 3]\n", "")
