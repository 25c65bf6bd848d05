"""From samples to what every node did in every step of a run.

How each share is found, and why: docs/explanation/bottleneck.md. Columns and their units:
docs/reference/telemetry.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from boardcluster.analysis.bottleneck.limits import NodeLimit
from boardcluster.analysis.bottleneck.model import Array, Work
from boardcluster.analysis.bottleneck.readings import Reading, readings_of
from boardcluster.analysis.telemetry import throttled
from boardcluster.analysis.trust.others import quota_track
from boardcluster.analysis.trust.window import Flags
from boardcluster.records import Telemetry

__all__ = ["NodeUse", "Usage", "usage_of"]

_HOT_CELSIUS = 70.0  # below it no board of the catalog lowers its clock; our choice
_SLOW_CLOCK = 0.95  # of the nominal clock: a timed loop on a busy core sees some percent less
_HELD_BACK = 0.9  # a step that used so much of a limit met it, however rarely that is counted
_QUOTA_CHANGE = 0.01  # agents read quotas in thousandths of a core
_MACHINE = "machine"
_TINY = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NodeUse:
    """What one node did in every step; shares of the step, 0 to 1, unless a unit is named.

    Attributes:
        node: its name.
        known: whether samples are near.
        busy_cores: CPU time used per second.
        capacity_cores: what it can have.
        cpu: a program was on a core, or held back by a CPU limit, as far as a faster CPU helps.
        own_cpu: the same as far as a higher CPU limit does not help.
        heat: part of ``cpu`` that a lowered clock added.
        clock: the CPU's clock, or limit, by its highest, where it was lowered; else 1.
        storage: something waited for a disk.
        hidden: part of ``storage`` in which programs are known to have been on a core.
        network: its link was carrying data.
        memory: something waited for memory.
        read_bytes_per_second: from disks.
        written_bytes_per_second: to disks.
        net_bits_per_second: in the busier direction.
        link_bits_per_second: what its link can carry; 0 if unknown.
        missing: what is not known of it, in words.
    """

    node: str
    known: Flags
    busy_cores: Array
    capacity_cores: float
    cpu: Array
    own_cpu: Array
    heat: Array
    clock: Array
    storage: Array
    hidden: Array
    network: Array
    memory: Array
    read_bytes_per_second: Array
    written_bytes_per_second: Array
    net_bits_per_second: Array
    link_bits_per_second: float
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Usage:
    """What every node did.

    Attributes:
        edges: of the steps, in seconds from the start of the run.
        nodes: at least one; of emulated nodes without limits also the machine that they share.
        missing: what is not known of the cluster, in words.
    """

    edges: Array
    nodes: tuple[NodeUse, ...]
    missing: tuple[str, ...] = ()

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
        return Work(uses=uses * known, hidden=hidden * known)


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
    storage, words = _shared_storage(own, host, limits)
    limited = any(row.window.node in limits for row in own)
    memory = None if host is None else _memory_pressure(host)
    nodes = [
        _emulated(
            row,
            limit=limits.get(row.window.node),
            link_bits_per_second=link_bits_per_second,
            storage=waited if limited else np.zeros_like(waited),
            memory=memory if limited else None,
        )
        for row, waited in zip(own, storage, strict=True)
    ]
    if host is not None and not limited:
        # Without limits they share its cores and disks, and what bounds them is seen there alone.
        nodes.append(_machine(host, 0, linked=False))
    missing = () if host is not None else ("no samples of the machine that all nodes share",)
    return Usage(edges=edges, nodes=tuple(nodes), missing=(*missing, *words))


def _machine(reading: Reading, link_bits_per_second: float, *, linked: bool = True) -> NodeUse:
    """A board, or the machine below emulated nodes: its kernel says what was waited for."""
    cores = _busy_cores(reading)
    cpu, own_cpu, capacity = _held(reading, cores, _quota(reading, None))
    memory = _memory(reading)
    storage, hidden = _storage(reading, cpu + own_cpu)
    # Reading back from swap counts as waiting for a disk, too.
    waited = np.maximum(storage - memory, 0.0)
    clock = _clock(reading, cores)
    bits, rate, share = _network(reading, _link(reading) or link_bits_per_second)
    words = [] if reading.sum("cpu_user_seconds") is not None else ["CPU time"]
    words += [] if _knows_storage(reading) else ["waiting for storage"]
    words += [] if rate or not linked else ["rate of its link"]
    if _memory_pressure(reading) is None and reading.sum("swap_in_bytes") is None:
        words.append("waiting for memory")
    return NodeUse(
        node=reading.window.node,
        known=reading.known,
        busy_cores=cores,
        capacity_cores=capacity,
        cpu=cpu,
        own_cpu=own_cpu,
        heat=1 - clock,
        clock=clock,
        storage=waited,
        hidden=np.minimum(hidden, waited),
        network=share,
        memory=memory,
        read_bytes_per_second=_or_zeros(reading, reading.sum("disk_read_bytes")),
        written_bytes_per_second=_or_zeros(reading, reading.sum("disk_written_bytes")),
        net_bits_per_second=bits,
        link_bits_per_second=rate,
        missing=tuple(f"{reading.window.node}: {what} is not known" for what in words),
    )


def _emulated(
    reading: Reading,
    *,
    limit: NodeLimit | None,
    link_bits_per_second: float,
    storage: Array,
    memory: Array | None,
) -> NodeUse:
    """A node on a shared kernel, which says less of it."""
    cores = _busy_cores(reading)
    # A limit on a node without a board is that of a container that all nodes are in.
    quota = None if limit is None else _quota(reading, limit.cpu_cores)
    cpu, own_cpu, capacity = _held(reading, cores, quota)
    clock = _steered(quota)
    own_link = None if limit is None else limit.link_bits_per_second
    bits, rate, share = _network(reading, own_link or link_bits_per_second)
    words = [] if reading.sum("cpu_user_seconds") is not None else ["CPU time"]
    words += [] if rate else ["rate of its link"]
    waited = _or_zeros(reading, memory)
    return NodeUse(
        node=reading.window.node,
        known=reading.known,
        busy_cores=cores,
        capacity_cores=capacity,
        cpu=cpu,
        own_cpu=own_cpu,
        heat=_or_zeros(reading, None if clock is None else 1 - clock),
        clock=np.ones_like(cores) if clock is None else clock,
        storage=storage,
        hidden=np.zeros_like(cores),
        network=share,
        memory=np.minimum(waited, np.maximum(1 - cpu - own_cpu - storage, 0.0)),
        read_bytes_per_second=_or_zeros(reading, reading.sum("storage_read_bytes")),
        written_bytes_per_second=_or_zeros(reading, reading.sum("storage_written_bytes")),
        net_bits_per_second=bits,
        link_bits_per_second=rate,
        missing=tuple(f"{reading.window.node}: {what} is not known" for what in words),
    )


def _or_zeros(reading: Reading, row: Array | None) -> Array:
    return np.zeros(len(reading.known)) if row is None else row


# CPU


def _busy_cores(reading: Reading) -> Array:
    """CPU time used per second, I/O wait and steal left out."""
    names = ("cpu_user_seconds", "cpu_system_seconds", "cpu_irq_seconds")
    return _or_zeros(reading, reading.sum(*names))


def _quota(reading: Reading, declared_cores: float | None) -> Array | None:
    """The CPU limit in each step, in cores; None without one.

    Emulated boards have none before and after a run, and the kernel is asked rarely, so what is
    known within the run stands for all of it.
    """
    found = quota_track(reading.window)
    if found is not None:
        within = (found.ends >= found.start_seconds) & (found.ends <= found.end_seconds)
        within &= np.isfinite(found.values) & (found.values > 0)
        if within.any():
            return reading.hold(found.ends[within], found.values[within])
    return None if declared_cores is None else np.full(len(reading.known), declared_cores)


def _held(reading: Reading, cores: Array, limit: Array | None) -> tuple[Array, Array, float]:
    """Split CPU time into what a faster CPU shortens and what it does not.

    Without a limit a program is on some core for at least ``min(1, cores)`` of a step, which a
    CPU twice as fast halves. A limit hands out CPU time ten times a second: until it is used up
    programs run at the machine's own speed, then they are held back. Held back were ``f`` of the
    step if the limit gave ``f * limit`` of the CPU time that was used, or if programs on ``p``
    cores stood still for ``f * (p - limit)``; the smaller is right. ``p`` is taken as the fewest
    cores that can use up the limit.

    Returns:
        Both shares of each step, and the cores that the node can have.
    """
    if limit is None:
        return np.minimum(cores, 1.0), np.zeros_like(cores), float(reading.window.cores)
    used = np.minimum(cores / limit, 1.0)
    held = used * _throttled_part(reading, used, limit)
    held = np.where(used >= _HELD_BACK, used, held)
    free = np.clip(cores - held * limit, 0.0, None)
    return held, np.minimum(free, 1 - held), float(limit.max())


def _throttled_part(reading: Reading, used: Array, limit: Array) -> Array:
    """How much of what was used met the limit, 0 to 1, by the time that the limit held back.

    It is read every few seconds, so it is compared with the use of all the time between.
    """
    track = reading.window.track("quota_throttled_seconds")
    if track is None:
        return np.ones_like(used)
    standing = np.floor(limit) + 1 - limit
    times, sums = track.sums()
    shares = np.diff(np.interp(reading.edges, times, sums)) / np.diff(reading.edges) / standing
    spans = np.searchsorted(track.ends, reading.edges[1:], side="left")
    met = np.bincount(spans, weights=shares)
    seen = np.bincount(spans, weights=used)
    parts = np.divide(met, seen, out=np.ones_like(met), where=seen > _TINY)
    return np.asarray(np.clip(parts, 0.0, 1.0)[spans])


def _steered(limit: Array | None) -> Array | None:
    """The CPU limit by its highest, where heat lowered that of an emulated board."""
    if limit is None or limit.min() > (1 - _QUOTA_CHANGE) * limit.max():
        return None
    return np.asarray(limit / limit.max())


def _clock(reading: Reading, cores: Array) -> Array:
    """The clock by the nominal one, where heat or a weak supply lowered it; else 1.

    The firmware's bits say so; where there are none, a slow clock on a hot busy board does.
    """
    measured, nominal = (
        reading.held(name) for name in ("clock_measured_hertz", "clock_nominal_hertz")
    )
    even = np.ones_like(cores)
    if measured is None:
        return even
    if nominal is None:
        nominal = np.full_like(cores, np.quantile(measured, _SLOW_CLOCK))
    flags = throttled(reading.window)
    if flags is not None:
        lowered = reading.hold(flags[0].ends, flags[1].astype(np.float64)) > 0
    else:
        celsius = reading.held("temperature_celsius")
        if celsius is None:
            return even
        lowered = (celsius >= _HOT_CELSIUS) & (cores >= 1) & (measured < _SLOW_CLOCK * nominal)
    ratio = np.divide(measured, nominal, out=even.copy(), where=nominal > 0)
    return np.where(lowered, np.clip(ratio, 0.0, 1.0), 1.0)


# Storage, memory, network


def _knows_storage(reading: Reading) -> bool:
    names = ("pressure_io_seconds", "cpu_iowait_seconds", "disk_busy_seconds")
    return any(reading.most(name) is not None for name in names)


def _storage(reading: Reading, cpu: Array) -> tuple[Array, Array]:
    """For how much of each step something waited for a disk, and how much of that beside a program.

    The kernel's pressure says both. Without it, I/O wait says for how long nothing else ran, and a
    busy disk may have been waited for while others ran.
    """
    zeros = np.zeros(len(reading.known))
    some, full = (reading.sum(f"pressure_{kind}_seconds") for kind in ("io", "io_full"))
    if some is not None:
        waited = np.minimum(some, 1.0)
        return waited, zeros if full is None else np.clip(waited - full, 0.0, cpu)
    alone, busy = reading.sum("cpu_iowait_seconds"), reading.most("disk_busy_seconds")
    if alone is None:
        return (zeros if busy is None else np.minimum(busy, 1.0)), zeros
    alone = np.minimum(alone, 1.0)
    if busy is None:
        return alone, zeros
    beside = np.clip(np.minimum(busy, 1.0) - alone, 0.0, cpu)
    return alone + beside, beside


def _shared_storage(
    own: Sequence[Reading], host: Reading | None, limits: Mapping[str, NodeLimit]
) -> tuple[list[Array], tuple[str, ...]]:
    """For how much of each step each emulated node waited for its disk.

    The kernel below says for how long any of them did; the node whose disk has the most to do is
    taken to have waited for all of that, the others in proportion. Where the kernel does not say
    it, a disk at its limit is taken to have been waited for.
    """
    needs = [_disk_time(row, limits.get(row.window.node, NodeLimit())) for row in own]
    pressure = None if host is None else host.sum("pressure_io_seconds")
    if pressure is not None:
        most = np.max(needs, axis=0)
        parts = [np.divide(row, most, out=np.zeros_like(row), where=most > _TINY) for row in needs]
        return [np.minimum(pressure, 1.0) * part for part in parts], ()
    if all(row.window.node in limits for row in own):
        words = "waiting for storage is not known: disks at their limit count as waited for"
        return [np.minimum(row, 1.0) for row in needs], (words,)
    return [np.zeros_like(row) for row in needs], ("waiting for storage is not known",)


def _disk_time(reading: Reading, limit: NodeLimit) -> Array:
    """What a disk needs of each step for what was read and written; without limits, its bytes.

    What is written stays in memory until the disk gets to it.
    """
    read = _or_zeros(reading, reading.sum("storage_read_bytes"))
    written = _or_zeros(reading, reading.sum("storage_written_bytes"))
    if limit.read_bytes_per_second is None or limit.write_bytes_per_second is None:
        return read + written
    # Lindley's recursion: what is left over is the sum so far above its least value so far.
    surplus = np.cumsum((written / limit.write_bytes_per_second - 1) * np.diff(reading.edges))
    left = surplus - np.minimum(np.minimum.accumulate(surplus), 0.0)
    drained = written / limit.write_bytes_per_second
    drained = drained - np.diff(left, prepend=0.0) / np.diff(reading.edges)
    return np.clip(read / limit.read_bytes_per_second + drained, 0.0, None)


def _memory_pressure(reading: Reading) -> Array | None:
    found = reading.sum("pressure_memory_seconds")
    return None if found is None else np.minimum(found, 1.0)


def _memory(reading: Reading) -> Array:
    """For how much of each step something waited for memory.

    Where the kernel does not say it, the disk's time for swap is, by its share of what disks moved.
    """
    pressure = _memory_pressure(reading)
    if pressure is not None:
        return pressure
    swapped = _or_zeros(reading, reading.sum("swap_in_bytes", "swap_out_bytes"))
    moved = _or_zeros(reading, reading.sum("disk_read_bytes", "disk_written_bytes"))
    busy = reading.most("disk_busy_seconds", "cpu_iowait_seconds")
    share = np.divide(swapped, moved, out=np.zeros_like(moved), where=moved > _TINY)
    return np.minimum(_or_zeros(reading, busy) * np.minimum(share, 1.0), 1.0)


def _link(reading: Reading) -> float:
    """Rate of a node's fastest link, bit/s; 0 if its kernel does not say."""
    rows = [
        row
        for name in reading.window.columns
        if name.startswith("link_bits_per_second")
        and (row := reading.window.column(name)) is not None
    ]
    return max((float(np.nanmax(row)) for row in rows), default=0.0)


def _network(reading: Reading, link_bits_per_second: float) -> tuple[Array, float, Array]:
    """What the busier direction carried, the link's rate, and how much of each step that takes."""
    ways = [reading.sum(f"net_{way}_bytes") for way in ("received", "sent")]
    found = [row for row in ways if row is not None]
    bits = 8 * np.max(found, axis=0) if found else np.zeros(len(reading.known))
    rate = float(link_bits_per_second)
    share = np.minimum(bits / rate, 1.0) if rate > 0 else np.zeros_like(bits)
    return bits, rate, share
