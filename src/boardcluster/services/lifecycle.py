"""Configure, start, watch and stop the daemons of a cluster."""

from __future__ import annotations

import itertools
import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from boardcluster.cluster.each_node import ASKED_AT_ONCE, each_node, raise_first
from boardcluster.cluster.state import IDENTITY_VARIABLE, Daemon
from boardcluster.errors import (
    AddressError,
    DaemonError,
    JvmCrashError,
    RemoteError,
    UnreadyNameNodeError,
)
from boardcluster.records import NodeSpec, Role
from boardcluster.remote.base import ProcessRef, Remote
from boardcluster.remote.node_rpc import http_get_all, listening, processes
from boardcluster.services.coming_up import StartWatch, end_safe_mode, missing_files
from boardcluster.services.conf import config_sha256, render_node
from boardcluster.services.daemons import (
    DAEMONS,
    DaemonKind,
    command_of,
    daemons_of,
    namenode_format_command,
    ports_of,
)
from boardcluster.services.jvm import crash_words, daemon_environment
from boardcluster.services.layout import PORTS, Layout
from boardcluster.services.provision.manager import DaemonCommand, ServiceManager
from boardcluster.spec.cluster import address_of
from boardcluster.spec.variant import DECLARED_STORAGE
from boardcluster.waiting import wait_until

__all__ = [
    "SAFE_MODE_SECONDS",
    "Copying",
    "Health",
    "configure",
    "copying",
    "ended",
    "health",
    "start",
    "stop",
    "wait_healthy",
]

_PARALLEL = 16
"""Nodes asked at once; enough for a rack of boards, bounded for a thousand."""

_POLL_SECONDS = 0.3
_ANSWER_SECONDS = 5.0
_LOOK_AT_PROCESSES_EVERY = 6
_START_SECONDS_MOST = 3600.0
"""Longest start, whatever goes on in it."""
SAFE_MODE_SECONDS = 12.0
"""So long the NameNode must have said the same with all DataNodes there, which report at once."""
_TOO_EARLY = "NameNode still not started"
"""What a NameNode answers in the moment between taking calls and having started; the history server
of MapReduce then ends, though it waits for one that takes no calls yet."""
_LAST_WORDS = 3
"""Lines of a log in which that answer counts: then come an exception's name and the exit status."""
_HDFS_STATE = "/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState"
_ERROR_LINE = re.compile(r"(FATAL|ERROR|Exception|Error:|Exiting with status)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What the masters say of their workers."""

    live_datanodes: int
    """DataNodes that report to the NameNode."""
    live_nodemanagers: int
    """NodeManagers that take containers."""
    safe_mode: bool
    """Whether HDFS is still read-only."""
    history: bool
    """Whether both history servers answer."""
    hdfs_free_bytes: int
    """Space left in HDFS."""
    under_replicated_blocks: int = 0
    """Blocks of HDFS of which there are fewer copies than there should be."""

    def is_good(self, workers: int) -> bool:
        """Whether every worker of the cluster can take data and work."""
        return (
            self.live_datanodes == workers
            and self.live_nodemanagers == workers
            and not self.safe_mode
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Copying:
    """What HDFS copies from one DataNode to another, because blocks lack copies.

    Source: Apache Hadoop, ``FSNamesystemMBean``; the NameNode counts anew whenever it hands out
    copies to make, every 3 s.
    """

    blocks: int
    """Blocks that are being copied, or were handed out last."""
    lacking_blocks: int
    """Blocks of which there are fewer copies than there should be; of some there cannot be more."""


def configure(layout: Layout, remotes: Mapping[str, Remote], *, staging: Path) -> str:
    """Write every node's configuration and folders; return the hash over all of it.

    A dilation that follows from this machine's speed, which is measured at each start, is not in
    the hash, or every start would be a setup of its own.
    """
    rendered = {node.name: render_node(layout, node) for node in layout.spec.nodes}
    shutil.rmtree(staging, ignore_errors=True)

    def one(node: NodeSpec) -> None:
        folder = staging / node.name
        folder.mkdir(parents=True)
        for name, text in rendered[node.name].items():
            (folder / name).write_text(text)
        remote = remotes[node.name]
        remote.put(folder, layout.conf(node))
        folders = [layout.folder(node, "logs"), layout.data(node), layout.folder(node, "tmp")]
        if Role.MASTER in node.roles:
            folders.append(layout.spark_events)
        remote.run(["mkdir", "-p", *folders])

    with ThreadPoolExecutor(_PARALLEL) as pool:
        list(pool.map(one, layout.spec.nodes))
    twin = layout.spec.twin
    if twin is None or twin.dilation is not None:
        return config_sha256(rendered)
    plain = replace(layout, dilation=1.0)
    return config_sha256({node.name: render_node(plain, node) for node in layout.spec.nodes})


def start(
    layout: Layout,
    remotes: Mapping[str, Remote],
    *,
    managers: Mapping[str, ServiceManager],
    identity: str,
    started: Callable[[Daemon], None],
) -> list[Daemon]:
    """Start every daemon; ``started`` is told of each at once, so that none is ever lost.

    Raises:
        AddressError: a port that a daemon needs is taken.
        DaemonError: HDFS could not be created.
    """
    everything = daemons_of(layout.spec)
    _check_ports(remotes, everything)
    daemons = []
    with ThreadPoolExecutor(1) as pool:
        formatting = pool.submit(_format_once, layout, remotes[layout.spec.master.name])
        waits_for_format = [row for row in everything if row[0].name == "namenode"]
        others = [row for row in everything if row[0].name != "namenode"]

        def start_one(kind: DaemonKind, node: NodeSpec) -> Daemon:
            return _start_one(layout, managers[node.name], kind, node, identity=identity)

        for kind, node in others[:1]:
            daemons.append(start_one(kind, node))
            started(daemons[-1])
        formatting.result()
        # Kinds follow each other, because what others wait for comes first.
        for kind in dict.fromkeys(kind for kind, _ in waits_for_format + others[1:]):
            nodes = [node for each, node in waits_for_format + others[1:] if each is kind]
            with ThreadPoolExecutor(_PARALLEL) as starters:
                for daemon in starters.map(partial(start_one, kind), nodes):
                    daemons.append(daemon)
                    started(daemon)
    return daemons


def _check_ports(remotes: Mapping[str, Remote], rows: list[tuple[DaemonKind, NodeSpec]]) -> None:
    wanted: dict[str, list[int]] = {}
    for kind, node in rows:
        wanted.setdefault(node.name, []).extend(ports_of(kind))
    names = list(wanted)
    with ThreadPoolExecutor(_PARALLEL) as pool:
        taken = list(pool.map(lambda name: listening(remotes[name], wanted[name]), names))
    for name, ports in zip(names, taken, strict=True):
        if ports:
            label = {number: port for port, number in PORTS.items()}
            listed = ", ".join(f"{port} ({label[port]})" for port in ports)
            raise AddressError(
                f"on node {name} another program already listens on port {listed}",
                hint="end that program (on the node: `ss -ltnp`), then run `boardcluster up` again",
            )


_OF_A_FILE_SYSTEM = re.compile(r"fsimage_\d+|edits_.*")
_LIST_FOLDER = 'mkdir -p "$1" && ls "$1"'
"""Fails where the folder cannot be read, which must not be taken for an empty one."""


def _format_once(layout: Layout, remote: Remote) -> None:
    """Create an empty HDFS unless the master already has one."""
    master = layout.spec.master
    current = layout.data(master, "namenode", "current")
    held = remote.run(["sh", "-c", _LIST_FOLDER, "sh", current]).text.split()
    if any(_OF_A_FILE_SYSTEM.fullmatch(name) for name in held):
        return
    # A format that was killed half-way leaves folders which Hadoop would refuse to format again;
    # it writes an image last and no edits, so without these they hold no file system.
    remote.run(["rm", "-rf", layout.data(master, "namenode")])
    try:
        remote.run(
            namenode_format_command(layout),
            env=daemon_environment(layout, master),
            timeout_seconds=180,
        )
    except RemoteError as error:
        raise DaemonError(
            f"HDFS could not be created on {master.name}:\n{error.message}",
            hint="run `boardcluster doctor`",
        ) from error


def _start_one(
    layout: Layout, manager: ServiceManager, kind: DaemonKind, node: NodeSpec, *, identity: str
) -> Daemon:
    log = layout.folder(node, "logs", f"{kind.name}.log")
    command = DaemonCommand(
        name=kind.name,
        argv=command_of(layout, node, kind),
        env={**daemon_environment(layout, node), IDENTITY_VARIABLE: identity},
        cwd=layout.folder(node, "tmp"),
        log=log,
    )
    return Daemon(
        name=kind.name,
        node=node.name,
        process=manager.start(command),
        log=log,
        url=f"http://{address_of(layout.spec, node.name)}:{PORTS[kind.web]}",
    )


def health(layout: Layout, remote: Remote) -> Health:
    """Ask the masters how many workers they have; ``remote`` reaches the master node."""
    master = layout.spec.master
    name_node, yarn, job_history, spark_history = http_get_all(
        remote,
        [
            layout.url(master, "namenode-web") + _HDFS_STATE,
            layout.url(master, "resourcemanager-web") + "/ws/v1/cluster/metrics",
            layout.url(master, "jobhistory-web") + "/ws/v1/history/info",
            layout.url(master, "sparkhistory-web") + "/api/v1/version",
        ],
        timeout_seconds=_ANSWER_SECONDS * layout.dilation,
    )
    live, safe, free, under_replicated = 0, True, 0, 0
    if name_node.status == 200 and (beans := name_node.json()["beans"]):
        live = int(beans[0]["NumLiveDataNodes"])
        safe = beans[0]["FSState"] != "Operational"
        free = int(beans[0]["CapacityRemaining"])
        under_replicated = int(beans[0]["UnderReplicatedBlocks"])
    managers = 0
    if yarn.status == 200:
        managers = int(yarn.json()["clusterMetrics"]["activeNodes"])
    return Health(
        live_datanodes=live,
        live_nodemanagers=managers,
        safe_mode=safe,
        history=job_history.status == 200 and spark_history.status == 200,
        hdfs_free_bytes=free,
        under_replicated_blocks=under_replicated,
    )


def copying(layout: Layout, remote: Remote) -> Copying:
    """Ask the NameNode what it has copied; nothing if it does not say.

    Raises:
        RemoteError: the master, which ``remote`` reaches, cannot be asked.
    """
    url = layout.url(layout.spec.master, "namenode-web") + _HDFS_STATE
    (answer,) = http_get_all(remote, [url], timeout_seconds=_ANSWER_SECONDS * layout.dilation)
    beans = answer.json()["beans"] if answer.status == 200 else []
    if not beans:
        return Copying(blocks=0, lacking_blocks=0)
    handed_out = ("PendingReplicationBlocks", "ScheduledReplicationBlocks")
    return Copying(
        blocks=sum(int(beans[0].get(name, 0)) for name in handed_out),
        lacking_blocks=int(beans[0]["UnderReplicatedBlocks"]),
    )


def wait_healthy(
    layout: Layout,
    remotes: Mapping[str, Remote],
    daemons: list[Daemon],
    *,
    home: Path,
    patience_seconds: float,
    seen: Callable[[Health], None],
    leaving: Callable[[str], object] | None = None,
) -> None:
    """Wait until every worker is live and the history servers answer, as long as a start goes on.

    Args:
        layout: the cluster.
        remotes: its nodes.
        daemons: what was started.
        home: its state folder, for what a message proposes.
        patience_seconds: a start that stands still for so long is given up.
        seen: told of the cluster's health.
        leaving: told which files are lost before a safe mode is left that would never end; None
            has such a start given up.

    Raises:
        DaemonError: a daemon died, files of HDFS have lost blocks, or nothing goes on any more;
            with the last state and log lines.
    """
    workers = len(layout.spec.workers)
    master = remotes[layout.spec.master.name]
    turns = itertools.count(2)
    watch = StartWatch(layout, remotes, daemons)
    last: list[Health] = []

    def look() -> Health:
        found = health(layout, master)
        seen(found)
        watch.look((found.live_datanodes, found.live_nodemanagers, found.history))
        last[:] = [found]
        return found

    def ready(found: Health) -> bool:
        return found.is_good(workers) and found.history

    def failed() -> None:
        still_seconds = watch.still_seconds  # before a look at processes, which takes its time
        if next(turns) % _LOOK_AT_PROCESSES_EVERY == 0:
            _raise_if_dead(remotes, daemons)
        full = last[0].live_datanodes == workers and last[0].safe_mode
        if full and watch.safe_mode_seconds >= SAFE_MODE_SECONDS * layout.dilation:
            _give_files_up(layout, master, watch.safe_mode, leaving, home=home)
        if still_seconds >= patience_seconds:
            still = f"nothing has happened for {patience_seconds:g} s"
            raise _unhealthy(layout, last[0], still, watch.safe_mode)

    state = wait_until(
        look,
        ready=ready,
        failed=failed,
        timeout_seconds=_START_SECONDS_MOST * layout.dilation,
        poll_seconds=_POLL_SECONDS,
    )
    if not ready(state):
        _raise_if_dead(remotes, daemons)
        late = f"not after {_START_SECONDS_MOST * layout.dilation:g} s"
        raise _unhealthy(layout, state, late, watch.safe_mode)


def _unhealthy(layout: Layout, state: Health, late: str, said: str) -> DaemonError:
    """Say how far a start came."""
    workers, master = len(layout.spec.workers), layout.spec.master
    why = f" ({said})" if state.safe_mode and said else ""
    return DaemonError(
        f"the cluster is not healthy, {late}: {state.live_datanodes} of {workers} "
        f"DataNodes and {state.live_nodemanagers} of {workers} NodeManagers live, "
        f"safe mode {'on' if state.safe_mode else 'off'}{why}, history servers "
        f"{'answer' if state.history else 'do not answer'}",
        hint=f"see the daemons' logs, on {master.name} in {layout.folder(master, 'logs')}",
    )


def _give_files_up(
    layout: Layout,
    master: Remote,
    said: str,
    leaving: Callable[[str], object] | None,
    *,
    home: Path,
) -> None:
    """Leave a safe mode that all DataNodes together cannot end, or say what it would cost.

    Raises:
        DaemonError: nobody asked for it; names the files that are lost.
    """
    try:
        lost = missing_files(layout, master)
    except RemoteError:
        return  # it is asked again
    if not lost.paths:
        return  # something else is waited for, and has its own time
    if leaving is None:
        give_up = f"or give these files up with `boardcluster up --home {home} --leave-safe-mode`; "
        if Path(layout.storage).name != DECLARED_STORAGE:
            give_up = ""  # `up` starts what is declared, whose HDFS is another one
        raise DaemonError(
            f"HDFS stays in safe mode, because every DataNode has reported and {lost.words}. The "
            f"NameNode says: {said}",
            hint=f"bring back the disk that holds them; {give_up}or start with an empty HDFS: "
            f"`boardcluster down --home {home} --wipe`",
        )
    leaving(f"leaving safe mode: {lost.words}")
    end_safe_mode(layout, master, lost)


def ended(remote: Remote, daemons: Sequence[Daemon]) -> list[Daemon]:
    """Return those daemons of one node that no longer run."""
    views = processes(remote, [daemon.process for daemon in daemons])
    return [daemon for daemon, view in zip(daemons, views, strict=True) if not view.alive]


def _raise_if_dead(remotes: Mapping[str, Remote], daemons: list[Daemon]) -> None:
    by_node: dict[str, list[Daemon]] = {}
    for daemon in daemons:
        by_node.setdefault(daemon.node, []).append(daemon)
    found, errors = each_node(
        by_node, lambda name: ended(remotes[name], by_node[name]), at_once=ASKED_AT_ONCE
    )
    for name, dead in found.items():
        for daemon in dead:
            raise _died(remotes[name], daemon)
    raise_first(errors)


def _died(remote: Remote, daemon: Daemon) -> DaemonError:
    """Describe the death of a daemon by the lines of its log that matter."""
    text = remote.run(["tail", "-n", "200", daemon.log], check=False).text
    lines = [line for line in text.splitlines() if _ERROR_LINE.search(line)][-6:]
    where = f"{daemon.name} on {daemon.node}"
    hint = f"see {daemon.log}"
    if crash := crash_words(text.splitlines()):
        return JvmCrashError(f"the JVM of {where} crashed while starting: {crash}", hint=hint)
    bound = [line for line in text.splitlines() if "java.net.BindException" in line]
    if bound and "Cannot assign requested address" in bound[-1]:
        hint = f"{daemon.node} no longer has the address that cluster.toml says; {hint}"
    elif bound:
        ports = next(ports_of(kind) for kind in DAEMONS if kind.name == daemon.name)
        hint = f"a port of {where} is taken ({', '.join(map(str, ports))}); {hint}"
    # Logs go on from start to start, so only the last words are of this one.
    early = any(_TOO_EARLY in line for line in lines[-_LAST_WORDS:])
    kind = UnreadyNameNodeError if early and not bound else DaemonError
    return kind(f"{where} ended while starting:\n" + "\n".join(lines), hint=hint)


def stop(
    managers: Mapping[str, ServiceManager],
    daemons: Iterable[tuple[str, str, ProcessRef]],
    *,
    grace_seconds: float,
) -> int:
    """Ask daemons, as (node, name, process), to end; return how many had to be killed."""
    by_node: dict[str, dict[str, ProcessRef]] = {}
    for node, name, process in daemons:
        by_node.setdefault(node, {})[name] = process

    def one(node: str) -> int:
        return managers[node].stop(by_node[node], grace_seconds=grace_seconds)

    with ThreadPoolExecutor(_PARALLEL) as pool:
        return sum(pool.map(one, by_node))
