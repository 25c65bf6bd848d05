"""``submit``: what its options refuse, and what appears of a program's output."""

from __future__ import annotations

import io
import os
import threading
from pathlib import Path

import pytest
from tests.unit.cli.desk import Desk

from boardcluster.cli import submit as module
from boardcluster.errors import ClusterNotUpError, UsageError
from boardcluster.waiting import wait_until

PATIENCE_SECONDS = 20.0


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_POLL_SECONDS", 0.001)


@pytest.mark.parametrize("longest", ["inf", "1e12"])
def test_a_time_that_no_clock_can_wait_for_is_refused(
    longest: str, desk: Desk, tmp_path: Path
) -> None:
    app = tmp_path / "app.py"
    app.write_text("print()\n")

    ran = desk("submit", "spark", "--timeout", longest, "--", str(app))

    assert ran.exit_code == 2
    assert desk.calls == []


def test_a_setting_that_the_engine_does_not_read_is_refused(desk: Desk, tmp_path: Path) -> None:
    jar = tmp_path / "job.jar"
    jar.write_bytes(b"PK\x03\x04")

    with pytest.raises(UsageError, match=r"without effect on jobs of mapreduce: spark\.executor"):
        desk("submit", "mapreduce", "--setting", "spark.executor.cores=2", "--", str(jar))


def test_programs_for_spark_read_settings_of_hadoop(desk: Desk, tmp_path: Path) -> None:
    jar = tmp_path / "job.jar"
    jar.write_bytes(b"PK\x03\x04")
    setting = "mapreduce.input.fileinputformat.split.minsize=128000000"

    with pytest.raises(ClusterNotUpError):  # the next thing that is looked at
        desk("submit", "spark", "--setting", setting, "--", str(jar))


def test_a_character_that_arrives_in_two_parts_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = io.StringIO()
    monkeypatch.setattr("sys.stdout", shown)
    printed = tmp_path / "stdout.txt"
    first, second = "10 °".encode()[:-1], "10 °C\n".encode()[4:]
    with module._following(printed, quiet=False), printed.open("wb", buffering=0) as stream:
        stream.write(first)
        wait_until(shown.getvalue, timeout_seconds=PATIENCE_SECONDS, poll_seconds=0.001)
        assert shown.getvalue() == "10 "
        stream.write(second)

    assert shown.getvalue() == "10 °C\n"


def test_a_reader_that_ends_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of ``| head``: neither while the program prints nor at exit, when the rest is flushed."""
    reading, writing = os.pipe()
    os.close(reading)
    unhandled: list[object] = []
    monkeypatch.setattr(threading, "excepthook", unhandled.append)
    printed = tmp_path / "stdout.txt"
    printed.write_text("a line\n")
    with os.fdopen(writing, "w") as target:
        monkeypatch.setattr("sys.stdout", target)
        with module._following(printed, quiet=False):
            pass
        target.flush()

    assert unhandled == []


def test_patterns_of_python_files_are_resolved_as_spark_does(tmp_path: Path) -> None:
    for name in ("b.zip", "a.zip"):
        (tmp_path / name).write_text("")
    found = module._py_files(f"{tmp_path}/*.zip, {tmp_path}/none.py,")
    assert found == (f"{tmp_path}/a.zip", f"{tmp_path}/b.zip", f"{tmp_path}/none.py")
