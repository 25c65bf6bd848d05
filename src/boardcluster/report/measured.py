"""Tables of what runs yield beside their time: figures, phases, and bytes by node."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from boardcluster.analysis import Cell, Figure
from boardcluster.analysis.statistics import mean
from boardcluster.records import Measurement
from boardcluster.report import words
from boardcluster.report.source import Source, configuration
from boardcluster.report.tables import Column, Kind, Table
from boardcluster.units import format_bytes

__all__ = ["figures_table", "node_bytes_table", "phases_table"]


def figures_table(source: Source, cells: Sequence[Cell]) -> Table | None:
    """What the workload itself measures, one row per cell and figure; None without any."""
    rows = tuple(
        (*_name(cell, cells), words.figure_name(name), *_figure(figure, cell))
        for cell in cells
        for name, figure in cell.figures.items()
    )
    return _table(
        source,
        cells,
        caption="what the workload itself measured",
        columns=(
            Column("Figure"),
            Column("Mean", Kind.NUMBER),
            Column("95 % interval", Kind.NUMBER),
            Column("Runs", Kind.NUMBER),
        ),
        rows=rows,
    )


def _figure(figure: Figure, cell: Cell) -> tuple[str, str, str]:
    interval = words.NONE
    if figure.interval is not None:
        low, high = words.number(figure.interval.low), words.number(figure.interval.high)
        interval = f"{low} to {high}"
    runs = str(figure.count) if figure.count == cell.count else f"{figure.count} of {cell.count}"
    return words.number(figure.mean), interval, runs


def phases_table(source: Source, cells: Sequence[Cell]) -> Table | None:
    """How long each part took, one row per cell and phase; None if no job has several parts."""
    found = {id(cell): _series(cell, lambda item: item.phases_seconds) for cell in cells}
    if not any(len(phases) > 1 for phases in found.values()):
        return None
    rows = tuple(
        (
            *_name(cell, cells),
            name,
            words.seconds(mean(seconds)),
            f"{words.seconds(min(seconds))} to {words.seconds(max(seconds))}"
            if len(seconds) > 1
            else words.NONE,
        )
        for cell in cells
        for name, seconds in found[id(cell)].items()
    )
    return _table(
        source,
        cells,
        caption="time of each part",
        columns=(
            Column("Part", Kind.CODE),
            Column("Mean (s)", Kind.NUMBER),
            Column("Range (s)", Kind.NUMBER),
        ),
        rows=rows,
        note="A part with a stroke is the engine's own phase inside a submission; such phases can"
        " overlap, so they need not add up."
        if any("/" in name for phases in found.values() for name in phases)
        else "",
    )


def node_bytes_table(source: Source, cells: Sequence[Cell]) -> Table | None:
    """Intermediate data by the engine, and storage traffic by node; None where nothing is known."""
    nodes = dict.fromkeys(
        node
        for cell in cells
        for item in _measurements(cell)
        for node in (*item.node_written_bytes, *item.node_read_bytes)
    )
    rows: list[tuple[str, ...]] = []
    for cell in cells:
        if cell.mean_intermediate_bytes is not None:
            shown = format_bytes(cell.mean_intermediate_bytes)
            rows.append(
                (*_name(cell, cells), "intermediate, by the engine", shown, *("" for _ in nodes))
            )
        for what, series in (
            ("written to storage", _series(cell, lambda item: item.node_written_bytes)),
            ("read from storage", _series(cell, lambda item: item.node_read_bytes)),
        ):
            if series:
                means = {node: mean(values) for node, values in series.items()}
                each = (format_bytes(means[node]) if node in means else "" for node in nodes)
                rows.append((*_name(cell, cells), what, format_bytes(sum(means.values())), *each))
    return _table(
        source,
        cells,
        caption="bytes on local storage, mean per run",
        columns=(
            Column("Bytes"),
            Column("All nodes", Kind.NUMBER),
            *(Column(node, Kind.NUMBER) for node in nodes),
        ),
        rows=tuple(rows),
        note="By node the kernel counts what the node's processes wrote to and read from storage:"
        " final output and its replicas are in it, what the page cache served is not."
        if nodes
        else "",
    )


def _name(cell: Cell, cells: Sequence[Cell]) -> tuple[str, str]:
    return words.engine_name(cell.engine), configuration(cell, cells)


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
    *,
    caption: str,
    columns: tuple[Column, ...],
    rows: tuple[tuple[str, ...], ...],
    note: str = "",
) -> Table | None:
    if not rows:
        return None
    table = Table(
        caption=f"{words.workload_name(cells[0].workload)}: {caption}",
        columns=(Column("Engine", Kind.ENGINE), Column("Configuration"), *columns),
        rows=rows,
        emulated=source.is_emulated([item for cell in cells for item in cell.results]),
        note=note,
    )
    return table.without_constant("Configuration").without_empty()
