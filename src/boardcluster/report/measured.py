"""Tables of what runs yield besides their time: figures, phases, and bytes by node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from boardcluster.analysis.cells import Cell, MeasuredFigure
from boardcluster.analysis.statistics import mean
from boardcluster.records import Measurement
from boardcluster.report import words
from boardcluster.report.source import Source, configuration
from boardcluster.report.tables import Display, Getter, Getters, ReportTable, tabulate
from boardcluster.units import format_bytes

__all__ = ["figures_table", "node_bytes_table", "phases_table"]

_Value = TypeVar("_Value")
_PHASES_NOTE = (
    "A part whose name contains a slash is the engine's own phase inside a submission; such phases"
    " can overlap, so they need not add up."
)
_NODES_NOTE = (
    "Numbers by node are the kernel's counts of what the node's processes wrote to and read from"
    " storage. They include final output and its replicas and exclude what the page cache served."
)


def figures_table(source: Source, cells: Sequence[Cell]) -> ReportTable | None:
    """What the workload itself measures, one row per cell and figure; None without any."""

    def runs(cell: Cell, figure: MeasuredFigure) -> str:
        return (
            str(figure.count) if figure.count == cell.count else f"{figure.count} of {cell.count}"
        )

    getters: Getters[tuple[Cell, tuple[str, MeasuredFigure]]] = (
        Getter("Figure", lambda row: words.figure_name(row[1][0])),
        Getter("Mean", lambda row: words.number(row[1][1].mean), Display.NUMBER),
        Getter("95 % interval", lambda row: _interval(row[1][1]), Display.NUMBER),
        Getter("Runs", lambda row: runs(row[0], row[1][1]), Display.NUMBER),
    )
    rows = [(cell, item) for cell in cells for item in cell.figures.items()]
    return _table(source, cells, rows, getters, caption="what the workload itself measured")


def _interval(figure: MeasuredFigure) -> str:
    if figure.interval is None:
        return words.NONE
    return f"{words.number(figure.interval.low)} to {words.number(figure.interval.high)}"


def phases_table(source: Source, cells: Sequence[Cell]) -> ReportTable | None:
    """How long each part took, one row per cell and phase; None if no job has several parts."""
    found = [(cell, _series(cell, lambda item: item.phases_seconds)) for cell in cells]
    rows = [(cell, item) for cell, phases in found for item in phases.items()]
    if not any(len(phases) > 1 for _, phases in found):
        return None
    getters: Getters[tuple[Cell, tuple[str, list[float]]]] = (
        Getter("Part", lambda row: row[1][0], Display.CODE),
        Getter("Mean (s)", lambda row: words.seconds(mean(row[1][1])), Display.NUMBER),
        Getter("Range (s)", lambda row: _range(row[1][1]), Display.NUMBER),
    )
    note = _PHASES_NOTE if any("/" in name for _, (name, _) in rows) else ""
    return _table(source, cells, rows, getters, caption="time of each part", note=note)


def _range(seconds: Sequence[float]) -> str:
    if len(seconds) < 2:
        return words.NONE
    return f"{words.seconds(min(seconds))} to {words.seconds(max(seconds))}"


def node_bytes_table(source: Source, cells: Sequence[Cell]) -> ReportTable | None:
    """Intermediate data by the engine, and storage traffic by node; None where nothing is known."""
    rows: list[tuple[Cell, tuple[str, float, dict[str, float]]]] = []
    for cell in cells:
        if cell.mean_intermediate_bytes is not None:
            rows.append((cell, ("intermediate, by the engine", cell.mean_intermediate_bytes, {})))
        for what, series in (
            ("written to storage", _series(cell, lambda item: item.node_written_bytes)),
            ("read from storage", _series(cell, lambda item: item.node_read_bytes)),
        ):
            if series:
                means = {node: mean(values) for node, values in series.items()}
                rows.append((cell, (what, sum(means.values()), means)))
    nodes = dict.fromkeys(
        node
        for cell in cells
        for item in _measurements(cell)
        for node in (*item.node_written_bytes, *item.node_read_bytes)
    )

    def of_node(node: str) -> Callable[[tuple[Cell, tuple[str, float, dict[str, float]]]], str]:
        return lambda row: format_bytes(row[1][2][node]) if node in row[1][2] else ""

    getters: Getters[tuple[Cell, tuple[str, float, dict[str, float]]]] = (
        Getter("Bytes", lambda row: row[1][0]),
        Getter("All nodes", lambda row: format_bytes(row[1][1]), Display.NUMBER),
        *(Getter(node, of_node(node), Display.NUMBER) for node in nodes),
    )
    note = _NODES_NOTE if nodes else ""
    caption = "bytes on local storage, mean per run"
    return _table(source, cells, rows, getters, caption=caption, note=note)


def _measurements(cell: Cell) -> list[Measurement]:
    return [item.measurement for item in cell.results if item.measurement is not None]


def _series(
    cell: Cell, values: Callable[[Measurement], dict[str, float] | dict[str, int]]
) -> dict[str, list[float]]:
    """Values by name over the runs of a cell, in the order of their first appearance."""
    found: dict[str, list[float]] = {}
    for item in _measurements(cell):
        for name, value in values(item).items():
            found.setdefault(name, []).append(value)
    return found


def _table(
    source: Source,
    cells: Sequence[Cell],
    rows: Iterable[tuple[Cell, _Value]],
    getters: Getters[tuple[Cell, _Value]],
    *,
    caption: str,
    note: str = "",
) -> ReportTable | None:
    """A table whose rows begin with the name of their cell."""
    first: Getters[tuple[Cell, _Value]] = (
        Getter("Engine", lambda row: words.engine_name(row[0].engine), Display.ENGINE),
        Getter("Configuration", lambda row: configuration(row[0], cells)),
    )
    return tabulate(
        rows,
        (*first, *getters),
        caption=f"{words.workload_name(cells[0].workload)}: {caption}",
        emulated=source.are_emulated(cells),
        note=note,
        hide=("Configuration",),
    )
