"""Which curves the page of a run shows, and their values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

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
from boardcluster.report.run_marks import Disturbance

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
    ("steal", "kept by the hypervisor"),
)
_MACHINE = "machine"


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Charts under one heading.

    Attributes:
        title: the heading.
        name: its anchor.
        charts: at least one.
    """

    title: str
    name: str
    charts: tuple[Chart, ...]


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
    disturbances: tuple[Disturbance, ...]

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


def sections(telemetry: Telemetry, disturbances: Sequence[Disturbance]) -> tuple[Section, ...]:
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
    found = (
        ("CPU", "cpu", [*_cpu_by_state(source), *_waiting(source)]),
        ("Disk", "disk", list(_disk(source))),
        ("Network", "network", list(_network(source))),
        ("Clock and temperature", "clock", list(_clock(source))),
        ("Memory", "memory", list(_memory(source))),
        ("What others took", "others", list(_others(source))),
    )
    return tuple(
        Section(title=title, name=name, charts=tuple(charts))
        for title, name, charts in found
        if charts
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
        yield from _by_node(
            source,
            source.nodes,
            busy_cores,
            name="cpu-busy",
            title="CPU in use",
            unit="cores",
        )


def _waiting(source: _Source) -> Iterator[Chart]:
    def waited(window: Window, edges: Series) -> Series | None:
        found = rate(window, "cpu_iowait_seconds", edges)
        return None if found is None else 100 * found / window.cores

    yield from _by_node(
        source,
        source.machines,
        waited,
        name="iowait",
        title="Waiting for a disk",
        unit="% of all cores",
        most=10.0,
    )


def _disk(source: _Source) -> Iterator[Chart]:
    emulated = len(source.nodes) < len(source.windows)
    note = (
        "Of a node: what its processes read from storage and wrote to files. Of the machine: what "
        "its devices did, later writing of the page cache included."
        if emulated
        else ""
    )
    for way, word in (("read", "Read from disk"), ("written", "Written to disk")):
        yield from _by_node(
            source,
            source.windows,
            lambda window, edges, way=way: disk_rate(window, way, edges),  # type: ignore[misc]
            name=f"disk-{way}",
            title=word,
            unit="MB/s",
            divisor=_MEGA,
            note=note,
        )


def _network(source: _Source) -> Iterator[Chart]:
    for way, word in (("received", "Received"), ("sent", "Sent")):
        yield from _by_node(
            source,
            source.nodes,
            lambda window, edges, way=way: network_rate(window, way, edges),  # type: ignore[misc]
            name=f"network-{way}",
            title=word,
            unit="MB/s",
            divisor=_MEGA,
        )


def _clock(source: _Source) -> Iterator[Chart]:
    def measured(window: Window, edges: Series) -> Series | None:
        return level(window, "clock_measured_hertz", edges)

    def reported(window: Window, edges: Series) -> Series | None:
        rows = [level(window, name, edges) for name in members(window, "clock_hertz")]
        known = [row for row in rows if row is not None]
        return np.fmin.reduce(known) if known else None

    for value, name, title in (
        (measured, "clock-measured", "Clock as measured with a timed loop"),
        (reported, "clock-reported", "Clock as the kernel reports it, slowest core"),
    ):
        yield from _by_node(
            source,
            source.machines,
            value,
            name=name,
            title=title,
            unit="GHz",
            divisor=_GIGA,
            from_zero=False,
        )
    yield from _by_node(
        source,
        source.machines,
        lambda window, edges: level(window, "temperature_celsius", edges),
        name="temperature",
        title="Temperature, hottest sensor",
        unit="°C",
        from_zero=False,
    )


def _memory(source: _Source) -> Iterator[Chart]:
    def state(name: str) -> Callable[[Window, Series], Series | None]:
        return lambda window, edges: level(window, name, edges)

    for value, windows, name, title in (
        (node_memory, source.windows, "own", "Memory of the cluster's processes"),
        (state("memory_available_bytes"), source.machines, "available", "Available memory"),
        (state("memory_cached_bytes"), source.machines, "cached", "Page cache"),
        (state("swap_used_bytes"), source.machines, "swap", "Swap in use"),
    ):
        charts = _by_node(
            source,
            windows,
            value,
            name=f"memory-{name}",
            title=title,
            unit="GiB",
            divisor=_GIB,
        )
        for chart in charts:
            if name != "swap" or _any(chart):
                yield chart


def _others(source: _Source) -> Iterator[Chart]:
    for column, title, unit in (
        ("foreign_cpu_seconds", "CPU used by other programs", "cores"),
        ("quota_throttled_seconds", "Time held back by a CPU quota", "seconds per second"),
    ):
        charts = _by_node(
            source,
            source.windows,
            lambda window, edges, column=column: rate(window, column, edges),  # type: ignore[misc]
            name=column.replace("_", "-"),
            title=title,
            unit=unit,
            most=0.1,
        )
        for chart in charts:
            if _any(chart):
                yield chart


def _any(chart: Chart) -> bool:
    rows = [line.values for line in chart.lines] + [band.high for band in chart.bands]
    return any(bool(np.nansum(row) > 0) for row in rows)


def _by_node(
    source: _Source,
    windows: Sequence[Window],
    value: Callable[[Window, Series], Series | None],
    *,
    name: str,
    title: str,
    unit: str,
    divisor: float = 1.0,
    from_zero: bool = True,
    most: float = float("nan"),
    note: str = "",
) -> Iterator[Chart]:
    """One line for each node, or quantiles over many; nothing where no node knows."""
    found = [(window, value(window, source.edges)) for window in windows]
    rows = [(window, row / divisor) for window, row in found if row is not None]
    if not rows or all(bool(np.isnan(row).all()) for _, row in rows):
        return
    many = len(rows) > MOST_LINES
    lines, bands = _quantiles([row for _, row in rows]) if many else (_lines(rows), ())
    yield Chart(
        name=name,
        title=title,
        unit=unit,
        edges=source.edges,
        lines=lines,
        bands=bands,
        from_zero=from_zero,
        most=most,
        phases=source.phases,
        parts=source.parts,
        marks=source.marks(window for window, _ in rows),
        note=f"{len(rows)} nodes. {note}".strip() if many else note,
    )


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
