"""From samples to what every node did in every step of a run.

How each share is found, and why: docs/explanation/bottleneck.md. Columns and their units:
docs/reference/telemetry.md.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from boardcluster.analysis.bottleneck.limits import NodeLimit
from boardcluster.analysis.bottleneck.model import Array, Work
from boardcluster.analysis.bottleneck.processors import (
    busy_cores,
    clock_of,
    foreign_cores,
    held_back,
    quota_of,
    steered,
)
from boardcluster.analysis.bottleneck.queueing import Demand
from boardcluster.analysis.bottleneck.readings import NodeReading, readings_of
from boardcluster.analysis.bottleneck.storage import (
    knows_storage,
    memory_of,
    memory_pressure,
    shared_storage,
    storage_of,
)
from boardcluster.analysis.bottleneck.tasks import TaskLoad, covered, task_load
from boardcluster.analysis.trust.window import Flags
from boardcluster.records import TaskRecord, Telemetry

__all__ = ["NodeShares", "Usage", "usage_of"]

_MACHINE = "machine"
_LEAST_CORES = 0.1  # that a task can have, however much other programs use


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NodeShares:
    """What one node did in every step; shares of the step, 0 to 1, unless a unit is named."""

    node: str
    """Its name."""
    known: Flags
    """Whether samples are near."""
    busy_cores: Array
    """CPU time per second that the cluster used."""
    stolen_cores: Array
    """CPU time per second that a hypervisor kept; 0 where it is not known."""
    foreign_cores: Array
    """CPU time per second that went to programs that are not the cluster's."""
    capacity_cores: float
    """What it can have."""
    cpu: Array
    """A program was on a core, or held back by a CPU limit, as far as a faster CPU helps."""
    own_cpu: Array
    """The same as far as a higher CPU limit does not help."""
    heat: Array
    """Part of ``cpu`` that a lowered clock added."""
    clock: Array
    """The CPU's clock, or limit, by its highest, where it was lowered; else 1."""
    storage: Array
    """Something waited for a disk."""
    hidden: Array
    """Part of ``storage`` in which programs are known to have been on a core."""
    disk_busy: Array
    """Its busiest disk was at work, for whomever."""
    at_once: Array
    """Part of what its disks did that was not the writing back of what is in memory."""
    network: Array
    """Its link was carrying data."""
    memory: Array
    """Something waited for memory."""
    read_bytes_per_second: Array
    """From disks."""
    written_bytes_per_second: Array
    """To disks."""
    net_bits_per_second: Array
    """In the busier direction."""
    link_bits_per_second: float
    """What its link can carry; 0 if unknown."""
    missing: tuple[str, ...]
    """What is not known of it, in words."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Usage:
    """What every node did."""

    edges: Array
    """Of the steps, in seconds from the start of the run."""
    nodes: tuple[NodeShares, ...]
    """At least one; of emulated nodes without limits also the machine that they share."""
    demand: Demand | None = None
    """What tasks needed of each node, in the order of ``nodes``; None where only nodes are known:
    of emulated boards, whose CPU limit is no number of cores."""
    tasked: Array
    """For how much of each step ``demand`` says what happened, 0 to 1."""
    counted: bool = False
    """Whether an engine said how many tasks there were; else they are guessed from samples."""
    missing: tuple[str, ...] = ()
    """What is not known of the cluster, in words."""

    @property
    def known(self) -> Flags:
        """Steps in which samples of any node are near."""
        return np.asarray(np.any([node.known for node in self.nodes], axis=0))

    @property
    def work(self) -> Work:
        """All nodes, for the model; a node that is not known in a step did nothing in it."""
        uses = np.array(
            [
                [node.cpu * (1 - node.heat) for node in self.nodes],
                [node.cpu * node.heat for node in self.nodes],
                [node.own_cpu for node in self.nodes],
                [node.storage for node in self.nodes],
                [node.network for node in self.nodes],
                [node.memory for node in self.nodes],
            ]
        )
        known = np.array([node.known for node in self.nodes])
        hidden = np.array([node.hidden for node in self.nodes])
        return Work.of(uses * known, hidden * known)


def usage_of(
    telemetry: Telemetry,
    limits: Mapping[str, NodeLimit],
    link_bits_per_second: int,
    parallel_disks: Collection[str] = (),
) -> Usage | None:
    """Say what every node did in every step of a run; None without samples or duration.

    Args:
        telemetry: of the run.
        limits: of emulated boards, by node.
        link_bits_per_second: rate of a node's link where neither limits nor samples say it; 0 if
            that is not known.
        parallel_disks: boards whose medium serves many requests at once.
    """
    readings = readings_of(telemetry)
    if not readings:
        return None
    edges = readings[0].edges
    own = [row for row in readings if row.window.scope != _MACHINE]
    host = next((row for row in readings if row.window.scope == _MACHINE), None)
    if not own:
        machines = tuple(_machine(row, link_bits_per_second) for row in readings)
        return _with_tasks(edges, machines, machines, telemetry.tasks or (), parallel_disks)
    nodes = [_emulated(row, limits.get(row.window.node), link_bits_per_second) for row in own]
    missing = [] if host is not None else ["no samples of the machine that all nodes share"]
    if any(row.window.node in limits for row in own):
        others = [node.cpu + node.own_cpu + node.network for node in nodes]
        storage, words = shared_storage(own, host, limits, others)
        memory = None if host is None else memory_pressure(host)
        nodes = [
            replace(
                node,
                storage=waited,
                memory=np.minimum(row.or_zeros(memory), np.maximum(1 - busy - waited, 0.0)),
            )
            for row, node, waited, busy in zip(own, nodes, storage, others, strict=True)
        ]
        missing += words
    elif host is not None:
        # Without limits they share its cores and disks, and what bounds them is seen there alone.
        below = _machine(host, 0, linked=False)
        tasks = [replace(task, node=below.node) for task in telemetry.tasks or ()]
        # Its disk and cores are theirs, and of their links the busiest counts.
        links = np.max([node.network for node in nodes], axis=0)
        machine = replace(below, network=links)
        found = _with_tasks(edges, (*nodes, below), (machine,), tasks, ())
        return replace(found, missing=tuple(missing))
    nothing = np.zeros(len(edges) - 1)
    return Usage(edges=edges, nodes=tuple(nodes), tasked=nothing, missing=tuple(missing))


def _with_tasks(
    edges: Array,
    nodes: tuple[NodeShares, ...],
    machines: tuple[NodeShares, ...],
    tasks: Sequence[TaskRecord],
    parallel_disks: Collection[str],
) -> Usage:
    """Say what tasks needed of the machines that they ran on.

    Args:
        edges: of the steps.
        nodes: all of them.
        machines: those whose kernel says what was used.
        tasks: as the engine accounts for them; empty where it does not.
        parallel_disks: machines whose disk serves many requests at once.
    """
    loads = [
        task_load([task for task in tasks if task.node == node.node], edges)
        if tasks
        else _unrecorded(node)
        for node in machines
    ]
    known = np.array([node.known for node in machines])
    in_flight = np.array([load.in_flight for load in loads]) * known
    cpu = np.array([node.busy_cores + node.stolen_cores for node in machines])
    shares = [_of_tasks(load, node.busy_cores) for load, node in zip(loads, machines, strict=True)]
    own = cpu * np.array(shares)[:, np.newaxis]
    tasked = covered(tasks, edges) if tasks else (in_flight > 0).any(axis=0).astype(np.float64)
    # Of a step that tasks fill in part, the rates are those of the part.
    part = np.where(tasked > 0, tasked, 1.0)
    demand = Demand(
        tasks=in_flight / part,
        overhead=np.array([load.overhead for load in loads]) * known / part,
        cores=np.array([_left_cores(node) for node in machines]),
        cpu=cpu,
        own_cpu=own,
        fetching=np.array([load.fetching for load in loads]) * known / part,
        heat=np.array([node.heat for node in machines]),
        busy=np.array([[node.disk_busy for node in machines], [node.network for node in machines]]),
        at_once=np.array([node.at_once for node in machines]),
        memory=np.array([node.memory for node in machines]),
        serial=np.array(
            [[node.node not in parallel_disks for node in machines], [True for _ in machines]]
        ),
    )
    tasked = np.where(in_flight.sum(axis=0) > 0, tasked, 0.0)
    return Usage(edges=edges, nodes=nodes, demand=demand, tasked=tasked, counted=bool(tasks))


def _unrecorded(node: NodeShares) -> TaskLoad:
    """How many tasks there must have been, by what was used, where no engine says it.

    More than one core in use is more than one task. So many are taken to wait for disk, link and
    memory as can do so, but no more in all than there are cores. With less than a core in use
    nothing says that there was more than one, and the samples alone are looked at.
    """
    cpu = node.busy_cores + node.stolen_cores
    most = max(1.0, node.capacity_cores)
    stalled = most * (1 - (1 - np.minimum(node.memory, 1.0)) ** (1 / most))
    devices = [np.minimum(row, 1.0) for row in (node.storage, node.network)]
    queued = [row / (1 - (1 - 1 / most) * row) for row in devices]
    tasks = np.maximum(np.minimum(cpu + stalled + sum(queued), most), cpu)
    nothing = np.zeros_like(cpu)
    return TaskLoad(
        in_flight=np.where(cpu > 1, tasks, 0.0), overhead=nothing, own_cpu=cpu, fetching=nothing
    )


def _left_cores(node: NodeShares) -> Array:
    """Cores that other programs left; at least what the cluster used."""
    used = node.busy_cores + node.stolen_cores
    return np.maximum(np.maximum(node.capacity_cores - node.foreign_cores, used), _LEAST_CORES)


def _of_tasks(load: TaskLoad, busy_cores: Array) -> float:
    """Which share of the CPU time was the tasks' own; samples say when, the engine how much."""
    with_tasks = float(np.minimum(load.in_flight, 1.0) @ busy_cores)
    return min(1.0, float(load.own_cpu.sum()) / with_tasks) if with_tasks > 0 else 0.0


def _machine(
    reading: NodeReading, link_bits_per_second: float, *, linked: bool = True
) -> NodeShares:
    """A board, or the machine below emulated nodes: its kernel says what was waited for."""
    memory = memory_of(reading)
    words = [] if knows_storage(reading) else ["waiting for storage"]
    if memory_pressure(reading) is None and reading.sum("swap_in_bytes") is None:
        words.append("waiting for memory")
    node = _node_use(
        reading,
        quota_of(reading, None),
        _link(reading) or link_bits_per_second,
        disk="disk",
        unknown=words,
        linked=linked,
    )
    clock = clock_of(reading, node.busy_cores)
    busy = reading.most("disk_busy_seconds")
    storage, hidden, at_once = storage_of(
        reading, cpu=node.cpu + node.own_cpu, network=node.network, memory=memory
    )
    return replace(
        node,
        heat=1 - clock,
        clock=clock,
        storage=storage,
        hidden=hidden,
        at_once=at_once,
        disk_busy=np.maximum(storage, np.minimum(reading.or_zeros(busy), 1.0)),
        memory=memory,
    )


def _emulated(
    reading: NodeReading, limit: NodeLimit | None, link_bits_per_second: float
) -> NodeShares:
    """A node on a shared kernel, which does not report its storage and memory."""
    # A limit on a node without a board is that of a container that all nodes are in.
    quota = None if limit is None else quota_of(reading, limit.cpu_cores)
    own_link = None if limit is None else limit.link_bits_per_second
    parts = 1 if limit is None else limit.board_cores
    node = _node_use(
        reading, quota, own_link or link_bits_per_second, disk="storage", board_cores=parts
    )
    clock = steered(quota)
    return node if clock is None else replace(node, heat=1 - clock, clock=clock)


def _node_use(
    reading: NodeReading,
    quota: Array | None,
    link_bits_per_second: float,
    *,
    disk: str,
    unknown: Sequence[str] = (),
    linked: bool = True,
    board_cores: int = 1,
) -> NodeShares:
    """What is found alike for boards and emulated nodes: CPU time, bytes and the link."""
    cores = busy_cores(reading)
    cpu, own_cpu, capacity = held_back(reading, cores, quota, board_cores)
    bits, rate, share = _network(reading, link_bits_per_second)
    words = [] if reading.sum("cpu_user_seconds") is not None else ["CPU time"]
    words += [*unknown, *([] if rate or not linked else ["rate of its link"])]
    nothing = np.zeros_like(cores)
    return NodeShares(
        node=reading.window.node,
        known=reading.known,
        busy_cores=cores,
        stolen_cores=reading.or_zeros(reading.sum("cpu_steal_seconds")),
        foreign_cores=foreign_cores(reading),
        capacity_cores=capacity,
        cpu=cpu,
        own_cpu=own_cpu,
        heat=nothing,
        clock=np.ones_like(cores),
        storage=nothing,
        hidden=nothing,
        disk_busy=nothing,
        at_once=np.ones_like(cores),
        network=share,
        memory=nothing,
        read_bytes_per_second=reading.or_zeros(reading.sum(f"{disk}_read_bytes")),
        written_bytes_per_second=reading.or_zeros(reading.sum(f"{disk}_written_bytes")),
        net_bits_per_second=bits,
        link_bits_per_second=rate,
        missing=tuple(f"{reading.window.node}: {what} is not known" for what in words),
    )


def _link(reading: NodeReading) -> float:
    """Rate of a node's fastest link, bit/s; 0 if its kernel does not say."""
    rows = [
        row
        for name in reading.window.columns
        if name.startswith("link_bits_per_second")
        and (row := reading.window.column(name)) is not None
    ]
    return max((float(np.nanmax(row)) for row in rows), default=0.0)


def _network(reading: NodeReading, link_bits_per_second: float) -> tuple[Array, float, Array]:
    """What the busier direction carried, the link's rate, and how much of each step that takes."""
    ways = [reading.sum(f"net_{way}_bytes") for way in ("received", "sent")]
    found = [row for row in ways if row is not None]
    bits = 8 * np.max(found, axis=0) if found else np.zeros(len(reading.known))
    rate = float(link_bits_per_second)
    share = np.minimum(bits / rate, 1.0) if rate > 0 else np.zeros_like(bits)
    return bits, rate, share
