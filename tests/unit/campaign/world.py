"""A made-up running cluster: nodes that answer as daemons do, and jobs that are scripts."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.builders import make_daemon, make_live_node, make_state
from tests.unit.temporary_files import TemporaryFilesRemote

from boardcluster.errors import RemoteError
from boardcluster.records import HOST
from boardcluster.remote.base import ProcessRef
from boardcluster.remote.gate import Completed
from boardcluster.remote.node_agent import IO_COUNTERS
from boardcluster.services import mpi
from boardcluster.services.daemons import DAEMONS, DaemonKind, daemons_of
from boardcluster.services.layout import PORTS, Layout
from boardcluster.services.operation import LiveCluster

Job = Callable[[], Completed]
"""What a submission does."""

SUMS = ("bounded", "unreadable")
"""What the node-side program adds to the kernel's counters."""

AGENT = "agent"
"""What the start of a telemetry agent is kept as."""

SAMPLES = 1000
"""At 1 Hz that is longer than any job here takes, by its own word."""

_NODESIDE = ("python3", "-I", "-S", "-c")
_DELETES: dict[tuple[str, ...], tuple[str, ...]] = {
    ("sh", "-c", 'rm -rf -- "$0"/lent-* "$0"/job-*'): ("lent-", "job-"),
    ("sh", "-c", mpi._DELETE_LEFT): ("mpi-",),
    ("sh", "-c", 'rm -rf -- "$0"/root-*'): ("root-",),
}
"""Commands that delete what begins so."""


def ended(status: int = 0, *, seconds: float = 12.5) -> Completed:
    return Completed(
        argv=("job",), returncode=status, stdout=b"", stderr=b"", duration_seconds=seconds
    )


class Node(TemporaryFilesRemote):
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
        if tuple(argv[:4]) == _NODESIDE:
            request = json.loads(stdin)
            if request["do"] == "excerpt":
                answer = self._excerpt(request)
            else:
                answer = self._world.answer(self.name, request)
            return Completed(
                argv=(),
                returncode=0,
                stdout=json.dumps(answer).encode(),
                stderr=b"",
                duration_seconds=0.0,
            )
        self._world.reach(self.name)
        if argv[0] in {"df", "touch", "dmesg"}:
            return self._world.disk(self.name, argv)
        if argv[0] == "find":
            assert list(argv[2:5]) == ["-maxdepth", "1", "-name"]
            assert argv[5] == "telemetry-*"
            return self._without(f"{argv[1]}/{argv[5].removesuffix('*')}")
        if beginnings := _DELETES.get(tuple(argv[:3])):
            return [self._without(f"{argv[3]}/{beginning}") for beginning in beginnings][-1]
        if tuple(argv[:2]) not in {("mkdir", "-p"), ("rm", "-rf"), ("rm", "-f")}:
            return super().run(argv, stdin=stdin, env=env, cwd=cwd, check=check)
        self._world.happened.append((argv[0], self.name, *argv[2:]))
        if argv[0] == "rm":
            self._forget(*argv[2:])
        return ended()

    def _excerpt(self, request: dict[str, Any]) -> object:
        self._world.reach(self.name)
        source, target = request["source"], request["target"]
        found = self._below(source)
        if not found:
            return None
        self.files |= {f"{target}/{name}": data for name, data in found.items()}
        return {"cut": 0, "left_out": 0}

    def _below(self, folder: str) -> dict[str, bytes]:
        start = f"{folder}/"
        return {
            path.removeprefix(start): data
            for path, data in self.files.items()
            if path.startswith(start)
        }

    def _without(self, start: str) -> Completed:
        self.files = {at: data for at, data in self.files.items() if not at.startswith(start)}
        return ended()

    def _forget(self, *places: str) -> None:
        gone = tuple(f"{place}/" for place in places)
        self.files = {
            path: data for path, data in self.files.items() if not f"{path}/".startswith(gone)
        }

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
        if self.name == "master":  # elsewhere nothing but MPI is submitted, which has none
            conf = (env or {})["HADOOP_CONF_DIR"]
            assert f"{conf}/core-site.xml" in self.files, "there is no configuration there"
        stdout.write_text("printed\n")
        stderr.write_text("log line 1\nlog line 2\n")
        self._world.submissions.append(
            {
                "argv": list(argv),
                "env": dict(env or {}),
                "cwd": cwd,
                "timeout": timeout_seconds,
                "node": self.name,
            }
        )
        self._world.happened.append(("submit", self.name, *argv))
        own = self._world.programs.get(argv[0])
        return own() if own else self._world.jobs.pop(0)()

    def start(
        self,
        argv: Sequence[str],
        *,
        log: str,
        env: Mapping[str, str] | None = None,
        cwd: str = "/",
    ) -> ProcessRef:
        self._world.reach(self.name)
        process = ProcessRef(next(self._world.next_pid), 1)
        row = {"node": self.name, "argv": list(argv), "env": dict(env or {}), "log": log}
        if tuple(argv[:4]) == _NODESIDE:
            self.files[json.loads(argv[-1])["target"]] = self._world.samples(self.name)
            row |= {"argv": [AGENT]}
        else:
            self._world.happened.append(("start", self.name, *argv))
        self._world.started[process.pid] = row
        return process

    def put(self, source: Path, target: str) -> None:
        self._world.reach(self.name)
        self._world.happened.append(("put", self.name, target))
        super().put(source, target)

    def get(self, source: str, target: Path) -> None:
        """As a real node: makes the folder of the target."""
        self._world.reach(self.name)
        target.parent.mkdir(parents=True, exist_ok=True)
        below = self._below(source)
        if not below:
            super().get(source, target)
        for name, data in below.items():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            (target / name).write_bytes(data)


class World:
    """Everything outside the driver.

    Attributes:
        lost: nodes that no longer answer.
        dead: daemons that ended, as (daemon, node).
        jobs: what the next submissions do.
        programs: what submissions of a program (first word) do, however many.
        submissions: what was submitted.
        started: what was started beside, by its process id.
        happened: what nodes were made to do, in order: verb, node, words.
        apps: YARN's applications by tag; the rows of successive questions.
        asked_tags: tags that YARN was asked about.
        counters: the history's answer to a question for counters.
        yarn_answers: whether the ResourceManager does.
        deleted: paths that HDFS was asked to delete.
        refused_deletes: how many of the next deletions HDFS refuses.
        inputs: names in the folder of inputs.
        killed: applications killed; they have ended from then on.
        unhealthy: nodes that YARN gave up.
        disks: size and available bytes of a node's disk, where it is not nearly empty.
        read_only: nodes whose disk can no longer be written.
        kernel_log: what ``dmesg`` prints.
        space: what the NameNode says of its space.
        storage: totals of the nodes' storage; ``storage_step`` is added at each question.
        ended: (node, mark) by which processes were ended.
        when_ended: told when processes are ended by their mark.
        caches_kept: why no node drops its page cache; empty if each does.
        foreign_cores: CPU cores of the host that other programs use.
        mute: nodes whose agent writes nothing.
    """

    def __init__(self) -> None:
        self.lost: set[str] = set()
        self.dead: set[tuple[str, str]] = set()
        self.jobs: list[Job] = []
        self.programs: dict[str, Job] = {}
        self.submissions: list[dict[str, Any]] = []
        self.started: dict[int, dict[str, Any]] = {}
        self.next_pid = itertools.count(1000)  # nodes start processes at the same time
        self.happened: list[tuple[str, ...]] = []
        self.apps: dict[str, list[list[dict[str, Any]]]] = {}
        self.default_apps: list[dict[str, Any]] = [app("SUCCEEDED")]
        self.asked_tags: list[str] = []
        self.counters: dict[str, Any] = COUNTERS
        self.yarn_answers = True
        self.deleted: list[str] = []
        self.refused_deletes = 0
        self.inputs: list[str] = []
        self.killed: list[str] = []
        self.pids: dict[int, tuple[str, str]] = {}
        self.unhealthy: list[dict[str, str]] = []
        self.disks: dict[str, tuple[int, int]] = {}
        self.read_only: set[str] = set()
        self.kernel_log = ""
        self.space: dict[str, int] = {"CapacityRemaining": 10**12}
        self.storage: dict[str, dict[str, int]] = {}
        self.storage_step = {"read_bytes": 30, "write_bytes": 900, "bounded": 700}
        self.ended: list[tuple[str, str]] = []
        self.when_ended: Callable[[], None] = lambda: None
        self.caches_kept = ""
        self.foreign_cores = 0.0
        self.mute: set[str] = set()

    def samples(self, node: str) -> bytes:
        """Return what a node's agent will have written by the end of any run."""
        if node in self.mute:
            return b""
        columns = [["cpu_user_seconds", "c", 0.01], ["foreign_cpu_seconds", "c", 0.01]]
        lines = [json.dumps({"interval_seconds": 1.0, "columns": columns})]
        for index in range(-2, SAMPLES):
            nanoseconds = time.monotonic_ns() + index * 10**9
            foreign = round((index + 2) * 100 * self.foreign_cores) if node == HOST else "-"
            lines.append(f"{nanoseconds} {nanoseconds} {(index + 2) * 50} {foreign}")
        return "".join(f"{line}\n" for line in [*lines, "# 7.00 make"]).encode()

    def do_moment(self, node: str, request: dict[str, Any]) -> object:
        clocks = {"monotonic_seconds": time.monotonic(), "wall_seconds": time.time()}
        return {**clocks, "boot_id": "a boot", "free_bytes": 10**12}

    def reach(self, node: str) -> None:
        if node in self.lost:
            raise RemoteError(f"{node}: out of reach")

    def disk(self, node: str, argv: Sequence[str]) -> Completed:
        if argv[0] == "df":
            size, available = self.disks.get(node, (1000, 900))
            text = f"1B-blocks Avail Filesystem\n{size} {available} /dev/sda1\n"
            return replace(ended(), stdout=text.encode())
        if argv[0] == "touch" and node in self.read_only:
            return replace(ended(1), stderr=b"touch: cannot touch 'x': Read-only file system\n")
        if argv[0] == "touch":
            return ended()
        return replace(ended(), stdout=self.kernel_log.encode())

    def verbs(self) -> list[str]:
        """Return what happened, without places."""
        return [row[0] for row in self.happened]

    def folders_left(self) -> set[tuple[str, str]]:
        """Return the folders that were made on nodes and not removed since, with their node."""
        left: set[tuple[str, str]] = set()
        for verb, node, *words in self.happened:
            if verb == "mkdir":
                left |= {(node, word) for word in words}
            elif verb == "rm":
                gone = tuple(f"{word}/" for word in words)
                left = {row for row in left if row[0] != node or not f"{row[1]}/".startswith(gone)}
        return left

    def answer(self, node: str, request: dict[str, Any]) -> object:
        self.reach(node)
        return getattr(self, f"do_{request['do']}")(node, request)

    def do_processes(self, node: str, request: dict[str, Any]) -> object:
        return [
            {
                "alive": self.pids[pid] not in self.dead,
                "resident_bytes": 0,
                "proportional_bytes": 0,
            }
            for pid, _ in request["processes"]
        ]

    def do_http(self, node: str, request: dict[str, Any]) -> object:
        return [self.http(item) for item in request["requests"]]

    def do_end(self, node: str, request: dict[str, Any]) -> object:
        for pid, _ in request["processes"]:
            row = self.started[pid]
            assert row["node"] == node
            if row["argv"] != [AGENT]:
                self.happened.append(("end", node, *row["argv"]))
        return {"killed": 0}

    def do_end_marked(self, node: str, request: dict[str, Any]) -> object:
        self.ended.append((node, request["mark"]))
        self.when_ended()
        return {"ended": 1}

    def do_storage(self, node: str, request: dict[str, Any]) -> object:
        totals = self.storage.setdefault(node, dict.fromkeys((*IO_COUNTERS, *SUMS), 0))
        for name, step in self.storage_step.items():
            totals[name] += step
        return totals

    def do_boot(self, node: str, request: dict[str, Any]) -> object:
        return {"boot_id": "one kernel"}

    def do_drop_caches(self, node: str, request: dict[str, Any]) -> object:
        self.happened.append(("drop caches", node))
        dropped = not self.caches_kept
        return {"dropped": dropped, "reason": self.caches_kept, "boot_id": "one kernel"}

    def do_trim(self, node: str, request: dict[str, Any]) -> object:
        self.happened.append(("trim", node))
        return []

    def do_temperatures(self, node: str, request: dict[str, Any]) -> object:
        return {"hottest_celsius": None}

    def do_reach(self, node: str, request: dict[str, Any]) -> object:
        refusing = {
            (where, PORTS[kind.ports[0]])
            for kind, where in ((kind_of(daemon), where) for daemon, where in self.dead)
        }

        def one(host: str, port: int) -> dict[str, str]:
            if host in self.lost:
                return {"state": "unreachable", "words": "timed out"}
            if (host, port) in refusing:
                return {"state": "refused", "words": "Connection refused"}
            return {"state": "ok", "words": ""}

        return [one(*target) for target in request["targets"]]

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
        if parts.path == "/ws/v1/cluster/apps" and "states" in query:
            return ok({"apps": {"app": self.unfinished(query["states"].split(","))}})
        if parts.path == "/ws/v1/cluster/apps":
            return ok({"apps": {"app": self.applications(query["applicationTags"])}})
        state = {
            "NumLiveDataNodes": 4,
            "FSState": "Operational",
            "UnderReplicatedBlocks": 0,
        } | self.space
        answers = {
            "/ws/v1/cluster/nodes": {"nodes": {"node": self.unhealthy}},
            "/ws/v1/cluster/metrics": {"clusterMetrics": {"activeNodes": 4}},
            "/jmx": {"beans": [state]},
        }
        history = {"tasks": TASKS, "counters": self.counters}
        last = parts.path.rpartition("/")[2]
        return ok(answers.get(parts.path) or history.get(last) or {"job": JOB})

    def unfinished(self, states: list[str]) -> list[dict[str, Any]]:
        return [
            {"applicationTags": f"{tag},boardcluster"}
            for tag, rows in self.apps.items()
            for one in rows[0]
            if one["state"] in states and one["id"] not in self.killed
        ]

    def applications(self, tag: str) -> list[dict[str, Any]]:
        self.asked_tags.append(tag)
        rows = self.apps.get(tag, [self.default_apps])
        row = rows.pop(0) if len(rows) > 1 else rows[0]
        over = {"state": "KILLED", "finalStatus": "KILLED"}
        return [one | over if one["id"] in self.killed else one for one in row]

    def hdfs(self, path: str, operation: str) -> dict[str, Any]:
        if operation == "DELETE":
            self.deleted.append(path)
            if self.refused_deletes:
                self.refused_deletes -= 1
                words = json.dumps({"RemoteException": {"message": "in safe mode"}})
                return {"status": 403, "body": words, "location": None}
            return ok({"boolean": True})
        if operation == "LISTSTATUS":
            assert path == "/boardcluster/input" or path.startswith("/user/")
            row = {"type": "DIRECTORY", "length": 0}
            rows = [{"pathSuffix": name, **row} for name in self.inputs]
            return ok({"FileStatuses": {"FileStatus": rows}})
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


def kind_of(name: str) -> DaemonKind:
    return next(kind for kind in DAEMONS if kind.name == name)


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


def live_cluster(layout: Layout, world: World, home: Path) -> LiveCluster:
    daemons = []
    for pid, (kind, node) in enumerate(daemons_of(layout.spec), start=100):
        world.pids[pid] = (kind.name, node.name)
        daemons.append(make_daemon(kind.name, node.name, process=ProcessRef(pid, 1), url="http:"))
    state = make_state(
        *(make_live_node(node.name) for node in layout.spec.nodes),
        daemons=tuple(daemons),
        config_sha256="cd" * 32,
        java="Maker 17.0.1 x86_64",
    )
    return LiveCluster(
        home=home,
        state=state,
        layout=layout,
        remotes={node.name: Node(node.name, world) for node in layout.spec.nodes},
        host=Node(HOST, world),
    )
