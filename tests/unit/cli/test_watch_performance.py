"""``watch-performance``: rounds, limits, notices, a timer and bisections; on a made-up cluster."""

from __future__ import annotations

import datetime
import itertools
import json
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from tests.builders import NOON, make_campaign, make_measurement, make_result, make_telemetry
from tests.unit.cli.desk import Desk, bad

import boardcluster as bc
from boardcluster.campaign.begin import CampaignRequest
from boardcluster.campaign.life import CampaignOutcome
from boardcluster.campaign.trial import TrialEnd
from boardcluster.errors import (
    CapacityError,
    ClusterError,
    OutOfLimitsError,
    RunError,
    SpecError,
    StoreError,
    UsageError,
)
from boardcluster.records import AttemptState, Disturbance, Engine, Trial, Verdict
from boardcluster.services.declaration import read_spec
from boardcluster.store import CampaignSummary

NEW, OLD = "hadoop-3.4.2-spark-4.1.4", "hadoop-3.3.6-spark-3.5.9"
STEADY = (20.0, 20.3, 19.8, 20.1, 19.9)
SLOW = "mapreduce.client.progressmonitor.pollinterval"
HARMLESS = (
    "mapreduce.task.io.sort.factor=20",
    "mapreduce.reduce.shuffle.parallelcopies=3",
    "mapreduce.map.sort.spill.percent=0.7",
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "night.toml"
    path.write_text(
        '[campaign]\nname = "night"\nrepetitions = 1\n'
        '[[matrix]]\nworkload = "wordcount"\nengine = "mapreduce"\nsize = "1 MB"\n'
    )
    return path


@pytest.fixture(autouse=True)
def days(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each campaign begin a day after the one before, as rounds do."""

    def passing() -> Iterator[str]:
        day = NOON
        while True:
            day += datetime.timedelta(days=1)
            yield day.isoformat()

    moments, numbers = passing(), itertools.count()
    for room in ("begin", "watch_rounds"):
        monkeypatch.setattr(f"boardcluster.campaign.{room}.now_utc", lambda: next(moments))
    name = "boardcluster.campaign.life.new_campaign_id"
    monkeypatch.setattr(name, lambda: f"c{next(numbers):04}")


def watch(desk: Desk, file: Path, *words: str) -> Any:
    return desk.json("watch-performance", str(file), *words)


def take(desk: Desk, file: Path, seconds: float, *words: str) -> Any:
    desk.seconds = lambda _: seconds
    return watch(desk, file, *words)


def python(desk: Desk) -> bc.Cluster:
    return bc.open(home=desk.home, cache=desk.home / "cache")


def interrupt(desk: Desk, file: Path) -> None:
    """Press Ctrl-C in a round."""
    desk.ends["wordcount"] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        python(desk).watch_performance(file)
    del desk.ends["wordcount"]


def begin(desk: Desk, file: Path) -> None:
    for seconds in STEADY:
        take(desk, file, seconds, "--baseline", "5")


def test_the_first_rounds_make_limits_and_a_slow_one_is_out(desk: Desk, file: Path) -> None:
    begin(desk, file)
    assert take(desk, file, 20.2)["out"] == []
    desk.seconds = lambda _: 60.0
    with pytest.raises(OutOfLimitsError, match=r"left its limits: 60\.0 s in round 7") as caught:
        desk("watch-performance", str(file))
    assert caught.value.exit_code == 12
    assert "--new" in caught.value.hint
    shown = watch(desk, file, "--show")
    assert shown["out"] == ["wordcount on mapreduce, 1 MB"]
    assert len(shown["watch"]["rounds"]) == 7
    assert "OUT" in desk("watch-performance", str(file), "--show").stdout
    assert len(desk.ran) == 7


def test_an_interrupted_round_goes_on(desk: Desk, file: Path) -> None:
    interrupt(desk, file)
    assert len(take(desk, file, 20.0)["watch"]["rounds"]) == 1
    assert len(take(desk, file, 20.0)["watch"]["rounds"]) == 2


def test_a_round_that_the_cluster_changed_under_stays_unfinished(desk: Desk, file: Path) -> None:
    interrupt(desk, file)
    spec = desk.home / "cluster.toml"
    spec.write_text(spec.read_text() + '\n[settings]\n"dfs.blocksize" = 1048576\n')
    done = desk("watch-performance", str(file), "--json")
    assert "stays unfinished" in done.stderr
    [cell] = json.loads(done.stdout)["watch"]["cells"]
    assert [point["value"]["seconds"] is None for point in cell["chart"]["points"]] == [True, False]


def test_a_run_that_is_always_invalid_does_not_hold_the_next_round_up(
    desk: Desk, file: Path
) -> None:
    file.write_text(file.read_text().replace('"wordcount"', '["wordcount", "teragen"]'))
    desk.ends["teragen"] = bad(AttemptState.INVALID)
    for _ in range(3):
        with pytest.raises(RunError):
            watch(desk, file)
    assert len(watch(desk, file, "--show")["watch"]["rounds"]) == 1
    with pytest.raises(RunError):
        watch(desk, file)
    assert len(watch(desk, file, "--show")["watch"]["rounds"]) == 2
    assert [trial.workload for trial in desk.ran].count("wordcount") == 2
    assert [trial.workload for trial in desk.ran].count("teragen") == 4

    del desk.ends["teragen"]  # the second round has all that it can have before a third begins
    done = desk("watch-performance", str(file), "--json")
    assert "was interrupted; runs left: 1" in done.stderr
    assert len(json.loads(done.stdout)["watch"]["rounds"]) == 2
    assert len(watch(desk, file)["watch"]["rounds"]) == 3


def test_a_repeat_that_failed_does_not_hold_the_next_round_up(
    desk: Desk, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failed run is the result of its trial, also where a disturbed one came before it."""
    ends = [disturbed(), bad()]
    monkeypatch.setattr("boardcluster.campaign.driver.time.sleep", lambda _: None)
    with monkeypatch.context() as unlucky:
        unlucky.setattr("boardcluster.campaign.driver.run_trial", lambda *_, **__: ends.pop(0))
        with pytest.raises(RunError):
            watch(desk, file)
    assert ends == []
    assert len(watch(desk, file)["watch"]["rounds"]) == 2


def test_after_a_loss_the_same_command_goes_on(desk: Desk, file: Path) -> None:
    """Not ``run FILE --resume``, which knows nothing of rounds."""
    desk.ends["wordcount"] = bad(AttemptState.INVALID, lost="node worker2")
    with pytest.raises(ClusterError, match="lost during campaign") as caught:
        watch(desk, file)
    assert caught.value.hint.endswith(", then run the command again")


def test_an_edited_file_does_not_go_on_with_the_same_chart(desk: Desk, file: Path) -> None:
    take(desk, file, 20.0)
    file.write_text(file.read_text().replace("1 MB", "2 MB"))
    with pytest.raises(UsageError, match="differs in meaning from the 1 round so far") as caught:
        watch(desk, file)
    assert "--new" in caught.value.hint
    assert len(take(desk, file, 20.0, "--new")["watch"]["rounds"]) == 1


def test_a_file_that_was_moved_goes_on_with_its_chart(desk: Desk, file: Path) -> None:
    take(desk, file, 20.0)
    moved = file.rename(file.with_name("elsewhere.toml"))
    done = take(desk, moved, 20.0)["watch"]
    assert (done["file"], len(done["rounds"])) == (str(moved), 2)
    assert watch(desk, moved, "--show")["watch"] == done


def test_a_file_with_another_campaign_name_is_another_watch(desk: Desk, file: Path) -> None:
    take(desk, file, 20.0)
    file.write_text(file.read_text().replace('"night"', '"other"'))
    assert take(desk, file, 60.0)["watch"]["name"] == "watch-other"
    assert watch(desk, file, "--show")["watch"]["name"] == "watch-other"


def test_a_comment_changes_nothing(desk: Desk, file: Path) -> None:
    take(desk, file, 20.0)
    file.write_text(f"# every night\n{file.read_text()}")
    assert len(take(desk, file, 20.0)["watch"]["rounds"]) == 2


def test_a_file_that_never_ran_may_be_edited(
    desk: Desk, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as full:
        full.setattr("boardcluster.campaign.life.free_bytes", lambda *_: (0, {}))
        with pytest.raises(CapacityError):
            watch(desk, file, "--baseline", "20")
    file.write_text(file.read_text().replace("1 MB", "2 MB"))
    done = take(desk, file, 20.0)["watch"]
    assert (len(done["rounds"]), done["baseline"]) == (1, 20)  # as was asked for at first


def test_a_new_baseline_that_is_refused_keeps_the_earlier_one(
    desk: Desk, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take(desk, file, 20.0)
    with monkeypatch.context() as full:
        full.setattr("boardcluster.campaign.life.free_bytes", lambda *_: (0, {}))
        with pytest.raises(CapacityError):
            watch(desk, file, "--new", "--baseline", "20", "--tainted")
    assert len(take(desk, file, 20.0)["watch"]["rounds"]) == 2


def test_another_file_of_that_name_is_told_apart(desk: Desk, file: Path) -> None:
    take(desk, file, 20.0)
    other = file.with_name("other.toml")
    other.write_text(file.read_text().replace("1 MB", "2 MB"))
    with pytest.raises(UsageError, match=r"those are of .*night\.toml"):
        watch(desk, other)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--baseline", "4"), "a baseline of 4 rounds; allowed: at least 5"),
        (("--baseline", "8"), "begun with --baseline 10, not 8"),
        (("--tainted",), "begun without --tainted"),
        (("--show", "--new"), "--new cannot be used with --show"),
        (("--show", "--timer", "daily"), "--timer and --show contradict each other"),
        (("--timer", "daily", "--dry-run"), "--dry-run cannot be used with --timer"),
        (("--show", "--tainted"), "--tainted cannot be used with --show"),
        (("--timer", "daily", "--tainted"), "--tainted cannot be used with --timer"),
        (("--timer", "daily", "--notify", "no-such-program x"), "no program 'no-such-program'"),
        (("--notify", "curl -u me:hunter2 http://x"), "^--notify curl: one of its arguments looks"),
        (("--notify", "echo 'x"), "No closing quotation"),
        (("--bisect", "default", "default"), "do not differ in any property"),
        (("--bisect", "default", "upstraem"), "did you mean 'upstream'"),
        (("--bisect", "cluster", "dfs.blocksiez=1"), "dfs.blocksize"),
        (("--bisect", "default", "hadoop-3.4.2-spark-4.1.4"), "only one is an engine pair"),
        (("--bisect", "cluster", "spark.executor.cores=2"), "no cell of the campaign file reads"),
    ],
)
def test_what_cannot_be_is_refused(
    desk: Desk, file: Path, words: tuple[str, ...], reason: str
) -> None:
    take(desk, file, 20.0)
    with pytest.raises(UsageError, match=reason):
        desk("watch-performance", str(file), *words)
    assert len(desk.ran) == 1


def test_a_missing_file_is_named(desk: Desk, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"nowhere\.toml"):
        desk("watch-performance", str(tmp_path / "nowhere.toml"))


def test_a_damaged_record_is_named(desk: Desk, file: Path) -> None:
    take(desk, file, 20.0)
    record = desk.home / "watches" / "watch-night.json"
    record.write_text(record.read_text()[:40])
    with pytest.raises(StoreError, match=r"watch-night\.json"):
        watch(desk, file)


def test_a_failed_run_is_an_error_of_its_own(desk: Desk, file: Path) -> None:
    desk.ends["wordcount"] = bad()
    with pytest.raises(RunError, match="1 of 1 runs have no verified result"):
        desk("watch-performance", str(file))


def disturbed() -> TrialEnd:
    heat = Disturbance(cause="throttled", node="worker1", share=0.6, adjustable=False)
    found = make_measurement(20.0, verdict=Verdict.TAINTED, disturbances=(heat,))
    return TrialEnd(state=AttemptState.OK, reason="", measurement=found, telemetry=make_telemetry())


def test_a_round_of_which_no_run_counts_is_an_error(desk: Desk, file: Path) -> None:
    take(desk, file, 20.0)
    desk.ends["wordcount"] = disturbed()
    with pytest.raises(RunError, match="no run counts since round 2") as caught:
        desk("watch-performance", str(file))
    assert caught.value.exit_code == 9
    assert "no run counts" in desk("watch-performance", str(file), "--show").stdout


def test_a_notice_is_sent_once_as_one_argument(desk: Desk, file: Path, tmp_path: Path) -> None:
    told = tmp_path / "told"
    program = tmp_path / "tell me"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$#" "$2" >>"{told}"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    begin(desk, file)
    desk.seconds = lambda _: 60.0
    for _ in range(2):
        with pytest.raises(OutOfLimitsError):
            desk("watch-performance", str(file), "--notify", f"'{program}' '$HOME;x'")
    number, sentence = told.read_text().splitlines()
    assert number == "2"
    assert sentence.startswith("wordcount on mapreduce, 1 MB left its limits")


def test_a_notice_that_fails_is_said_and_changes_nothing(desk: Desk, file: Path) -> None:
    begin(desk, file)
    desk.seconds = lambda _: 60.0
    done = python(desk).watch_performance(file, notify="false")
    assert "false" in done.notify_failure
    assert done.standing.out


@dataclass(frozen=True)
class Teller:
    """A command of ``--notify`` that writes down each sentence."""

    command: str

    def told(self) -> list[str]:
        kept = Path(self.command).with_name("told")
        return kept.read_text().splitlines() if kept.exists() else []


@pytest.fixture
def teller(tmp_path: Path) -> Teller:
    program = tmp_path / "tell"
    program.write_text(f'#!/bin/sh\necho "$1" >>"{tmp_path / "told"}"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return Teller(str(program))


def test_a_notice_that_failed_or_was_not_asked_for_is_sent_after_the_next_round(
    desk: Desk, file: Path, teller: Teller
) -> None:
    begin(desk, file)
    desk.seconds = lambda _: 60.0
    for command in ("", "false", teller.command, teller.command):
        failure = python(desk).watch_performance(file, notify=command).notify_failure
        assert bool(failure) == (command == "false")
    assert len(teller.told()) == 1


def end_in_an_error(desk: Desk, file: Path, teller: Teller) -> None:
    """Let a round end in an error when its run is stored."""
    with pytest.MonkeyPatch.context() as broken:
        error = ClusterError("a node was lost", hint="look at it")
        broken.setattr("boardcluster.api.watch_standing", Mock(side_effect=error))
        with pytest.raises(ClusterError):
            python(desk).watch_performance(file, notify=teller.command)


def test_a_notice_whose_round_ended_in_an_error_is_sent_after_the_next_round(
    desk: Desk, file: Path, teller: Teller
) -> None:
    begin(desk, file)
    desk.seconds = lambda _: 60.0
    end_in_an_error(desk, file, teller)
    assert teller.told() == []
    python(desk).watch_performance(file, notify=teller.command)
    assert len(teller.told()) == 1


@pytest.mark.parametrize("ended", ["without a notice", "in an error"])
def test_a_cell_that_came_back_unseen_and_left_again_is_told_of_again(
    desk: Desk, file: Path, teller: Teller, ended: str
) -> None:
    begin(desk, file)
    desk.seconds = lambda _: 60.0
    python(desk).watch_performance(file, notify=teller.command)
    desk.seconds = lambda _: 20.0
    if ended == "in an error":
        end_in_an_error(desk, file, teller)
    else:
        assert not python(desk).watch_performance(file).standing.out
    desk.seconds = lambda _: 60.0
    for _ in range(2):
        python(desk).watch_performance(file, notify=teller.command)
    first, second = teller.told()
    assert "60.0 s in round 6" in first
    assert "60.0 s in round 8" in second


def test_rounds_in_which_no_run_counts_are_told_of_once_and_after_one_that_does_again(
    desk: Desk, file: Path, teller: Teller
) -> None:
    once = "repetitions = 1\nrepeat_tainted = 0"  # else each is made again after a pause
    file.write_text(file.read_text().replace("repetitions = 1", once))
    take(desk, file, 20.0)
    for counts in (False, False, True, False):
        desk.ends = {} if counts else {"wordcount": disturbed()}
        assert python(desk).watch_performance(file, notify=teller.command).notify_failure == ""
    first, second = teller.told()
    assert "no run counts since round 2" in first
    assert "no run counts since round 5" in second


def test_a_new_baseline_replaces_a_record_of_no_use(desk: Desk, file: Path) -> None:
    take(desk, file, 20.0)
    record = desk.home / "watches" / "watch-night.json"
    record.write_text(record.read_text().replace('"baseline": 10', '"baseline": 1'))
    with pytest.raises(StoreError, match=r"baseline is '1', allowed: at least 5") as caught:
        watch(desk, file)
    assert "--new" in caught.value.hint
    assert len(desk.ran) == 1, "nothing runs whose result could not be judged"
    assert take(desk, file, 20.0, "--new")["watch"]["baseline"] == 10


def test_a_program_for_notices_that_is_gone_keeps_no_round_from_running(
    desk: Desk, file: Path
) -> None:
    begin(desk, file)
    desk.seconds = lambda _: 60.0
    done = python(desk).watch_performance(file, notify="no-such-program x")
    assert done.notify_failure == "there is no program 'no-such-program'"
    assert len(done.standing.rounds) == 6


def test_what_a_round_would_run_is_shown_without_a_change(desk: Desk, file: Path) -> None:
    before = desk.files()
    shown = watch(desk, file, "--dry-run")
    assert [row["workload"] for row in shown["trials"]] == ["wordcount"]
    assert desk.files() == before


def test_a_timer_is_written_for_this_file_and_removed(
    desk: Desk, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    done = watch(desk, file, "--timer", "daily", "--notify", "echo 100%")
    [service] = [text for path, text in done["files"].items() if path.endswith(".service")]
    assert f'"watch-performance" "{file}" "--home" "{desk.home}"' in service
    assert f'"--notify" "{shutil.which("echo")} 100%%"' in service
    assert '"-P" "-m" "boardcluster"' in service
    assert (
        "already"
        in desk("watch-performance", str(file), "--timer", "daily", "--notify", "echo 100%").stdout
    )
    assert desk.ran == []
    with pytest.raises(SpecError, match=r"absent\.toml"):
        watch(desk, file.with_name("absent.toml"), "--timer", "daily")
    file.unlink()  # a timer outlives its file, and must go all the same
    gone = watch(desk, file, "--timer", "off")
    assert len(gone["changed"]) == 2
    assert "no timer" in desk("watch-performance", str(file), "--timer", "off").stdout


# Bisection


def planted(trial: Trial) -> float:
    """Made-up times: one setting makes a job twice as long, and no run is like another."""
    slow = 2.0 if SLOW in trial.settings else 1.0
    return 20 * slow * (1 + 0.01 * (len(trial.settings) + trial.repetition % 3))


def test_the_planted_setting_is_found_and_nothing_measured_twice(desk: Desk, file: Path) -> None:
    desk.seconds = planted
    both = ",".join([*HARMLESS[:2], f"{SLOW}=9000", *HARMLESS[2:]])
    found = watch(desk, file, "--bisect", "cluster", both)
    assert [row["key"] for row in found["found"]] == [SLOW]
    assert f"{SLOW} 9000 instead of 250 takes 2.02 times" in found["words"]
    ran = len(desk.ran)
    assert ran == 6 * len(found["steps"])
    again = watch(desk, file, "--bisect", "cluster", both)
    assert again == found
    assert len(desk.ran) == ran
    watch(desk, file, "--bisect", "cluster", both, "--new")
    assert len(desk.ran) == 2 * ran


def test_an_interrupted_bisection_goes_on(desk: Desk, file: Path) -> None:
    both = ",".join([*HARMLESS, f"{SLOW}=9000"])

    def until_the_tenth(trial: Trial) -> float:
        if len(desk.ran) == 10:
            raise KeyboardInterrupt
        return planted(trial)

    desk.seconds = until_the_tenth
    with pytest.raises(KeyboardInterrupt):
        python(desk).bisect(file, "cluster", both)
    found = watch(desk, file, "--bisect", "cluster", both)
    assert [row["key"] for row in found["found"]] == [SLOW]
    assert len(desk.ran) == 6 * len(found["steps"]) + 1


def test_a_step_that_cannot_tell_is_measured_again(desk: Desk, file: Path) -> None:
    loud = iter([20.0, 21.0, 90.0, 62.0, 61.0, 60.0] + [20.0, 61.0, 21.0, 62.0, 20.5, 63.0] * 9)

    def noisy(trial: Trial) -> float:
        slow = SLOW in trial.settings
        return next(loud) if len(desk.ran) <= 6 else (60.0 if slow else 20.0) + len(desk.ran) / 9

    desk.seconds = noisy
    found = watch(desk, file, "--bisect", "cluster", f"{SLOW}=9000")
    assert len(desk.ran) > 6
    [step] = found["steps"]
    assert step["ratio"]["counts"][0] == len(desk.ran) / 2


def test_a_setting_of_the_file_and_of_a_side_is_refused(desk: Desk, file: Path) -> None:
    file.write_text(f'{file.read_text()}[matrix.settings]\n"{SLOW}" = 500\n')
    with pytest.raises(UsageError, match=f"the campaign file sets {SLOW} itself"):
        watch(desk, file, "--bisect", "cluster", f"{SLOW}=9000")
    assert desk.ran == []


def test_where_nothing_differs_it_says_so(desk: Desk, file: Path) -> None:
    desk.seconds = planted
    found = watch(desk, file, "--bisect", "cluster", ",".join(HARMLESS))
    assert found["found"] == []
    assert "is not shown to differ from cluster" in found["words"]
    if "no worthwhile difference" in found["words"]:
        assert "would show a difference" not in found["words"], "it was just ruled out"
    assert len(desk.ran) == 6


def test_the_cell_that_differs_is_followed_where_only_workers_tell_cells_apart(
    desk: Desk, file: Path
) -> None:
    most = len(desk.declared.workers)
    file.write_text(
        file.read_text().replace('size = "1 MB"', f'size = "1 MB"\nworkers = [1, {most}]')
    )

    def on_all(trial: Trial) -> float:
        return planted(trial) if trial.workers == most else 20.0 + trial.repetition % 3 / 9

    desk.seconds = on_all
    found = watch(desk, file, "--bisect", "cluster", f"{HARMLESS[0]},{SLOW}=9000")
    assert [row["key"] for row in found["found"]] == [SLOW]
    assert [row["cell"].rpartition(", ")[2] for row in found["steps"][:2]] == [
        "1 worker",
        f"{most} workers",
    ]
    assert {row["cell"] for row in found["steps"][2:]} == {found["steps"][1]["cell"]}


def test_a_set_of_which_no_part_can_be_told_is_said_to_be_open(desk: Desk, file: Path) -> None:
    # By start and repetition, three to a start, in whatever order they run.
    loud = {True: [60.0, 10.0, 90.0, 25.0, 90.0, 10.0], False: [15.0, 70.0, 15.0, 90.0, 20.0, 80.0]}

    def only_together(trial: Trial) -> float:
        either = SLOW in trial.settings, HARMLESS[0].partition("=")[0] in trial.settings
        if all(either):
            return 60.0 + trial.repetition
        if len(desk.ran) <= 6:
            return 20.0 + trial.repetition
        start = (len(desk.ran) - 1) // 6 % 2
        return loud[any(either)][3 * start + trial.repetition - 1]

    desk.seconds = only_together
    found = watch(desk, file, "--bisect", "cluster", f"{HARMLESS[0]},{SLOW}=9000")
    assert len(found["found"]) == 2
    assert " take " in found["words"]
    assert "differences together" not in found["words"]
    assert "2 steps could not tell, so fewer of these may be enough" in found["words"]


def test_settings_of_daemons_restart_the_cluster_for_each_run(desk: Desk, file: Path) -> None:
    desk.seconds = planted
    other = "yarn.nodemanager.vmem-check-enabled=true,dfs.namenode.handler.count=20"
    watch(desk, file, "--bisect", "cluster", other)
    assert desk.starts == 6


def test_two_profiles_differ_in_their_properties(desk: Desk, file: Path) -> None:
    plan = watch(desk, file, "--bisect", "default", "upstream", "--dry-run")
    keys = {row["key"] for row in plan["sides"]["differences"]}
    assert "mapreduce.map.memory.mb" in keys or "yarn.nodemanager.resource.memory-mb" in keys
    assert plan["runs_most"] > plan["runs_least"] > 6
    assert plan["run_seconds"] is None
    assert desk.ran == []


def test_engine_pairs_take_turns_in_homes_of_their_own(
    desk: Desk, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns: list[str] = []
    attempts = itertools.count()

    def run(home: Path, request: CampaignRequest, **_: object) -> CampaignOutcome:
        spec = read_spec(home / "cluster.toml")
        assert home == desk.home / "bisect" / spec.engines
        turns.append(f"{spec.engines[7:10]} {request.spec.name}")
        seconds = (40.0 if spec.engines == OLD else 20.0) + 0.1 * next(attempts)
        cell: dict[str, Any] = {
            "campaign_id": f"c{len(turns)}",
            "workload": "wordcount",
            "engine": Engine.MAPREDUCE,
            "size_bytes": 10**6,
        }
        warm_up = make_result(500.0, warm_up=True, **cell)
        row = make_result(seconds, position=1, **cell)
        summary = CampaignSummary(campaign_id="c", planned=1, ok=1, failed=0, invalid=0, pending=0)
        return CampaignOutcome(
            campaign=make_campaign(), chosen=(row.trial,), summary=summary, results=(warm_up, row)
        )

    monkeypatch.setattr("boardcluster.campaign.engine_sides.run_campaign", run)
    found = watch(desk, file, "--bisect", NEW, OLD)
    assert [turn[:3] for turn in turns] == ["3.4", "3.3", "3.3", "3.4", "3.4", "3.3"]
    assert [turn.rpartition("-")[2] for turn in turns] == list("112233")
    assert "1.99 times" in found["words"]
    assert found["steps"][0]["makes_it"]


def test_engine_pairs_need_a_cluster_that_is_down(desk: Desk, file: Path) -> None:
    desk.is_up = True
    with pytest.raises(ClusterError, match="the cluster is up"):
        watch(desk, file, "--bisect", NEW, OLD)
    shown = desk("watch-performance", str(file), "--bisect", NEW, OLD, "--dry-run").stdout
    assert "there is nothing to search between" in shown
