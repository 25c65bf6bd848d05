"""YARN's and the history server's answers, as they are, and what is made of them."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from boardcluster.errors import RemoteError, RemoteTimeoutError
from boardcluster.records import ClusterSpec, TaskRecord
from boardcluster.remote.fake import FakeRemote
from boardcluster.remote.gate import Completed
from boardcluster.services import yarn
from boardcluster.services.layout import Layout
from boardcluster.services.yarn import (
    YarnApplication,
    applications,
    file_system_command,
    job_history,
    kill,
    mapreduce_command,
    unfinished_tags,
    unhealthy_nodes,
)


def ok(body: object) -> list[dict[str, Any]]:
    return [{"status": 200, "body": json.dumps(body), "location": None}]


def app(number: int, state: str, final: str, *, diagnostics: str = "") -> dict[str, Any]:
    return {
        "id": f"application_1700000000000_{number:04}",
        "user": "root",
        "name": "word count",
        "queue": "default",
        "state": state,
        "finalStatus": final,
        "progress": 50.0,
        "diagnostics": diagnostics,
        "applicationType": "MAPREDUCE",
        "applicationTags": "trial-1",
        "startedTime": 1700000000000 + number,
        "finishedTime": 0,
    }


@pytest.fixture
def remote() -> FakeRemote:
    return FakeRemote("master")


def urls(remote: FakeRemote) -> list[tuple[str, str]]:
    return [(r["requests"][0]["method"], r["requests"][0]["url"]) for r in remote.requests]


def test_an_application_whose_id_is_a_path_is_refused(layout: Layout, remote: FakeRemote) -> None:
    """A job may answer in the ResourceManager's place; its names must stay in our folders."""
    row = app(1, "FINISHED", "SUCCEEDED") | {"id": "/etc/bash_completion.d/x"}
    remote.tell_node_agent("http", ok({"apps": {"app": [row]}}))

    with pytest.raises(RemoteError, match="no id of YARN's"):
        applications(layout, remote, tag="trial-1")


def test_applications_of_a_tag_oldest_first(layout: Layout, remote: FakeRemote) -> None:
    rows = [
        app(2, "RUNNING", "UNDEFINED"),
        app(1, "FAILED", "FAILED", diagnostics="\nContainer killed\n"),
    ]
    remote.tell_node_agent("http", ok({"apps": {"app": rows}}))

    assert applications(layout, remote, tag="trial-1") == [
        YarnApplication(
            id="application_1700000000000_0001",
            state="FAILED",
            final_status="FAILED",
            diagnostics="Container killed",
        ),
        YarnApplication(
            id="application_1700000000000_0002",
            state="RUNNING",
            final_status="UNDEFINED",
            diagnostics="",
        ),
    ]
    assert urls(remote) == [
        ("GET", "http://master:8088/ws/v1/cluster/apps?applicationTags=trial-1")
    ]


def test_a_tag_with_a_plus_is_asked_for_as_it_is(layout: Layout, remote: FakeRemote) -> None:
    remote.tell_node_agent("http", ok({"apps": None}))

    applications(layout, remote, tag="wordcount+grep-1")

    assert urls(remote)[0][1].endswith("?applicationTags=wordcount%2Bgrep-1")


@pytest.mark.parametrize("apps", [None, {}, {"app": []}, {"app": None}])
def test_no_applications(apps: object, layout: Layout, remote: FakeRemote) -> None:
    remote.tell_node_agent("http", ok({"apps": apps}))

    assert applications(layout, remote, tag="t") == []


def test_a_silent_resource_manager_is_a_remote_error(layout: Layout, remote: FakeRemote) -> None:
    remote.tell_node_agent("http", [{"status": 0, "body": "refused" * 99, "location": None}])

    with pytest.raises(RemoteError, match=r"does not answer \(status 0\): refused") as caught:
        applications(layout, remote, tag="t")

    assert "boardcluster status" in caught.value.hint
    assert len(caught.value.message) < 300


def test_the_tags_of_what_has_not_ended(layout: Layout, remote: FakeRemote) -> None:
    rows = [{"applicationTags": "one-1,one"}, {"applicationTags": ""}, {}]
    remote.tell_node_agent("http", ok({"apps": {"app": rows}}))
    assert unfinished_tags(layout, remote) == {"one-1", "one"}
    assert urls(remote)[0][1].endswith("?states=NEW,NEW_SAVING,SUBMITTED,ACCEPTED,RUNNING")


def test_nothing_that_has_not_ended_has_no_tags(layout: Layout, remote: FakeRemote) -> None:
    remote.tell_node_agent("http", ok({"apps": None}))
    assert unfinished_tags(layout, remote) == set()


def test_kill_ends_only_what_still_runs(layout: Layout, remote: FakeRemote) -> None:
    rows = [
        app(1, "FINISHED", "SUCCEEDED"),
        app(2, "RUNNING", "UNDEFINED"),
        app(3, "ACCEPTED", "UNDEFINED"),
        app(4, "KILLED", "KILLED"),
        app(5, "FAILED", "FAILED"),
    ]
    remote.tell_node_agent("http", ok({"apps": {"app": rows}}))
    remote.tell_node_agent("http", [{"status": 202, "body": "", "location": None}])

    assert kill(layout, remote, tag="t") == [
        "application_1700000000000_0002",
        "application_1700000000000_0003",
    ]
    base = "http://master:8088/ws/v1/cluster/apps/application_1700000000000_000"
    assert urls(remote)[1:] == [
        ("PUT", f"{base}2/state?user.name=root"),
        ("PUT", f"{base}3/state?user.name=root"),
    ]
    item = remote.requests[1]["requests"][0]
    assert json.loads(item["body"]) == {"state": "KILLED"}
    assert item["headers"] == {"Content-Type": "application/json"}


COUNTERS = {
    "jobCounters": {
        "id": "job_1700000000000_0001",
        "counterGroup": [
            {
                "counterGroupName": "org.apache.hadoop.mapreduce.FileSystemCounter",
                "counter": [
                    {
                        "name": "FILE_BYTES_WRITTEN",
                        "mapCounterValue": 900,
                        "reduceCounterValue": 100,
                        "totalCounterValue": 1000,
                    },
                    {
                        "name": "HDFS_BYTES_READ",
                        "mapCounterValue": 5_000_000_000,
                        "reduceCounterValue": 0,
                        "totalCounterValue": 5_000_000_000,
                    },
                ],
            },
            {
                "counterGroupName": "org.apache.hadoop.mapreduce.TaskCounter",
                "counter": [
                    {
                        "name": "SPILLED_RECORDS",
                        "mapCounterValue": 7,
                        "reduceCounterValue": 5,
                        "totalCounterValue": 12,
                    }
                ],
            },
        ],
    }
}


TASKS = {
    "tasks": {
        "task": [
            {"type": "MAP", "startTime": 5_000, "finishTime": 9_000},
            {"type": "MAP", "startTime": 4_000, "finishTime": 8_000},
            {"type": "REDUCE", "startTime": 7_000, "finishTime": 12_000},
        ]
    }
}
JOB = {
    "job": {
        "submitTime": 1_000,
        "finishTime": 12_500,
        "avgShuffleTime": 2_500,
        "avgMergeTime": 100,
        "avgReduceTime": 400,
    }
}


ATTEMPTS = {
    "jobAttempts": {
        "jobAttempt": [
            {"id": 1, "nodeId": "worker1:8041", "startTime": 1_500},
            {"id": 2, "nodeId": "worker2:8041", "startTime": 2_500},
        ]
    }
}


def history(
    job: dict[str, Any] = JOB,
    tasks: dict[str, Any] = TASKS,
    counters: dict[str, Any] = COUNTERS,
    attempts: dict[str, Any] = ATTEMPTS,
) -> list[dict[str, Any]]:
    return [*ok(job), *ok(tasks), *ok(counters), *ok(attempts)]


def test_counters_of_a_job_unchanged_with_their_group(layout: Layout, remote: FakeRemote) -> None:
    remote.tell_node_agent("http", history())

    found = job_history(layout, remote, "application_1700000000000_0001")

    assert found.counters == {
        "org.apache.hadoop.mapreduce.FileSystemCounter/FILE_BYTES_WRITTEN": 1000,
        "org.apache.hadoop.mapreduce.FileSystemCounter/HDFS_BYTES_READ": 5_000_000_000,
        "org.apache.hadoop.mapreduce.TaskCounter/SPILLED_RECORDS": 12,
    }
    assert found.document == {
        "job": JOB["job"],
        "tasks": TASKS,
        "counters": COUNTERS,
        "attempts": ATTEMPTS,
        "task_attempts": [],
    }
    base = "http://master:19888/ws/v1/history/mapreduce/jobs/job_1700000000000_0001"
    (request,) = remote.requests
    assert [row["url"] for row in request["requests"]] == [
        base,
        f"{base}/tasks",
        f"{base}/counters",
        f"{base}/jobattempts",
    ]


def test_phases_follow_each_other_and_add_up(layout: Layout, remote: FakeRemote) -> None:
    remote.tell_node_agent("http", history())

    phases = job_history(layout, remote, "application_1_0001").phases_seconds

    assert phases == {
        "start": 3.0,
        "map": 5.0,
        "reduce after the last map": 3.0,
        "commit": 0.5,
        "mean shuffle of a reduce task": 2.5,
        "mean merge of a reduce task": 0.1,
        "mean reduce of a reduce task": 0.4,
    }
    assert sum(list(phases.values())[:4]) == 11.5  # submission to end


def test_phases_that_follow_each_other_have_a_begin_and_an_end(
    layout: Layout, remote: FakeRemote
) -> None:
    remote.tell_node_agent("http", history())

    found = job_history(layout, remote, "application_1_0001")

    assert found.phase_spans == {
        "start": (1.0, 4.0),
        "map": (4.0, 9.0),
        "reduce after the last map": (9.0, 12.0),
        "commit": (12.0, 12.5),
    }


@pytest.mark.parametrize(
    ("attempts", "node"),
    [
        (ATTEMPTS, "worker2"),  # the last one's record of earlier tasks is what counts
        ({"jobAttempts": {"jobAttempt": [{"id": 1, "nodeId": "elsewhere:8041"}]}}, "master"),
        ({"jobAttempts": {"jobAttempt": [{"id": 1}]}}, "master"),
        ({"jobAttempts": None}, "master"),
        ({}, "master"),
    ],
)
def test_times_are_of_the_node_of_the_last_application_master(
    attempts: dict[str, Any], node: str, layout: Layout, remote: FakeRemote
) -> None:
    remote.tell_node_agent("http", history(attempts=attempts))

    assert job_history(layout, remote, "application_1_0001").clock_node == node


def test_a_job_that_ended_before_its_last_task_has_an_empty_commit(
    layout: Layout, remote: FakeRemote
) -> None:
    job = {"job": JOB["job"] | {"finishTime": 11_000}}
    remote.tell_node_agent("http", history(job=job))

    found = job_history(layout, remote, "application_1_0001")

    assert found.phases_seconds["commit"] == 0.0
    assert found.phase_spans["commit"] == (12.0, 12.0)


def test_a_job_of_maps_only_has_no_reduce_phase(layout: Layout, remote: FakeRemote) -> None:
    maps = {"tasks": {"task": TASKS["tasks"]["task"][:2]}}
    remote.tell_node_agent("http", history(tasks=maps))

    phases = job_history(layout, remote, "application_1_0001").phases_seconds

    assert phases == {"start": 3.0, "map": 5.0, "commit": 3.5}


def test_a_job_without_tasks_or_counters_has_none(layout: Layout, remote: FakeRemote) -> None:
    bare = {"jobCounters": {"id": "job_1_0001"}}
    remote.tell_node_agent("http", history(tasks={"tasks": None}, counters=bare))

    found = job_history(layout, remote, "application_1_0001")

    assert (found.counters, found.phases_seconds, found.phase_spans) == ({}, {}, {})


def test_waits_until_the_history_has_the_job(
    layout: Layout, remote: FakeRemote, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    absent = {"status": 404, "body": "not found", "location": None}
    for _ in range(2):
        remote.tell_node_agent("http", [absent] * 4)
    remote.tell_node_agent("http", [*ok(JOB), absent, *ok(COUNTERS), *ok(ATTEMPTS)])
    remote.tell_node_agent("http", history())

    assert len(job_history(layout, remote, "application_1700000000000_0001").counters) == 3
    assert len(remote.requests) == 4


def test_a_job_that_the_history_never_has_is_a_remote_error(
    layout: Layout, remote: FakeRemote, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(yarn, "_HISTORY_WAIT_SECONDS", 0.0)
    remote.tell_node_agent("http", [{"status": 404, "body": "unknown job", "location": None}] * 4)

    with pytest.raises(RemoteError, match=r"no job_1_0001 \(status 404\): unknown job"):
        job_history(layout, remote, "application_1_0001")


def test_a_document_that_does_not_come_is_named_and_not_one_that_came(
    layout: Layout, remote: FakeRemote, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(yarn, "_HISTORY_WAIT_SECONDS", 0.0)
    late = {"status": 0, "body": "TimeoutError: timed out", "location": None}
    remote.tell_node_agent("http", [*ok(JOB), late, *ok(COUNTERS), *ok(ATTEMPTS)])

    with pytest.raises(RemoteError, match=r"\(status 0\): TimeoutError: timed out"):
        job_history(layout, remote, "application_1_0001")


def test_dilated_daemons_have_longer_to_answer(layout: Layout, remote: FakeRemote) -> None:
    slow = replace(layout, dilation=3.0)
    remote.tell_node_agent("http", history())
    remote.tell_node_agent("http", ok({"apps": None}))
    job_history(slow, remote, "application_1_0001")
    applications(slow, remote, tag="trial-1")

    waits = [{item["timeout"] for item in request["requests"]} for request in remote.requests]
    assert waits == [{15.0}, {60.0}]


def test_nodes_that_yarn_gave_up_are_named_with_their_report(
    layout: Layout, remote: FakeRemote
) -> None:
    row = {"nodeHostName": "worker2", "healthReport": "1/1 local-dirs usable space is below\n"}
    remote.tell_node_agent("http", ok({"nodes": {"node": [row]}}))
    remote.tell_node_agent("http", ok({"nodes": None}))
    remote.tell_node_agent("http", [{"status": 0, "body": "refused", "location": None}])

    assert unhealthy_nodes(layout, remote) == ["worker2: 1/1 local-dirs usable space is below"]
    assert unhealthy_nodes(layout, remote) == []
    assert unhealthy_nodes(layout, remote) == []
    assert urls(remote)[0][1].endswith("/ws/v1/cluster/nodes?states=UNHEALTHY")


def test_the_file_system_client_is_hadoops_own(layout: Layout) -> None:
    command = file_system_command(layout, conf="/c", arguments=["-put", "a", "b"])

    assert command[-4:] == ["org.apache.hadoop.fs.FsShell", "-put", "a", "b"]
    assert "/c" in command[command.index("-cp") + 1].split(":")


def test_submits_as_hadoop_jar_does(layout: Layout) -> None:
    command = mapreduce_command(
        layout, conf="/attempt/conf", jar="/my.jar", arguments=["Main", "in", "out"]
    )

    assert command[0] == "/java/bin/java"
    assert command[-5:] == ["org.apache.hadoop.util.RunJar", "/my.jar", "Main", "in", "out"]
    class_path = command[command.index("-cp") + 1].split(":")
    assert class_path == [*layout.engines.jars("hadoop"), "/attempt/conf"]
    assert len(class_path) == 3
    assert "-XX:ActiveProcessorCount=4" in command


def test_a_client_on_a_board_sees_the_cores_by_itself(
    board_spec: ClusterSpec, make_layout: Callable[[ClusterSpec], Layout]
) -> None:
    command = file_system_command(make_layout(board_spec), conf="/c", arguments=["-ls"])

    assert not any("ActiveProcessorCount" in word for word in command)


def described(kind: str, number: int, begin: int, end: int) -> dict[str, Any]:
    name = f"1700000000000_0001_{kind[0].lower()}_{number:06}"
    return {
        "id": f"task_{name}",
        "type": kind,
        "startTime": begin,
        "finishTime": end,
        "successfulAttempt": f"attempt_{name}_0",
    }


def answered(
    task: dict[str, Any], *, node: str = "worker1", shuffled: int = 0, **counts: int
) -> list[dict[str, Any]]:
    """What the server says of the try at a task, and of its counters."""
    attempt = {
        "id": task["successfulAttempt"],
        "type": task["type"],
        "startTime": task["startTime"],
        "finishTime": task["finishTime"],
        "nodeHttpAddress": f"{node}:8042",
        **({"shuffleFinishTime": shuffled} if shuffled else {}),
    }
    group = {
        "counterGroupName": "org.apache.hadoop.mapreduce.TaskCounter",
        "counter": [{"name": name, "value": value} for name, value in counts.items()],
    }
    counters = {"id": attempt["id"], "taskAttemptCounterGroup": [group]}
    return [*ok({"taskAttempt": attempt}), *ok({"jobTaskAttemptCounters": counters})]


def test_a_reducer_counts_from_when_no_map_kept_it_waiting(
    layout: Layout, remote: FakeRemote
) -> None:
    one = described("MAP", 0, 4_000, 8_000)
    two = described("REDUCE", 0, 5_000, 12_000)
    remote.tell_node_agent("http", history(tasks={"tasks": {"task": [one, two]}}))
    remote.tell_node_agent(
        "http",
        [
            *answered(one, CPU_MILLISECONDS=1_500, GC_TIME_MILLIS=99, FILE_BYTES_WRITTEN=7),
            *answered(two, node="worker2", shuffled=9_000, CPU_MILLISECONDS=9_999),
        ],
    )

    found = job_history(layout, remote, "application_1700000000000_0001")

    assert found.tasks == (
        TaskRecord(
            node="worker1", begin_seconds=4.0, end_seconds=8.0, cpu_seconds=1.5, spilled_bytes=7
        ),
        TaskRecord(
            node="worker2",
            begin_seconds=8.0,
            end_seconds=12.0,
            cpu_seconds=4.0,  # no more than it took: a process may use several cores
            fetch_wait_seconds=1.0,
        ),
    )
    asked = [row["url"] for row in remote.requests[1]["requests"]]
    end = "tasks/task_1700000000000_0001_m_000000/attempts/attempt_1700000000000_0001_m_000000_0"
    assert asked[0].endswith(end)
    assert asked[1] == f"{asked[0]}/counters"
    assert len(found.document["task_attempts"]) == 2


@pytest.mark.parametrize(
    "answers",
    [
        [],
        [{"status": 404, "body": "", "location": None}] * 2,
        [{"status": 200, "body": "<html>", "location": None}] * 2,
        [{"status": 200, "body": "{}", "location": None}] * 2,
        [{"status": 200, "body": '{"taskAttempt": null}', "location": None}] * 2,
        [{"status": 200, "body": '["odd"]', "location": None}] * 2,
    ],
)
def test_a_history_without_tasks_is_still_a_history(
    answers: list[dict[str, Any]], layout: Layout, remote: FakeRemote
) -> None:
    tasks = {"tasks": {"task": [described("MAP", 0, 4_000, 8_000)]}}
    remote.tell_node_agent("http", history(tasks=tasks))
    remote.tell_node_agent("http", answers)

    found = job_history(layout, remote, "application_1700000000000_0001")

    assert found.tasks == ()
    assert found.counters


def test_of_thousands_of_tasks_none_is_asked(layout: Layout, remote: FakeRemote) -> None:
    rows = [described("MAP", number, 4_000, 8_000) for number in range(501)]
    remote.tell_node_agent("http", history(tasks={"tasks": {"task": rows}}))

    assert job_history(layout, remote, "application_1700000000000_0001").tasks == ()
    assert len(remote.requests) == 1


def test_a_history_server_that_is_slow_to_answer_on_tasks_costs_a_minute_at_most(
    layout: Layout, remote: FakeRemote, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = [described("MAP", place, 4_000, 8_000) for place in range(400)]
    remote.tell_node_agent("http", history(tasks={"tasks": {"task": many}}))
    plain, allowed = remote.run, list[float]()

    def slow(argv: Sequence[str], **options: Any) -> Completed:
        allowed.append(options["timeout_seconds"])
        if len(allowed) == 2:
            raise RemoteTimeoutError("master: not done", hint="")
        return plain(argv, **options)

    monkeypatch.setattr(remote, "run", slow)
    found = job_history(layout, remote, "application_1700000000000_0001")

    assert found.tasks == ()
    assert found.phases_seconds
    assert allowed[1] == 60.0
