"""The one shape of every exported table: named columns with units, and rows that are streamed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Any, TypeAlias

__all__ = [
    "DType",
    "Field",
    "FieldGetter",
    "Frame",
    "Value",
    "at",
    "boolean",
    "fields_of",
    "frame_of",
    "integer",
    "number",
    "objects",
    "prefixed",
    "text",
    "values_of",
]

Value: TypeAlias = "str | int | float | bool | Mapping[str, object] | Sequence[str] | None"
"""A cell; None where nothing is known. Objects are JSON text where a format nests no values."""


class DType(StrEnum):
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
    """One column."""

    name: str
    """Its name, the unit last."""
    kind: DType
    """What it holds."""
    meaning: str
    """One sentence without a full stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One table."""

    name: str
    """What it is of: ``runs``."""
    fields: tuple[Field, ...]
    """Its columns."""
    rows: Iterable[Sequence[Value]]
    """One value for each column; may be read once only."""


@dataclass(frozen=True, slots=True)
class FieldGetter:
    """One column with where its values come from."""

    field: Field
    """Its name, kind and meaning."""
    get: Callable[[Any], Any]
    """The value of one row's item; None where it is not known."""
    empty: Callable[[], Value] | None = None
    """Makes the value for what is not known; None for the usual one of the kind."""

    def value(self, item: object) -> Value:
        """The value for one row, as its kind has it."""
        found = self.get(item)
        if found is None:
            usual = "" if self.field.kind is DType.TEXT else None
            return self.empty() if self.empty else usual
        if self.field.kind is DType.OBJECT:
            return dict(found) if isinstance(found, Mapping) else list(found)
        value: Value = str(found) if self.field.kind is DType.TEXT else found
        return value


def at(path: str) -> Callable[[Any], Any]:
    """Make a function that follows attributes, ``measurement.energy.level``; None ends the way."""
    names = path.split(".")

    def get(item: Any) -> Any:
        for name in names:
            item = None if item is None else getattr(item, name)
        return item

    return get


def _column(
    kind: DType,
    name: str,
    meaning: str,
    source: str | Callable[[Any], object] = "",
    empty: Callable[[], Value] | None = None,
) -> FieldGetter:
    """Make a column of a kind.

    Args:
        kind: what it holds.
        name: its name, the unit last.
        meaning: one sentence without a full stop.
        source: where the values come from: a function, or attributes of the row's item, see ``at``;
            by default the attribute of the same name.
        empty: see ``FieldGetter``.
    """
    get = source if callable(source) else at(source or name)
    return FieldGetter(Field(name, kind, meaning), get, empty)


text = partial(_column, DType.TEXT)
integer = partial(_column, DType.INTEGER)
number = partial(_column, DType.NUMBER)
boolean = partial(_column, DType.BOOLEAN)
objects = partial(_column, DType.OBJECT)


def prefixed(prefix: str, path: str, columns: Iterable[FieldGetter]) -> tuple[FieldGetter, ...]:
    """The same columns of an attribute of the item, with something before each name."""
    whole = at(path)

    def within(get: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda item: None if (found := whole(item)) is None else get(found)

    return tuple(
        replace(
            row, field=replace(row.field, name=f"{prefix}{row.field.name}"), get=within(row.get)
        )
        for row in columns
    )


def fields_of(columns: Iterable[FieldGetter]) -> tuple[Field, ...]:
    """The names, kinds and meanings of columns."""
    return tuple(column.field for column in columns)


def values_of(columns: Iterable[FieldGetter], item: object) -> tuple[Value, ...]:
    """One row."""
    return tuple(column.value(item) for column in columns)


def frame_of(name: str, columns: Sequence[FieldGetter], items: Iterable[object]) -> Frame:
    """A table with one row for each item."""
    rows = (values_of(columns, item) for item in items)
    return Frame(name=name, fields=fields_of(columns), rows=rows)
