"""``results --watch`` beside a driver that is made up of its lock and its writes to the store."""

from __future__ import annotations

import contextlib
import datetime
import io
import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tests.builders import (
    NOON,
    end_attempt,
    make_campaign,
    make_fingerprint,
    make_measurement,
    make_trial,
    noon,
)
from tests.unit.analysis.telemetry import node
from typer.testing import CliRunner
from typer.testing import Result as Ran

from boardcluster.cli.app import app
from boardcluster.cli.show_progress import progress_picture
from boardcluster.cli.watch import follow
from boardcluster.cluster.lock import driver_lock
from boardcluster.errors import EmptySelectionError, StoreError, UsageError
from boardcluster.queries.progress import left_seconds, progress_document, progress_of
from boardcluster.records import (
    Attempt,
    AttemptState,
    Telemetry,
    Verdict,
)
from boardcluster.store import Store

SAMPLES = Telemetry(duration_seconds=60.0, nodes=(node("host"),))


class Lab:
    """A home, the store in it, and a driver that holds the lock or does not."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.driver = contextlib.ExitStack()

    def plan(self, name: str, count: int, *, hour: int = 10, **fields: Any) -> None:
        campaign = make_campaign(
            id=name,
            created_utc=f"2026-08-01T{hour:02}:00:00+00:00",
            cluster="Übung",
            name=fields.pop("title", ""),
        )
        trials = [
            make_trial(
                **{
                    "id": f"{name}-{number}",
                    "campaign_id": name,
                    "position": number,
                    "workload": "wordcount",
                    "size_bytes": 1_000_000,
                    "repetition": number + 1,
                    **fields,
                }
            )
            for number in range(count)
        ]
        with Store.open(self.home) as store:
            store.add_campaign(campaign, trials)

    def begin(self, trial: str, seconds: float = 0.0) -> Attempt:
        with Store.open(self.home) as store:
            return store.begin_attempt(trial, make_fingerprint(), noon(seconds))

    def end(
        self,
        attempt: Attempt,
        took_seconds: float | None = 40.0,
        *,
        around_seconds: float = 20.0,
        state: AttemptState = AttemptState.OK,
        verdict: Verdict = Verdict.VALID,
        dilation: float = 1.0,
    ) -> None:
        measured = None
        if took_seconds is not None:
            measured = make_measurement(
                took_seconds / dilation,
                verdict=verdict,
                verdict_reasons=() if verdict is Verdict.VALID else ("heat",),
                dilation=dilation,
            )
        began = datetime.datetime.fromisoformat(attempt.started_utc)
        ended = began + datetime.timedelta(seconds=(took_seconds or 0.0) + around_seconds)
        with Store.open(self.home) as store:
            end_attempt(
                store,
                attempt,
                measured,
                state=state,
                ended_utc=ended.isoformat(timespec="seconds"),
                telemetry=SAMPLES if measured else None,
            )

    def start_driver(self, doing: str = "run") -> None:
        self.driver.enter_context(driver_lock(self.home, doing=doing))

    def watch(self, *steps: Callable[[], object], as_json: bool = False, **named: Any) -> None:
        """Follow; between two looks the next step happens. It must end with the last one."""
        left = list(steps)
        follow(
            self.home,
            named.get("campaign"),
            as_json=as_json,
            pause=lambda _: left.pop(0)(),
        )
        assert not left, "it ended before the driver did"

    def __call__(self, *words: str) -> Ran:
        arguments = ["results", "--home", str(self.home), *words]
        return CliRunner().invoke(app, arguments, catch_exceptions=False)


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path / "home")


def test_a_line_for_each_change_until_the_driver_has_ended(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    lab.plan("c1", 2, title="süß")
    lab.start_driver()
    attempts: list[Attempt] = []

    lab.watch(
        lambda: attempts.append(lab.begin("c1-0")),
        lambda: None,  # nothing changed: no line
        lambda: lab.end(attempts[0]),
        lambda: attempts.append(lab.begin("c1-1", 60.0)),
        lambda: lab.end(attempts[1], None, state=AttemptState.FAILED),
        lab.driver.close,
    )

    title, *lines = capsys.readouterr().out.splitlines()
    assert title == "campaign c1 (süß) on Übung, emulated nodes"
    assert [line.partition(" done")[0] for line in lines] == [
        *("0 of 2", "0 of 2", "1 of 2", "1 of 2", "2 of 2", "2 of 2"),
    ]
    assert "unknown time" in lines[0]
    assert "now wordcount on spark, 1 MB, 4 workers, repetition 1: for" in lines[1]
    assert "1 of 2 done (1 valid); last wordcount on spark" in lines[2]
    assert ": 40 s, valid; 1 left: about 1 min 00 s" in lines[2]
    assert "the run itself usually takes 40 s" in lines[3]
    assert "(1 valid, 1 failed)" in lines[4]
    assert "failed: its job failed" in lines[4]
    assert lines[5].endswith("nothing is running: the campaign is finished")


def test_json_is_a_document_for_each_change_in_a_line(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    lab.plan("c1", 2)
    lab.start_driver()
    attempts: list[Attempt] = []

    lab.watch(
        lambda: attempts.append(lab.begin("c1-1")),
        lambda: lab.end(attempts[0], verdict=Verdict.TAINTED),
        lab.driver.close,
        as_json=True,
    )

    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["driver"], row["done"]) for row in rows] == [
        *(("run", 0), ("run", 0), ("run", 1), (None, 1)),
    ]
    assert rows[1]["running"]["trial"] == "c1-1"
    assert rows[1]["left_unknown_runs"] == 2
    assert rows[2]["running"] is None
    assert rows[2]["verdicts"] == {"tainted": 1}
    assert rows[2]["last"]["duration_seconds"] == 40.0
    assert (rows[2]["left_seconds"], rows[2]["left_unknown_runs"]) == (60.0, 0)
    assert all(row["emulated"] is True for row in rows)


def test_what_is_left_takes_what_runs_like_it_took_and_what_lies_around_them(lab: Lab) -> None:
    lab.plan("c1", 5)
    lab.end(lab.begin("c1-0"), 40.0, around_seconds=20.0)
    lab.end(lab.begin("c1-1", 100.0), 60.0, around_seconds=40.0)
    lab.begin("c1-2", 200.0)
    progress = progress_of(lab.home, None)
    assert progress is not None

    # Mean 50 s measured and 30 s around: 80 s for each of two, and what the present one has left.
    assert left_seconds(progress, NOON + datetime.timedelta(seconds=230)) == (210.0, 0)
    assert left_seconds(progress, NOON + datetime.timedelta(seconds=900)) == (160.0, 0)
    early = left_seconds(progress, NOON)  # the clock was set back
    assert early == (240.0, 0)


def test_a_dilated_run_counts_with_the_time_that_it_took_here(lab: Lab) -> None:
    lab.plan("c1", 2)
    lab.end(lab.begin("c1-0"), 40.0, around_seconds=20.0, dilation=4.0)
    progress = progress_of(lab.home, None)
    assert progress is not None

    assert left_seconds(progress, NOON) == (60.0, 0)
    shown = progress_document(progress, "run", NOON)
    assert shown["last"]["duration_seconds"] == 10.0  # type: ignore[index]


def test_warm_ups_of_emulated_boards_are_left_with_the_time_that_others_took(lab: Lab) -> None:
    lab.plan("c0", 1, hour=9)
    lab.end(lab.begin("c0-0"), 80.0, around_seconds=0.0, dilation=4.0)
    lab.plan("c1", 2, warm_up=True)
    before = progress_of(lab.home, "c1")
    lab.end(lab.begin("c1-0"), 10.0, around_seconds=0.0)  # at this machine's full speed
    after = progress_of(lab.home, "c1")
    assert before is not None
    assert after is not None

    assert left_seconds(before, NOON) == (160.0, 0)
    assert left_seconds(after, NOON) == (10.0, 0)


def test_runs_that_nobody_measured_yet_are_counted_and_not_guessed(lab: Lab) -> None:
    lab.plan("c0", 1, hour=9)
    lab.end(lab.begin("c0-0"))
    lab.plan("c1", 3, workers=2)
    progress = progress_of(lab.home, None)
    assert progress is not None

    assert left_seconds(progress, NOON) == (0.0, 3)


def test_the_newest_campaign_is_followed_also_one_that_is_planned_meanwhile(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    lab.plan("c1", 1, hour=9)
    lab.end(lab.begin("c1-0"))
    lab.start_driver()

    lab.watch(lambda: lab.plan("c2", 3, hour=11), lab.driver.close)

    shown = capsys.readouterr().out
    assert "campaign c1 on" in shown
    assert "campaign c2 on" in shown
    assert shown.index("1 of 1 done") < shown.index("0 of 3 done")


@pytest.mark.parametrize("doing", ["demo", "tune"])
def test_a_driver_that_has_not_planned_anything_yet_is_waited_for(
    doing: str, lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    lab.start_driver(doing)

    lab.watch(lambda: None, lambda: lab.plan("c1", 1), lab.driver.close)

    shown = capsys.readouterr().out
    assert shown.count(f"`boardcluster {doing}` is running") == 1
    assert "0 of 1 done" in shown


def test_an_older_campaign_that_is_done_is_not_waited_with(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    lab.plan("c1", 1, hour=9)
    lab.end(lab.begin("c1-0"))
    lab.plan("c2", 1, hour=11)
    with driver_lock(lab.home, doing="run"):
        lab.watch(campaign="c1")

    assert "1 of 1 done" in capsys.readouterr().out


@pytest.mark.parametrize("doing", ["", "up", "probe"])
def test_without_a_driver_of_runs_it_says_how_things_stand_and_ends(lab: Lab, doing: str) -> None:
    lab.plan("c1", 2, title="small")
    lab.end(lab.begin("c1-0"))
    lab.begin("c1-1", 60.0)  # and was killed
    with driver_lock(lab.home, doing=doing) if doing else contextlib.nullcontext():
        ran = lab("--watch")

    assert ran.exit_code == 0
    assert "left by a killed driver: wordcount on spark" in ran.stdout
    assert "nothing is running: 1 left; resume with `boardcluster run FILE --resume`" in ran.stdout


def test_what_a_killed_single_command_left_cannot_be_resumed(lab: Lab) -> None:
    lab.plan("c1", 2)
    lab.end(lab.begin("c1-0"))

    ran = lab("--watch")

    assert "nothing is running: 1 of 2 unfinished" in ran.stdout
    assert "--resume" not in ran.stdout


@pytest.mark.parametrize(
    ("title", "words"),
    [
        ("small", "resume with `boardcluster run FILE --resume`"),
        ("watch-night", "the command that began it continues it"),
    ],
)
def test_an_invalid_run_is_left_for_what_continues_the_campaign(
    title: str, words: str, lab: Lab
) -> None:
    lab.plan("c1", 2, title=title)
    lab.end(lab.begin("c1-0"))
    lab.end(lab.begin("c1-1", 60.0), None, state=AttemptState.INVALID)

    assert f"nothing is running: 1 left; {words}" in lab("--watch").stdout


def test_watching_writes_nothing(lab: Lab) -> None:
    lab.plan("c1", 2)
    lab.begin("c1-0")

    def files() -> dict[str, bytes]:
        found = (path for path in lab.home.rglob("*") if path.is_file())
        return {str(path): path.read_bytes() for path in found if path.suffix != ".sqlite-shm"}

    before = files()
    assert lab("--watch").exit_code == 0
    after = files()
    assert {name: text for name, text in after.items() if text or name in before} == before


def test_a_terminal_is_shown_a_bar_and_each_fact_in_a_line(lab: Lab) -> None:
    lab.plan("c1", 4)
    lab.end(lab.begin("c1-0"))
    lab.begin("c1-1", 60.0)
    progress = progress_of(lab.home, None)
    assert progress is not None
    console = Console(file=io.StringIO(), width=120, force_terminal=True, color_system=None)

    console.print(progress_picture(progress, "run", NOON + datetime.timedelta(seconds=90)))

    assert isinstance(console.file, io.StringIO)
    title, bar, *lines = console.file.getvalue().splitlines()
    assert title.startswith("campaign c1 on Übung")
    assert bar.endswith(" 1 of 4 done (1 valid)")
    assert bar.startswith("\N{BOX DRAWINGS HEAVY HORIZONTAL}" * 10)
    [now] = [line for line in lines if line.startswith("now wordcount on spark")]
    assert "for 30 s" in now
    assert lines[-1].startswith("3 left: about 2 min 30 s")


def test_ctrl_c_ends_it_and_gives_the_terminal_back(lab: Lab) -> None:
    lab.plan("c1", 2)
    lab.begin("c1-0")
    ours, theirs = pty.openpty()
    words = ["results", "--watch", "--home", str(lab.home)]
    with (
        driver_lock(lab.home, doing="run"),
        subprocess.Popen(
            [sys.executable, "-m", "boardcluster", *words],
            stdout=theirs,
            stderr=subprocess.PIPE,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
        ) as process,
    ):
        os.close(theirs)
        seen = b""
        deadline = time.monotonic() + 60
        while b"0 of 2 done" not in seen and time.monotonic() < deadline:
            seen += os.read(ours, 4096)
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(OSError):  # the other end is closed
            while more := os.read(ours, 4096):
                seen += more
        assert process.wait(timeout=60) == 130
    os.close(ours)
    assert seen.rindex(b"\x1b[?25h") > seen.rindex(b"\x1b[?25l")  # the cursor is shown again


@pytest.mark.parametrize("option", ["--all", "--rebuild", "--tainted"])
def test_what_is_about_numbers_does_not_go_with_it(lab: Lab, option: str) -> None:
    lab.plan("c1", 1)

    with pytest.raises(UsageError, match=f"cannot be used with {option}"):
        lab("--watch", option)


def test_nothing_to_watch_is_said(lab: Lab) -> None:
    with pytest.raises(EmptySelectionError, match="nothing is running"):
        lab("--watch")
    lab.plan("c1", 1)
    with pytest.raises(EmptySelectionError, match="c9"):
        lab("--watch", "--campaign", "c9")


def test_a_store_that_is_damaged_is_named(lab: Lab) -> None:
    lab.plan("c1", 1)
    (lab.home / "store.sqlite").write_bytes(b"not a database" * 100)

    with pytest.raises(StoreError):
        lab("--watch")
