"""One submission: what it ran with, what it left, and why it failed."""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.unit.campaign.world import PHASES, World, app, ended

from boardcluster import waiting
from boardcluster.campaign import execution as module
from boardcluster.campaign.execution import (
    ATTEMPT_VARIABLE,
    NO_ROOM,
    SAFE_MODE,
    Execution,
    SubmissionOutcome,
    attempt_tag,
    clear_leftovers,
    end_submission,
    scratch_of,
    write_configuration,
)
from boardcluster.errors import RemoteError, RemoteTimeoutError, RunError, StalledError
from boardcluster.records import Engine
from boardcluster.remote.fake import FakeRemote
from boardcluster.remote.gate import Completed
from boardcluster.services.conf import render_node
from boardcluster.services.operation import LiveCluster, dead_daemons

TAG = "trial-1"
CRASH = (
    "# A fatal error has been detected by the Java Runtime Environment:\n"
    "#\n#  SIGSEGV (0xb) at pc=0x1, pid=2, tid=3\n"
)
CONF = "/nodes/master/scratch/trial-1/conf"


def outcome(status: int = 0, final: str = "SUCCEEDED", diagnostics: str = "") -> SubmissionOutcome:
    return SubmissionOutcome(
        duration_seconds=1.0,
        exit_status=status,
        application_id="application_1_0001",
        final_status=final,
        diagnostics=diagnostics,
        counters={},
    )


def test_phases_are_unknown_where_a_clock_was_set_back_in_one() -> None:
    """What is not in the others would count as start."""
    rows = {"start": 2.5, "map": 7.5, "commit": 0.0}
    assert replace(outcome(), dated_seconds=rows).phases_seconds == rows
    found = replace(outcome(), dated_seconds={**rows, "map": -7190.0})
    assert found.phases_seconds == {}


@pytest.mark.parametrize("final", ["SUCCEEDED", ""])
def test_no_failure(final: str) -> None:
    assert outcome(0, final, "anything").failure == ""


@pytest.mark.parametrize(
    ("status", "final", "failure"),
    [
        (1, "FAILED", "exit status 1, YARN says FAILED"),
        (1, "SUCCEEDED", "exit status 1, YARN says SUCCEEDED"),
        (0, "FAILED", "exit status 0, YARN says FAILED"),
        (0, "UNDEFINED", "exit status 0, YARN says UNDEFINED"),
        (-9, "", "exit status -9, YARN says nothing"),
    ],
)
def test_failure_needs_both_sides_to_agree(status: int, final: str, failure: str) -> None:
    assert outcome(status, final).failure == failure


@pytest.mark.parametrize(
    "diagnostics",
    [
        "Error: java.lang.OutOfMemoryError: Java heap space\n\tat x.y",
        "Container [pid=1] is running 3456B beyond the 'PHYSICAL' memory limit. Current usage: 1",
        "Container [pid=1] is running 3456B beyond the 'VIRTUAL' memory limit. Current usage: 1",
        # The kernel's own killer: 128 + SIGKILL, in the words of the NodeManager and of Spark.
        "Container killed on request. Exit code is 137\n[today]Killed by external signal",
        "[today]Container exited with a non-zero exit code 137. Error file: prelaunch.err.",
        "Exit code: 137",
        "[today]Exception from container-launch.\nExit status: 137. Diagnostics: killed",
        "Container from a bad node. exitCode: 137, ContainerExitStatus",
        "word " * 1000 + "java.lang.OutOfMemoryError: Metaspace",  # behind what is shown
    ],
)
def test_out_of_memory_is_named_with_the_sizes_to_change(diagnostics: str) -> None:
    failure = outcome(1, "FAILED", diagnostics).failure
    words = " ".join(diagnostics.split())

    assert failure == (
        "oom (raise the node's memory in cluster.toml, or mapreduce.map.memory.mb, "
        "mapreduce.reduce.memory.mb, spark.executor.memory): "
        f"exit status 1, YARN says FAILED: {words[:400]}"
    )
    assert "\n" not in failure


@pytest.mark.parametrize(
    "words",
    [
        "Application killed by user.\nmemory limit of the queue",
        "exec java -Xmx256m -XX:OnOutOfMemoryError='kill %p' org.apache.spark",
        "Container exited with a non-zero exit code 1. Error file: prelaunch.err.",
        "Container exited with a non-zero exit code 1371.",
        "Exit code is 143",
        "Exit status: 143. Diagnostics: killed",
        "Exit status: 1371",
        "Exit status: 1 in container 137",
        "exitCode: 13, 7 containers",
        "exitCode: 1370",
        "exitCode: -137",
        "status: 137",
        "task 137 failed: map 137% done",
        "",
    ],
)
def test_other_failures_are_not_called_out_of_memory(words: str) -> None:
    shown = f": {' '.join(words.split())}" if words else ""

    assert outcome(1, "KILLED", words).failure == f"exit status 1, YARN says KILLED{shown}"


def test_a_job_that_ended_well_is_not_out_of_memory_whatever_one_attempt_of_a_task_said() -> None:
    assert outcome(0, "SUCCEEDED", "Exit code is 137").failure == ""


def test_failure_is_one_bounded_line() -> None:
    assert len(outcome(1, "FAILED", "word " * 10_000).failure) < 500


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "attempts" / "trial" / "1"
    path.mkdir(parents=True)
    return path


@pytest.fixture
def execute(live: LiveCluster, folder: Path) -> Callable[..., Execution]:
    """Make the submission of a phase; phases of one job have folders beside each other."""
    conf = write_configuration(live, folder / "conf", tag=TAG, extra={})

    def make(
        engine: Engine = Engine.MAPREDUCE,
        *,
        phase: str = "one",
        node: str = "",
        dilation: float = 1.0,
    ) -> Execution:
        return Execution(
            replace(live, layout=replace(live.layout, dilation=dilation)),
            folder=folder / phase,
            conf=conf,
            engine=engine,
            tag=TAG,
            attempt="attempt-1",
            node=node,
        )

    return make


MakeExecution = Callable[..., Execution]


def properties(path: Path) -> dict[str, str]:
    root = ElementTree.parse(path)
    return {
        row.findtext("name", default=""): row.findtext("value", default="")
        for row in root.iter("property")
    }


def test_writes_the_very_configuration_that_is_submitted(
    live: LiveCluster, world: World, folder: Path
) -> None:
    conf, tag = folder / "deep" / "conf", "attempt-2-grep"

    there = write_configuration(live, conf, tag=tag, tags=f"attempt,{tag}", extra={})

    assert properties(conf / "mapred-site.xml")["mapreduce.job.tags"] == "attempt,attempt-2-grep"
    assert (conf / "spark-defaults.conf").is_file()
    plain = render_node(live.layout, live.spec.master)
    assert {path.name for path in conf.iterdir()} == set(plain)
    assert (conf / "hdfs-site.xml").read_text() == plain["hdfs-site.xml"]
    # The master has a copy of its own, because it may not see this machine's files.
    assert there == "/nodes/master/scratch/attempt-2-grep/conf"
    assert there == f"{scratch_of(live.layout, live.spec.master, tag)}/conf"
    assert world.happened == [
        ("mkdir", "master", "/nodes/master/scratch/attempt-2-grep"),
        ("put", "master", there),
    ]
    assert isinstance(live.master, FakeRemote)
    assert live.master.files == {
        f"{there}/{path.name}": path.read_bytes() for path in conf.iterdir()
    }


def test_a_master_out_of_reach_gets_no_configuration(
    live: LiveCluster, world: World, folder: Path
) -> None:
    world.lost.add("master")

    with pytest.raises(RemoteError, match="master: out of reach"):
        write_configuration(live, folder / "conf", tag=TAG, extra={})


def test_what_a_trial_sets_reaches_its_configuration_beside_the_tag(
    live: LiveCluster, folder: Path
) -> None:
    extra = {
        "hdfs-site": {"dfs.replication": "3", "dfs.checksum.type": "NULL"},
        "mapred-site": {"mapreduce.job.reduces": "7"},
    }

    write_configuration(live, folder / "conf", tag=TAG, extra=extra)

    hdfs = properties(folder / "conf" / "hdfs-site.xml")
    assert (hdfs["dfs.replication"], hdfs["dfs.checksum.type"]) == ("3", "NULL")
    mapred = properties(folder / "conf" / "mapred-site.xml")
    assert (mapred["mapreduce.job.reduces"], mapred["mapreduce.job.tags"]) == ("7", TAG)
    assert extra["mapred-site"] == {"mapreduce.job.reduces": "7"}  # the caller's own stays


def test_runs_on_the_master_and_gathers(execute: MakeExecution, world: World, folder: Path) -> None:
    world.jobs.append(lambda: ended(seconds=7.25))

    result = execute().run(["job", "--password", "hunter2"], timeout_seconds=99, cwd="/work")

    assert result == SubmissionOutcome(
        duration_seconds=7.25,
        exit_status=0,
        application_id="application_1_0001",
        final_status="SUCCEEDED",
        diagnostics="",
        counters={"TaskCounter/SPILLED_RECORDS": 12},
        dated_seconds=PHASES,
    )
    (submission,) = world.submissions
    assert submission["argv"] == ["job", "--password", "hunter2"]
    assert (submission["cwd"], submission["timeout"]) == ("/work", 99)
    assert submission["node"] == "master"
    assert submission["env"]["HADOOP_CONF_DIR"] == CONF
    assert submission["env"][ATTEMPT_VARIABLE] == "attempt-1"
    assert (folder / "one" / "stdout.txt").read_text() == "printed\n"
    assert json.loads((folder / "one" / "counters.json").read_text()) == result.counters
    for path in folder.rglob("*"):
        assert path.is_dir() or b"hunter2" not in path.read_bytes(), path


def test_the_record_of_the_command_says_what_ran_where(
    execute: MakeExecution, world: World, folder: Path
) -> None:
    world.jobs.append(ended)
    execution = execute(Engine.MPI, node="worker2")

    execution.run(["mpirun", "xhpl"], timeout_seconds=9)

    (submission,) = world.submissions
    assert submission["node"] == "worker2"
    record = json.loads((folder / "one" / "command.json").read_text())
    assert record == {
        "argv": ["mpirun", "xhpl"],
        "env": execution.environment,
        "node": "worker2",
    }


def test_the_history_of_a_job_is_kept_as_it_was_answered(
    execute: MakeExecution, world: World, folder: Path
) -> None:
    world.jobs.append(ended)

    execute().run(["job"], timeout_seconds=9)

    kept = json.loads((folder / "one" / "application_1_0001.history.json").read_text())
    assert kept["counters"] == world.counters
    assert set(kept) == {"job", "tasks", "counters", "attempts", "task_attempts"}


def test_what_does_not_run_on_yarn_asks_yarn_nothing(
    execute: MakeExecution, world: World, folder: Path
) -> None:
    world.yarn_answers = False
    world.jobs += [lambda: ended(3), timed_out]

    result = execute(Engine.MPI).run(["mpirun"], timeout_seconds=9)
    with pytest.raises(StalledError, match="last seen: running"):
        execute(Engine.MPI, phase="two").run(["mpirun"], timeout_seconds=9)

    assert (result.application_id, result.counters, result.phases_seconds) == ("", {}, {})
    assert result.failure == "exit status 3: log line 1 log line 2"
    assert world.asked_tags == []
    assert not (folder / "one" / "application.json").exists()


def test_a_second_submission_does_not_take_the_first_ones_application(
    execute: MakeExecution, world: World, folder: Path
) -> None:
    world.jobs += [ended, ended, ended]
    first, second = app("SUCCEEDED", number=1), app("SUCCEEDED", number=2)
    world.apps[TAG] = [
        [first],  # gathered by the first
        [first],  # known before the second
        [first, second],
        [first, second],  # known before the third
        [first, second],
    ]

    one = execute(phase="one").run(["job"], timeout_seconds=9)
    two = execute(phase="two").run(["job"], timeout_seconds=9)
    three = execute(phase="three").run(["job"], timeout_seconds=9)

    assert (one.application_id, two.application_id) == (first["id"], second["id"])
    assert two.counters == {"TaskCounter/SPILLED_RECORDS": 12}  # not both jobs' together
    # YARN never saw the third, whatever earlier ones it knows.
    assert (three.application_id, three.counters) == ("", {})
    ids = [json.loads((folder / name / "application.json").read_text()) for name in ("one", "two")]
    assert ids == [[first["id"]], [second["id"]]]
    assert not (folder / "three" / "application.json").exists()


def test_a_first_submission_asks_yarn_for_nothing_earlier(
    execute: MakeExecution, world: World
) -> None:
    seen: list[list[str]] = []

    def submit() -> Completed:
        seen.append(list(world.asked_tags))
        return ended()

    world.jobs += [submit, submit]
    execute(phase="one").run(["job"], timeout_seconds=9)
    execute(phase="two").run(["job"], timeout_seconds=9)

    assert seen == [[], [TAG, TAG]]


def test_counters_of_several_applications_add_up_and_their_phases_keep_apart(
    execute: MakeExecution, world: World, folder: Path
) -> None:
    world.jobs.append(ended)
    world.apps[TAG] = [[app("SUCCEEDED", number=2), app("SUCCEEDED", number=1)]]

    result = execute().run(["job"], timeout_seconds=9)

    assert result.counters == {"TaskCounter/SPILLED_RECORDS": 24}
    assert result.phases_seconds == {
        f"job {number}: {name}": took for number in (1, 2) for name, took in PHASES.items()
    }
    assert result.application_id == "application_1_0002"
    ids = json.loads((folder / "one" / "application.json").read_text())
    assert ids == ["application_1_0001", "application_1_0002"]


def test_phases_are_dated_by_the_clock_of_the_node_that_led_the_job(
    execute: MakeExecution, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.jobs.append(ended)
    monkeypatch.setattr(time, "time", lambda: 1234.5)

    engine = execute().run(["job"], timeout_seconds=9).engine

    assert engine.began_wall_seconds == 1234.5
    assert engine.parts == {
        "master": {"start": (1.0, 2.0), "map": (2.0, 8.0), "commit": (8.0, 9.0)}
    }


def test_stages_of_spark_are_dated_by_the_master_and_each_try_counts(
    execute: MakeExecution, world: World, live: LiveCluster
) -> None:
    master = live.master
    assert isinstance(master, FakeRemote)
    stages = [
        {
            "Event": "SparkListenerStageCompleted",
            "Stage Info": {
                "Stage ID": 4,
                "Stage Attempt ID": attempt,
                "Stage Name": "collect",
                "Submission Time": begin,
                "Completion Time": end,
            },
        }
        for attempt, begin, end in ((0, 1000, 2500), (1, 3000, 3500))
    ]
    rows = [json.dumps(row, separators=(",", ":")) for row in stages]
    log = "\n".join(['{"Event":"SparkListenerLogStart"}', *rows])
    master.files["/nodes/master/spark-events/application_1_0001"] = log.encode()
    world.jobs.append(ended)

    result = execute(Engine.SPARK).run(["job"], timeout_seconds=9)

    assert result.phases_seconds == {"stage 4: collect": 2.0}
    assert result.engine.parts == {
        "master": {"stage 4: collect": (1.0, 2.5), "stage 4.1: collect": (3.0, 3.5)}
    }


def test_one_failed_application_of_several_is_the_submissions_failure(
    execute: MakeExecution, world: World
) -> None:
    world.jobs.append(ended)
    rows = [app("FAILED", number=1, diagnostics="no disk"), app("SUCCEEDED", number=2)]
    world.apps[TAG] = [rows]

    result = execute().run(["job"], timeout_seconds=9)

    assert result.application_id == "application_1_0002"
    assert result.failure == "exit status 0, YARN says FAILED: no disk"


def test_a_failure_of_which_yarn_has_no_word_is_told_by_the_log(
    execute: MakeExecution, world: World
) -> None:
    world.jobs.append(lambda: ended(1))
    world.apps[TAG] = [[app("SUCCEEDED")]]

    failure = execute(Engine.SPARK).run(["job"], timeout_seconds=9).failure

    assert failure == "exit status 1, YARN says SUCCEEDED: log line 1 log line 2"


def test_the_last_application_of_a_tag_counts(execute: MakeExecution, world: World) -> None:
    world.jobs.append(ended)
    world.apps[TAG] = [[app("SUCCEEDED", number=2), app("FAILED", number=1)]]

    assert execute().run(["job"], timeout_seconds=9).application_id == "application_1_0002"


def test_waits_for_an_application_master_that_is_about_to_report(
    execute: MakeExecution, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Spark's driver ends at about the moment at which its application master tells YARN.
    monkeypatch.setattr("time.sleep", lambda _: None)
    world.jobs.append(ended)
    running = [app("UNDEFINED", state="RUNNING")]
    world.apps[TAG] = [running, running, [app("SUCCEEDED")]]

    assert execute().run(["job"], timeout_seconds=9).failure == ""


def test_does_not_wait_for_ever(
    execute: MakeExecution, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_UNREGISTER_WAIT_SECONDS", 0.0)
    world.jobs.append(ended)
    world.apps[TAG] = [[app("UNDEFINED", state="RUNNING")]]

    assert "UNDEFINED" in execute().run(["job"], timeout_seconds=9).failure


def test_a_job_that_outlives_its_program_is_killed(
    execute: MakeExecution, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_UNREGISTER_WAIT_SECONDS", 0.0)
    world.jobs.append(ended)
    world.apps[TAG] = [
        [app("SUCCEEDED"), app("UNDEFINED", state="RUNNING", number=2)],
        [app("SUCCEEDED"), app("UNDEFINED", state="RUNNING", number=2)],
        [app("SUCCEEDED"), app("KILLED", state="KILLED", number=2)],
    ]

    failure = execute().run(["job"], timeout_seconds=9).failure

    assert failure.endswith("it was still running after the program had ended, and was killed")
    assert world.killed == ["application_1_0002"]


def test_counters_of_spark_come_from_its_event_log(
    execute: MakeExecution, live: LiveCluster, world: World, folder: Path
) -> None:
    master = live.master
    assert isinstance(master, FakeRemote)
    master.files["/nodes/master/spark-events/application_1_0001"] = (
        b'{"Event":"SparkListenerLogStart"}\n'
        b'{"Event":"SparkListenerTaskEnd","Task End Reason":{"Reason":"Success"},'
        b'"Task Metrics":{"Executor Run Time":5}}\n'
    )
    world.jobs.append(ended)

    counters = execute(Engine.SPARK).run(["job"], timeout_seconds=9).counters

    assert (counters["spark/tasks"], counters["spark/executorRunTime"]) == (1, 5)
    assert (folder / "one" / "application_1_0001.events.jsonl").is_file()
    assert not any("spark-events" in path for path in master.files), "it would fill the disk"


def test_a_job_without_an_event_log_has_no_counters_and_is_no_failure_of_ours(
    execute: MakeExecution, world: World
) -> None:
    world.jobs.append(ended)

    result = execute(Engine.SPARK).run(["job"], timeout_seconds=9)

    assert (result.counters, result.failure) == ({}, "")


def test_logs_of_containers_are_fetched_from_each_worker(
    execute: MakeExecution, live: LiveCluster, world: World, folder: Path
) -> None:
    worker = live.remotes["worker2"]
    assert isinstance(worker, FakeRemote)
    place = "/nodes/worker2/logs/containers/application_1_0001"
    worker.files[f"{place}/container_1/stderr"] = b"log"
    world.jobs.append(ended)

    execute().run(["job"], timeout_seconds=9)

    assert [path.name for path in (folder / "one" / "containers").iterdir()] == ["worker2"]
    log = folder / "one" / "containers" / "worker2" / "container_1" / "stderr"
    assert log.read_bytes() == b"log"
    worker.files[f"{place[:-1]}2/container_2/stderr"] = b"of the next application"
    execution = execute()
    execution._fetch_container_logs("application_1_0002")
    assert log.read_bytes() == b"log"
    assert (log.parents[1] / "container_2" / "stderr").is_file()
    assert [path.name for path in log.parents[2].iterdir()] == ["worker2"]
    assert not any("application_1_0001" in path for path in worker.files), "what is fetched goes"


def test_a_submission_that_yarn_never_saw_keeps_its_last_words(
    execute: MakeExecution, world: World, folder: Path
) -> None:
    world.jobs.append(lambda: ended(1))
    world.default_apps = []

    result = execute().run(["job"], timeout_seconds=9)

    assert (result.application_id, result.final_status) == ("", "")
    assert result.failure == "exit status 1: log line 1 log line 2"
    assert not (folder / "one" / "counters.json").exists()


class Clock:
    """Stands in for the time of the module, so that waits take none."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_seconds = 0.0
        self._events: list[tuple[float, Callable[[], None]]] = []
        clock = SimpleNamespace(
            monotonic=lambda: self.now_seconds, time=lambda: self.now_seconds, sleep=self._sleep
        )
        monkeypatch.setattr(module, "time", clock)
        monkeypatch.setattr(waiting, "time", clock)

    def at(self, seconds: float, event: Callable[[], None]) -> None:
        self._events.append((seconds, event))

    def _sleep(self, seconds: float) -> None:
        self.now_seconds += seconds
        for due, event in self._events:
            if due <= self.now_seconds:
                event()


def test_a_dead_yarn_does_not_hide_how_the_submission_ended(
    execute: MakeExecution, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.jobs.append(lambda: ended(1))
    world.yarn_answers = False
    clock = Clock(monkeypatch)

    result = execute().run(["job"], timeout_seconds=9)

    assert (result.exit_status, result.application_id, result.final_status) == (1, "", "")
    assert result.failure == "exit status 1: log line 1 log line 2"
    assert clock.now_seconds == 0  # it has failed, whatever YARN would say


def test_a_yarn_that_stays_silent_does_not_count_as_one_that_never_saw_the_job(
    execute: MakeExecution, world: World, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.jobs.append(ended)
    world.yarn_answers = False
    clock = Clock(monkeypatch)

    with pytest.raises(RemoteError, match="the ResourceManager does not answer") as caught:
        execute().run(["job"], timeout_seconds=9)

    assert caught.value.exit_code == 8
    assert 10 < clock.now_seconds < 11
    assert not (folder / "one" / "counters.json").exists()


def test_a_yarn_that_answers_again_in_time_is_believed(
    execute: MakeExecution, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.jobs.append(ended)
    world.yarn_answers = False
    clock = Clock(monkeypatch)
    clock.at(9.5, lambda: setattr(world, "yarn_answers", True))

    result = execute().run(["job"], timeout_seconds=9)

    assert (result.application_id, result.failure) == ("application_1_0001", "")


def test_a_job_that_yarn_never_saw_is_known_at_once(
    execute: MakeExecution, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.jobs.append(ended)
    world.default_apps = []
    clock = Clock(monkeypatch)

    assert execute().run(["job"], timeout_seconds=9).application_id == ""
    assert clock.now_seconds == 0


def timed_out() -> Any:
    raise RemoteTimeoutError("command did not end within 9 s: job", hint="a hint")


def test_time_out_names_the_last_state_and_kills_in_yarn(
    execute: MakeExecution, world: World
) -> None:
    world.jobs.append(timed_out)
    world.apps[TAG] = [[app("UNDEFINED", state="ACCEPTED", number=3)]]

    with pytest.raises(StalledError) as caught:
        execute().run(["job"], timeout_seconds=9)

    assert isinstance(caught.value, RunError)
    assert caught.value.exit_code == 9
    assert isinstance(caught.value.__cause__, RemoteTimeoutError)
    assert caught.value.message.splitlines() == [
        "stalled: not done after 9 s; last seen: application_1_0003 ACCEPTED",
        "log line 1",
        "log line 2",
    ]
    assert caught.value.hint == "a hint"
    assert world.killed == ["application_1_0003"]


def test_dilated_nodes_may_take_so_many_times_longer(execute: MakeExecution, world: World) -> None:
    world.jobs.append(timed_out)

    with pytest.raises(StalledError, match=r"stalled: not done after 9 s \(36 s here\); last seen"):
        execute(dilation=4.0).run(["job"], timeout_seconds=9)

    assert [row["timeout"] for row in world.submissions] == [36.0]


def test_a_dilated_yarn_has_longer_to_answer(
    execute: MakeExecution, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.jobs.append(ended)
    world.yarn_answers = False
    clock = Clock(monkeypatch)

    with pytest.raises(RemoteError, match="the ResourceManager does not answer"):
        execute(dilation=4.0).run(["job"], timeout_seconds=9)

    assert 40 < clock.now_seconds < 41


def test_time_out_of_a_job_that_yarn_never_accepted(execute: MakeExecution, world: World) -> None:
    world.jobs.append(timed_out)
    world.default_apps = []

    with pytest.raises(StalledError, match="never accepted by YARN"):
        execute().run(["job"], timeout_seconds=9)
    assert world.killed == []


def test_time_out_with_a_dead_yarn_is_still_a_time_out(
    execute: MakeExecution, world: World
) -> None:
    world.jobs.append(timed_out)
    world.yarn_answers = False

    with pytest.raises(StalledError, match=r"stalled: .*YARN does not answer"):
        execute().run(["job"], timeout_seconds=9)


def test_a_lost_connection_is_not_called_stalled(execute: MakeExecution, world: World) -> None:
    lost = RemoteError("master: out of reach", hint="a hint")

    def cut() -> Any:
        raise lost

    world.jobs.append(cut)
    world.apps[TAG] = [[app("UNDEFINED", state="RUNNING")]]

    with pytest.raises(RemoteError) as caught:
        execute().run(["job"], timeout_seconds=9)

    assert caught.value is lost
    assert (lost.message, lost.hint, lost.exit_code) == ("master: out of reach", "a hint", 8)
    assert world.killed == ["application_1_0001"]


def test_ctrl_c_kills_in_yarn_too(execute: MakeExecution, world: World) -> None:
    def interrupt() -> Any:
        raise KeyboardInterrupt

    world.jobs.append(interrupt)
    world.apps[TAG] = [[app("UNDEFINED", state="RUNNING")]]

    with pytest.raises(KeyboardInterrupt):
        execute().run(["job"], timeout_seconds=9)
    assert world.killed == ["application_1_0001"]


def test_ending_a_submission_asks_every_node_and_then_yarn(
    live: LiveCluster, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    world.apps["attempt-1"] = [[app("UNDEFINED", state="RUNNING", number=4), app("SUCCEEDED")]]
    world.lost.add("worker2")  # a node that is gone runs nothing

    end_submission(live, "attempt-1")

    assert sorted(world.ended) == [
        (name, "BOARDCLUSTER_ATTEMPT=attempt-1")
        for name in ("master", "worker1", "worker3", "worker4")
    ]
    assert world.killed == ["application_1_0004"]


def test_what_a_submission_runs_as_root_is_ended_too(
    live: LiveCluster, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever is not root can read the marks of its own processes only."""
    monkeypatch.setattr("time.sleep", lambda _: None)
    world.apps["attempt-1"] = [[app("SUCCEEDED")]]
    admins = {name: FakeRemote(f"root of {name}") for name in live.remotes}
    for remote in admins.values():
        remote.tell_node_agent("end_marked", {"ended": 1})

    end_submission(replace(live, admins=admins), "attempt-1")

    # In a container root may be unable to read the marks of others.
    assert sorted(world.ended) == [(name, "BOARDCLUSTER_ATTEMPT=attempt-1") for name in admins]
    for remote in admins.values():
        assert [row["mark"] for row in remote.requests] == ["BOARDCLUSTER_ATTEMPT=attempt-1"]


def test_an_application_that_does_not_end_is_said(
    live: LiveCluster, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    monkeypatch.setattr(module, "kill", lambda *_, **__: ["application_1_0004"])

    with pytest.raises(RemoteError, match="YARN is still running what was submitted as attempt-1"):
        end_submission(live, "attempt-1")

    assert 20 <= clock.now_seconds < 22


def test_a_tag_names_trial_and_attempt() -> None:
    assert attempt_tag("trial", 3) == "trial-3"


def test_dead_daemons_and_lost_nodes_are_named(live: LiveCluster, world: World) -> None:
    assert dead_daemons(live) == []

    world.dead = {("datanode", "worker2"), ("jobhistory", "master")}
    world.lost = {"worker3"}

    assert dead_daemons(live) == ["jobhistory on master", "datanode on worker2", "node worker3"]


def test_lack_of_memory_that_yarn_does_not_mention_is_named(
    execute: MakeExecution, world: Any, folder: Path
) -> None:
    """MapReduce's diagnostics say that a task failed, and not why."""
    container = folder / "one" / "containers" / "worker1" / "container_1"

    def fail() -> Completed:
        container.mkdir(parents=True)
        (container / "syslog").write_text("INFO x\nERROR exited : Java heap space\n")
        return ended(1)

    world.jobs.append(fail)
    world.apps[TAG] = [[app("FAILED", diagnostics="Task failed task_1")]]

    failure = execute().run(["job"], timeout_seconds=9).failure

    assert failure.startswith("oom (raise ")
    assert failure.endswith("YARN says FAILED: ERROR exited : Java heap space Task failed task_1")


def test_a_safe_mode_that_yarn_does_not_mention_is_named(
    execute: MakeExecution, world: Any, folder: Path
) -> None:
    """The application master ends with status 1, and only its own log says why."""
    container = folder / "one" / "containers" / "worker1" / "container_1"
    said = "o.a.h.hdfs.server.namenode.SafeModeException: Cannot create directory /tmp/x."

    def fail() -> Completed:
        container.mkdir(parents=True)
        (container / "syslog").write_text(f"INFO x\n{said} Name node is in safe mode.\n\tat y\n")
        return ended(1)

    world.jobs.append(fail)
    world.apps[TAG] = [[app("FAILED", diagnostics="AM Container exited with exitCode: 1")]]

    failure = execute().run(["job"], timeout_seconds=9).failure

    assert SAFE_MODE.search(failure)
    assert failure.endswith("safe mode.; AM Container exited with exitCode: 1")


@pytest.mark.parametrize("place", ["stderr.txt", "containers/worker1/container_1/syslog"])
def test_a_hdfs_without_room_for_a_block_is_named(
    execute: MakeExecution, world: Any, folder: Path, place: str
) -> None:
    """YARN says that a task failed; by then its output is deleted, and the disk has room again."""
    log = folder / "one" / place
    told = "File /out/part-m-1 could only be written to 0 of the 1 minReplication nodes"

    def fail() -> Completed:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(f"INFO x\no.a.h.ipc.RemoteException(java.io.IOException): {told}. There\n")
        return ended(1)

    world.jobs.append(fail)
    world.apps[TAG] = [[app("FAILED", diagnostics="Task failed task_1")]]

    failure = execute().run(["job"], timeout_seconds=9).failure

    assert failure.endswith(f"{told}; Task failed task_1")
    assert NO_ROOM.search(failure)


@pytest.mark.parametrize("place", ["stdout.txt", "containers/worker1/container_1/stdout"])
def test_a_jvm_that_crashed_with_an_archive_makes_later_jobs_start_without(
    execute: MakeExecution, live: LiveCluster, world: Any, folder: Path, place: str
) -> None:
    archive = live.layout.archives / "mapreduce.jsa"
    archive.parent.mkdir()
    archive.touch()
    printed = folder / "one" / place

    def crash() -> Completed:
        printed.parent.mkdir(parents=True, exist_ok=True)
        printed.write_text(CRASH)
        return ended(1)

    world.jobs += [crash, crash]
    world.apps[TAG] = [[app("FAILED", diagnostics="Task failed task_1")]]

    first = execute().run(["job"], timeout_seconds=9)

    assert first.lost_archive
    assert "a JVM crashed (SIGSEGV (0xb) at pc=0x1, pid=2, tid=3)" in first.failure
    assert "later jobs start without the class-data archive mapreduce" in first.failure
    assert "\n" not in first.failure
    assert not archive.exists()
    conf = folder / "later"
    write_configuration(live, conf, tag="later", extra={})
    assert "SharedArchiveFile" not in (conf / "mapred-site.xml").read_text()
    # The next one crashes without an archive: that is the job's own failure.
    second = execute().run(["job"], timeout_seconds=9)
    assert not second.lost_archive
    assert "a JVM crashed (SIGSEGV" in second.failure


def test_of_jobs_that_crash_together_each_is_the_archives_fault(
    execute: MakeExecution, live: LiveCluster, world: Any, folder: Path
) -> None:
    archive = live.layout.archives / "mapreduce.jsa"
    archive.parent.mkdir()
    archive.touch()

    def crash() -> Completed:
        archive.unlink()  # the other job's crash was seen first
        (folder / "one" / "stdout.txt").write_text(CRASH)
        return ended(1)

    world.jobs.append(crash)
    world.apps[TAG] = [[app("FAILED")]]

    assert execute().run(["job"], timeout_seconds=9).lost_archive


def test_a_crash_in_a_library_of_the_program_costs_no_archive(
    execute: MakeExecution, live: LiveCluster, world: Any, folder: Path
) -> None:
    archive = live.layout.archives / "mapreduce.jsa"
    archive.parent.mkdir()
    archive.touch()

    def crash() -> Completed:
        (folder / "one" / "stdout.txt").write_text(f"{CRASH}# C  [libown.so+0x1119]  work+0x9\n")
        return ended(1)

    world.jobs.append(crash)
    world.apps[TAG] = [[app("FAILED")]]

    outcome = execute().run(["job"], timeout_seconds=9)

    assert "[libown.so+0x1119]" in outcome.failure
    assert not outcome.lost_archive
    assert archive.exists()


def test_what_attempts_left_is_cleared_on_every_node(live: LiveCluster, world: Any) -> None:
    node: Any = live.remotes["worker1"]
    node.files |= {"/nodes/worker1/tmp/telemetry-1.txt": b"", "/nodes/worker1/tmp/other": b""}
    node.files |= {"/nodes/worker1/root-trial-1/audit/out": b""}  # there is no other way to root

    # The first is of TeraGen, the second of WebHDFS.
    halves = ["tera-1000-r2-crc32c-b128m.partial", "0ab1-r2-crc32c-b16m.partial.partial"]
    stock = ["grep-temp-1234", "QuasiMonteCarlo_1_2"]  # this world lists the same in each folder
    world.inputs = ["tera-1000-r2-crc32c-b16m", *halves, *stock]

    clear_leftovers(live)

    assert list(node.files) == ["/nodes/worker1/tmp/other"]
    unfinished = [f"/boardcluster/input/{name}" for name in halves]
    of_user = [f"/user/{live.layout.user}/{name}" for name in stock]
    assert world.deleted == ["/boardcluster/output", *unfinished, *of_user]
    removed = {(row[1], row[2]) for row in world.happened if row[0] == "rm"}
    assert removed == {(name, f"/nodes/{name}/scratch") for name in live.remotes}


def test_what_root_left_is_deleted_by_root(live: LiveCluster) -> None:
    """Its folders have mode 700, so that nobody else can."""
    admins = {name: FakeRemote(f"root of {name}") for name in live.remotes}
    commands = {
        name: ("sh", "-c", 'rm -rf -- "$0"/root-*', f"/nodes/{name}") for name in live.remotes
    }
    for name, remote in admins.items():
        remote.tell(*commands[name])

    clear_leftovers(replace(live, admins=admins))

    assert {name: remote.calls for name, remote in admins.items()} == {
        name: [command] for name, command in commands.items()
    }


def test_a_dead_yarn_or_hdfs_does_not_stop_the_clearing(live: LiveCluster, world: Any) -> None:
    world.refused_deletes = 1
    world.lost = {"worker2"}

    clear_leftovers(live)

    assert len([row for row in world.happened if row[0] == "rm"]) == len(live.remotes) - 1
