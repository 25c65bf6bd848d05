"""Boards as a closed queueing network, simulated request by request: what is true is known.

A board runs so many tasks at once. Each goes through its requests: it computes on one of the cores,
then waits for the disk, the link, memory that is freed, or something else, as long as each is said
to take, and begins again. Cores serve one task each; a disk serves one request at a time, or as
many as come (an NVMe SSD); a link sends one after the other; what is written in the background
occupies the disk without keeping a task, until too much is unwritten. What a resource twice as fast
brings is found by simulating again with half its times.

The model is the machine-repairman one with several stations: Lazowska, Zahorjan, Graham and Sevcik,
"Quantitative System Performance", 1984, chapters 5 to 7.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from boardcluster.records import AttemptState, Engine, Result, TaskRecord, Telemetry
from tests.builders import make_board_fingerprint, make_result, make_samples

__all__ = ["MEDIA", "RESOURCES", "Simulated", "Workload", "board_result", "simulate", "true_gain"]

RESOURCES = ("cpu", "storage", "network", "memory", "start-up")
MEDIA = {1: "sd SD128", 32: "nvme SSD 980"}
"""What a disk that serves so many requests at once is called in a result's fingerprint."""

_LINK_BITS_PER_SECOND = 1e9
_REQUEST_BYTES = 1 << 19
_UNWRITTEN_REQUESTS = 8  # so much may wait to be written before writers are held up


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Times are milliseconds of one request, unless a unit is named."""

    cpu: float = 0.0
    """On a core."""
    storage: float = 0.0
    """For the disk, without waiting for others."""
    network: float = 0.0
    """On the link, likewise."""
    memory: float = 0.0
    """Until memory is freed; nobody else makes it longer."""
    other: float = 0.0
    """For what no resource is busy with: locks, heartbeats."""
    written: float = 0.0
    """Of the disk, in the background."""
    start_seconds: float = 0.0
    """Before the first task: nothing is busy."""
    tasks: int = 4
    """At once on each board."""
    waves: int = 3
    """So many tasks one after the other in each place."""
    cores: int = 4
    """Of each board."""
    disk_servers: int = 1
    """Requests that the disk serves at once."""
    steal: float = 0.0
    """Share of a computing task's time that a hypervisor keeps."""
    spread: str = "exponential"
    """How times are distributed: ``exponential``, ``constant`` or ``uniform`` (0 to twice)."""
    nodes: int = 1
    """Boards, all alike."""
    seconds: float = 40.0
    """About so long tasks run."""

    def uses(self, resource: str) -> bool:
        """Whether a faster resource can change anything."""
        needed = {
            "storage": self.storage + self.written,
            "start-up": self.start_seconds + self.other,
        }
        return bool(needed[resource] if resource in needed else getattr(self, resource))

    def faster(self, resource: str) -> Workload:
        """The same with one resource twice as fast, enough memory, or half the start."""
        changes: dict[str, float] = {
            "cpu": {"cpu": self.cpu / 2},
            "storage": {"storage": self.storage / 2, "written": self.written / 2},
            "network": {"network": self.network / 2},
            "memory": {"memory": 0.0},
            "start-up": {"start_seconds": self.start_seconds / 2, "other": self.other / 2},
        }[resource]
        return replace(self, **changes)  # type: ignore[arg-type]


@dataclass(kw_only=True)
class Simulated:
    """A run that was simulated."""

    seconds: float
    """How long it took."""
    telemetry: Telemetry
    """What agents and engine would have recorded."""


@dataclass(kw_only=True)
class _Task:
    left: int
    begin: float = 0.0
    since: float = 0.0
    cpu: float = 0.0
    fetch: float = 0.0


@dataclass(kw_only=True)
class _Station:
    """Servers with a queue, first come, first served."""

    servers: float
    busy: int = 0
    waiting: deque[tuple[float, Callable[[], None]]] = field(default_factory=deque)


class _Board:
    """One board; times in seconds."""

    def __init__(self, load: Workload, name: str, seed: int, requests: int) -> None:
        self.load, self.name = load, name
        self.random = random.Random(seed)
        self.requests = requests
        self.now = load.start_seconds
        self.events: list[tuple[float, int, Callable[[], None]]] = []
        self.count = 0
        self.cpu = _Station(servers=load.cores)
        self.disk = _Station(servers=load.disk_servers)
        self.link = _Station(servers=1)
        self.at = dict.fromkeys(("cpu", "storage", "network", "memory"), 0)
        self.unwritten = 0
        self.held: deque[Callable[[], None]] = deque()
        self.left = load.tasks * load.waves
        self.done: list[TaskRecord] = []
        self.log: list[tuple[float, tuple[float, ...]]] = []
        self.moved = {"storage": [0.0], "written": [0.0], "network": [0.0]}

    def draw(self, milliseconds: float) -> float:
        mean = milliseconds / 1000
        kind = self.load.spread
        if kind == "constant":
            return mean
        if kind == "uniform":
            return self.random.uniform(0, 2 * mean)
        return self.random.expovariate(1 / mean) if mean else 0.0

    def after(self, seconds: float, do: Callable[[], None]) -> None:
        self.count += 1
        heapq.heappush(self.events, (self.now + seconds, self.count, do))

    def serve(self, station: _Station, seconds: float, then: Callable[[], None]) -> None:
        if station.busy >= station.servers:
            station.waiting.append((seconds, then))
            return
        station.busy += 1

        def end() -> None:
            station.busy -= 1
            if station.waiting:
                self.serve(station, *station.waiting.popleft())
            then()

        self.after(seconds, end)

    def note(self) -> None:
        at = self.at
        running, stalled = min(at["cpu"], self.load.cores), at["storage"] + len(self.held)
        self.log.append(
            (
                self.now,
                (
                    running,
                    float(self.disk.busy > 0),
                    float(stalled > 0),
                    float(stalled > 0 and not running),
                    float(at["memory"] > 0),
                    float(self.link.busy > 0),
                ),
            )
        )

    def run(self) -> float:
        for _ in range(self.load.tasks):
            self.begin()
        self.note()
        while self.events:
            self.now, _, do = heapq.heappop(self.events)
            do()
            self.note()
        return self.now

    def begin(self) -> None:
        if self.left:
            self.left -= 1
            self.compute(_Task(left=self.requests, begin=self.now))

    def compute(self, task: _Task) -> None:
        seconds = self.draw(self.load.cpu)
        self.at["cpu"] += 1

        def then() -> None:
            self.at["cpu"] -= 1
            task.cpu += seconds
            self.write(task)

        self.serve(self.cpu, seconds / (1 - self.load.steal), then)

    def write(self, task: _Task) -> None:
        """Leave something to be written in the background, if there is room."""
        if not self.load.written:
            self.read(task)
            return
        if self.unwritten >= _UNWRITTEN_REQUESTS:
            self.held.append(lambda: self.write(task))
            return
        self.unwritten += 1

        def then() -> None:
            self.unwritten -= 1
            if self.held:
                self.held.popleft()()

        self.serve(self.disk, self.draw(self.load.written), then)
        self.read(task)

    def read(self, task: _Task) -> None:
        self.visit("storage", self.disk, self.load.storage, lambda: self.fetch(task))

    def fetch(self, task: _Task) -> None:
        began = self.now

        def then() -> None:
            task.fetch += self.now - began
            self.visit("memory", None, self.load.memory, lambda: self.pause(task))

        self.visit("network", self.link, self.load.network, then)

    def pause(self, task: _Task) -> None:
        self.visit("", None, self.load.other, lambda: self.end(task))

    def visit(
        self, kind: str, station: _Station | None, mean: float, then: Callable[[], None]
    ) -> None:
        if not mean:
            then()
            return
        if kind:
            self.at[kind] += 1

        def left() -> None:
            if kind:
                self.at[kind] -= 1
            then()

        if station is None:
            self.after(self.draw(mean), left)
        else:
            self.serve(station, self.draw(mean), left)

    def end(self, task: _Task) -> None:
        task.left -= 1
        if task.left:
            self.compute(task)
            return
        self.done.append(
            TaskRecord(
                node=self.name,
                begin_seconds=task.begin,
                end_seconds=self.now,
                cpu_seconds=task.cpu,
                fetch_wait_seconds=task.fetch,
            )
        )
        self.begin()

    def amounts(self, edges: np.ndarray) -> np.ndarray:
        """How much of each state was there between the edges, by state."""
        times = np.array([0.0, *(at for at, _ in self.log), max(edges[-1], self.now)])
        rows = np.array([(0.0,) * 6, *(row for _, row in self.log)])
        sums = np.vstack((np.zeros(6), np.cumsum(rows * np.diff(times)[:, np.newaxis], axis=0)))
        return np.array([np.diff(np.interp(edges, times, column)) for column in sums.T])


def simulate(load: Workload, seed: int = 1, *, work: Workload | None = None) -> Simulated:
    """Simulate a run.

    Args:
        load: what its boards do.
        seed: of the random times.
        work: whose number of requests to do; that of ``load`` if not given.
    """
    requests = _requests(work or load)
    boards = [
        _Board(load, f"pi{place + 1}", 1000 * seed + place, requests) for place in range(load.nodes)
    ]
    seconds = max(board.run() for board in boards)
    edges = np.arange(-2.0, np.ceil(seconds) + 2.0)
    nodes = []
    for board in boards:
        running, busy, some, full, memory, link = board.amounts(edges)
        read = load.storage / max(load.storage + load.written, 1e-9)
        moved = busy * 40e6  # at the rate of a card, of which only the mix matters
        columns: Mapping[str, np.ndarray] = {
            "cpu_user_seconds": running * (1 - load.steal),
            "cpu_system_seconds": 0 * running,
            "cpu_steal_seconds": running * load.steal,
            "cpu_iowait_seconds": np.minimum(full, 1.0),
            "disk_busy_seconds/sda": busy,
            "disk_read_bytes/sda": moved * read,
            "disk_written_bytes/sda": moved * (1 - read),
            "disk_writes/sda": moved * (1 - read) / _REQUEST_BYTES,
            "pressure_io_seconds": some,
            "pressure_io_full_seconds": full,
            "pressure_memory_seconds": memory,
            "net_received_bytes/eth0": link * _LINK_BITS_PER_SECOND / 8,
            "net_sent_bytes/eth0": 0 * link,
            "link_bits_per_second/eth0": 0 * link + _LINK_BITS_PER_SECOND,
        }
        nodes.append(make_samples(board.name, seconds=edges[1:], columns=columns, cores=load.cores))
    return Simulated(
        seconds=seconds,
        telemetry=Telemetry(
            duration_seconds=seconds,
            nodes=tuple(nodes),
            tasks=tuple(row for board in boards for row in board.done),
        ),
    )


def true_gain(load: Workload, resource: str, seeds: int = 2) -> float:
    """How many times as fast the same work is with one resource twice as fast."""
    before = sum(simulate(load, seed).seconds for seed in range(seeds))
    after = sum(simulate(load.faster(resource), seed, work=load).seconds for seed in range(seeds))
    return before / after


def board_result(load: Workload) -> Result:
    """The result that a run of it has: of real boards, with the medium that its disk is."""
    hardware = tuple(
        f"pi{place + 1}: Raspberry Pi 5 Model B, 4 x Cortex-A76 at 2.40 GHz, 8 GiB,"
        f" {MEDIA[load.disk_servers]}, 1 Gbit/s, 16 KiB pages, Debian 12, kernel 6.12.25"
        for place in range(load.nodes)
    )
    setup = make_board_fingerprint(nodes=load.nodes, node_cores=load.cores, hardware=hardware)
    return make_result(
        60.0,
        setup=setup,
        state=AttemptState.OK,
        workload="terasort",
        engine=Engine.SPARK,
        workers=load.nodes,
        size_bytes=10**9,
    )


def _requests(load: Workload) -> int:
    """How many requests a task has, so that all tasks take about the wanted time."""
    alone = load.cpu + load.storage + load.network + load.memory + load.other
    most = max(
        load.tasks * load.cpu / load.cores,
        load.tasks * (load.storage / load.disk_servers + load.written),
        load.tasks * load.network,
    )
    return max(10, round(1000 * load.seconds / load.waves / max(alone, most)))
