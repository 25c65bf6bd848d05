"""The one shape of every exported table: named columns with units, and rows that are streamed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

if TYPE_CHECKING:
    from boardcluster.analysis import Interval

__all__ = [
    "Column",
    "Columns",
    "Field",
    "Frame",
    "Kind",
    "Value",
    "boolean",
    "fields_of",
    "frame_of",
    "high_of",
    "integer",
    "lift",
    "low_of",
    "number",
    "objects",
    "prefixed",
    "text",
    "values_of",
]

Value: TypeAlias = "str | int | float | bool | Mapping[str, object] | Sequence[str] | None"
"""A cell; None where nothing is known. Objects are JSON text where a format nests no values."""

Item = TypeVar("Item")
Piece = TypeVar("Piece")


class Kind(StrEnum):
    """What a column holds.

    TEXT is never None, but may be empty. OBJECT is a mapping or a list.
    """

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    OBJECT = "object"


@dataclass(frozen=True, slots=True)
class Field:
    """One column.

    Attributes:
        name: its name, the unit last.
        kind: what it holds.
        meaning: one sentence without a full stop.
    """

    name: str
    kind: Kind
    meaning: str


@dataclass(frozen=True, slots=True)
class Column(Generic[Item]):
    """One column with where its values come from.

    Attributes:
        field: its name, kind and meaning.
        get: the value of one row's item.
        unknown: the value where the item is not there, see ``lift``.
    """

    field: Field
    get: Callable[[Item], Value]
    unknown: Value = None


Columns: TypeAlias = tuple[Column[Item], ...]


def text(name: str, meaning: str, get: Callable[[Item], str]) -> Column[Item]:
    """Make a column of texts; unknown ones are empty."""
    return Column(Field(name, Kind.TEXT, meaning), get, "")


def integer(name: str, meaning: str, get: Callable[[Item], int | None]) -> Column[Item]:
    """Make a column of whole numbers."""
    return Column(Field(name, Kind.INTEGER, meaning), get)


def number(name: str, meaning: str, get: Callable[[Item], float | None]) -> Column[Item]:
    """Make a column of numbers."""
    return Column(Field(name, Kind.NUMBER, meaning), get)


def boolean(name: str, meaning: str, get: Callable[[Item], bool | None]) -> Column[Item]:
    """Make a column of truth values."""
    return Column(Field(name, Kind.BOOLEAN, meaning), get)


def objects(
    name: str, meaning: str, get: Callable[[Item], Value], unknown: Value = None
) -> Column[Item]:
    """Make a column of mappings or lists."""
    return Column(Field(name, Kind.OBJECT, meaning), get, unknown)


def low_of(interval: Interval | None) -> float | None:
    """The lower end of an interval, if there is one."""
    return interval.low if interval else None


def high_of(interval: Interval | None) -> float | None:
    """The upper end of an interval, if there is one."""
    return interval.high if interval else None


def lift(columns: Columns[Piece], piece: Callable[[Item], Piece | None]) -> Columns[Item]:
    """The same columns for items that have a piece, or not: then each value is unknown."""

    def lifted(column: Column[Piece]) -> Callable[[Item], Value]:
        def get(item: Item) -> Value:
            found = piece(item)
            return copy(column.unknown) if found is None else column.get(found)

        return get

    return tuple(Column(column.field, lifted(column), column.unknown) for column in columns)


def prefixed(prefix: str, columns: Columns[Item]) -> Columns[Item]:
    """The same columns with something before each name."""
    return tuple(
        replace(column, field=replace(column.field, name=f"{prefix}{column.field.name}"))
        for column in columns
    )


def fields_of(columns: Columns[Item]) -> tuple[Field, ...]:
    """The names, kinds and meanings of columns."""
    return tuple(column.field for column in columns)


def values_of(columns: Columns[Item], item: Item) -> tuple[Value, ...]:
    """One row."""
    return tuple(column.get(item) for column in columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One table.

    Attributes:
        name: what it is of: ``runs``.
        fields: its columns.
        rows: one value for each column; may be read once only.
    """

    name: str
    fields: tuple[Field, ...]
    rows: Iterable[Sequence[Value]]


def frame_of(name: str, columns: Columns[Item], items: Iterable[Item]) -> Frame:
    """A table with one row for each item."""
    rows = (values_of(columns, item) for item in items)
    return Frame(name=name, fields=fields_of(columns), rows=rows)
