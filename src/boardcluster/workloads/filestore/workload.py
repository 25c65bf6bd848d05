"""The verbs of the replicated file system under load."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping

from boardcluster.errors import CapacityError, UsageError
from boardcluster.foreign import start_of
from boardcluster.records import Engine, NodeSpec, PlannedFault
from boardcluster.remote.node_rpc import end_processes, node_program
from boardcluster.services.gluster.config import (
    CLIENT_TOOLS,
    SERVER_TOOLS,
    VOLUME,
    BrickPlace,
    client_of,
)
from boardcluster.services.gluster.volume import (
    PING_SECONDS_MOST,
    SERVER_VARIABLE,
    VOLUME_VARIABLE,
    VolumeRequest,
    bricks_of,
    daemon_command,
    gluster_folder,
    in_client,
    in_daemon,
    mount_folder,
    printed_log,
    serving,
)
from boardcluster.units import format_bytes, format_count
from boardcluster.workloads.base import (
    Context,
    InputKind,
    Job,
    JobSpec,
    Need,
    Outcomes,
    Parameter,
    Phase,
    Proof,
    StagedInput,
    Workload,
    number_parameter,
)
from boardcluster.workloads.filestore.load import (
    PASSES,
    STEP_BYTES,
    TREE,
    Pass,
    fio_jobs,
    total_bytes,
)
from boardcluster.workloads.filestore.proof import TREE_PASSES, StoreRun, prove
from boardcluster.workloads.under_load import PYTHON

__all__ = ["WORKLOAD"]

_ENGINE = "boardcluster.services.gluster"
_FIO = "fio.json"
_TREE = "tree.json"
_AUDIT = "audit.json"
_HEALED = "healed.json"
_REPLICAS_LEAST = 2
_REPLICAS_MOST = 3
_FILES_MOST = 600_000
"""Their sizes and digests on one worker are 60 MB of text, of which 64 MiB are read."""
_FILE_BLOCK_BYTES = 4096
"""A small file takes whole blocks of a disk, and GlusterFS keeps a record of each beside it."""
_AFTER_BYTES = 1 << 20
"""A fault begins once the last worker's bricks hold so much."""
_HEAL_SECONDS = 600.0
_CONNECT_SECONDS = 60.0
"""A brick that is not there again after so long has vanished."""
_GRACE_SECONDS = 2.0
_SPLIT_BRAIN = (
    "two copies of each file: should each be written while the other is away, nobody can tell "
    "which is right (split brain), so a client that is cut off must not write; three copies have a "
    "majority"
)


class _FileStore(Workload):
    name = "filestore"
    engines = (Engine.GLUSTER,)
    input_kind = InputKind.FILES
    workers_least = _REPLICAS_LEAST
    faults = (PlannedFault.NONE, PlannedFault.KILL, PlannedFault.LINK)
    work_parameters = ("files", "file_bytes")
    parameters: Mapping[str, Parameter] = {
        "files": number_parameter(
            "small files that are made and read, one after the other",
            default=1000,
            least=1,
            most=_FILES_MOST,
        ),
        "file_bytes": number_parameter(
            "bytes of each small file", default=4096, least=1, most=1 << 20
        ),
        "ping_seconds": number_parameter(
            "seconds that a brick may be silent until the client goes on without it "
            "(network.ping-timeout)",
            default=42,
            least=1,
            most=PING_SECONDS_MOST,
        ),
        "down_seconds": number_parameter(
            "seconds that a fault lasts", default=4, least=1, most=600
        ),
    }
    tools: Mapping[str, str] = SERVER_TOOLS
    master_tools: Mapping[str, str] = CLIENT_TOOLS

    def check(self, spec: JobSpec) -> None:
        if spec.replication > spec.workers or spec.replication < _REPLICAS_LEAST:
            raise CapacityError(
                f"filestore keeps {format_count(spec.replication, 'copy', 'copies')} of each file "
                f"on as many of {format_count(spec.workers, 'worker')}; it needs at least "
                f"{_REPLICAS_LEAST} workers and {_REPLICAS_LEAST} copies, and a worker for each",
                hint="set workers and replication, for example workers = 2, replication = 2",
            )
        if spec.replication > _REPLICAS_MOST:
            raise UsageError(
                f"filestore: replication {spec.replication}; allowed: 2 or 3",
                hint="set replication = 2 or replication = 3",
            )
        if spec.size_bytes < STEP_BYTES:
            raise UsageError(
                f"filestore: size {format_bytes(spec.size_bytes, binary=True)}; allowed: at least "
                f"{format_bytes(STEP_BYTES, binary=True)}, of which four files get one block of "
                "16 MiB each",
                hint='for example size = "128 MiB"',
            )

    def need(self, spec: JobSpec) -> Need:
        return Need(run_bytes=_all_bytes(spec) * spec.replication)

    def describe(self, spec: JobSpec) -> str:
        return (
            f"{format_bytes(total_bytes(spec.size_bytes), binary=True)} in blocks of 4 KiB, "
            f"512 KiB and 16 MiB, {int(spec.parameters['files']):,} small files"
            + (f"; {_SPLIT_BRAIN}" if spec.replication == _REPLICAS_LEAST else "")
        )

    def prepare(self, context: Context, spec: JobSpec) -> StagedInput:
        del context  # what is read is what the phases before have written
        return StagedInput(input_bytes=total_bytes(spec.size_bytes))

    @contextlib.contextmanager
    def serving(self, context: Context, staged: StagedInput, job: Job) -> Iterator[None]:
        del staged
        live, spec = context.live, job.spec
        request = VolumeRequest(
            replicas=spec.replication,
            size_bytes=_all_bytes(spec),
            ping_seconds=int(spec.parameters["ping_seconds"]),
        )
        made = _StoreCommands(context, spec)
        served = serving(
            live, request, mark=context.mark, remark=lambda words: context.progress(words, 0, 0)
        )
        with served, contextlib.ExitStack() as beside:
            if spec.fault is not PlannedFault.NONE:
                for node, argv in (made.watch(), made.fault()):
                    log = gluster_folder(live.layout, node, "fault.log")
                    remote = live.as_root[node.name]
                    marks = {**context.mark, VOLUME_VARIABLE: live.state.identity}
                    process = remote.start(argv, log=log, env=marks)
                    grace_seconds = _GRACE_SECONDS * live.layout.dilation
                    beside.callback(end_processes, remote, [process], grace_seconds=grace_seconds)
            yield

    def phases(self, context: Context, staged: StagedInput, job: Job) -> tuple[Phase, ...]:
        del staged
        return tuple(_StoreCommands(context, job.spec).phases())

    def verify(self, context: Context, staged: StagedInput, job: Job, outcomes: Outcomes) -> Proof:
        del staged  # the job spec says it all
        spec = job.spec
        made = _StoreCommands(context, spec)
        fault_text = watched = ""
        if spec.fault is not PlannedFault.NONE:
            fault_text, watched = (
                made.fetched(made.last, "fault.json"),
                made.fetched(context.live.spec.master, "watch.json"),
            )
        return prove(
            StoreRun(
                size_bytes=spec.size_bytes,
                files=int(spec.parameters["files"]),
                file_bytes=int(spec.parameters["file_bytes"]),
                bricks=made.bricks,
                fault=spec.fault,
                ping_seconds=min(
                    PING_SECONDS_MOST,
                    int(spec.parameters["ping_seconds"]) * context.live.layout.dilation,
                ),
                blocks={each.name: start_of(outcomes[each.name].results[_FIO]) for each in PASSES},
                trees={name: start_of(outcomes[name].results[_TREE]) for name in TREE_PASSES},
                audits={
                    worker.name: start_of(outcomes[_audit_name(worker)].results[_AUDIT])
                    for worker in context.live.spec.workers
                },
                healed=start_of(outcomes["healed"].results[_HEALED]),
                fault_text=fault_text,
                watched=watched,
            )
        )


def _all_bytes(spec: JobSpec) -> int:
    """Return the bytes that all files take on a disk, each counted once."""
    blocks = -(-int(spec.parameters["file_bytes"]) // _FILE_BLOCK_BYTES) + 1
    small = int(spec.parameters["files"]) * blocks * _FILE_BLOCK_BYTES
    return total_bytes(spec.size_bytes) + small


def _audit_name(worker: NodeSpec) -> str:
    return f"bricks of {worker.name}"


class _StoreCommands:
    """Makes what runs for one job."""

    def __init__(self, context: Context, spec: JobSpec) -> None:
        self._live = context.live
        self._layout = context.live.layout
        self._spec = spec
        self._mark = context.mark
        self.last = self._live.spec.workers[-1]
        """The worker that a fault happens to."""
        self.bricks: tuple[BrickPlace, ...] = bricks_of(self._layout, spec.replication)
        """The bricks of the volume."""

    def phases(self) -> list[Phase]:
        """Return them in order; what proves the files is not measured."""
        return [
            *(self._blocks(each) for each in PASSES),
            *(self._tree(name) for name in TREE_PASSES),
            self._healed(),
            *([self._back()] if self._spec.fault is not PlannedFault.NONE else []),
            *(self._audit(worker) for worker in self._live.spec.workers),
        ]

    def _blocks(self, which: Pass) -> Phase:
        jobs = fio_jobs(which, size_bytes=self._spec.size_bytes, folder=mount_folder(self._layout))
        argv = ("fio", "--output-format=json+", f"--output={_FIO}", "--eta=never", "jobs.fio")
        return Phase(
            name=which.name,
            command=in_client(self._layout, *argv),
            files={"jobs.fio": jobs},
            results=(_FIO,),
            yarn=False,
            as_root=True,
        )

    def _tree(self, name: str) -> Phase:
        asked = {
            "do": name.rsplit(maxsplit=1)[-1],
            "root": f"{mount_folder(self._layout)}/{TREE}",
            "files": int(self._spec.parameters["files"]),
            "bytes": int(self._spec.parameters["file_bytes"]),
            "result": _TREE,
        }
        program = node_program("tree", package="boardcluster.workloads.filestore")
        return Phase(
            name=name,
            command=in_client(self._layout, *PYTHON, program, json.dumps(asked)),
            results=(_TREE,),
            yarn=False,
            as_root=True,
        )

    def _healed(self) -> Phase:
        return Phase(
            name="healed",
            command=self._faulting(kind="none", record=_HEALED),
            node=self.last.name,
            results=(_HEALED,),
            yarn=False,
            as_root=True,
            aside=True,
        )

    def _back(self) -> Phase:
        """The client has every brick again."""
        seconds = f"{_HEAL_SECONDS * self._layout.dilation:g}"
        return Phase(
            name="connected again",
            command=self._watching("again.json", seconds),
            results=("again.json",),
            yarn=False,
            as_root=True,
            aside=True,
        )

    def _audit(self, worker: NodeSpec) -> Phase:
        folders = self._folders(worker)
        program = node_program("auditing", package=_ENGINE)
        return Phase(
            name=_audit_name(worker),
            command=(*PYTHON, program, _AUDIT, *folders),
            node=worker.name,
            results=(_AUDIT,),
            yarn=False,
            as_root=True,
            aside=True,
        )

    def _folders(self, worker: NodeSpec) -> list[str]:
        return [
            gluster_folder(self._layout, worker, brick.name)
            for brick in self.bricks
            if brick.worker == worker.name
        ]

    def watch(self) -> tuple[NodeSpec, tuple[str, ...]]:
        """Return where the client is watched, and how."""
        master = self._live.spec.master
        record = gluster_folder(self._layout, master, "watch.json")
        return master, self._watching(record, "0")

    def _watching(self, record: str, seconds: str) -> tuple[str, ...]:
        graph = f"{mount_folder(self._layout)}/.meta/graphs/active"
        states = [f"{graph}/{name}/private" for name in client_of(self.bricks, self.last.name)]
        program = node_program("watching", package=_ENGINE)
        return in_client(self._layout, *PYTHON, program, record, seconds, *states)

    def fault(self) -> tuple[NodeSpec, tuple[str, ...]]:
        """Return where the fault happens, and how."""
        record = gluster_folder(self._layout, self.last, "fault.json")
        command = daemon_command(self._live, self.last, mark=self._mark)
        kind = self._spec.fault.value
        return self.last, self._faulting(kind=kind, record=record, command=command)

    def _faulting(
        self, *, kind: str, record: str, command: tuple[str, ...] = ()
    ) -> tuple[str, ...]:
        layout, dilation = self._layout, self._layout.dilation
        down_seconds = int(self._spec.parameters["down_seconds"])
        # The phase after the load waits longer for one that the fault has still taken away.
        is_away = kind == "none" and self._spec.fault is not PlannedFault.NONE
        away_seconds = down_seconds if is_away else 0
        gluster = ("/usr/sbin/gluster", "--mode=script", "volume", "heal", VOLUME)
        asked = {
            "kind": kind,
            "folders": self._folders(self.last),
            "after_bytes": _AFTER_BYTES,
            "down_seconds": down_seconds * dilation,
            "command": command,
            "log": printed_log(layout, self.last, "server"),
            "variable": SERVER_VARIABLE,
            "device": "eth0",
            "look": in_daemon(layout, self.last, *gluster, "info", "summary", "--xml"),
            "heal": in_daemon(layout, self.last, *gluster),
            "limit_seconds": _HEAL_SECONDS * dilation,
            "connect_seconds": (_CONNECT_SECONDS + away_seconds) * dilation,
            "record": record,
        }
        program = node_program("faulting", package=_ENGINE)
        return (*PYTHON, program, json.dumps(asked))

    def fetched(self, node: NodeSpec, name: str) -> str:
        """Return what a program beside the phases wrote on a node; empty if it never did."""
        path = gluster_folder(self._layout, node, name)
        return self._live.as_root[node.name].run(["cat", path], check=False).text


WORKLOAD = _FileStore()
