"""The papers' tables: one CSV each, one row per cell, and the index that says what they are."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from pydantic import Field

from boardcluster.catalog.lookup import nearest, suggestion
from boardcluster.errors import SpecError, UsageError
from boardcluster.spec.problems import StrictTable, Text, read_model

__all__ = [
    "PUBLISHED",
    "Index",
    "Paper",
    "PublishedTable",
    "TableCell",
    "check_column",
    "find_cell",
    "find_table",
    "read_cells",
    "read_index",
]

PUBLISHED = Path(__file__).parent / "published"

_CELL_COLUMNS = ("quantity", "value", "unit", "note")
_HINT = "restore the file from the package"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCell:
    """One cell of a table."""

    keys: Mapping[str, str]
    """The columns that say which cell it is: ``storage`` to ``UFS``."""
    quantity: str
    """What it is: ``execution_time``."""
    value: str
    """As printed, without thousands separators; empty where the text cannot be read."""
    unit: str
    """Of the value; empty for text."""
    note: str
    """What was printed next to the value, or is doubtful."""


class Paper(StrictTable):
    """A paper, as the index has it."""

    id: Text
    authors: Text
    title: Text
    published_in: str = Field(description="text")
    year: int = Field(ge=1990, le=2100, description="a year")
    doi: str = Field(description="text")


class PublishedTable(StrictTable):
    """A table, as the index has it.

    A table that the text does not have says so in ``missing`` and has no file.
    """

    id: Text
    paper: Text
    table: Text
    title: Text
    file: str = Field(default="", description="the name of a CSV file")
    keys: list[Text] = Field(default_factory=list, description="a list of column names")
    units: list[Text] = Field(default_factory=list, description="a list of texts")
    cells: int = Field(default=0, ge=0, description="a number of rows")
    missing: str = Field(default="", description="text")
    conditions: str = Field(default="", description="text")
    doubts: list[Text] = Field(default_factory=list, description="a list of texts")


class _Index(StrictTable):
    paper: list[Paper] = Field(min_length=1, description="at least one [[paper]]")
    table: list[PublishedTable] = Field(min_length=1, description="at least one [[table]]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """What is published."""

    folder: Path
    """Where the files are."""
    papers: Mapping[str, Paper]
    """By id."""
    tables: Mapping[str, PublishedTable] = field(default_factory=dict)
    """By id, in the order of the papers."""


@cache
def read_index(folder: Path = PUBLISHED) -> Index:
    """Read ``index.toml``.

    Raises:
        SpecError: it is missing or wrong.
    """
    index, _ = read_model(folder / "index.toml", _Index, create_hint=_HINT)
    return Index(
        folder=folder,
        papers={paper.id: paper for paper in index.paper},
        tables={table.id: table for table in index.table},
    )


def find_table(name: str, *, index: Index) -> PublishedTable:
    """Return a table by its id.

    Raises:
        UsageError: there is none; the nearest id is offered.
    """
    if name not in index.tables:
        near = suggestion(nearest(name, list(index.tables)))
        raise UsageError(
            f"the catalog has no published table {name!r}{near}",
            hint="see the tables with: boardcluster catalog published",
        )
    return index.tables[name]


def read_cells(table: PublishedTable, *, folder: Path = PUBLISHED) -> tuple[TableCell, ...]:
    """Read the cells of a table; none if the text does not have it.

    Raises:
        SpecError: the file is missing, cut short, or not what the index says.
    """
    if not table.file:
        return ()
    path = folder / table.file
    try:
        text = path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"{path}: cannot be read as UTF-8: {error}", hint=_HINT) from error
    head, *rows = list(csv.reader(io.StringIO(text, newline=""))) or [[]]
    columns = [*table.keys, *_CELL_COLUMNS]
    if head != columns:
        raise SpecError(f"{path}:1: the columns are not {', '.join(columns)}", hint=_HINT)
    for line, row in enumerate(rows, start=2):
        if len(row) != len(columns):
            raise SpecError(f"{path}:{line}: {len(row)} columns, not {len(columns)}", hint=_HINT)
    if len(rows) != table.cells:
        raise SpecError(f"{path}: {len(rows)} cells, not {table.cells}", hint=_HINT)
    count = len(table.keys)
    return tuple(
        TableCell(
            keys=dict(zip(table.keys, row[:count], strict=True)),
            quantity=row[count],
            value=row[count + 1],
            unit=row[count + 2],
            note=row[count + 3],
        )
        for row in rows
    )


def check_column(table: PublishedTable, column: str, columns: Sequence[str]) -> None:
    """Refuse a column that a table does not have.

    Raises:
        UsageError: names its columns and the nearest.
    """
    if column not in columns:
        near = suggestion(nearest(column, columns))
        raise UsageError(
            f"{table.id} has no column {column!r}{near}",
            hint=f"its columns: {', '.join(columns)}",
        )


def find_cell(
    table: PublishedTable, where: Mapping[str, str], quantity: str, *, folder: Path = PUBLISHED
) -> TableCell:
    """Return the one cell of a table that has these values in its columns.

    Args:
        table: the table.
        where: values by column; columns that are left out may have any.
        quantity: what the cell is.
        folder: where the table's file is.

    Raises:
        UsageError: there is none, or more than one; says which values there are.
        SpecError: the file is missing, cut short, or not what the index says.
    """
    for column in where:
        check_column(table, column, table.keys)
    cells = [cell for cell in read_cells(table, folder=folder) if cell.quantity == quantity]
    if table.missing or not cells:
        what = table.missing or f"it has no cells of {quantity!r}"
        raise UsageError(
            f"{table.id}: {what}", hint=f"see it with: boardcluster catalog published {table.id}"
        )
    found = [cell for cell in cells if all(cell.keys[key] == value for key, value in where.items())]
    if len(found) != 1:
        words = ", ".join(f"{key} {value!r}" for key, value in where.items())
        there = "; ".join(
            f"{key}: {', '.join(dict.fromkeys(cell.keys[key] for cell in cells))}"
            for key in table.keys
        )
        raise UsageError(
            f"{table.id} has {len(found)} cells of {quantity!r} with {words}",
            hint=f"name one; it has {there}",
        )
    return found[0]
