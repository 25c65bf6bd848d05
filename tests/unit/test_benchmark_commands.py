"""How benchmarks run the command line."""

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
(marks / "began").touch()
try:
    signal.pause()
except KeyboardInterrupt:
    time.sleep(0.6)  # subprocess.run kills a program 0.25 s after Ctrl-C
    (marks / "cleaned up").touch()
    sys.exit(130)
"""
DRIVER = """\
import signal, sys
from pathlib import Path
import commands
signal.signal(signal.SIGINT, signal.default_int_handler)
commands.CLI = (sys.executable, "-c", Path(sys.argv[1]).read_text())
commands.run(Path(sys.argv[2]), sys.argv[2])
"""


def test_ctrl_c_waits_until_the_program_has_cleaned_up(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    marks = tmp_path / "marks"
    marks.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(program), str(marks)],
        env={**os.environ, "PYTHONPATH": str(FOLDER)},
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as driver:
        wait_until((marks / "began").exists, "the program")
        os.killpg(driver.pid, signal.SIGINT)
        _, said = driver.communicate(timeout=60)
    assert said.rstrip().endswith(b"KeyboardInterrupt")
    assert (marks / "cleaned up").exists()
