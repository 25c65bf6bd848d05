"""A made-up running cluster: nodes that answer as daemons do, and jobs that are scripts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from boardcluster.cluster.state import Daemon, LiveNode, LiveState
from boardcluster.errors import RemoteError
from boardcluster.records import Campaign, CampaignKind
from boardcluster.remote.base import ProcessRef
from boardcluster.remote.fake import FakeRemote
from boardcluster.remote.gate import Completed
from boardcluster.services.daemons import daemons_of
from boardcluster.services.layout import Layout
from boardcluster.services.operation import LiveCluster

Job = Callable[[], Completed]
"""What a submission does."""


class Node(FakeRemote):
    """Answers questions through its world; fails on everything else."""

    def __init__(self, name: str, world: World) -> None:
        super().__init__(name)
        self._world = world

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout_seconds: float = 60.0,
        check: bool = True,
    ) -> Completed:
        if tuple(argv[:4]) != ("python3", "-I", "-S", "-c"):
            return super().run(argv, stdin=stdin, env=env, cwd=cwd, check=check)
        answer = self._world.answer(self.name, json.loads(stdin))
        return Completed(
            argv=(),
            returncode=0,
            stdout=json.dumps(answer).encode(),
            stderr=b"",
            duration_seconds=0.0,
        )

    def run_logged(
        self,
        argv: Sequence[str],
        *,
        stdout: Path,
        stderr: Path,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout_seconds: float,
    ) -> Completed:
        stdout.write_text("printed\n")
        stderr.write_text("log line 1\nlog line 2\n")
        self._world.submissions.append(
            {"argv": list(argv), "env": dict(env or {}), "cwd": cwd, "timeout": timeout_seconds}
        )
        return self._world.jobs.pop(0)()


class World:
    """Everything outside the driver.

    Attributes:
        lost: nodes that no longer answer.
        dead: daemons that ended, as (daemon, node).
        jobs: what the next submissions do.
        submissions: what was submitted.
        apps: YARN's applications by tag; the rows of successive questions.
        counters: the history's answer to a question for counters.
        yarn_answers: whether the ResourceManager does.
        deleted: paths that HDFS was asked to delete.
        refused_deletes: how many of the next deletions HDFS refuses.
        killed: applications killed.
        unhealthy: nodes that YARN gave up.
        space: what the NameNode says of its space.
        written_bytes: bytes that each node says it wrote; grows with each question.
        ended: marks by which processes were ended.
    """

    def __init__(self) -> None:
        self.lost: set[str] = set()
        self.dead: set[tuple[str, str]] = set()
        self.jobs: list[Job] = []
        self.submissions: list[dict[str, Any]] = []
        self.apps: dict[str, list[list[dict[str, Any]]]] = {}
        self.default_apps: list[dict[str, Any]] = [app("SUCCEEDED")]
        self.counters: dict[str, Any] = COUNTERS
        self.yarn_answers = True
        self.deleted: list[str] = []
        self.refused_deletes = 0
        self.killed: list[str] = []
        self.pids: dict[int, tuple[str, str]] = {}
        self.unhealthy: list[dict[str, str]] = []
        self.space: dict[str, int] = {"CapacityRemaining": 10**12}
        self.written_bytes = 0
        self.ended: list[str] = []

    def answer(self, node: str, request: dict[str, Any]) -> object:
        if node in self.lost:
            raise RemoteError(f"{node}: out of reach")
        if request["do"] == "processes":
            return [
                {
                    "alive": self.pids[pid] not in self.dead,
                    "resident_bytes": 0,
                    "proportional_bytes": 0,
                }
                for pid, _ in request["processes"]
            ]
        assert request["do"] == "http"
        return [self.http(item) for item in request["requests"]]

    def http(self, item: dict[str, Any]) -> dict[str, Any]:
        parts = urlsplit(item["url"])
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path.startswith("/webhdfs/v1"):
            return self.hdfs(unquote(parts.path.removeprefix("/webhdfs/v1")), query["op"])
        if not self.yarn_answers:
            return {"status": 0, "body": "refused", "location": None}
        if parts.path.endswith("/state"):
            assert item["method"] == "PUT"
            self.killed.append(parts.path.split("/")[-2])
            return {"status": 202, "body": "", "location": None}
        if parts.path == "/ws/v1/cluster/apps":
            rows = self.apps.get(query["applicationTags"], [self.default_apps])
            row = rows.pop(0) if len(rows) > 1 else rows[0]
            return ok({"apps": {"app": row}})
        if parts.path == "/ws/v1/cluster/nodes":
            return ok({"nodes": {"node": self.unhealthy}})
        if parts.path.endswith("/tasks"):
            return ok(TASKS)
        if parts.path.endswith("/counters"):
            return ok(self.counters)
        if parts.path == "/jmx":
            return ok({"beans": [{"NumLiveDataNodes": 4, "FSState": "Operational"} | self.space]})
        return ok({"job": JOB})

    def hdfs(self, path: str, operation: str) -> dict[str, Any]:
        if operation == "DELETE":
            self.deleted.append(path)
            if self.refused_deletes:
                self.refused_deletes -= 1
                words = json.dumps({"RemoteException": {"message": "in safe mode"}})
                return {"status": 403, "body": words, "location": None}
            return ok({"boolean": True})
        assert operation == "GETCONTENTSUMMARY"
        return ok({"ContentSummary": {"length": 4321}})


JOB = {
    "submitTime": 1_000,
    "finishTime": 9_000,
    "avgShuffleTime": 0,
    "avgMergeTime": 0,
    "avgReduceTime": 0,
}
TASKS = {"tasks": {"task": [{"type": "MAP", "startTime": 2_000, "finishTime": 8_000}]}}
PHASES = {"start": 1.0, "map": 6.0, "commit": 1.0}
COUNTERS = {
    "jobCounters": {
        "counterGroup": [
            {
                "counterGroupName": "TaskCounter",
                "counter": [{"name": "SPILLED_RECORDS", "totalCounterValue": 12}],
            }
        ]
    }
}


def ok(body: object) -> dict[str, Any]:
    return {"status": 200, "body": json.dumps(body), "location": None}


def app(
    final: str, *, state: str = "FINISHED", diagnostics: str = "", number: int = 1
) -> dict[str, Any]:
    return {
        "id": f"application_1_{number:04}",
        "state": state,
        "finalStatus": final,
        "diagnostics": diagnostics,
        "startedTime": number,
    }


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def live(layout: Layout, world: World, tmp_path: Path) -> LiveCluster:
    daemons = []
    for pid, (kind, node) in enumerate(daemons_of(layout.spec), start=100):
        world.pids[pid] = (kind.name, node.name)
        daemons.append(
            Daemon(
                name=kind.name, node=node.name, process=ProcessRef(pid, 1), log="/log", url="http:"
            )
        )
    state = LiveState(
        identity="1",
        boot_id="b",
        phase="up",
        own_user=False,
        subnet="198.18.7.0/24",
        nodes=tuple(
            LiveNode(name=node.name, address="198.18.7.1", pid=1, start_ticks=1, folder="/f")
            for node in layout.spec.nodes
        ),
        daemons=tuple(daemons),
        config_sha256="cd" * 32,
        java="Maker 17.0.1 x86_64",
    )
    return LiveCluster(
        home=tmp_path / "home",
        state=state,
        layout=layout,
        remotes={node.name: Node(node.name, world) for node in layout.spec.nodes},
    )


@pytest.fixture
def make_campaign() -> Callable[..., Campaign]:
    def make(*, seed: int = 7, kind: CampaignKind = CampaignKind.RUN) -> Campaign:
        return Campaign(
            id="20260801-120000-abcd",
            kind=kind,
            created_utc="2026-08-01T12:00:00+00:00",
            seed=seed,
            cluster="demo",
            emulated=True,
        )

    return make
