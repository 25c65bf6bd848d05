"""What benchmarks/faults.py keeps, ends and judges, without a cluster."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.asleep import asleep
from tests.waiting import wait_until

from boardcluster.cluster.state import IDENTITY_VARIABLE

_FILE = Path(__file__).parents[2] / "benchmarks" / "faults.py"
_SPEC = importlib.util.spec_from_file_location("benchmark_faults", _FILE)
assert _SPEC is not None
assert _SPEC.loader is not None
faults: Any = importlib.util.module_from_spec(_SPEC)
sys.modules["benchmark_faults"] = faults  # dataclasses look themselves up there
_SPEC.loader.exec_module(faults)


def row_of(kind: str, phase: str, **changed: Any) -> dict[str, Any]:
    return {
        "kind": kind,
        "phase": phase,
        "trials": 2,
        "size": "8 MB",
        "attempts": "2 ok",
        "seconds": 60.0,
        "status": 0,
        "ok": 2,
        "planted": True,
        "reason": "",
        **changed,
    }


# resume


def test_a_second_start_keeps_done_phases_and_runs_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[tuple[str, str]] = []

    def one_phase(place: Any, kind: str, phase: str, **_: Any) -> dict[str, Any]:
        (place.home / "nodes").mkdir(parents=True)  # stops at what is there, as a mount point does
        ran.append((kind, phase))
        if len(ran) == 3:
            raise KeyboardInterrupt
        return row_of(kind, phase, planted=len(ran) != 2, reason="" if len(ran) != 2 else "gone")

    monkeypatch.setattr(faults, "one_phase", one_phase)
    asked = {"identity": "id", "extent": faults.Extent(), "trials": 2, "only": ()}
    with pytest.raises(KeyboardInterrupt):
        faults.phases(tmp_path, **asked)

    assert faults.phases(tmp_path, **asked)

    assert ran[3:5] == ran[1:3], "the one without its fault, and the one that was broken off"
    assert len(ran) == 3 + 9
    assert len(list(tmp_path.glob("*.broken-1"))) == 2
    assert capsys.readouterr().out.count("| yes |") == 1 + 10


def test_another_question_is_not_answered_by_kept_phases() -> None:
    rows = [row_of("cut", "tasks"), row_of("cut", "proving", planted=False)]

    assert list(faults.finished(rows, trials=2, size="8 MB")) == [("cut", "tasks")]
    assert not faults.finished(rows, trials=20, size="8 MB")
    assert not faults.finished(rows, trials=2, size="1 MB")


def test_drivers_and_boards_of_a_second_start_get_new_numbers() -> None:
    starts = [{"start": 0, "status": 7}, {"start": 1, "status": 7}]
    killed = [{"start": 2, "boards": 0}]

    assert faults.next_number([], []) == (0, 0)
    assert faults.next_number(starts, killed) == (3, 1)
    assert faults.next_number([{"status": 7}] * 4, []) == (4, 0), "rows of earlier versions"


# planting


def planted(commands: Any, *, phase: str = "") -> Any:
    planting = faults.Planting()
    fault = faults.PhaseFault(seconds=0, commands=commands)
    thread = threading.Thread(target=planting.plant, args=("tasks", Path("nowhere"), fault))
    planting._await_phase = lambda *_: phase
    thread.start()
    thread.join()
    return planting


def test_a_fault_that_cannot_be_planted_is_no_yes() -> None:
    def gone() -> tuple[Sequence[str], Sequence[str]]:
        raise FileNotFoundError("/proc/1/ns/pid")

    planting = planted(gone)
    row = row_of("cut", "tasks", planted=planting.began, reason=planting.reason)

    assert faults.shortcomings(row) == [
        "the fault was not planted: FileNotFoundError: /proc/1/ns/pid"
    ]


def test_a_phase_that_never_comes_is_no_yes() -> None:
    planting = faults.Planting()
    planting.over.set()
    planting.plant("tasks", Path("nowhere"), faults.PhaseFault(seconds=0, commands=list))

    assert not planting.began
    assert planting.reason == "no run was seen in the phase tasks before the campaign ended"


def test_a_fault_that_does_not_end_is_told_from_one_that_was_not_planted() -> None:
    planting = planted(lambda: (["true"], ["sh", "-c", "echo busy >&2; exit 3"]))

    assert planting.began
    (words,) = faults.shortcomings(row_of("cut", "tasks", reason=planting.reason))
    assert words.startswith("the fault did not end: CalledProcessError")
    assert "busy" in words


def test_a_fault_that_fails_half_way_is_undone(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    planting = planted(lambda: (["sh", "-c", f"touch {mark}; exit 1"], ["rm", str(mark)]))

    assert not planting.began
    assert not mark.exists()


def test_when_the_block_fails_the_fault_ends_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "mark"
    fault = faults.PhaseFault(
        seconds=3600, commands=lambda: (["touch", str(mark)], ["rm", str(mark)])
    )
    monkeypatch.setattr(faults.Planting, "_await_phase", lambda *_: "")

    def ends_early() -> None:
        with faults.planting_in("tasks", tmp_path, fault) as planting:
            wait_until(lambda: planting.began, "the fault", seconds=30)
            raise KeyError

    with pytest.raises(KeyError):
        ends_early()

    assert not mark.exists()


# ending


def test_a_command_is_ended_with_what_started_it(tmp_path: Path) -> None:
    deaf = (
        "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); print(); time.sleep(99)"
    )
    heard = deaf.replace("SIG_IGN", "SIG_DFL")  # whatever the tests themselves were started with
    for code, number in ((heard, 2), (deaf, 9)):
        process = subprocess.Popen(
            [sys.executable, "-c", f"import sys; {code}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            bufsize=1,
            start_new_session=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        assert process.stdout is not None
        with process:
            process.stdout.readline()
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(faults, "END_SECONDS_MOST", 5.0 if number == 2 else 0.2)
                faults.ended(process)
        assert process.returncode == -number


def test_a_signal_waits_until_everything_is_undone() -> None:
    done: list[str] = []
    before = signal.signal(signal.SIGTERM, faults.end_by_signal)

    def told_to_end_while_it_undoes() -> None:
        with faults.undoing() as undo:
            undo.callback(done.append, "last")
            undo.callback(os.kill, os.getpid(), signal.SIGTERM)
            undo.callback(done.append, "first")

    try:
        with pytest.raises(SystemExit) as caught:
            told_to_end_while_it_undoes()
    finally:
        signal.signal(signal.SIGTERM, before)

    assert done == ["first", "last"]
    assert caught.value.code == 128 + signal.SIGTERM


def test_a_later_start_ends_what_a_killed_one_left(tmp_path: Path) -> None:
    with (
        faults.alone(tmp_path) as first,
        pytest.raises(SystemExit, match="at work"),
        faults.alone(tmp_path),
    ):
        pass
    with asleep(**{IDENTITY_VARIABLE: first}) as left, faults.alone(tmp_path) as second:
        assert left.wait(60) == -signal.SIGKILL

    assert first == second


# growth


def samples(**last: float) -> list[dict[str, Any]]:
    first = {
        "driver_bytes": 1e8,
        "driver_files": 11,
        "driver_threads": 3,
        "board_processes": 46,
        "board_memory_mb": 4000,
        "board_files": 9000,
        "board_disk_mb": 800,
        "attempts": 0,
    }
    return [
        {"start": 0, "boards": 0}
        | {name: value + (last.get(name, value) - value) * i / 29 for name, value in first.items()}
        for i in range(30)
    ]


@pytest.mark.parametrize(
    ("name", "steady", "grows"),
    [
        ("driver_bytes", 1.1e8, 2e8),
        ("driver_threads", 5, 9),
        ("board_memory_mb", 4400, 7000),
        ("board_files", 9000 + 99 * 100, 9000 + 101 * 100),
        ("board_disk_mb", 800 + 3.9 * 100, 800 + 4.1 * 100),
    ],
)
def test_growth_is_told_from_what_changes_a_little(name: str, steady: float, grows: float) -> None:
    assert not list(faults.grown(samples(attempts=100, **{name: steady})))
    (words,) = faults.grown(samples(attempts=100, **{name: grows}))
    assert words.startswith(f"{name} grew ")


def test_boards_are_judged_over_the_lives_of_all_their_drivers() -> None:
    rows = samples(attempts=100, board_memory_mb=9000, driver_bytes=9e8)
    for index, row in enumerate(rows):
        row["start"] = index // 5

    assert [words.split()[0] for words in faults.grown(rows)] == ["board_memory_mb"]


def test_files_and_their_bytes_are_counted_without_following_links(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "file").write_bytes(b"x" * 10_000)
    (tmp_path / "a" / "loop").symlink_to(tmp_path)

    count, size_bytes = faults.files_below(tmp_path)

    assert count == 2
    assert 10_000 <= size_bytes < 100_000


def test_the_memory_of_processes_is_read() -> None:
    assert faults.memory_bytes(os.getpid()) > 1e6
    assert faults.memory_bytes(0) == 0


@pytest.mark.parametrize("extent", [faults.Extent(), faults.SHORT])
def test_campaign_files_are_complete(extent: Any) -> None:
    text = extent.campaign("soak", repetitions=3, engines=json.dumps(["spark"]))

    assert f'size = "{extent.size}"' in text
    assert f'loss_wait = "{extent.loss_wait}"' in text
