"""What the papers' cells were measured under, in the words of our own runs, to compare them.

``conditions.toml`` says what a table is of (``stated.py``); its columns say the rest. What a paper
does not say is left open, and matches anything.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from boardcluster.analysis.result_sets import Condition, ResultPoint, ResultSet
from boardcluster.catalog.consistency import doubt_of
from boardcluster.catalog.lookup import entry_names, find_part, nearest, suggestion
from boardcluster.catalog.published import (
    Index,
    PublishedTable,
    TableCell,
    check_column,
    find_table,
    read_cells,
)
from boardcluster.catalog.stated import TableConditions, read_conditions
from boardcluster.errors import SpecError, UsageError
from boardcluster.records import Fingerprint
from boardcluster.units import parse_size

__all__ = ["machine_of", "published_result_set"]

_HINT = "restore the file from the package"

_ENGINES = {"Hadoop": "mapreduce", "Spark": "spark"}
_BYTES = {"GB": 1e9, "MB": 1e6}
"""The papers' sizes of intermediate data, in bytes: powers of ten, as their input sizes are."""

_COLUMNS = {
    "nodes": "workers",
    "data_size": "size_bytes",
    "platform": "engine",
    "benchmark": "workload",
    "maps": "pi.maps",
    "samples": "pi.samples",
    "operation": "operation",
}
"""Columns and the condition that each is."""
_MATRIX_ORDER = "matrix_order"
_NUMBER_BYTES = 8
_STORAGE = "storage"
_BOARD = "board"
_MACHINE_COLUMNS = {
    "storage": _STORAGE,
    "board": _BOARD,
    "node": _BOARD,
    "computer": _BOARD,
    "computing_nodes": _BOARD,
    "cluster": _BOARD,
}
"""Columns that say what the machine was, which decides only where several cells match."""

_BOARD_WORDS = re.compile(
    r"\b(?:rpi|raspberry pi)?[ -]?([2-5]) ?(?:model )?b(\+|[ -]plus)?(?![a-z])"
)
_NODE_COUNT = re.compile(r"\((\d+) nodes?\)|^(\d+) \N{MULTIPLICATION SIGN} ")
_MEDIA = (("ufs", ("ufs",)), ("ssd", ("nvme", "ssd")), ("sd card", ("microsd", "sd card", " sd ")))
"""Kinds of media and words by which they are known; the first that fits counts."""


def published_result_set(
    name: str, where: Mapping[str, str], *, index: Index, asked: str
) -> ResultSet:
    """Return a paper's table as a side of a comparison.

    Args:
        name: id of the table.
        where: only cells with these values in these columns; the column ``quantity`` is known, too.
        index: what is published.
        asked: as it was asked for.

    Raises:
        UsageError: there is no such table, column or value; the nearest is offered.
        SpecError: a file is missing or wrong.
    """
    table = find_table(name, index=index)
    if table.missing:
        raise UsageError(
            f"{table.id} has no cells: {table.missing}",
            hint="see the tables with: boardcluster catalog published",
        )
    cells = read_cells(table, folder=index.folder)
    for column, value in where.items():
        _check_where(table, cells, column, value)
    chosen = [
        cell
        for cell in cells
        if all(_value(cell, column) == value for column, value in where.items())
    ]
    known = read_conditions().get(table.id)
    rows = _rows(cells, table, known) if known else {}
    points = [
        point
        for cell in chosen
        if (point := _point(cell, table, known, rows.get(_row_of(cell), {})))
    ]
    if not points:
        words = ", ".join(f"{column} {value!r}" for column, value in where.items())
        raise UsageError(
            f"{table.id} has no number{f' with {words}' if words else ''}",
            hint=f"see its cells with: boardcluster catalog published {table.id}",
        )
    notes = [f"{table.id}: {table.conditions}"] if table.conditions else []
    notes += [f"{table.id}, doubtful: {doubt}" for doubt in table.doubts]
    paper = index.papers[table.paper]
    return ResultSet(
        name=asked,
        title=f"{paper.authors} {paper.year}, {table.table}: {table.title}",
        points=tuple(points),
        notes=tuple(notes),
        chosen=frozenset(_COLUMNS.get(column, column) for column in where),
    )


def _value(cell: TableCell, column: str) -> str:
    return cell.quantity if column == "quantity" else cell.keys[column]


def _check_where(
    table: PublishedTable, cells: tuple[TableCell, ...], column: str, value: str
) -> None:
    check_column(table, column, [*table.keys, "quantity"])
    there = list(dict.fromkeys(_value(cell, column) for cell in cells))
    if value not in there:
        by_lower = {text.lower(): text for text in there}
        near = suggestion(by_lower.get(nearest(value, list(by_lower)), ""))
        raise UsageError(
            f"{table.id}: no cell has {column} {value!r}{near}",
            hint=f"it has {column}: {', '.join(there)}",
        )


def _row_of(cell: TableCell) -> tuple[str, ...]:
    return tuple(cell.keys.values())


def _rows(
    cells: Sequence[TableCell], table: PublishedTable, known: TableConditions
) -> dict[tuple[str, ...], dict[str, Condition]]:
    """Return, by row, the conditions that quantities of the row itself say."""
    found: dict[tuple[str, ...], dict[str, Condition]] = {}
    for cell in cells:
        name = known.of_row.get(cell.quantity)
        if name is None:
            continue
        row = found.setdefault(_row_of(cell), {})
        if name != _MATRIX_ORDER:
            row[name] = cell.value
            continue
        try:
            row["size_bytes"] = _NUMBER_BYTES * int(cell.value) ** 2
        except ValueError as error:
            raise SpecError(f"{table.file}: {cell.quantity}: {error}", hint=_HINT) from error
    return found


def _point(
    cell: TableCell,
    table: PublishedTable,
    known: TableConditions | None,
    row: Mapping[str, Condition],
) -> ResultPoint | None:
    """Return a cell as a point; None for text, and for what our runs do not have.

    Args:
        cell: the cell.
        table: its table.
        known: what is stated of the table.
        row: what other cells of its row say of it.
    """
    try:
        value = float(cell.value)
    except ValueError:
        return None
    conditions: dict[str, Condition] = {}
    machine: dict[str, str] = {}
    for column, text in cell.keys.items():
        if not text:
            continue
        if column in _MACHINE_COLUMNS:
            machine[_MACHINE_COLUMNS[column]] = _kind(_MACHINE_COLUMNS[column], text)
            if count := _NODE_COUNT.search(text):
                conditions["workers"] = int(count[1] or count[2])
        else:
            conditions[_COLUMNS.get(column, column)] = _condition(column, text, table, known)
    quantity = f"{cell.quantity} ({cell.unit})" if cell.unit else cell.quantity
    if known is not None:
        conditions |= {**_stated(known), **row}
        if known.board:
            machine.setdefault(_BOARD, _kind(_BOARD, known.board))
        if cell.quantity in known.quantities:
            operation = str(conditions.pop("operation", ""))
            quantity = known.quantities[cell.quantity].format(operation=operation)
            value *= _BYTES.get(cell.unit, 1.0) if quantity.endswith("_bytes") else 1.0
    keys = ", ".join(f"{key} {text}" for key, text in cell.keys.items() if text)
    note = f" ({cell.note})" if cell.note else ""
    return ResultPoint(
        quantity=quantity,
        conditions=conditions,
        machine=machine,
        values=(value,),
        label=keys,
        source=f"{table.paper}, {table.table}: {keys}{note}",
        doubt=doubt_of(table.id, cell),
    )


def _condition(
    column: str, text: str, table: PublishedTable, known: TableConditions | None
) -> Condition:
    if column == "platform":
        return _ENGINES.get(text, text)
    if column == "benchmark":
        return text.lower()
    try:
        if column == "data_size":
            return parse_size(text) * (known.size_times if known else 1)
        return int(text) if column == "nodes" else text
    except ValueError as error:
        raise SpecError(f"{table.file}: {column}: {error}", hint=_HINT) from error


def _stated(known: TableConditions) -> dict[str, Condition]:
    """Return what holds for the whole table."""
    named: dict[str, Condition] = {
        "workload": known.workload,
        "engine": known.engine,
        "workers": known.workers,
    }
    return known.parameters | {key: value for key, value in named.items() if value}


# Machines


def machine_of(found: Fingerprint) -> dict[str, str]:
    """Return the board and the kind of medium of a setup, where it has one of each.

    Of emulated boards those that they stand for; for other emulated nodes nothing.
    """
    text = found.twin.lower() if found.twin else " + ".join(found.hardware).lower()
    boards = {_board(hit) for hit in _BOARD_WORDS.finditer(text)}
    for name in entry_names("media"):
        if found.twin and re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text):
            text += f" {find_part('media', name).kind.lower()}"
    media = {kind for kind, words in _MEDIA if any(word in text for word in words)}
    machine = {}
    if len(boards) == 1:
        machine[_BOARD] = boards.pop()
    if len(media) == 1:
        machine[_STORAGE] = media.pop()
    return machine


def _board(hit: re.Match[str]) -> str:
    return f"{hit[1]}b{'+' if hit[2] else ''}"


def _kind(what: str, text: str) -> str:
    """Return a board or medium of a table in the words of ``machine_of``; else its own words."""
    lower = text.lower()
    if what == _BOARD:
        hit = _BOARD_WORDS.search(lower)
        return _board(hit) if hit else lower
    return next((kind for kind, words in _MEDIA if any(word in lower for word in words)), lower)
