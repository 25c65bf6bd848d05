"""Start an agent on every node for the time of a run, and gather what they wrote down."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from boardcluster.cluster.each_node import each_node
from boardcluster.cluster.state import IDENTITY_VARIABLE, boot_id
from boardcluster.errors import BoardclusterError
from boardcluster.foreign import start_of
from boardcluster.records import HOST, NodeSamples, TaskRecord, Telemetry
from boardcluster.remote.base import ProcessRef, Remote
from boardcluster.remote.node_clock import ClockReading, compare_clocks
from boardcluster.remote.node_rpc import end_processes, node_program, without_limits
from boardcluster.services.operation import LiveCluster
from boardcluster.telemetry.clock_watch import ClockWatch
from boardcluster.telemetry.samples import SAME_CLOCKS, Alignment, parse_samples

__all__ = [
    "Recording",
    "Target",
    "node_targets",
    "recording",
    "recording_of",
    "start_agent",
    "unseen_programs",
]

_GRACE_SECONDS = 3.0
_TRIES = 3
_RETRY_SECONDS = 11.0
"""Longer than a host is taken to be silent, see remote/ssh_route.py."""

_LASTING_SECONDS = 24 * 3600.0
"""No probe takes as long; a run says how long it may take."""

_AFTER_SECONDS = 3600.0
"""Agents end by themselves so long after a run must have ended, should a killed driver never end
them."""

_MOST_BYTES = 32 << 20

_FIRST_PROCESS = Path("/proc/1/stat")
_OWN_NAMESPACE = Path("/proc/self/ns/pid")
_FIRST_NAMESPACE = 0xEFFFFFFC
"""Of the machine itself; containers have others (PROC_PID_INIT_INO, include/linux/proc_ns.h)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A node to watch."""

    remote: Remote
    """The node."""
    request: Mapping[str, object]
    """What its agent is asked for, see agent.py; without the common fields."""
    folder: str
    """Folder on the node for the agent's file."""
    cores: int
    """CPUs that it may use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Agent:
    """An agent at work."""

    process: ProcessRef
    """Its process on the node."""
    file: str
    """Its file on the node, without ending."""
    alignment: Alignment | None
    """The node's clocks when it began; None until they are known."""


@dataclass(slots=True, kw_only=True)
class Recording:
    """The agents of one run; their samples are there once ``end`` was called."""

    interval_seconds: float
    """From one sample to the next."""
    longest_seconds: float = _LASTING_SECONDS
    """After this agents end by themselves."""
    began_seconds: float = 0.0
    """When the last agent had been started, by the driver's monotonic clock."""
    targets: Mapping[str, Target] = field(default_factory=dict)
    samples: dict[str, NodeSamples] = field(default_factory=dict)
    """What each agent wrote down, on the driver's monotonic clock."""
    tries: int = _TRIES
    """How often a node that does not answer at the end is asked."""
    clocks: ClockWatch = field(default_factory=ClockWatch)
    """Whether the clocks went on together."""
    free_bytes: dict[str, int] = field(default_factory=dict)
    """By node, what may still be written to its data medium."""
    remarks: list[str] = field(default_factory=list)
    """Why a node has no samples, in one line each."""
    _agents: dict[str, _Agent] = field(default_factory=dict)
    _folder: Path = field(default_factory=Path)

    def end(self) -> None:
        """End the agents that are still at work and fetch what they wrote down; safe to repeat."""
        agents, self._agents = self._agents, {}
        found, errors = each_node(agents, lambda name: _finish(self, name, agents[name]))
        self.samples |= found
        self.remarks += [_lacking(name, error) for name, error in errors.items()]

    def settle(self) -> None:
        """Wait until each agent has seen one interval, so that there is a state before the run."""
        left = self.began_seconds + self.interval_seconds - time.monotonic()
        if left > 0:
            time.sleep(left)

    def telemetry(
        self,
        *,
        started_seconds: float,
        duration_seconds: float,
        phases: Mapping[str, tuple[float, float]],
        tasks: Sequence[TaskRecord] = (),
    ) -> Telemetry:
        """Return the samples on the run's own time.

        Args:
            started_seconds: start of the run by the driver's monotonic clock.
            duration_seconds: from there to its end.
            phases: name to start and end of each submission and of each phase of the engine, by the
                same clock.
            tasks: of the engine, likewise.
        """
        return Telemetry(
            duration_seconds=duration_seconds,
            nodes=tuple(
                replace(self.samples[name], seconds=self.samples[name].seconds - started_seconds)
                for name in self.targets
                if name in self.samples
            ),
            phases={
                name: (begin - started_seconds, end - started_seconds)
                for name, (begin, end) in phases.items()
            },
            tasks=tuple(
                replace(
                    task,
                    begin_seconds=task.begin_seconds - started_seconds,
                    end_seconds=task.end_seconds - started_seconds,
                )
                for task in tasks
            ),
        )


@contextlib.contextmanager
def recording(
    live: LiveCluster,
    folder: Path,
    mark: Mapping[str, str],
    *,
    interval_seconds: float = 1.0,
    lasting_seconds: float = _LASTING_SECONDS,
) -> Iterator[Recording]:
    """Watch every node while the block runs; of an emulated cluster also the machine itself.

    A node that fails does not disturb the run; the recording's remarks name it.

    Args:
        live: the cluster.
        folder: folder of the driver for the machine's own samples while they are taken.
        mark: environment variables of the agents, by which ``end_marked`` finds them.
        interval_seconds: from one sample to the next; 0.1 to 10.
        lasting_seconds: longest duration of the block that is still watched to its end.
    """
    targets = node_targets(live, folder)
    with recording_of(
        targets,
        folder,
        mark,
        interval_seconds=interval_seconds,
        lasting_seconds=lasting_seconds,
    ) as recorded:
        yield recorded


@contextlib.contextmanager
def recording_of(
    targets: Mapping[str, Target],
    folder: Path,
    mark: Mapping[str, str],
    *,
    interval_seconds: float = 1.0,
    lasting_seconds: float = _LASTING_SECONDS,
) -> Iterator[Recording]:
    """Watch some nodes while the block runs, see ``recording``."""
    recorded = Recording(
        interval_seconds=interval_seconds,
        longest_seconds=lasting_seconds + _AFTER_SECONDS,
        targets=targets,
        _folder=folder,
    )
    unique = uuid.uuid4().hex[:12]
    try:
        _, errors = each_node(
            recorded.targets, lambda name: _begin(recorded, name, f"telemetry-{unique}", mark)
        )
        recorded.began_seconds = time.monotonic()
        recorded.remarks += [_lacking(name, error) for name, error in errors.items()]
        yield recorded
    finally:
        recorded.end()


def node_targets(live: LiveCluster, folder: Path) -> dict[str, Target]:
    """The nodes to watch by name, and the machine itself where nodes are only parts of it.

    Args:
        live: the cluster.
        folder: folder of the driver for the machine's own file.
    """
    emulated = live.spec.capabilities.emulated
    among_others = {}
    if live.spec.capabilities.shares_processes:
        among_others = {
            "mark": f"{IDENTITY_VARIABLE}={live.state.identity}",
            "trees": [os.getpid()],
            "lives_with": os.getpid(),
        }
    targets = {}
    for node in live.spec.nodes:
        daemons = [daemon for daemon in live.state.daemons if daemon.node == node.name]
        targets[node.name] = Target(
            remote=live.remotes[node.name],
            request={
                "scope": "node" if emulated else "machine",
                "groups": {daemon.name: daemon.process.pid for daemon in daemons},
                **among_others,
            },
            folder=live.layout.folder(node, "tmp"),
            cores=node.cores,
        )
    if emulated:
        targets[HOST] = Target(
            remote=live.host,
            request={
                "scope": "machine",
                "groups": {},
                "namespaces": [_process_namespace(node.pid) for node in live.state.nodes],
                "trees": [os.getpid()],
                "lives_with": os.getpid(),
            },
            folder=str(folder.resolve()),
            cores=len(os.sched_getaffinity(0)),
        )
    return targets


def unseen_programs(targets: Mapping[str, Target]) -> str:
    """Say which programs of this machine agents cannot see, where it is among what they watch.

    Empty if there are none. Their CPU time is in no figure. The kernel's sums hold it, but also
    that of the kernel's own threads, which work for the run and cannot be seen either.
    """
    if not any(
        target.request.get("lives_with") and target.request["scope"] == "machine"
        for target in targets.values()
    ):
        return ""
    try:
        _FIRST_PROCESS.read_bytes()
    except OSError:
        return (
            "foreign load is that of your own programs alone: this machine hides those of other "
            "users from you (hidepid of /proc)"
        )
    if _OWN_NAMESPACE.stat().st_ino == _FIRST_NAMESPACE:
        return ""
    return "foreign load is that of this container alone: programs outside of it cannot be seen"


def _process_namespace(pid: int) -> int:
    try:
        return Path(f"/proc/{pid}/ns/pid").stat().st_ino
    except OSError:  # it ended a moment ago; the heartbeat says so
        return 0


def _begin(recorded: Recording, name: str, unique: str, mark: Mapping[str, str]) -> None:
    target = recorded.targets[name]
    file = f"{target.folder}/{unique}"
    process = start_agent(
        target,
        file,
        mark,
        interval_seconds=recorded.interval_seconds,
        longest_seconds=recorded.longest_seconds,
        most_bytes=_MOST_BYTES,
    )
    # From here on it is ours to end, whatever becomes of the next question.
    recorded._agents[name] = _Agent(process=process, file=file, alignment=None)
    alignment, there = _now(target)
    recorded.free_bytes[name] = there.free_bytes
    recorded._agents[name] = _Agent(process=process, file=file, alignment=alignment)
    recorded.clocks.begin(name, there.boot_id, alignment)


def start_agent(
    target: Target,
    file: str,
    mark: Mapping[str, str],
    *,
    interval_seconds: float,
    longest_seconds: float,
    most_bytes: int,
) -> ProcessRef:
    """Start an agent on a node.

    Args:
        target: the node.
        file: its file on the node, without ending: samples go to ``.txt``, messages to ``.log``.
        mark: environment variables of the agent.
        interval_seconds: from one sample to the next.
        longest_seconds: it ends by itself after this.
        most_bytes: bound of its file.
    """
    request = {
        "target": f"{file}.txt",
        "interval_seconds": interval_seconds,
        "longest_seconds": longest_seconds,
        "most_bytes": most_bytes,
        **target.request,
    }
    program = node_program("agent", package="boardcluster.telemetry")
    return without_limits(target.remote).start(
        ["python3", "-I", "-S", "-c", program, json.dumps(request)], log=f"{file}.log", env=mark
    )


def _now(target: Target) -> tuple[Alignment, ClockReading]:
    """Compare a node's clocks with the driver's.

    A node that shares the driver's kernel shares its clocks.
    """
    own_boot = boot_id()
    there = compare_clocks(target.remote, folder=target.folder, own_boot=own_boot)
    if there.boot_id == own_boot:
        return SAME_CLOCKS, there
    alignment = Alignment(
        monotonic_offset_seconds=there.monotonic_offset_seconds,
        wall_offset_seconds=there.wall_offset_seconds,
        error_seconds=there.error_seconds,
    )
    return alignment, there


def _finish(recorded: Recording, name: str, agent: _Agent) -> NodeSamples:
    """End an agent and read its file; a connection that has just dropped gets a few tries.

    The file stays beside the attempt's artefacts where it cannot be read.
    """
    kept = recorded._folder / f"telemetry-{name}.txt"
    # A relay of this machine takes what is named as `kept` for the file of the agent here.
    fetched = kept.with_name(f".{kept.name}")
    try:
        found = _fetched(recorded, name, agent, fetched)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            fetched.replace(kept)
        raise
    fetched.unlink(missing_ok=True)
    return found


def _fetched(recorded: Recording, name: str, agent: _Agent, file: Path) -> NodeSamples:
    """End an agent, fetch what it wrote into a file of the driver, and read that."""
    remote = recorded.targets[name].remote
    for left in itertools.count(recorded.tries - 1, -1):
        try:
            end_processes(remote, [agent.process], grace_seconds=_GRACE_SECONDS)
            later, there = _now(recorded.targets[name])
            recorded.clocks.end(name, there.boot_id, later)
            remote.get(f"{agent.file}.txt", file)
            break
        except BoardclusterError:
            if left <= 0:
                raise
            time.sleep(_RETRY_SECONDS)
    with contextlib.suppress(BoardclusterError):  # what is fetched counts; what is left is small
        remote.run(["rm", "-f", f"{agent.file}.txt", f"{agent.file}.log"])
    known = [row for row in (agent.alignment, later) if row is not None]
    return parse_samples(
        start_of(file, size_bytes=2 * _MOST_BYTES),
        node=name,
        scope=str(recorded.targets[name].request["scope"]),
        cores=recorded.targets[name].cores,
        alignment=min(known, key=lambda row: row.error_seconds),
        started_seconds=0.0,
    )


def _lacking(name: str, error: BoardclusterError) -> str:
    return f"no telemetry of {name}: {' '.join(error.message.split())[:200]}"
