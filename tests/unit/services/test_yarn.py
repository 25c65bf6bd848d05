"""YARN's and the history server's answers, as they are, and what is made of them."""

import json
from typing import Any

import pytest

from boardcluster.errors import RemoteError
from boardcluster.remote.fake import FakeRemote
from boardcluster.services import yarn
from boardcluster.services.layout import Layout
from boardcluster.services.yarn import (
    YarnApplication,
    applications,
    job_counters,
    kill,
    mapreduce_command,
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


def test_applications_of_a_tag_oldest_first(layout: Layout, remote: FakeRemote) -> None:
    rows = [
        app(2, "RUNNING", "UNDEFINED"),
        app(1, "FAILED", "FAILED", diagnostics="\nContainer killed\n"),
    ]
    remote.tell_nodeside("http", ok({"apps": {"app": rows}}))

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


@pytest.mark.parametrize("apps", [None, {}, {"app": []}, {"app": None}])
def test_no_applications(apps: object, layout: Layout, remote: FakeRemote) -> None:
    remote.tell_nodeside("http", ok({"apps": apps}))

    assert applications(layout, remote, tag="t") == []


def test_a_silent_resource_manager_is_a_remote_error(layout: Layout, remote: FakeRemote) -> None:
    remote.tell_nodeside("http", [{"status": 0, "body": "refused" * 99, "location": None}])

    with pytest.raises(RemoteError, match=r"does not answer \(status 0\): refused") as caught:
        applications(layout, remote, tag="t")

    assert "boardcluster status" in caught.value.hint
    assert len(caught.value.message) < 300


def test_kill_ends_only_what_still_runs(layout: Layout, remote: FakeRemote) -> None:
    rows = [
        app(1, "FINISHED", "SUCCEEDED"),
        app(2, "RUNNING", "UNDEFINED"),
        app(3, "ACCEPTED", "UNDEFINED"),
        app(4, "KILLED", "KILLED"),
        app(5, "FAILED", "FAILED"),
    ]
    remote.tell_nodeside("http", ok({"apps": {"app": rows}}))
    remote.tell_nodeside("http", [{"status": 202, "body": "", "location": None}])

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


def test_counters_of_a_job_unchanged_with_their_group(layout: Layout, remote: FakeRemote) -> None:
    remote.tell_nodeside("http", ok(COUNTERS))

    assert job_counters(layout, remote, "application_1700000000000_0001") == {
        "org.apache.hadoop.mapreduce.FileSystemCounter/FILE_BYTES_WRITTEN": 1000,
        "org.apache.hadoop.mapreduce.FileSystemCounter/HDFS_BYTES_READ": 5_000_000_000,
        "org.apache.hadoop.mapreduce.TaskCounter/SPILLED_RECORDS": 12,
    }
    assert urls(remote)[0][1] == (
        "http://master:19888/ws/v1/history/mapreduce/jobs/job_1700000000000_0001/counters"
    )


def test_a_job_without_counters_has_none(layout: Layout, remote: FakeRemote) -> None:
    remote.tell_nodeside("http", ok({"jobCounters": {"id": "job_1_0001"}}))

    assert job_counters(layout, remote, "application_1_0001") == {}


def test_waits_until_the_history_has_the_job(
    layout: Layout, remote: FakeRemote, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("boardcluster.services.yarn.time.sleep", lambda _: None)
    for _ in range(3):
        remote.tell_nodeside("http", [{"status": 404, "body": "not found", "location": None}])
    remote.tell_nodeside("http", ok(COUNTERS))

    assert len(job_counters(layout, remote, "application_1700000000000_0001")) == 3
    assert len(remote.requests) == 4


def test_a_job_that_the_history_never_has_is_a_remote_error(
    layout: Layout, remote: FakeRemote, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(yarn, "_HISTORY_WAIT_SECONDS", 0.0)
    remote.tell_nodeside("http", [{"status": 404, "body": "unknown job", "location": None}])

    with pytest.raises(RemoteError, match=r"no job_1_0001 \(status 404\): unknown job"):
        job_counters(layout, remote, "application_1_0001")


def test_submits_as_hadoop_jar_does(layout: Layout) -> None:
    command = mapreduce_command(
        layout, conf="/attempt/conf", jar="/my.jar", arguments=["Main", "in", "out"]
    )

    assert command[0] == "/java/bin/java"
    assert command[-5:] == ["org.apache.hadoop.util.RunJar", "/my.jar", "Main", "in", "out"]
    class_path = command[command.index("-cp") + 1].split(":")
    assert class_path == [*layout.engines.jars("hadoop"), "/attempt/conf"]
    assert len(class_path) == 3
