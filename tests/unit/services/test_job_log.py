"""What engines' logs say of a job while it runs."""

from __future__ import annotations

from boardcluster.services.job_log import JobLog

SPARK = """\
2026-11-23T18:03:43.961 INFO DAGScheduler: Submitting ShuffleMapStage 0 (MapPartitionsRDD[1] at \
mapPartitionsToPair at WordCount.java:61), which has no missing parents
2026-11-23T18:03:44.054 INFO YarnScheduler: Adding task set 0.0 with 2 tasks resource profile 0
2026-11-23T18:03:44.070 INFO TaskSetManager: Starting task 0.0 in stage 0.0 (TID 0) (worker1,\
executor 1, partition 0, NODE_LOCAL, 9955 bytes)
2026-11-23T18:03:44.071 INFO TaskSetManager: Starting task 1.0 in stage 0.0 (TID 1) (worker2,\
executor 2, partition 1, NODE_LOCAL, 9955 bytes)
2026-11-23T18:03:44.529 INFO TaskSetManager: Finished task 0.0 in stage 0.0 (TID 0) in 466 ms on \
worker1 (executor 1) (1/2)
"""

_HEAD = "2026-11-23 18:03:28,{} INFO [AsyncDispatcher event handler] org.apache.hadoop.mapreduce."
_JOB = _HEAD + "v2.app.job.impl.JobImpl: "
_TRY = _HEAD + "v2.app.job.impl.TaskAttemptImpl: "
_MAP = "attempt_1795456992885_0001_m_000000_0"
MAPREDUCE = [
    _JOB.format("100") + "Input size for job job_1_0001 = 999951. Number of splits = 2",
    _JOB.format("101") + "Number of reduces for job job_1_0001 = 1",
    _TRY.format("345") + f"TaskAttempt: [{_MAP}] using containerId: [container_1_0001_01_000002"
    " on NM: [worker1:8041]",
    _TRY.format("348") + f"{_MAP} TaskAttempt Transitioned from ASSIGNED to RUNNING",
    _HEAD.format("658")
    + f"mapred.TaskAttemptListenerImpl: Progress of TaskAttempt {_MAP} is : 0.5",
]


def fed(*lines: str, ahead_seconds: float = 0.0) -> JobLog:
    log = JobLog(ahead_seconds)
    for line in lines:
        log.feed(line)
    return log


def test_stages_of_spark_have_tasks_on_nodes() -> None:
    log = fed(*SPARK.splitlines())
    part = log.parts["stage 0"]
    assert (part.total, part.running, part.done, part.failed) == (2, 1, 1, 0)
    assert part.label == "mapPartitionsToPair at WordCount.java:61"
    assert log.nodes() == {"worker1": 0, "worker2": 1}
    assert log.progress == 0.5
    task = log.tasks["0"]
    assert task.end_seconds is not None
    assert round(task.end_seconds - task.begin_seconds, 3) == 0.459


def test_a_lost_task_is_counted_and_its_repeat_runs() -> None:
    log = fed(
        *SPARK.splitlines(),
        "2026-11-23T18:03:45.000 WARN TaskSetManager: Lost task 1.0 in stage 0.0 (TID 1) (worker2"
        " executor 2): ExecutorLostFailure",
        "2026-11-23T18:03:45.100 INFO TaskSetManager: Starting task 1.1 in stage 0.0 (TID 2)"
        " (worker1,executor 1, partition 1, ANY, 9955 bytes)",
    )
    part = log.parts["stage 0"]
    assert (part.running, part.done, part.failed) == (1, 1, 1)
    assert not log.tasks["1"].ok


def test_maps_and_reduces_have_progress() -> None:
    log = fed(*MAPREDUCE)
    assert {name: part.total for name, part in log.parts.items()} == {"maps": 2, "reduces": 1}
    assert log.parts["maps"].running == 1
    assert log.tasks[_MAP].node == "worker1"
    assert round(log.progress, 3) == round(0.5 / 3, 3)
    log.feed(
        _TRY.format("900") + f"{_MAP} TaskAttempt Transitioned from RUNNING to"
        " SUCCESS_FINISHING_CONTAINER"
    )
    log.feed(
        _TRY.format("950") + f"{_MAP} TaskAttempt Transitioned from SUCCESS_FINISHING_CONTAINER"
        " to SUCCEEDED"
    )
    assert (log.parts["maps"].running, log.parts["maps"].done) == (0, 1)


def test_local_time_is_taken_back_to_utc() -> None:
    utc, east = fed(*MAPREDUCE), fed(*MAPREDUCE, ahead_seconds=3600.0)
    assert utc.last_seconds - east.last_seconds == 3600.0


def test_lines_of_others_are_passed_over() -> None:
    log = fed(
        "",
        "2026-99-99T99:99:99.999 INFO TaskSetManager: Finished task 0.0 in stage 0.0 (TID 9) in 1",
        "no date: Starting task 0.0 in stage 0.0 (TID 0) (worker1,executor 1",
        "2026-11-23T18:03:44.070 INFO Something: else",
        _TRY.format("348") + "attempt_odd TaskAttempt Transitioned from ASSIGNED to RUNNING",
    )
    assert log.tasks == {}
    assert log.progress == 0.0


def test_an_impossible_number_of_tasks_is_passed_over() -> None:
    moment = "2026-11-23T18:03:46.000 INFO YarnScheduler:"
    log = fed(*SPARK.splitlines(), f"{moment} Adding task set 1.0 with {'9' * 400} tasks resource")
    assert log.progress == 0.5


def test_of_very_many_tasks_the_oldest_are_dropped_but_counted() -> None:
    log = JobLog()
    for number in range(2500):
        moment = "2026-11-23T18:03:44.070 INFO TaskSetManager:"
        log.feed(f"{moment} Starting task 0.0 in stage 0.0 (TID {number}) (worker1,executor 1, p")
        log.feed(f"{moment} Finished task 0.0 in stage 0.0 (TID {number}) in 1 ms on worker1")
    assert len(log.tasks) == 2000
    assert log.parts["stage 0"].done == 2500
