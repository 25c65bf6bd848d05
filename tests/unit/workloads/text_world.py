"""An HDFS whose NameNode and DataNodes are a dictionary, reached as a real one is."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from boardcluster.cluster.state import LiveState
from boardcluster.records import Checksum, Dataset, Engine
from boardcluster.remote.fake import FakeRemote
from boardcluster.remote.gate import Completed
from boardcluster.services.layout import Layout
from boardcluster.services.operation import LiveCluster
from boardcluster.services.webhdfs import WebHdfs
from boardcluster.workloads.base import Case, Context, Job, Phase, PhaseOutcome

OUTPUT = "/out/x"


class Hdfs(FakeRemote):
    """The master node of a cluster whose HDFS is a dictionary, with HDFS's own rules."""

    def __init__(self) -> None:
        super().__init__("master")
        self.stored: dict[str, bytes] = {}
        self.copies: dict[str, str] = {}
        self.operations: list[str] = []
        self.answers = True

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
        request = json.loads(stdin)
        assert request["do"] == "http"
        rows = [self.one(item) for item in request["requests"]]
        return Completed(
            argv=(),
            returncode=0,
            stdout=json.dumps(rows).encode(),
            stderr=b"",
            duration_seconds=0.0,
        )

    def one(self, item: dict[str, Any]) -> dict[str, Any]:
        parts = urlsplit(item["url"])
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if not self.answers:
            return answer(0, "refused")
        assert parts.path.startswith("/webhdfs/v1")
        path = unquote(parts.path.removeprefix("/webhdfs/v1"))
        if parts.port == 9864:
            return self.datanode(path, item)
        self.operations.append(query["op"])
        if query["op"] == "CREATE":
            self.copies[path.removesuffix(".partial")] = query.get("replication", "")
        return self.namenode(path, query, item["url"])

    def inside(self, path: str) -> dict[str, bytes]:
        return {key: data for key, data in self.stored.items() if f"{key}/".startswith(f"{path}/")}

    def namenode(self, path: str, query: dict[str, str], url: str) -> dict[str, Any]:
        operation = query["op"]
        inside = self.inside(path)
        if operation in ("CREATE", "OPEN"):
            return {**answer(307), "location": url.replace(":9870", ":9864")}
        if operation == "RENAME":
            done = query["destination"] not in self.stored
            if done:
                self.stored[query["destination"]] = self.stored.pop(path)
            return answer(200, {"boolean": done})
        if operation in ("MKDIRS", "DELETE"):
            for key in inside if operation == "DELETE" else ():
                del self.stored[key]
            return answer(200, {"boolean": True})
        if not inside:
            return answer(404, {"RemoteException": {"message": f"does not exist: {path}"}})
        rows = [
            {"pathSuffix": key.rpartition("/")[2], "type": "FILE", "length": len(data)}
            for key, data in inside.items()
        ]
        length = sum(len(data) for data in inside.values())
        answers = {
            "LISTSTATUS": {"FileStatuses": {"FileStatus": rows}},
            "GETFILESTATUS": {"FileStatus": {}},
            "GETCONTENTSUMMARY": {"ContentSummary": {"length": length}},
        }
        return answer(200, answers[operation])

    def datanode(self, path: str, item: dict[str, Any]) -> dict[str, Any]:
        if item["method"] == "PUT":
            self.stored[path] = Path(item["source"]).read_bytes()
            return answer(201)
        Path(item["target"]).write_bytes(self.stored[path])
        return answer(200)


def answer(status: int, body: object = "") -> dict[str, Any]:
    return {"status": status, "body": json.dumps(body), "location": None}


@dataclass
class TextWorld:
    """A context of a workload that reads text.

    Attributes:
        said: what was told of progress, with how much is done.
        ran: phases that prepared input, with the engine they were for.
        fails: called when the file system's own client is to store a file.
    """

    layout: Layout
    folder: Path
    dataset: Dataset | None
    hdfs: Hdfs = field(default_factory=Hdfs)
    said: list[tuple[str, int]] = field(default_factory=list)
    ran: list[tuple[Engine, Phase]] = field(default_factory=list)
    fails: Callable[[], None] = lambda: None

    @property
    def context(self) -> Context:
        work = self.folder / "work"
        work.mkdir(exist_ok=True)
        state = LiveState(
            identity="1", boot_id="b", phase="up", own_user=False, subnet="198.18.7.0/24"
        )
        live = LiveCluster(
            home=self.folder, state=state, layout=self.layout, remotes={"master": self.hdfs}
        )
        return Context(
            live=live,
            hdfs=WebHdfs(self.layout, self.hdfs),
            cache=self.folder / "cache",
            progress=lambda what, done, _: self.said.append((what, done)),
            dataset=self.dataset,
            run_job=self._run_job,
            work=work,
        )

    def _run_job(self, engine: Engine, maker: Callable[[str], Phase]) -> PhaseOutcome:
        """Do what ``hdfs dfs -put`` does."""
        phase = maker("/attempt/conf")
        self.ran.append((engine, phase))
        verb, source, target = phase.command[-3:]
        assert verb == "-put"
        self.fails()
        self.hdfs.stored[target] = Path(source).read_bytes()
        nothing = self.folder / "nothing"
        return PhaseOutcome(name=phase.name, duration_seconds=1.0, stdout=nothing, stderr=nothing)


def case_of(
    engine: Engine = Engine.SPARK,
    *,
    size_bytes: int = 12,
    replication: int = 2,
    checksum: Checksum = Checksum.CRC32C,
) -> Case:
    return Case(
        engine=engine,
        size_bytes=size_bytes,
        replication=replication,
        checksum=checksum,
        parameters={},
        workers=4,
        worker_memory_bytes=2 << 30,
        worker_cores=4,
    )


def job_of(case: Case) -> Job:
    return Job(case=case, conf="/attempt/conf", tag="trial-1", output_path=OUTPUT)
