"""An HDFS whose NameNode and DataNodes are a dictionary, reached as a real one is."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.builders import make_state
from tests.unit.temporary_files import TemporaryFilesRemote

from boardcluster.records import Checksum, Dataset, Engine
from boardcluster.remote.gate import Completed
from boardcluster.services.layout import Layout
from boardcluster.services.operation import LiveCluster
from boardcluster.services.webhdfs import WebHdfs
from boardcluster.workloads.base import Context, Job, JobSpec, Phase, PhaseOutcome

OUTPUT = "/out/x"


class Hdfs(TemporaryFilesRemote):
    """The master node of a cluster whose HDFS is a dictionary, with HDFS's own rules.

    Attributes:
        stored: files by path.
        folders: folders that were made.
        copies: the number of copies that was asked for, by file.
        operations: what the NameNode was asked for.
        answers: whether it does.
        takes_data: whether the DataNode does.
    """

    def __init__(self) -> None:
        super().__init__("master")
        self.stored: dict[str, bytes] = {}
        self.folders: set[str] = set()
        self.copies: dict[str, str] = {}
        self.operations: list[str] = []
        self.answers = True
        self.takes_data = True

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
            return self.datanode(path, item) if self.takes_data else answer(0, "broken pipe")
        self.operations.append(query["op"])
        if query["op"] == "CREATE":
            self.copies[path] = query.get("replication", "")
        return self.namenode(path, query, item["url"])

    def inside(self, path: str) -> dict[str, bytes]:
        return {key: data for key, data in self.stored.items() if f"{key}/".startswith(f"{path}/")}

    def namenode(self, path: str, query: dict[str, str], url: str) -> dict[str, Any]:
        operation = query["op"]
        inside = self.inside(path)
        if operation in ("CREATE", "OPEN"):
            return {**answer(307), "location": url.replace(":9870", ":9864")}
        if operation == "RENAME":
            return answer(200, {"boolean": self.renamed(path, query["destination"])})
        if operation == "MKDIRS":
            assert path not in self.stored
            self.folders |= {path, *map(str, PurePosixPath(path).parents)}
            return answer(200, {"boolean": True})
        if operation == "DELETE":
            for key in inside:
                del self.stored[key]
                self.copies.pop(key, None)
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

    def renamed(self, source: str, target: str) -> bool:
        """Rename a file, never onto another and only into a folder that is there."""
        parent = target.rpartition("/")[0]
        if source not in self.stored or target in self.stored or parent not in self.folders:
            return False
        # A target that is a folder would get the file, under the name that it has.
        assert target not in self.folders
        self.stored[target] = self.stored.pop(source)
        if source in self.copies:
            self.copies[target] = self.copies.pop(source)
        return True

    def datanode(self, path: str, item: dict[str, Any]) -> dict[str, Any]:
        if item["method"] == "PUT":
            self.stored[path] = self.files[item["source"]]
            return answer(201)
        self.files[item["target"]] = self.stored[path]
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
        live = LiveCluster(
            home=self.folder, state=make_state(), layout=self.layout, remotes={"master": self.hdfs}
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
        assert str(PurePosixPath(target).parent) in self.hdfs.folders
        self.hdfs.stored[target] = self.hdfs.files[source]
        nothing = self.folder / "nothing"
        return PhaseOutcome(name=phase.name, duration_seconds=1.0, stdout=nothing, stderr=nothing)


def case_of(
    engine: Engine = Engine.SPARK,
    *,
    size_bytes: int = 12,
    replication: int = 2,
    checksum: Checksum = Checksum.CRC32C,
) -> JobSpec:
    return JobSpec(
        engine=engine,
        size_bytes=size_bytes,
        replication=replication,
        checksum=checksum,
        parameters={},
        workers=4,
        least_memory_bytes=2 << 30,
        smallest_memory_bytes=2 << 30,
        worker_cores=4,
    )


def job_of(spec: JobSpec) -> Job:
    return Job(spec=spec, conf="/attempt/conf", tag="trial-1", output_path=OUTPUT)
