"""Watches a cluster for the page: its nodes, the campaign and the job, once a second.

One thread looks at this machine's files (state, lock, store), another reads what the relays on the
nodes write. Nothing is written, locked or submitted, and while a run is measured nothing is sampled
but what the run records itself.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from boardcluster.cluster.lock import driver_at_work
from boardcluster.cluster.state import LiveState, load_state
from boardcluster.errors import BoardclusterError
from boardcluster.queries.progress import Progress, driver_of_trials, progress_of
from boardcluster.records import HOST, ClusterSpec, Result
from boardcluster.services.declaration import read_spec
from boardcluster.services.job_log import LINES
from boardcluster.services.operation import LiveCluster, look_at_cluster
from boardcluster.store.files import DATABASE_NAME
from boardcluster.telemetry.collector import node_targets
from boardcluster.telemetry.streams import NodeStreams, RelayOrder
from boardcluster.web.campaigns import campaign_document
from boardcluster.web.readings import READINGS, LiveReadings, NodeFrame
from boardcluster.web.running import RunningJob, last_minute

__all__ = ["ClusterWatch", "WatchedNode", "store_stamp"]

_LOOK_SECONDS = 1.0
_ATTACH_AGAIN_SECONDS = 5.0
_DIAGNOSE_SHARE = 0.01
"""Share of a core for the analysis of bottlenecks."""
_DIAGNOSE_SECONDS = 5.0
_HOUR_SECONDS = 3600.0
_STEP_SECONDS = 10.0
_SILENT_SECONDS = 5.0
_CAMPAIGN_STEP_SECONDS = 10.0
_DECIMALS = {"user": 3, "system": 3, "iowait": 3, "steal": 3, "celsius": 1, "watts": 2}


@dataclass(slots=True, kw_only=True)
class WatchedNode:
    """What is known of a node."""

    readings: LiveReadings
    """What it does, and did in the last hour."""
    roles: tuple[str, ...]
    """Its roles; none for the machine that emulated nodes share."""
    daemons: tuple[str, ...]
    """Its daemons by name."""
    board: str
    """What board it is, or stands for; may be empty."""
    dead: frozenset[str] = frozenset()
    """Those of its daemons that do not run."""
    heard_seconds: float = 0.0
    """When it last said something, by the monotonic clock; 0 for never."""
    error: str = ""
    """Why it cannot be heard; empty if it can."""
    ahead_seconds: float = 0.0
    """By how much its local time is ahead of UTC."""
    changed: bool = False
    """Whether it has a reading that was not told yet."""


@dataclass(slots=True)
class ClusterWatch:
    """What happens on a cluster, for any number of listeners.

    Args:
        home: its state folder.
        cache: folder of fetched engines.
        tell: told of each event in a thread of its own: its name, and what it says as JSON.
    """

    home: Path
    cache: Path
    tell: Callable[[str, str], None] = lambda _name, _text: None
    is_heard: Callable[[], bool] = lambda: True
    """Whether anybody listens; without listeners nothing is analysed."""
    nodes: dict[str, WatchedNode] = field(default_factory=dict)
    """By name, as the cluster is up; those of this machine last."""
    _streams: NodeStreams | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _ending: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _state_stamp: object = None
    _attach_due: float = 0.0
    _phase: str = "down"
    _why: str = ""
    _kind: str = ""
    _name: str = ""
    _driver: str = ""
    _store_stamp: object = None
    _progress: Progress | None = None
    _store_error: str = ""
    _job: RunningJob = field(default_factory=RunningJob)
    _minute: dict[str, Any] | None = None
    _minute_due: float = 0.0
    _said: dict[str, str] = field(default_factory=dict)

    def start(self) -> None:
        """Begin to look."""
        self._thread = threading.Thread(target=self._watch, name="watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the relays and the threads."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join()
        self._drop_streams()

    def _watch(self) -> None:
        due = time.monotonic()
        while not self._ending.is_set():
            try:
                self.look()
            except BoardclusterError as error:
                self._why = error.message
            except Exception as error:  # noqa: BLE001  what a store or a node holds must not end it
                self._why = f"{type(error).__name__}: {error}"
            due = max(due + _LOOK_SECONDS, time.monotonic())
            self._ending.wait(due - time.monotonic())

    def look(self) -> None:
        """Look once, and tell what has changed."""
        self._driver = driver_at_work(self.home)
        self._look_at_state()
        self._look_at_store()
        with self._lock:
            self._job.look()
        if self.is_heard():
            self._diagnose()
            self._publish()

    # What is alive

    def _look_at_state(self) -> None:
        stamp = _stamps(self.home / "state.json", self.home / "running.toml")
        if stamp == self._state_stamp and not 0 < self._attach_due <= time.monotonic():
            return
        self._attach_due = 0.0
        try:
            state = load_state(self.home)
            if state is None or state.phase != "up":
                self._phase = "down" if state is None else state.phase
                self._why = ""
                self._drop_streams()
                self._declared(state)
            else:
                self._attach()
        except BoardclusterError as error:
            self._phase, self._why = "dead", error.message
            self._drop_streams()
            self._attach_due = time.monotonic() + _ATTACH_AGAIN_SECONDS
        self._state_stamp = stamp

    def _attach(self) -> None:
        live = look_at_cluster(self.home, cache=self.cache)
        self._phase, self._why = "up", ""
        self._drop_streams()
        self._name, self._kind = live.spec.name, live.spec.kind
        targets = node_targets(live, self._host_folder())
        with self._lock:
            self.nodes = {name: _node(live, name, self.nodes.get(name)) for name in targets}
        master = live.spec.master.name
        folders = {node.name: live.layout.folder(node, "logs") for node in live.spec.nodes}
        boards = not live.layout.shares_files
        clients = live.layout.folder(live.spec.master, "tmp", "job-*", "stderr")
        orders = {
            name: RelayOrder(
                target=target,
                daemons=[
                    (daemon.name, daemon.process.pid, daemon.process.start_ticks)
                    for daemon in live.state.daemons
                    if daemon.node == name
                ],
                logs=[
                    *(
                        [f"{folders[name]}/containers/application_*/container_*_000001/syslog"]
                        if name in folders
                        else []
                    ),
                    *([clients] if boards and name == master else []),
                ],
                match=LINES,
            )
            for name, target in targets.items()
        }
        self._streams = NodeStreams(orders, self.take)
        self._streams.start()

    def _declared(self, state: LiveState | None) -> None:
        """Show what ``cluster.toml`` says of a cluster that is not up."""
        with self._lock:
            self.nodes = {}
        if state is None:
            with contextlib.suppress(BoardclusterError):
                spec = read_spec(self.home / "cluster.toml")
                self._name, self._kind = spec.name, spec.kind

    def _drop_streams(self) -> None:
        streams, self._streams = self._streams, None
        if streams is not None:
            streams.close()

    def _host_folder(self) -> Path:
        folder = self._job.folder
        return folder if folder is not None else self.home

    def take(self, name: str, letter: str, text: str) -> None:
        """Take what a relay says, see ``NodeStreams``; in the thread that reads them."""
        with self._lock:
            node = self.nodes.get(name)
            if node is None:
                return
            if letter == "X":
                node.error, node.dead = text, frozenset(node.daemons)
                node.readings.lost()
                node.changed = True
                return
            node.error, node.heard_seconds = "", time.monotonic()
            if letter == "T":
                node.changed |= node.readings.feed(text)
            elif letter == "S":
                node.readings.source = text
            elif letter in {"D", "L", "Z"}:
                with contextlib.suppress(ValueError, TypeError, OverflowError, RecursionError):
                    self._take_document(node, letter, json.loads(text))

    def _take_document(self, node: WatchedNode, letter: str, found: Any) -> None:
        if letter == "D":
            node.dead = frozenset(map(str, found))
        elif letter == "Z":
            node.ahead_seconds = float(found)
        else:
            path, line = found
            self._job.feed(
                f"{node.readings.frame.name}:{path}", str(line), ahead_seconds=node.ahead_seconds
            )

    # What is stored

    def _look_at_store(self) -> None:
        stamp = store_stamp(self.home)
        if stamp != self._store_stamp:
            try:
                self._progress, self._store_error = progress_of(self.home, None), ""
            except BoardclusterError as error:
                self._progress, self._store_error = None, error.message
            self._store_stamp = stamp
        # Also where the store stays as it is: a driver that is killed writes nothing.
        running = self._progress.running if self._progress is not None else None
        at_work = driver_of_trials(self._driver)
        folder = self.home / running[1].artefacts if running and at_work else None
        if folder != self._job.folder:
            with self._lock:
                self._job.follow(folder)
            self._minute = None
            if folder is not None and self._streams is not None:
                self._streams.look_in(HOST, str(folder))

    # What is told

    def _diagnose(self) -> None:
        running = self._progress.running if self._progress is not None else None
        if running is None or self._job.folder is None:
            self._minute = None
            return
        if time.monotonic() < self._minute_due:
            return
        began = time.thread_time()
        with self._lock:
            nodes = {
                name: node.readings
                for name, node in self.nodes.items()
                if node.roles or self._kind != "emulated"
            }
        result = Result(trial=running[0], attempt=running[1], measurement=None)
        self._minute = last_minute(result, nodes)
        used = time.thread_time() - began
        self._minute_due = time.monotonic() + max(_DIAGNOSE_SECONDS, used / _DIAGNOSE_SHARE)

    def _publish(self) -> None:
        self.tell("nodes", self.nodes_text(only_changed=True))
        for name, document in (
            ("state", self.state_document()),
            ("campaign", self.campaign()),
            ("job", self.job()),
        ):
            text = json.dumps(document)
            if self._said.get(name) != text:
                self._said[name] = text
                self.tell(name, text)

    def nodes_text(self, *, only_changed: bool = False) -> str:
        """The newest reading of each node, in the order of ``READINGS``, as JSON.

        Args:
            only_changed: only of nodes that have one that was not told yet, to all listeners at
                once; else for one of them.
        """
        rows = {}
        with self._lock:
            for name, node in self.nodes.items():
                if node.changed or not only_changed:
                    node.changed = node.changed and not only_changed
                    at = round(node.readings.at_seconds, 1)
                    rows[name] = [at, *_rounded(node.readings.now)]
        return json.dumps({"at": round(time.time(), 1), "nodes": rows}, separators=(",", ":"))

    def state_document(self) -> dict[str, Any]:
        """The cluster, its nodes and daemons, and who is at work; all but readings."""
        now = time.monotonic()
        with self._lock:
            nodes = [
                {
                    "name": name,
                    "roles": node.roles,
                    "board": node.board,
                    "cores": node.readings.frame.cores,
                    "memory_bytes": node.readings.frame.memory_bytes,
                    "is_host": not node.roles,
                    "watts_are_modelled": node.readings.frame.power is not None,
                    "source": node.readings.source,
                    "error": node.error,
                    "silent": node.heard_seconds > 0 and now - node.heard_seconds > _SILENT_SECONDS,
                    "daemons": [
                        {"name": daemon, "up": daemon not in node.dead} for daemon in node.daemons
                    ],
                }
                for name, node in self.nodes.items()
            ]
        return {
            "cluster": self._name,
            "kind": self._kind,
            "phase": self._phase,
            "why": self._why,
            "driver": self._driver,
            "store_error": self._store_error,
            "nodes": nodes,
        }

    def campaign(self) -> dict[str, Any] | None:
        """The campaign that runs, or ran last; None without any."""
        if self._progress is None:
            return None
        # What is left changes with each second: told so often, it would load what is measured.
        at = time.time() // _CAMPAIGN_STEP_SECONDS * _CAMPAIGN_STEP_SECONDS
        now = datetime.datetime.fromtimestamp(at, datetime.UTC)
        driver = driver_of_trials(self._driver)
        found = campaign_document(self._progress, driver, now)
        for key in ("moment_utc", "running"):
            found.pop(key, None)
        if not driver:
            found.pop("now", None)
        elif "now" in found:  # the page counts seconds itself
            found["now"].pop("elapsed_seconds", None)
            found["left_seconds"] = round(found["left_seconds"])
            if found["left_interval_seconds"]:
                found["left_interval_seconds"] = list(map(round, found["left_interval_seconds"]))
        return found

    def job(self) -> dict[str, Any] | None:
        """The job that runs; None while none does."""
        running = self._progress.running if self._progress is not None else None
        if running is None or self._job.folder is None:
            return None
        began = datetime.datetime.fromisoformat(running[1].started_utc).timestamp()
        with self._lock:
            found = self._job.document(since_seconds=began - 1)
        return {"run": running[1].name, "engine": found, "minute": self._minute}

    def history(self) -> dict[str, Any]:
        """The last hour of each node in steps of ten seconds, for the page's beginning."""
        since = time.time() - _HOUR_SECONDS
        rows: dict[str, list[list[float | None]]] = {}
        with self._lock:
            for name, node in self.nodes.items():
                rows[name] = [
                    [at, *_rounded(dict(zip(READINGS, values, strict=True)))]
                    for at, values in node.readings.history(
                        since_seconds=since, step_seconds=_STEP_SECONDS
                    )
                ]
        return {"step_seconds": _STEP_SECONDS, "readings": READINGS, "nodes": rows}

    def hello(self) -> str:
        """Everything, for who has just come, as JSON."""
        return json.dumps(
            {
                "state": self.state_document(),
                "campaign": self.campaign(),
                "job": self.job(),
                "history": self.history(),
                "now": json.loads(self.nodes_text()),
            }
        )


def _node(live: LiveCluster, name: str, before: WatchedNode | None) -> WatchedNode:
    """Begin a node, or go on with one that stays what it was."""
    frame, roles, board = _frame(live, name)
    readings = LiveReadings(frame)
    if before is not None and before.readings.frame == frame:
        readings = before.readings
    daemons = tuple(row.name for row in live.state.daemons if row.node == name)
    return WatchedNode(readings=readings, roles=roles, daemons=daemons, board=board)


def _frame(live: LiveCluster, name: str) -> tuple[NodeFrame, tuple[str, ...], str]:
    spec: ClusterSpec = live.spec
    if name == HOST:
        cores, memory = _this_machine()
        return NodeFrame(name=name, cores=cores, memory_bytes=memory, is_machine=True), (), ""
    node = next(row for row in spec.nodes if row.name == name)
    limits = {row.node: row for row in live.state.limits}
    facts = live.facts.get(name)
    cores = limits[name].cpu_cores if name in limits else float(node.cores)
    frame = NodeFrame(
        name=name,
        cores=min(cores, float(node.cores)),
        memory_bytes=facts.memory_bytes if facts is not None else node.memory_bytes,
        is_machine=not spec.capabilities.emulated,
        power=next((row for row in spec.power_models if row.node == name), None),
    )
    roles = tuple(sorted(role.value for role in node.roles))
    board = node.twin.board if node.twin is not None else facts.board if facts is not None else ""
    return frame, roles, board


def _this_machine() -> tuple[float, int]:
    text = Path("/proc/meminfo").read_text()
    total = int(text.partition("MemTotal:")[2].split()[0]) * 1024
    cores = Path("/proc/stat").read_text().count("\ncpu")
    return float(cores), total


def _rounded(now: Mapping[str, float]) -> list[float | None]:
    """Readings as JSON takes them: unknown ones are null, and digits that mean nothing go.

    A rate of numbers that a node made up may be infinite, and is as good as unknown.
    """
    return [
        None
        if not math.isfinite(now[kind])
        else round(now[kind], _DECIMALS[kind])
        if kind in _DECIMALS
        else int(now[kind])
        for kind in READINGS
    ]


def store_stamp(home: Path) -> tuple[tuple[int, int], ...]:
    """What changes with every write to a store: times and sizes of its files."""
    return _stamps(home / DATABASE_NAME, home / f"{DATABASE_NAME}-wal")


def _stamps(*paths: Path) -> tuple[tuple[int, int], ...]:
    found = []
    for path in paths:
        with contextlib.suppress(OSError):
            seen = path.stat()
            if seen.st_size:  # reading alone makes an empty -wal
                found.append((seen.st_mtime_ns, seen.st_size))
    return tuple(found)
