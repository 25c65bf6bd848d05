"""Spark: the submission, and the event log as Spark writes it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from boardcluster.errors import RemoteError
from boardcluster.records import TaskRecord
from boardcluster.services.layout import Layout
from boardcluster.services.spark import (
    read_event_log,
    read_stages,
    read_tasks,
    spark_submit_command,
    stages_seconds,
    submit_environment,
)

START = {"Event": "SparkListenerLogStart", "Spark Version": "6.5.4"}
NO_TASKS = {
    "executorRunTime": 0,
    "executorCpuTime": 0,
    "jvmGCTime": 0,
    "memoryBytesSpilled": 0,
    "diskBytesSpilled": 0,
    "inputBytes": 0,
    "inputRecords": 0,
    "outputBytes": 0,
    "outputRecords": 0,
    "shuffleRemoteReadBytes": 0,
    "shuffleLocalReadBytes": 0,
    "shuffleWriteBytes": 0,
    "shuffleReadBytes": 0,
    "tasks": 0,
    "failedTasks": 0,
}


def task(*, reason: str = "Success", scale: int = 1, **metrics: Any) -> dict[str, Any]:
    """One event as Spark writes it, cut to the fields around those that are read."""
    return {
        "Event": "SparkListenerTaskEnd",
        "Stage ID": 0,
        "Task Type": "ShuffleMapTask",
        "Task End Reason": {"Reason": reason},
        "Task Info": {"Task ID": 0, "Host": "worker2", "Failed": reason != "Success"},
        "Task Executor Metrics": {"JVMHeapMemory": 999_999, "MinorGCTime": 999_999},
        "Task Metrics": {
            "Executor Deserialize Time": 614,
            "Executor Run Time": 10 * scale,
            "Executor CPU Time": 2_451_157_323 * scale,
            "Result Size": 1494,
            "JVM GC Time": 3 * scale,
            "Memory Bytes Spilled": 5 * scale,
            "Disk Bytes Spilled": 4 * scale,
            "Shuffle Read Metrics": {
                "Remote Blocks Fetched": 1,
                "Remote Bytes Read": 70 * scale,
                "Local Bytes Read": 30 * scale,
                "Push Based Shuffle": {"Merged Remote Bytes Read": 999_999},
            },
            "Shuffle Write Metrics": {"Shuffle Bytes Written": 200 * scale},
            "Input Metrics": {"Bytes Read": 67_174_400 * scale, "Records Read": 727_979 * scale},
            "Output Metrics": {"Bytes Written": 11 * scale, "Records Written": 2 * scale},
            "Updated Blocks": [],
            **metrics,
        },
    }


def log(folder: Path, *events: dict[str, Any]) -> Path:
    path = folder / "application_1_0001"
    path.write_text("".join(json.dumps(e, separators=(",", ":")) + "\n" for e in events))
    return path


def test_sums_every_task(tmp_path: Path) -> None:
    other = {"Event": "SparkListenerStageCompleted", "Stage Info": {"Executor Run Time": 999}}

    counters = read_event_log(log(tmp_path, START, task(), other, task(scale=2)))

    assert counters == {
        "spark/executorRunTime": 30,
        "spark/executorCpuTime": 7_353_471_969,
        "spark/jvmGCTime": 9,
        "spark/memoryBytesSpilled": 15,
        "spark/diskBytesSpilled": 12,
        "spark/inputBytes": 201_523_200,
        "spark/inputRecords": 2_183_937,
        "spark/outputBytes": 33,
        "spark/outputRecords": 6,
        "spark/shuffleRemoteReadBytes": 210,
        "spark/shuffleLocalReadBytes": 90,
        "spark/shuffleReadBytes": 300,
        "spark/shuffleWriteBytes": 600,
        "spark/tasks": 2,
        "spark/failedTasks": 0,
    }


def test_failed_tasks_count_with_the_work_they_did(tmp_path: Path) -> None:
    counters = read_event_log(
        log(tmp_path, START, task(), task(reason="ExceptionFailure"), task(reason="TaskKilled"))
    )

    assert (counters["spark/tasks"], counters["spark/failedTasks"]) == (3, 2)
    assert counters["spark/executorRunTime"] == 30


def test_a_task_that_was_lost_with_its_executor_has_no_metrics(tmp_path: Path) -> None:
    lost = task(reason="ExecutorLostFailure")
    del lost["Task Metrics"]
    null = {**task(reason="Resubmitted"), "Task Metrics": None}

    counters = read_event_log(log(tmp_path, START, task(), lost, null))

    assert (counters["spark/tasks"], counters["spark/failedTasks"]) == (3, 2)
    assert counters["spark/inputBytes"] == 67_174_400


def test_an_application_without_tasks_has_zeros(tmp_path: Path) -> None:
    expected = {f"spark/{name}": value for name, value in NO_TASKS.items()}

    assert read_event_log(log(tmp_path, START)) == expected


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"this is a text\nof two lines\n",
        b'{"Event":"SparkListenerTaskEnd"}\n',
        b'{"Event":"SparkListenerLogStart"}\n{"Event":"SparkListenerTaskEnd","Task E',
        b'{"Event":"SparkListenerLogStart"}\n{"Event":"SparkListenerTaskEnd"}\n',
        b'{"Event":"SparkListenerLogStart"}\n{"Event":"SparkListenerTaskEnd","Task End Reason":1}',
        b'{"Event":"SparkListenerLogStart"}\n\xff\xfe\x00\n',
        b"\x28\xb5\x2f\xfd compressed",
    ],
)
def test_garbage_is_a_remote_error(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(content)

    with pytest.raises(RemoteError, match="not a Spark event log"):
        read_event_log(path)


def test_no_log_is_a_remote_error(tmp_path: Path) -> None:
    with pytest.raises(RemoteError, match="absent is not a Spark event log"):
        read_event_log(tmp_path / "absent")


def stage(number: int, name: str, *, start: int, end: int, **info: Any) -> dict[str, Any]:
    """One event as Spark writes it, cut; times are in ms since 1970."""
    return {
        "Event": "SparkListenerStageCompleted",
        "Stage Info": {
            "Stage ID": number,
            "Stage Attempt ID": 0,
            "Stage Name": name,
            "Number of Tasks": 8,
            "RDD Info": [],
            "Submission Time": 1_760_000_000_000 + start,
            "Completion Time": 1_760_000_000_000 + end,
            **info,
        },
    }


def test_stages_take_from_their_submission_to_their_end(tmp_path: Path) -> None:
    submitted = {**stage(2, "never ended", start=0, end=1), "Event": "SparkListenerStageSubmitted"}
    path = log(
        tmp_path,
        START,
        stage(0, "map at WordCount.java:44", start=0, end=1500),
        task(),
        submitted,
        stage(1, "runJob at SparkHadoopWriter.scala:83", start=1250, end=2000),
    )

    stages = read_stages(path)
    assert [(row.label, row.begin_seconds, row.end_seconds) for row in stages] == [
        ("stage 0: map at WordCount.java:44", 1_760_000_000.0, 1_760_000_001.5),
        # Stages may overlap.
        ("stage 1: runJob at SparkHadoopWriter.scala:83", 1_760_000_001.25, 1_760_000_002.0),
    ]
    assert stages_seconds(stages) == {
        "stage 0: map at WordCount.java:44": 1.5,
        "stage 1: runJob at SparkHadoopWriter.scala:83": 0.75,
    }


def test_a_stage_that_was_tried_again_counts_each_time(tmp_path: Path) -> None:
    path = log(
        tmp_path,
        START,
        stage(0, "map", start=0, end=1000, **{"Failure Reason": "FetchFailed"}),
        stage(0, "map", start=2000, end=2250, **{"Stage Attempt ID": 1}),
    )

    stages = read_stages(path)
    assert stages_seconds(stages) == {"stage 0: map": 1.25}
    assert [(row.label, row.begin_seconds) for row in stages] == [
        ("stage 0: map", 1_760_000_000.0),
        ("stage 0.1: map", 1_760_000_002.0),
    ]


def test_an_application_without_stages_has_none(tmp_path: Path) -> None:
    assert read_stages(log(tmp_path, START, task())) == ()


@pytest.mark.parametrize(
    "content",
    [
        b'{"Event":"SparkListenerStageCompleted","Stage In',
        b'{"Event":"SparkListenerStageCompleted"}\n',
        b'{"Event":"SparkListenerStageCompleted","Stage Info":1}\n',
        b"\xff\xfe\x00\n",
    ],
)
def test_stages_of_garbage_are_a_remote_error(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b'{"Event":"SparkListenerLogStart"}\n' + content)

    with pytest.raises(RemoteError, match="not a Spark event log"):
        read_stages(path)


def test_stages_of_no_log_are_a_remote_error(tmp_path: Path) -> None:
    with pytest.raises(RemoteError, match="absent is not a Spark event log"):
        read_stages(tmp_path / "absent")


def test_submits_with_sparks_own_script_and_these_properties(layout: Layout) -> None:
    command = spark_submit_command(
        layout,
        conf="/attempt/conf",
        tag="trial-1",
        program="/jobs.jar",
        main="org.example.Main",
        arguments=["in", "--flag"],
    )

    assert command == [
        f"{layout.engines.spark_home}/bin/spark-submit",
        "--properties-file",
        "/attempt/conf/spark-defaults.conf",
        "--conf",
        "spark.yarn.tags=trial-1",
        "--class",
        "org.example.Main",
        "/jobs.jar",
        "in",
        "--flag",
    ]


def test_a_python_program_needs_no_class(layout: Layout) -> None:
    command = spark_submit_command(layout, conf="/c", tag="t", program="/app.py", arguments=[])

    assert "--class" not in command
    assert command[-1] == "/app.py"


def test_environment_of_a_submission_uses_its_own_configuration(layout: Layout) -> None:
    environment = submit_environment(layout, conf="/attempt/conf")

    assert (
        environment.items()
        >= {
            "JAVA_HOME": "/java",
            "HADOOP_USER_NAME": "root",
            "HADOOP_CONF_DIR": "/attempt/conf",
            "SPARK_HOME": str(layout.engines.spark_home),
            "SPARK_CONF_DIR": "/attempt/conf",
            "SPARK_LOCAL_IP": "master",
            "PYSPARK_PYTHON": "python3",
        }.items()
    )


def test_a_stage_without_times_was_skipped(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(
        b'{"Event":"SparkListenerLogStart"}\n'
        b'{"Event":"SparkListenerStageCompleted","Stage Info":{"Stage ID":0,"Stage Name":"x"}}\n'
    )

    assert read_stages(path) == ()


def timed(**metrics: Any) -> dict[str, Any]:
    """A task of five seconds."""
    event = task(**metrics)
    event["Task Info"] |= {"Launch Time": 1_000_000, "Finish Time": 1_005_000}
    return event


def test_a_task_says_what_it_computed_and_what_it_waited_for(tmp_path: Path) -> None:
    event = timed(
        **{
            "Executor Deserialize Time": 600,
            "Executor Deserialize CPU Time": 100_000_000,
            "Executor Run Time": 3_900,
            "Executor CPU Time": 1_500_000_000,
            "JVM GC Time": 250,
            "Shuffle Read Metrics": {"Fetch Wait Time": 700, "Local Bytes Read": 1},
            "Disk Bytes Spilled": 4_096,
        }
    )

    (found,) = read_tasks(log(tmp_path, START, event))

    assert (found.cpu_seconds, found.overhead_seconds) == pytest.approx((1.6, 5.0 - 3.9 - 0.1))
    assert replace(found, cpu_seconds=1.6, overhead_seconds=1.0) == TaskRecord(
        node="worker2",
        begin_seconds=1_000.0,
        end_seconds=1_005.0,
        cpu_seconds=1.6,
        collection_seconds=0.25,
        fetch_wait_seconds=0.7,
        overhead_seconds=1.0,
        spilled_bytes=4_096,
    )


def test_a_task_of_a_lost_executor_computed_nothing_that_is_known(tmp_path: Path) -> None:
    event = timed()
    event["Task Metrics"] = None

    (found,) = read_tasks(log(tmp_path, START, event))

    assert (found.cpu_seconds, found.overhead_seconds) == (0.0, 0.0)


def test_a_log_of_tasks_that_is_none_is_a_remote_error(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("no\n")
    with pytest.raises(RemoteError, match="not a Spark event log"):
        read_tasks(tmp_path / "log")
