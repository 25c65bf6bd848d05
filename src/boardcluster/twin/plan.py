"""How slow emulated boards must be, and what the kernel is to give each of them. Pure.

All rates are divided by one factor, the dilation, so that nodes which together ask for more than
this machine has keep their proportions (DieCast, Gupta et al. 2008). Sizes are not divided.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from boardcluster.errors import CapacityError, UsageError
from boardcluster.records import (
    QUOTA_CORES_LEAST,
    ClusterSpec,
    DiskLimits,
    NodeLimits,
    NodeSpec,
    NodeTwin,
)
from boardcluster.spec.checks import DISK_BYTES_MIN, MEMORY_BYTES_MIN
from boardcluster.twin.heat import heat_models
from boardcluster.twin.setpoints import DiskSetPoints, NodeSetPoints, set_points
from boardcluster.units import MIB, format_bytes, format_count, format_rate

__all__ = ["IDLE_HEADROOM", "Host", "TwinPlan", "disk_words", "plan_limits"]

IDLE_HEADROOM = 0.25
"""Share of this machine's cores that the nodes leave idle when all of them are busy."""

_STEP = 10
"""Dilations are rounded up to tenths."""

_ROUNDING = 1e-9
"""What floating point may have added to a whole number of tenths."""

_COUNTED_PAYLOAD_SHARE = 1448 / 1514
"""TCP payload of a full frame over what a token bucket counts of it, which knows no preamble."""

_WAITING_SHARE = 0.1
"""Of a node's memory: the kernel's 20 % (vm.dirty_ratio) of what is available, taken as a half."""

_SIZE_STEP_BYTES = 64 * MIB

_LEAST_BYTES = {"memory": MEMORY_BYTES_MIN, "disk": DISK_BYTES_MIN}
"""What a cluster.toml may say at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The machine that emulated nodes share."""

    cores: int
    """Its CPUs."""
    events_per_second_per_core: float
    """Of ``sysbench cpu``, primes up to 2000, of one of them while all are as busy as the plan
    allows."""
    memory_available_bytes: int
    """What nodes may have together."""
    disk_free_bytes: int
    """What their disks may have together."""
    limits_unwritten: bool
    """Whether its kernel can limit what waits to be written to a single device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TwinPlan:
    """What emulated boards get."""

    dilation: float
    """By how much they are slower than real ones; at least 1."""
    limits: tuple[NodeLimits, ...]
    """Of each node, in the cluster's order."""
    words: tuple[str, ...]
    """What to tell the user, a line each."""


def plan_limits(spec: ClusterSpec, host: Host) -> TwinPlan:
    """Share this machine out among emulated boards.

    Args:
        spec: a cluster whose nodes have boards.
        host: this machine.

    Raises:
        CapacityError: memory or disk do not suffice, or the declared dilation is too small; with
            the arithmetic, and what would fit.
        UsageError: the nodes have no boards, or the catalog lacks a figure.
    """
    if spec.twin is None:
        raise UsageError(
            f"the nodes of {spec.name} have no boards to emulate",
            hint="give each node a `board` in cluster.toml",
        )
    points = _all_points(spec)
    heat_models(spec.nodes)  # what the first run could not model is refused now
    _check_sizes(spec, host)
    cores = [
        point.cpu_events_per_second.value / host.events_per_second_per_core for point in points
    ]
    demand = _Demand(
        nodes=len(cores),
        cores=sum(cores),
        per_core=max(share / node.cores for share, node in zip(cores, spec.nodes, strict=True)),
        host_cores=host.cores,
    )
    dilation, words = _dilation(demand, spec.twin.dilation)
    # A declared dilation is chosen; one that follows from this machine's speed is not the board's.
    declared = "" if spec.twin.dilation is None else f", dilation {dilation:g}"
    limits = tuple(
        replace(
            _limits(node, point, share, dilation, host),
            board=f"{_board_words(node, point, host)}{declared}",
        )
        for node, point, share in zip(spec.nodes, points, cores, strict=True)
    )
    words = (*words, *_too_small(spec, limits, dilation), *_notes(spec, points))
    return TwinPlan(dilation=dilation, limits=limits, words=words)


def _all_points(spec: ClusterSpec) -> list[NodeSetPoints]:
    """Return the set points of each node; nodes that are alike are looked up once."""
    known: dict[tuple[NodeTwin | None, int], NodeSetPoints] = {}
    points = []
    for node in spec.nodes:
        alike = (node.twin, node.memory_bytes)
        if alike not in known:
            known[alike] = set_points(node, spec.network.link_bits_per_second)
        points.append(known[alike])
    return points


def _too_small(spec: ClusterSpec, limits: Sequence[NodeLimits], dilation: float) -> tuple[str, ...]:
    """Return warnings of boards that the kernel cannot hold to so little, each once."""
    rows = []
    for node, own in zip(spec.nodes, limits, strict=True):
        per_core = own.cpu_cores / own.board_cores
        if per_core >= QUOTA_CORES_LEAST:
            continue
        board = node.twin.board if node.twin else node.name
        most = math.floor(per_core * dilation / QUOTA_CORES_LEAST * _STEP) / _STEP
        rows.append(
            f"warning: at dilation {dilation:g} a core of {board} is to have "
            f"{per_core * 100:.2g} % of a core of this machine, but the kernel can limit nothing "
            f"to less than {_percent(QUOTA_CORES_LEAST)}: a thread there is "
            f"{QUOTA_CORES_LEAST / per_core:.1f} times as fast as it should be; the largest "
            f"dilation without that is {most:g}"
        )
    return tuple(dict.fromkeys(rows))


def _notes(spec: ClusterSpec, points: Sequence[NodeSetPoints]) -> tuple[str, ...]:
    """Return what is to be known about set points, each once for each board."""
    rows = (
        f"{node.twin.board if node.twin else node.name}: {point.note}"
        for node, own in zip(spec.nodes, points, strict=True)
        for point in own.all
        if point.note
    )
    return tuple(dict.fromkeys(rows))


def _limits(
    node: NodeSpec, points: NodeSetPoints, cpu_cores: float, dilation: float, host: Host
) -> NodeLimits:
    disk = points.disk
    return NodeLimits(
        node=node.name,
        cpu_cores=cpu_cores / dilation,
        memory_bytes=node.memory_bytes,
        disk=None if disk is None else _disk_limits(node, disk, dilation, host),
        link_bits_per_second=_slowed(
            points.link_bits_per_second.value / _COUNTED_PAYLOAD_SHARE, dilation
        ),
        board_cores=node.cores,
    )


def _board_words(node: NodeSpec, points: NodeSetPoints, host: Host) -> str:
    """Say what a node's board has, at its own speed."""
    disk = points.disk
    parts = [
        f"{points.cpu_events_per_second.value:,.0f} events/s of sysbench",
        format_count(node.cores, "core"),
        f"{_size(node.memory_bytes)} memory",
        *([] if disk is None else [disk_words(_disk_limits(node, disk, 1.0, host))]),
        f"link {format_rate(points.link_bits_per_second.value)}",
    ]
    return ", ".join(parts)


def disk_words(disk: DiskLimits) -> str:
    """Describe what a node may do with its disk."""
    most = disk.unwritten_bytes
    waiting = "" if most is None else f", at most {format_bytes(most)} unwritten"
    return (
        f"disk {_size(disk.size_bytes)} reading"
        f" {format_bytes(disk.read_bytes_per_second)}/s and {disk.read_iops} requests/s, writing"
        f" {format_bytes(disk.write_bytes_per_second)}/s and {disk.write_iops} requests/s{waiting}"
    )


def _disk_limits(node: NodeSpec, disk: DiskSetPoints, dilation: float, host: Host) -> DiskLimits:
    unwritten_bytes = int(node.memory_bytes * _WAITING_SHARE)
    return DiskLimits(
        size_bytes=0 if node.twin is None else node.twin.disk_bytes,
        read_bytes_per_second=_slowed(disk.read_bytes_per_second.value, dilation),
        write_bytes_per_second=_slowed(disk.write_bytes_per_second.value, dilation),
        read_iops=_slowed(disk.read_iops.value, dilation),
        write_iops=_slowed(disk.write_iops.value, dilation),
        unwritten_bytes=unwritten_bytes if host.limits_unwritten else None,
    )


def _slowed(rate: float, dilation: float) -> int:
    """Divide a rate; the kernel takes whole numbers, and 0 would be no limit."""
    return max(1, round(rate / dilation))


# Dilation


@dataclass(frozen=True, slots=True)
class _Demand:
    """What nodes need, in cores of this machine."""

    nodes: int
    """How many they are."""
    cores: float
    """Of all of them together."""
    per_core: float
    """Of one core of the fastest board. A thread runs on one core at most, so a board's core must
    not be faster than one of this machine."""
    host_cores: int
    """What this machine has."""

    @property
    def usable_cores(self) -> float:
        return self.host_cores * (1 - IDLE_HEADROOM)

    @property
    def exact(self) -> float:
        """The least dilation that leaves headroom."""
        return max(1.0, self.cores / self.usable_cores, self.per_core)

    @property
    def least(self) -> float:
        """The same, rounded up to tenths."""
        return math.ceil(self.exact * _STEP - _ROUNDING) / _STEP

    @property
    def words(self) -> str:
        verb = "needs" if self.nodes == 1 else "need"
        cores = f"{self.cores:.1f} cores of this machine's {self.host_cores}"
        return f"{format_count(self.nodes, 'node')} {verb} {cores}"


def _dilation(demand: _Demand, declared: float | None) -> tuple[float, tuple[str, ...]]:
    """Return the dilation, and how it came about.

    Raises:
        CapacityError: the declared one is too small.
    """
    least = demand.least
    if declared is None:
        return least, (f"{demand.words}: dilation {least:g}",)
    if declared >= demand.exact - _ROUNDING:
        more = f"; {least:g} would be enough" if declared > least else ""
        return declared, (f"{demand.words}: dilation {declared:g} as declared{more}",)
    busy_cores = demand.cores / declared
    if busy_cores > demand.host_cores or declared < demand.per_core:
        raise _too_fast(demand, declared)
    idle_percent = math.floor(100 - 100 * busy_cores / demand.host_cores)
    warning = (
        f"warning: dilation {declared:g} leaves {idle_percent} % of this machine idle when all "
        f"nodes are busy, {_percent(IDLE_HEADROOM)} is required: a run in which it is too slow is "
        f"invalid; {least:g} would be enough"
    )
    return declared, (f"{demand.words}: dilation {declared:g} as declared", warning)


def _too_fast(demand: _Demand, declared: float) -> CapacityError:
    reasons = []
    busy_cores = demand.cores / declared
    if busy_cores > demand.host_cores:
        reasons.append(f"at the declared dilation {declared:g} that is {busy_cores:.1f} cores")
    if declared < demand.per_core:
        reasons.append(
            f"a core of a board is as fast as {demand.per_core:.2f} cores of this machine, and a "
            f"thread cannot use more than one: dilation {declared:g} is too small for that"
        )
    return CapacityError(
        f"{demand.words}; {'; '.join(reasons)}; {_percent(IDLE_HEADROOM)} of this machine must "
        f"stay idle, which leaves {demand.usable_cores:g} cores: the least dilation is "
        f"{demand.least:g}",
        hint=f'in [twin] declare dilation = {demand.least:g}, or "auto"; or declare fewer nodes',
    )


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"


# Memory and disk


def _check_sizes(spec: ClusterSpec, host: Host) -> None:
    """Refuse nodes that together have more memory or disk than this machine.

    Raises:
        CapacityError: with both, if both are too small.
    """
    wants: tuple[tuple[str, str, int, Callable[[NodeSpec], int]], ...] = (
        ("memory", "available", host.memory_available_bytes, lambda node: node.memory_bytes),
        (
            "disk",
            "free for them",
            host.disk_free_bytes,
            lambda node: node.twin.disk_bytes if node.twin else 0,
        ),
    )
    lines, fitting, sizes = [], len(spec.workers), []
    for what, state, has_bytes, size_of in wants:
        having = [node for node in spec.nodes if size_of(node)]
        wanted_bytes = sum(size_of(node) for node in having)
        if wanted_bytes <= has_bytes:
            continue
        workers = _workers_that_fit(spec, has_bytes, size_of)
        fitting = min(fitting, workers)
        lines.append(
            f"{what}: {_arithmetic(having, size_of)} = {_size(wanted_bytes)}, but "
            f"{_size(has_bytes)} is {state}; the largest number of workers that fits is {workers}"
        )
        each_bytes, count = _size_that_fits([size_of(node) for node in having], has_bytes)
        if each_bytes >= _LEAST_BYTES[what]:
            whose = f"of the {count} nodes" if count == len(having) else "node that has more"
            sizes.append(f'{what} = "{each_bytes // MIB} MiB" for each {whose}')
    if not lines:
        return
    choices = []
    if fitting:
        choices.append(f"declare at most {format_count(fitting, 'worker')}")
    if len(sizes) == len(lines):
        choices.append(f"declare {' and '.join(sizes)}")
    raise CapacityError(
        f"this machine is too small for the {len(spec.nodes)} nodes of {spec.name}:\n  "
        + "\n  ".join(lines),
        hint=", or ".join(choices) or "free memory or disk, or use a larger machine",
    )


def _workers_that_fit(spec: ClusterSpec, has_bytes: int, size_of: Callable[[NodeSpec], int]) -> int:
    """Return how many of the workers fit, the first ones first, beside a master of its own."""
    left_bytes = has_bytes - sum(size_of(node) for node in spec.nodes if node not in spec.workers)
    count = 0
    for worker in spec.workers:
        left_bytes -= size_of(worker)
        if left_bytes < 0:
            break
        count += 1
    return count


def _size_that_fits(sizes: Sequence[int], has_bytes: int) -> tuple[int, int]:
    """Return what the larger nodes may have at most, so that all fit, and how many those are.

    Smaller ones keep what they have: it is what their boards have.
    """
    ordered, step_bytes = sorted(sizes), _SIZE_STEP_BYTES
    counts = range(len(sizes), 0, -1)
    shares = ((has_bytes - sum(ordered[:-count])) // count // step_bytes for count in counts)
    return next(
        (share * step_bytes, count)
        for share, count in zip(shares, counts, strict=True)
        if ordered[-count] > share * step_bytes
    )


def _arithmetic(nodes: Sequence[NodeSpec], size_of: Callable[[NodeSpec], int]) -> str:
    """Write a sum by kinds of nodes: ``8 x 8 GiB (rpi-5b-8gb-2400mhz) + 1 x ...``."""
    kinds: Mapping[tuple[int, str], int] = Counter(
        (size_of(node), node.twin.board if node.twin else node.name) for node in nodes
    )
    return " + ".join(
        f"{count} x {_size(size_bytes)} ({board})" for (size_bytes, board), count in kinds.items()
    )


def _size(size_bytes: int) -> str:
    return format_bytes(size_bytes, binary=True)
