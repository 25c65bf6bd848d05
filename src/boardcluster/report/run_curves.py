"""Which curves the page of a run shows, and their values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from boardcluster.analysis.phases import engine_phases, submissions
from boardcluster.analysis.telemetry import (
    busy_cores,
    capacity_cores,
    disk_rate,
    grid,
    level,
    members,
    network_rate,
    node_memory,
    rate,
    window_of,
)
from boardcluster.analysis.trust.window import Window
from boardcluster.records import Telemetry
from boardcluster.report.curves import COLOURS, Band, Chart, Line, Mark, Series
from boardcluster.report.run_marks import DisturbedTimes

__all__ = ["MOST_LINES", "Section", "sections"]

MOST_LINES = 10
"""More nodes than this are shown as quantiles."""

_MOST_POINTS = 180
_MOST_PARTS = 24
_MEGA, _GIGA, _GIB = 1e6, 1e9, float(1 << 30)
_STATES = (
    ("user", "programs"),
    ("system", "kernel"),
    ("irq", "interrupts"),
    ("iowait", "waiting for a disk"),
    ("steal", "taken by the hypervisor"),
)
_MACHINE = "machine"
_MEASURED = "Clock as measured with a timed loop"
_TITLES = {
    "cpu": "CPU",
    "disk": "Disk",
    "network": "Network",
    "clock": "Clock and temperature",
    "memory": "Memory",
    "others": "Used by others",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Charts under one heading."""

    title: str
    """The heading."""
    name: str
    """Its anchor."""
    charts: tuple[Chart, ...]
    """At least one."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Source:
    """What charts are made of.

    Attributes:
        windows: the nodes, cut to the run.
        edges: the intervals of every chart.
        phases: name, begin and end of each submission.
        parts: likewise of the engine's phases in these.
        marks: disturbances by node.
    """

    windows: tuple[Window, ...]
    edges: Series
    phases: tuple[tuple[str, float, float], ...]
    parts: tuple[tuple[str, float, float], ...]
    disturbances: tuple[DisturbedTimes, ...]

    @property
    def machines(self) -> tuple[Window, ...]:
        """Nodes whose columns are the kernel's totals."""
        return tuple(window for window in self.windows if window.scope == _MACHINE)

    @property
    def nodes(self) -> tuple[Window, ...]:
        """Nodes of the cluster: without the machine below emulated ones."""
        emulated = tuple(window for window in self.windows if window.scope != _MACHINE)
        return emulated or self.windows

    def marks(self, windows: Iterable[Window]) -> tuple[Mark, ...]:
        """When some of these nodes were disturbed."""
        names = {window.node for window in windows}
        return tuple(
            Mark(label=f"{row.node}: {row.what}", begin_seconds=begin, end_seconds=end)
            for row in self.disturbances
            if row.node in names
            for begin, end in row.spans
        )


_Values: TypeAlias = Callable[[Window, Series], "Series | None"]


@dataclass(frozen=True, slots=True, eq=False)
class _Plot:
    """One chart with a line for each node."""

    section: str
    """Name of the section that it is in."""
    name: str
    """Unique on the page."""
    title: str
    """What it shows."""
    unit: tuple[float, str]
    """By what values are divided, and the unit that they then have."""
    windows: tuple[Window, ...]
    """The nodes."""
    values: _Values
    """Values of a node in each interval; None where it has none."""
    most: float = float("nan")
    """The axis reaches at least so far."""
    from_zero: bool = True
    """Whether the axis starts at 0."""
    note: str = ""
    """A sentence below it; may be empty."""
    if_any: bool = False
    """Whether it is left out where every value is 0."""


def sections(telemetry: Telemetry, disturbances: Sequence[DisturbedTimes]) -> tuple[Section, ...]:
    """The charts of a run; none without samples or without a duration."""
    windows = tuple(window_of(node, telemetry) for node in telemetry.nodes)
    if not windows or telemetry.duration_seconds <= 0:
        return ()
    finest = min(windows, key=lambda window: float(np.min(window.paces, initial=1e9)))
    outer = submissions(telemetry.phases)
    source = _Source(
        windows=windows,
        edges=grid(finest, most=_MOST_POINTS),
        phases=tuple((name, begin, end) for name, (begin, end) in outer.items()),
        parts=_parts(telemetry),
        disturbances=tuple(disturbances),
    )
    charts: dict[str, list[Chart]] = {name: [] for name in _TITLES}
    charts["cpu"] += _cpu_by_state(source)
    for plot in _plots(source):
        charts[plot.section] += _by_node(source, plot)
    return tuple(
        Section(title=_TITLES[name], name=name, charts=tuple(found))
        for name, found in charts.items()
        if found
    )


def _parts(telemetry: Telemetry) -> tuple[tuple[str, float, float], ...]:
    """The engine's phases, in order of time; of many the longest, which alone can be seen."""
    found = [
        (name, begin, end)
        for submission in submissions(telemetry.phases)
        for name, (begin, end) in engine_phases(telemetry.phases, submission).items()
    ]
    longest = sorted(found, key=lambda row: row[1] - row[2])[:_MOST_PARTS]
    return tuple(sorted(longest, key=lambda row: row[1:]))


def _cpu_by_state(source: _Source) -> Iterator[Chart]:
    """One chart for each node where there are few, else quantiles of what is busy."""
    emulated = len(source.nodes) < len(source.windows)
    few = len(source.nodes) <= MOST_LINES
    for window in source.windows:
        if not few and window in source.nodes:
            continue
        lines = tuple(
            Line(label=words, values=values, colour=place)
            for place, (state, words) in enumerate(_STATES)
            if (values := rate(window, f"cpu_{state}_seconds", source.edges)) is not None
            and np.nansum(values) > 0
        )
        if lines:
            host = emulated and window.scope == _MACHINE
            yield Chart(
                name=f"cpu-{window.node}",
                title=f"CPU of {window.node}"
                + (", the machine that all nodes share" if host else ""),
                unit=f"cores, of {capacity_cores(window):.3g}",
                edges=source.edges,
                lines=lines,
                stacked=True,
                most=capacity_cores(window),
                phases=source.phases,
                parts=source.parts,
                marks=source.marks([window]),
            )
    if not few:
        plot = _Plot("cpu", "cpu-busy", "CPU in use", (1.0, "cores"), source.nodes, busy_cores)
        yield from _by_node(source, plot)


def _waited(window: Window, edges: Series) -> Series | None:
    found = rate(window, "cpu_iowait_seconds", edges)
    return None if found is None else 100 * found / window.cores


def _reported_clock(window: Window, edges: Series) -> Series | None:
    rows = [level(window, name, edges) for name in members(window, "clock_hertz")]
    known = [row for row in rows if row is not None]
    return np.fmin.reduce(known) if known else None


def _level(name: str) -> _Values:
    return lambda window, edges: level(window, name, edges)


def _rate(name: str) -> _Values:
    return lambda window, edges: rate(window, name, edges)


def _disk(way: str) -> _Values:
    return lambda window, edges: disk_rate(window, way, edges)


def _network(way: str) -> _Values:
    return lambda window, edges: network_rate(window, way, edges)


def _plots(source: _Source) -> tuple[_Plot, ...]:
    """Every chart with one line for each node, by section."""
    every, machines, nodes = source.windows, source.machines, source.nodes
    shared = (
        "For a node: what its processes read from storage and wrote to files. For the machine: "
        "what its devices did, including later writes from the page cache."
        if len(nodes) < len(every)
        else ""
    )
    measured, available = _level("clock_measured_hertz"), _level("memory_available_bytes")
    mega, gib, share = (_MEGA, "MB/s"), (_GIB, "GiB"), (1.0, "% of all cores")
    reported, hertz = "Clock as the kernel reports it, slowest core", (_GIGA, "GHz")
    return (
        _Plot("cpu", "iowait", "Waiting for a disk", share, machines, _waited, most=10.0),
        _Plot("disk", "disk-read", "Read from disk", mega, every, _disk("read"), note=shared),
        _Plot(
            "disk", "disk-written", "Written to disk", mega, every, _disk("written"), note=shared
        ),
        _Plot("network", "network-received", "Received", mega, nodes, _network("received")),
        _Plot("network", "network-sent", "Sent", mega, nodes, _network("sent")),
        _Plot("clock", "clock-measured", _MEASURED, hertz, machines, measured, from_zero=False),
        _Plot(
            "clock", "clock-reported", reported, hertz, machines, _reported_clock, from_zero=False
        ),
        _Plot(
            *("clock", "temperature", "Temperature, hottest sensor", (1.0, "°C"), machines),
            _level("temperature_celsius"),
            from_zero=False,
        ),
        _Plot("memory", "memory-own", "Memory of the cluster's processes", gib, every, node_memory),
        _Plot("memory", "memory-available", "Available memory", gib, machines, available),
        _Plot(
            "memory", "memory-cached", "Page cache", gib, machines, _level("memory_cached_bytes")
        ),
        _Plot(
            *("memory", "memory-swap", "Swap in use", gib, machines, _level("swap_used_bytes")),
            if_any=True,
        ),
        _Plot(
            *("others", "foreign-cpu-seconds", "CPU used by other programs", (1.0, "cores"), every),
            _rate("foreign_cpu_seconds"),
            most=0.1,
            if_any=True,
        ),
        _Plot(
            *("others", "quota-throttled-seconds", "Time held back by a CPU quota"),
            *((1.0, "seconds per second"), every, _rate("quota_throttled_seconds")),
            most=0.1,
            if_any=True,
        ),
    )


def _by_node(source: _Source, plot: _Plot) -> Iterator[Chart]:
    """One line for each node, or quantiles over many; nothing where no node knows."""
    divisor, unit = plot.unit
    found = [(window, plot.values(window, source.edges)) for window in plot.windows]
    rows = [(window, row / divisor) for window, row in found if row is not None]
    if not rows or all(bool(np.isnan(row).all()) for _, row in rows):
        return
    many = len(rows) > MOST_LINES
    lines, bands = _quantiles([row for _, row in rows]) if many else (_lines(rows), ())
    chart = Chart(
        name=plot.name,
        title=plot.title,
        unit=unit,
        edges=source.edges,
        lines=lines,
        bands=bands,
        from_zero=plot.from_zero,
        most=plot.most,
        phases=source.phases,
        parts=source.parts,
        marks=source.marks(window for window, _ in rows),
        note=f"{len(rows)} nodes. {plot.note}".strip() if many else plot.note,
    )
    if not plot.if_any or any(bool(np.nansum(row) > 0) for _, row in chart.columns()):
        yield chart


def _lines(rows: Iterable[tuple[Window, Series]]) -> tuple[Line, ...]:
    return tuple(
        Line(
            label=window.node,
            values=row,
            colour=place % COLOURS,
            dashed=place >= COLOURS,
        )
        for place, (window, row) in enumerate(rows)
    )


def _quantiles(rows: Sequence[Series]) -> tuple[tuple[Line, ...], tuple[Band, ...]]:
    """Middle, half and all of many nodes; an interval that no node knows stays empty."""
    table = np.array(rows)
    edges = np.full((5, table.shape[1]), np.nan)
    known = ~np.isnan(table).all(axis=0)
    # Quantiles that leave NaN out take a hundred times as long.
    quantile = np.nanquantile if np.isnan(table[:, known]).any() else np.quantile
    edges[:, known] = quantile(table[:, known], [0, 0.25, 0.5, 0.75, 1], axis=0)
    least, low, middle, high, most = edges
    return (Line(label="median", values=middle, colour=0),), (
        Band(label="all nodes", low=least, high=most),
        Band(label="the middle half", low=low, high=high, strong=True),
    )
