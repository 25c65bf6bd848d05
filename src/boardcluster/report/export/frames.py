"""The one shape of every exported table: named columns with units, and rows that are streamed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

__all__ = ["Field", "Frame", "Kind", "Value"]

Value: TypeAlias = "str | int | float | bool | Mapping[str, object] | Sequence[str] | None"
"""A cell; None where nothing is known. Objects are JSON text where a format nests no values."""


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
