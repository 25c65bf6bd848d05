"""How benchmarks run the command line."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.waiting import wait_until

FOLDER = Path(__file__).parents[2] / "benchmarks"
PROGRAM = """\
import pathlib, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # where it was ignored
marks = pathlib.Path(sys.argv[1])
try:
    (marks / "began").touch()
    signal.pause()
except KeyboardInterrupt:
    time.sleep(0.6)  # subprocess.run kills a program 0.25 s after Ctrl-C, or at once
    (marks / "cleaned up").touch()
    sys.exit(130)
"""
DRIVER = """\
import signal, sys
from pathlib import Path
import commands
signal.signal(signal.SIGINT, signal.default_int_handler)
program, marks = map(Path, sys.argv[1:])
try:
    commands.run(marks, str(marks), program=(sys.executable, "-c", program.read_text()))
except KeyboardInterrupt:
    print((marks / "cleaned up").exists())
"""


def test_ctrl_c_waits_until_the_program_has_cleaned_up(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    marks = tmp_path / "marks"
    marks.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(program), str(marks)],
        env={**os.environ, "PYTHONPATH": str(FOLDER)},
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as driver:
        try:
            wait_until((marks / "began").exists, "the program")
            os.killpg(driver.pid, signal.SIGINT)
            said, _ = driver.communicate(timeout=60)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(driver.pid, signal.SIGKILL)
    assert said == b"True\n"
