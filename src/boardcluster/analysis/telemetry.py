"""What telemetry says of a run, by node and phase: pure arithmetic on samples.

Amounts (CPU seconds, bytes) are spread evenly over the time since the value before was known, which
may be several samples earlier: some columns are read less often than others. So sums are exact, and
a rate is never counted twice. States (a clock, a temperature) hold until the next known value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce

import numpy as np

from boardcluster.analysis.trust.clocks import THROTTLE_BITS, throttle_flags
from boardcluster.analysis.trust.foreign_load import quota_track
from boardcluster.analysis.trust.window import Flags, Series, Track, Window
from boardcluster.records import NodeSamples, Telemetry

__all__ = [
    "COLUMNS",
    "GAP_INTERVALS",
    "WHOLE_RUN",
    "ColumnSummary",
    "NodeSummary",
    "TelemetryColumn",
    "base_name",
    "busy_cores",
    "capacity_cores",
    "column_names",
    "column_summaries",
    "disk_rate",
    "grid",
    "level",
    "mean_rate",
    "members",
    "network_rate",
    "node_memory",
    "node_summaries",
    "own_interfaces",
    "rate",
    "samples_within",
    "seen",
    "throttled",
    "window_of",
]

WHOLE_RUN = ""
"""The span from start to end of a run, where others have the name of a phase."""

GAP_INTERVALS = 3.5  # the same as the verdict's rule on gaps
_SLOW_SECONDS = 5.0  # what the agent reads rarely is known at least so often, see agent.py
_VIRTUAL_INTERFACES = (
    *("boardcluster", "bond", "br", "cni", "docker", "dummy", "flannel", "ifb", "lxc", "lxd"),
    *("podman", "tailscale", "tap", "team", "tun", "veth", "virbr", "vlan", "vmbr", "vnet"),
    *("wg", "zt"),
)
"""Interfaces whose packets another interface counts, too, or that belong to somebody else."""


@dataclass(frozen=True, slots=True)
class TelemetryColumn:
    """What a column of telemetry is."""

    unit: str
    """Of its values."""
    amount: bool
    """Whether values add up over time; else they are states of a moment."""


_AMOUNTS: Mapping[str, tuple[str, ...]] = {
    "s": (
        *(f"cpu_{kind}_seconds" for kind in ("user", "system", "idle", "iowait", "irq", "steal")),
        *(f"pressure_{kind}_seconds" for kind in ("cpu", "io", "io_full", "memory", "memory_full")),
        *("disk_busy_seconds", "group_cpu_seconds", "quota_throttled_seconds"),
        *("foreign_cpu_seconds", "clock_step_seconds", "agent_cpu_seconds"),
    ),
    "B": (
        *("swap_in_bytes", "swap_out_bytes", "disk_read_bytes", "disk_written_bytes"),
        *("net_received_bytes", "net_sent_bytes", "storage_read_bytes", "storage_written_bytes"),
    ),
    "": ("disk_reads", "disk_writes"),
    "packets": ("net_dropped_packets",),
}
_STATES: Mapping[str, tuple[str, ...]] = {
    "Hz": (
        *("clock_hertz", "clock_measured_hertz"),
        *("clock_nominal_hertz", "clock_nominal_least_hertz"),
    ),
    "°C": ("temperature_celsius",),
    "": ("throttle_bits",),
    "B": (
        *("memory_available_bytes", "memory_cached_bytes", "memory_dirty_bytes"),
        *("swap_used_bytes", "group_memory_bytes"),
    ),
    "bit/s": ("link_bits_per_second",),
    "cores": ("quota_cores",),
}
COLUMNS = {
    name: TelemetryColumn(unit, amount=table is _AMOUNTS)
    for table in (_AMOUNTS, _STATES)
    for unit, names in table.items()
    for name in names
}
"""Every column by its name before the slash; docs/reference/telemetry.md says more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSummary:
    """One node over one span. None is unknown: the node has no such column, or no value in it."""

    node: str
    """Its name."""
    scope: str
    """``machine`` or ``node``."""
    cores: int
    """CPUs that it may use."""
    span: str
    """Name of a phase; empty for the whole run."""
    duration_seconds: float
    """Length of the span."""
    samples: int
    """How many samples touch it."""
    cpu_busy_mean_cores: float | None
    """CPU time used per second, I/O wait and steal left out."""
    cpu_busy_most_cores: float | None
    """The same in the busiest interval."""
    cpu_busy_mean_share: float | None
    """The mean over what it can have, see ``capacity_cores``; above 1 where an emulated node
    without a quota takes more."""
    cpu_iowait_mean_share: float | None
    """Time that cores were idle and a disk was waited for."""
    cpu_steal_mean_share: float | None
    """Time that a hypervisor kept."""
    disk_read_bytes_per_second: float | None
    """Mean. Of a machine its devices, of an emulated node its processes."""
    disk_written_bytes_per_second: float | None
    """Likewise."""
    net_received_bytes_per_second: float | None
    """Mean over its own interfaces."""
    net_sent_bytes_per_second: float | None
    """Likewise."""
    clock_least_hertz: float | None
    """Lowest clock that was measured."""
    clock_reported_least_hertz: float | None
    """Lowest clock that the kernel reported, of any core."""
    temperature_most_celsius: float | None
    """Highest."""
    memory_available_least_bytes: float | None
    """Lowest."""
    memory_own_most_bytes: float | None
    """Highest sum over the cluster's processes."""
    swap_used_most_bytes: float | None
    """Highest."""
    throttled_seconds: float | None
    """How long any of the firmware's four bits was set."""
    quota_throttled_seconds: float | None
    """How long a CPU quota held it back."""
    foreign_cpu_seconds: float | None
    """CPU time of other programs."""
    agent_cpu_seconds: float | None
    """CPU time of the agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSummary:
    """One column of one node over one span."""

    node: str
    """Its name."""
    column: str
    """Its name, with what is behind the slash."""
    unit: str
    """Of its values."""
    total: float | None
    """Sum of an amount; None for a state."""
    mean: float | None
    """Of an amount per second, of a state over the samples; None if unknown."""
    least: float | None
    """Lowest known value of a state, or of an amount per second."""
    most: float | None
    """Highest."""


def base_name(column: str) -> str:
    """The name of a column before its slash."""
    return column.partition("/")[0]


def column_names(telemetry: Telemetry) -> tuple[str, ...]:
    """Every column that some node has."""
    return tuple(sorted({name for node in telemetry.nodes for name in node.columns}))


def window_of(node: NodeSamples, telemetry: Telemetry, span: str = WHOLE_RUN) -> Window:
    """Cut a node's samples to the run or to a phase.

    Raises:
        KeyError: there is no such phase.
    """
    begin, end = 0.0, telemetry.duration_seconds
    if span != WHOLE_RUN:
        begin, end = telemetry.phases[span]
    return Window.of(node, start_seconds=begin, end_seconds=end)


def grid(window: Window, *, most: int = 0) -> Series:
    """Edges of equal intervals over a window's span, about as long as its samples are apart.

    There are no more of them than ``most``, if that is not 0.
    """
    wanted = max(1, round(window.span_seconds / _pace_seconds(window)))
    count = min(wanted, most) if most else wanted
    edges: Series = np.linspace(window.start_seconds, window.end_seconds, count + 1)
    return edges


def _pace_seconds(window: Window) -> float:
    return float(np.median(window.paces)) if len(window.paces) else 1.0


def rate(window: Window, name: str, edges: Series) -> Series | None:
    """An amount per second in each interval between edges, which rise; None if unknown.

    NaN where no sample is near.
    """
    track = window.track(name)
    if track is None:
        return None
    times, sums = track.sums()
    lengths = np.diff(edges)
    inside = np.minimum(edges[1:], times[-1]) - np.maximum(edges[:-1], times[0])
    # Beyond the first and the last sample nothing is known: the rate is that of the known part.
    known = np.clip(inside, 0.0, None)
    added = np.diff(np.interp(edges, times, sums))
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Series = np.where(known > 0.5 * lengths, added / known, np.nan)
    return np.where(_watched(window, edges), found, np.nan)


def level(window: Window, name: str, edges: Series) -> Series | None:
    """A state in each interval between edges, which rise; None if unknown.

    The mean of its known values there, or the last one before.
    """
    track = window.track(name)
    if track is None:
        return None
    times, values = track.ends, track.values
    places = np.searchsorted(edges, times, side="left") - 1
    inside = (places >= 0) & (places < len(edges) - 1)
    counts = np.bincount(places[inside], minlength=len(edges) - 1)
    sums = np.bincount(places[inside], weights=values[inside], minlength=len(edges) - 1)
    before = np.searchsorted(times, edges[1:], side="right") - 1
    age_seconds = edges[1:] - times[np.maximum(before, 0)]
    # A state that is not read again for long is no longer known.
    oldest_seconds = max(GAP_INTERVALS * _pace_seconds(window), 2 * _SLOW_SECONDS)
    fresh = (before >= 0) & (age_seconds <= oldest_seconds)
    held = np.where(fresh, values[np.maximum(before, 0)], np.nan)
    found: Series = np.where(counts > 0, sums / np.maximum(counts, 1), held)
    return np.where(_watched(window, edges), found, np.nan)


def mean_rate(window: Window, names: Iterable[str]) -> float | None:
    """Sum over columns of an amount per second over the whole span; None if none is known."""
    known = []
    for name in names:
        if (track := window.track(name)) is None:
            continue
        times, sums = track.sums()
        begin, end = max(window.start_seconds, times[0]), min(window.end_seconds, times[-1])
        if end > begin:
            low, high = np.interp([begin, end], times, sums)
            known.append(float((high - low) / (end - begin)))
    return sum(known) if known else None


def _watched(window: Window, edges: Series) -> Flags:
    """Which intervals have a sample near: the agent was at work."""
    if not len(window.ends):
        return np.zeros(len(edges) - 1, dtype=np.bool_)
    middles = (edges[:-1] + edges[1:]) / 2
    places = np.searchsorted(window.ends, middles, side="left")
    after = window.ends[np.minimum(places, len(window.ends) - 1)]
    before = np.where(places > 0, window.ends[np.maximum(places - 1, 0)], -np.inf)
    longest = max(GAP_INTERVALS * _pace_seconds(window), float(np.diff(edges).max()))
    late = places == len(window.ends)
    inside = ~late & (after - before <= longest)
    # Just before the first sample and just after the last one, the nearest still counts.
    near = np.minimum(abs(middles - window.ends[0]), abs(middles - window.ends[-1]))
    return np.asarray(inside | (near <= longest / 2))


def members(window: Window, name: str) -> tuple[str, ...]:
    """The columns ``name/MEMBER`` of a window that have a value; of a network its own ones."""
    found = tuple(window.family(name))
    chosen = own_interfaces(found) if name.startswith("net_") else found
    return tuple(f"{name}/{member}" for member in chosen)


def own_interfaces(names: Iterable[str]) -> tuple[str, ...]:
    """Return those interfaces of a node whose packets no other one counts, too, in their order.

    Left out are virtual ones by their names, and one of a VLAN, such as ``eth0.10``, where the
    interface that carries it is there.
    """
    rows = tuple(names)
    return tuple(
        name
        for name in rows
        if not (name.startswith(_VIRTUAL_INTERFACES) or _carrier(name) in rows)
    )


def _carrier(name: str) -> str | None:
    """Return the interface that carries a VLAN's, by its name; None if it is no VLAN's."""
    carrier, _, number = name.rpartition(".")
    return carrier if carrier and number.isdecimal() else None


def capacity_cores(window: Window) -> float:
    """CPU time per second that a node can have: its cores, or less if it has a CPU quota.

    Where the quota changed, the largest counts.
    """
    quota = quota_track(window)
    most = float(quota.values.max()) if quota else float(window.cores)
    return min(most, float(window.cores)) if most > 0 else float(window.cores)


def busy_cores(window: Window, edges: Series) -> Series | None:
    """CPU time used per second, I/O wait and steal left out."""
    return _sum(window, ("cpu_user_seconds", "cpu_system_seconds", "cpu_irq_seconds"), edges)


def disk_rate(window: Window, way: str, edges: Series) -> Series | None:
    """Bytes per second ``read`` or ``written``: of a machine's devices, of a node's processes."""
    return _sum(window, _disk_columns(window, way), edges)


def network_rate(window: Window, way: str, edges: Series) -> Series | None:
    """Bytes per second ``received`` or ``sent`` by its own interfaces."""
    return _sum(window, members(window, f"net_{way}_bytes"), edges)


def node_memory(window: Window, edges: Series) -> Series | None:
    """Bytes of memory of the cluster's processes."""
    found = [level(window, name, edges) for name in members(window, "group_memory_bytes")]
    return _added(found)


def _disk_columns(window: Window, way: str) -> tuple[str, ...]:
    devices = members(window, f"disk_{way}_bytes")
    return devices or (f"storage_{way}_bytes",)


def _sum(window: Window, names: Iterable[str], edges: Series) -> Series | None:
    return _added(rate(window, name, edges) for name in names)


def _added(rows: Iterable[Series | None]) -> Series | None:
    """Sum of the rows that there are; one that is NaN somewhere counts as nothing there."""
    known = [row for row in rows if row is not None]
    if not known:
        return None
    unknown = reduce(np.logical_and, [np.isnan(row) for row in known])
    total: Series = np.sum([np.nan_to_num(row) for row in known], axis=0)
    return np.where(unknown, np.nan, total)


def throttled(window: Window) -> tuple[Track, Flags] | None:
    """Readings of the firmware's bits, and whether it held the clock back; None if unknown."""
    track = window.track("throttle_bits")
    if track is None:
        return None
    flags = [throttle_flags(track.values, bit) for bit, _, _ in THROTTLE_BITS]
    return track, np.asarray(reduce(np.logical_or, flags))


def node_summaries(telemetry: Telemetry, span: str = WHOLE_RUN) -> tuple[NodeSummary, ...]:
    """Sum up every node over the run or one of its phases.

    Raises:
        KeyError: there is no such phase.
    """
    windows = [window_of(node, telemetry, span) for node in telemetry.nodes]
    return tuple(_summary(window, span) for window in windows)


def _summary(window: Window, span: str) -> NodeSummary:
    inside = samples_within(window)
    busy = busy_cores(window, grid(window))
    busy_mean = mean_rate(window, ("cpu_user_seconds", "cpu_system_seconds", "cpu_irq_seconds"))
    flags = throttled(window)
    reported = members(window, "clock_hertz")
    own = node_memory(window, grid(window))
    return NodeSummary(
        node=window.node,
        scope=window.scope,
        cores=window.cores,
        span=span,
        duration_seconds=window.span_seconds,
        samples=int(inside.sum()),
        cpu_busy_mean_cores=busy_mean,
        cpu_busy_most_cores=_extreme(busy, most=True),
        cpu_busy_mean_share=None if busy_mean is None else busy_mean / capacity_cores(window),
        cpu_iowait_mean_share=_share(window, "cpu_iowait_seconds"),
        cpu_steal_mean_share=_share(window, "cpu_steal_seconds"),
        disk_read_bytes_per_second=mean_rate(window, _disk_columns(window, "read")),
        disk_written_bytes_per_second=mean_rate(window, _disk_columns(window, "written")),
        net_received_bytes_per_second=mean_rate(window, members(window, "net_received_bytes")),
        net_sent_bytes_per_second=mean_rate(window, members(window, "net_sent_bytes")),
        clock_least_hertz=seen(window, ("clock_measured_hertz",), most=False),
        clock_reported_least_hertz=seen(window, reported, most=False),
        temperature_most_celsius=seen(window, ("temperature_celsius",), most=True),
        memory_available_least_bytes=seen(window, ("memory_available_bytes",), most=False),
        memory_own_most_bytes=_extreme(own, most=True),
        swap_used_most_bytes=seen(window, ("swap_used_bytes",), most=True),
        throttled_seconds=None if flags is None else flags[0].seconds(flags[1]),
        quota_throttled_seconds=_amount(window, "quota_throttled_seconds"),
        foreign_cpu_seconds=_amount(window, "foreign_cpu_seconds"),
        agent_cpu_seconds=_amount(window, "agent_cpu_seconds"),
    )


def samples_within(window: Window) -> Flags:
    """Which samples were taken in the span; the one just after its end is in it, too."""
    late = window.ends >= window.end_seconds
    first_late = late & (np.cumsum(late) == 1)
    near = first_late & (window.ends < window.end_seconds + _pace_seconds(window))
    return np.asarray((window.ends > window.start_seconds) & (~late | near))


def _amount(window: Window, name: str) -> float | None:
    found = mean_rate(window, (name,))
    return None if found is None else found * window.span_seconds


def _share(window: Window, name: str) -> float | None:
    found = mean_rate(window, (name,))
    return None if found is None else found / window.cores


def seen(window: Window, names: Iterable[str], *, most: bool) -> float | None:
    """Highest or lowest value of states at the samples within the span."""
    found = [
        _extreme(window.columns[name][samples_within(window)], most=most)
        for name in names
        if name in window.columns
    ]
    known = [value for value in found if value is not None]
    return (max(known) if most else min(known)) if known else None


def _extreme(values: Series | None, *, most: bool) -> float | None:
    if values is None or not len(values) or bool(np.isnan(values).all()):
        return None
    return float(np.nanmax(values) if most else np.nanmin(values))


def column_summaries(
    telemetry: Telemetry, columns: Iterable[str], span: str = WHOLE_RUN
) -> tuple[ColumnSummary, ...]:
    """Sum up single columns; a name without its slash stands for all behind it.

    Raises:
        KeyError: there is no such phase.
    """
    wanted = set(columns)
    windows = [window_of(node, telemetry, span) for node in telemetry.nodes]
    return tuple(
        _column_summary(window, name)
        for window in windows
        for name in sorted(window.columns)
        if {name, base_name(name)} & wanted
    )


def _column_summary(window: Window, name: str) -> ColumnSummary:
    what = COLUMNS.get(base_name(name), TelemetryColumn("", amount=False))
    if what.amount:
        values = rate(window, name, grid(window))
        mean, total = mean_rate(window, (name,)), _amount(window, name)
    else:
        values = window.columns[name][samples_within(window)]
        known = values[~np.isnan(values)]
        mean, total = (float(known.mean()) if len(known) else None), None
    return ColumnSummary(
        node=window.node,
        column=name,
        unit=what.unit,
        total=total,
        mean=mean,
        least=_extreme(values, most=False),
        most=_extreme(values, most=True),
    )
