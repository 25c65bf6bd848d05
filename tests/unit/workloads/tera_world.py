"""An HDFS in memory, and a stand-in for the stock examples that prepare input."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.builders import make_state
from tests.unit.temporary_files import TemporaryFilesRemote

from boardcluster.errors import RemoteError
from boardcluster.fetch.cache import no_progress
from boardcluster.records import Checksum, Engine
from boardcluster.services.layout import Layout
from boardcluster.services.operation import LiveCluster
from boardcluster.services.webhdfs import HdfsEntry, WebHdfs
from boardcluster.workloads.base import (
    Context,
    Job,
    JobSpec,
    Phase,
    PhaseOutcome,
    Workload,
    check_parameters,
)
from boardcluster.workloads.tera_rows import ROW_BYTES, rows

OUTPUT = "/out/x"


class MemoryHdfs(WebHdfs):
    """Files by path, with HDFS's own rules for what may be renamed onto what."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.put_copies: dict[str, int] = {}

    def _inside(self, path: str) -> list[str]:
        return [name for name in self.files if f"{name}/".startswith(f"{path}/")]

    def exists(self, path: str) -> bool:
        return bool(self._inside(path))

    def list(self, path: str) -> list[HdfsEntry]:
        if not self.exists(path):
            raise RemoteError(f"listing {path} failed")
        return [
            HdfsEntry(
                name=name.removeprefix(f"{path}/"),
                is_file=True,
                size_bytes=len(self.files[name]),
            )
            for name in sorted(self._inside(path))
        ]

    def delete(self, path: str) -> None:
        for name in self._inside(path):
            del self.files[name]

    def rename(self, source: str, target: str) -> None:
        if self.exists(target) or not self.exists(source):
            raise RemoteError(f"renaming {source} failed")
        for name in self._inside(source):
            self.files[target + name.removeprefix(source)] = self.files.pop(name)

    def put(self, source: Path, target: str, *, replication: int = 0, block_bytes: int = 0) -> None:
        if target in self.files:
            raise RemoteError(f"renaming onto {target} failed")
        self.files[target] = source.read_bytes()
        self.put_copies[target] = replication

    def get(self, source: str, target: Path) -> None:
        target.write_bytes(self.files[source])


@dataclass
class World:
    """A context whose cluster is in memory, and what was run on it."""

    layout: Layout
    folder: Path
    hdfs: MemoryHdfs = field(default_factory=MemoryHdfs)
    master: TemporaryFilesRemote = field(default_factory=lambda: TemporaryFilesRemote("master"))
    ran: list[list[str]] = field(default_factory=list)
    spoil: Callable[[str], None] = lambda _: None  # changes what a preparing job wrote

    @property
    def context(self) -> Context:
        work = self.folder / "work"
        work.mkdir(exist_ok=True)
        live = LiveCluster(
            home=self.folder,
            state=make_state(),
            layout=self.layout,
            remotes={"master": self.master},
        )
        return Context(
            live=live,
            hdfs=self.hdfs,
            cache=self.folder / "cache",
            progress=no_progress,
            dataset=None,
            run_job=self._run_job,
            work=work,
        )

    def _run_job(self, engine: Engine, maker: Callable[[str], Phase]) -> PhaseOutcome:
        assert engine is Engine.MAPREDUCE
        phase = maker("/conf")
        words = list(phase.command)
        start = next(
            place for place, word in enumerate(words) if word in ("teragen", "terasort", "-put")
        )
        arguments = words[start:]
        self.ran.append(arguments)
        *_, source, target = arguments
        if arguments[0] == "teragen":
            maps = next((word for word in arguments if "job.maps=" in word), "=2")
            made = [row.tobytes() for row in rows(0, int(source))]
            self.write(target, made, files=int(maps.partition("=")[2]), kind="m")
            self.spoil(target)
        elif arguments[0] == "terasort":
            reduces = next(word for word in arguments if "job.reduces=" in word)
            everything = sorted(self.rows_in(source))
            self.write(target, everything, files=int(reduces.partition("=")[2]))
            self.hdfs.files[f"{target}/_partition.lst"] = b"\0"
            self.spoil(target)
        else:
            assert not phase.yarn
            self.hdfs.files[target] = self.master.files[source]
        nothing = self.folder / "nothing"
        return PhaseOutcome(name=phase.name, duration_seconds=1.0, stdout=nothing, stderr=nothing)

    def rows_in(self, folder: str) -> list[bytes]:
        """Return the rows of a folder's part files in name order."""
        data = b"".join(
            self.hdfs.files[f"{folder}/{entry.name}"]
            for entry in self.hdfs.list(folder)
            if entry.name.startswith("part-")
        )
        return [data[at : at + ROW_BYTES] for at in range(0, len(data), ROW_BYTES)]

    def write(self, folder: str, content: list[bytes], *, files: int = 1, kind: str = "r") -> None:
        """Write rows as a job does that commits its output."""
        size = -(-len(content) // files)
        for number in range(files):
            part = content[number * size : (number + 1) * size]
            self.hdfs.files[f"{folder}/part-{kind}-{number:05}"] = b"".join(part)
        self.hdfs.files[f"{folder}/_SUCCESS"] = b""


def case_of(
    workload: Workload,
    *,
    size_bytes: int = 100_000,
    engine: Engine = Engine.MAPREDUCE,
    checksum: Checksum = Checksum.CRC32C,
    parameters: Mapping[str, str] | None = None,
) -> JobSpec:
    return JobSpec(
        engine=engine,
        size_bytes=size_bytes,
        replication=2,
        checksum=checksum,
        parameters=check_parameters(workload, parameters or {}),
        workers=2,
        least_memory_bytes=1 << 30,
        smallest_memory_bytes=1 << 30,
        worker_cores=2,
    )


def job_of(spec: JobSpec) -> Job:
    return Job(spec=spec, conf="/attempt/conf", tag="trial-1", output_path=OUTPUT)
