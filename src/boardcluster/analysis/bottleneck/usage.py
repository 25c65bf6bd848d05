"""From samples to what every node did in every step of a run.

How each share is found, and why: docs/explanation/bottleneck.md. Columns and their units:
docs/reference/telemetry.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from boardcluster.analysis.bottleneck.limits import NodeLimit
from boardcluster.analysis.bottleneck.model import Array, Work
from boardcluster.analysis.bottleneck.processors import (
    busy_cores,
    clock_of,
    held_back,
    quota_of,
    steered,
)
from boardcluster.analysis.bottleneck.readings import NodeReading, readings_of
from boardcluster.analysis.bottleneck.storage import (
    knows_storage,
    memory_of,
    memory_pressure,
    shared_storage,
    storage_of,
)
from boardcluster.analysis.trust.window import Flags
from boardcluster.records import Telemetry

__all__ = ["NodeShares", "Usage", "usage_of"]

_MACHINE = "machine"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NodeShares:
    """What one node did in every step; shares of the step, 0 to 1, unless a unit is named."""

    node: str
    """Its name."""
    known: Flags
    """Whether samples are near."""
    busy_cores: Array
    """CPU time used per second."""
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
    telemetry: Telemetry, limits: Mapping[str, NodeLimit], link_bits_per_second: int
) -> Usage | None:
    """Say what every node did in every step of a run; None without samples or duration.

    Args:
        telemetry: of the run.
        limits: of emulated boards, by node.
        link_bits_per_second: rate of a node's link where neither limits nor samples say it; 0 if
            that is not known.
    """
    readings = readings_of(telemetry)
    if not readings:
        return None
    edges = readings[0].edges
    own = [row for row in readings if row.window.scope != _MACHINE]
    host = next((row for row in readings if row.window.scope == _MACHINE), None)
    if not own:
        machines = tuple(_machine(row, link_bits_per_second) for row in readings)
        return Usage(edges=edges, nodes=machines)
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
        nodes.append(_machine(host, 0, linked=False))
    return Usage(edges=edges, nodes=tuple(nodes), missing=tuple(missing))


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
    storage, hidden = storage_of(
        reading, cpu=node.cpu + node.own_cpu, network=node.network, memory=memory
    )
    return replace(node, heat=1 - clock, clock=clock, storage=storage, hidden=hidden, memory=memory)


def _emulated(
    reading: NodeReading, limit: NodeLimit | None, link_bits_per_second: float
) -> NodeShares:
    """A node on a shared kernel, which does not report its storage and memory."""
    # A limit on a node without a board is that of a container that all nodes are in.
    quota = None if limit is None else quota_of(reading, limit.cpu_cores)
    own_link = None if limit is None else limit.link_bits_per_second
    node = _node_use(reading, quota, own_link or link_bits_per_second, disk="storage")
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
) -> NodeShares:
    """What is found alike for boards and emulated nodes: CPU time, bytes and the link."""
    cores = busy_cores(reading)
    cpu, own_cpu, capacity = held_back(reading, cores, quota)
    bits, rate, share = _network(reading, link_bits_per_second)
    words = [] if reading.sum("cpu_user_seconds") is not None else ["CPU time"]
    words += [*unknown, *([] if rate or not linked else ["rate of its link"])]
    nothing = np.zeros_like(cores)
    return NodeShares(
        node=reading.window.node,
        known=reading.known,
        busy_cores=cores,
        capacity_cores=capacity,
        cpu=cpu,
        own_cpu=own_cpu,
        heat=nothing,
        clock=np.ones_like(cores),
        storage=nothing,
        hidden=nothing,
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
