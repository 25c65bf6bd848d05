"""One shape for every table, so that HTML, Markdown, phone and paper show the same."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeAlias, TypeVar

from boardcluster.report import words

__all__ = ["Column", "Display", "Getter", "Getters", "ReportTable", "tabulate"]

Item = TypeVar("Item")


class Display(StrEnum):
    """How a column is shown."""

    TEXT = "text"
    NUMBER = "number"
    CODE = "code"
    LONG = "long"
    MOMENT = "moment"
    ENGINE = "engine"
    STATE = "state"


@dataclass(frozen=True, slots=True)
class Column:
    """One column."""

    title: str
    """Its heading, with the unit."""
    kind: Display = Display.TEXT
    """How its values are shown."""


@dataclass(frozen=True, slots=True)
class Getter(Generic[Item]):
    """One column with where its text comes from."""

    title: str
    """Its heading, with the unit."""
    get: Callable[[Item], str]
    """The text of one row's item."""
    kind: Display = Display.TEXT
    """How its values are shown."""


Getters: TypeAlias = tuple[Getter[Item], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportTable:
    """One table."""

    caption: str
    """What it shows."""
    columns: tuple[Column, ...]
    """Its columns."""
    rows: tuple[tuple[str, ...], ...]
    """One text per column each."""
    emulated: bool = False
    """Whether any of its numbers is of nodes that are no boards."""
    mark: str = ""
    """What is said of them in a table by itself; empty for emulated nodes."""
    note: str = ""
    """A sentence below it; may be empty."""
    links: tuple[str, ...] = ()
    """For each row, where its first cell leads in HTML; empty for nowhere."""
    stem: str = ""
    """Of its LaTeX file; empty for that of its part."""

    def without_empty(self) -> ReportTable:
        """The same table without columns that are blank in every row."""
        return self._with(
            index
            for index in range(len(self.columns))
            if any(row[index] not in ("", words.NONE) for row in self.rows)
        )

    def without_constant(self, *titles: str) -> ReportTable:
        """The same table without those of the named columns that are the same in every row."""
        return self._with(
            index
            for index, column in enumerate(self.columns)
            if column.title not in titles or len({row[index] for row in self.rows}) > 1
        )

    def _with(self, indices: Iterable[int]) -> ReportTable:
        kept = tuple(indices)
        return dataclasses.replace(
            self,
            columns=tuple(self.columns[index] for index in kept),
            rows=tuple(tuple(row[index] for index in kept) for row in self.rows),
        )


def tabulate(
    items: Iterable[Item],
    getters: Getters[Item],
    *,
    caption: str,
    emulated: bool = False,
    note: str = "",
    links: tuple[str, ...] = (),
    hide: tuple[str, ...] = (),
) -> ReportTable | None:
    """Make a table of one row for each item, without blank columns; None without any item.

    Args:
        items: what the rows are of.
        getters: the columns.
        caption: see ``ReportTable``, like the next three.
        emulated: whether any number is of nodes that are no boards.
        note: a sentence below it.
        links: where the first cell of each row leads.
        hide: titles of columns that are left out where they are the same in every row.
    """
    rows = tuple(tuple(getter.get(item) for getter in getters) for item in items)
    if not rows:
        return None
    table = ReportTable(
        caption=caption,
        columns=tuple(Column(getter.title, getter.kind) for getter in getters),
        rows=rows,
        emulated=emulated,
        note=note,
        links=links,
    )
    return table.without_constant(*hide).without_empty()
