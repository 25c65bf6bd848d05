"""One shape for every table, so that HTML, Markdown, phone and paper show the same."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from boardcluster.report import words

__all__ = ["Column", "Kind", "Table"]


class Kind(StrEnum):
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
    """One column.

    Attributes:
        title: its heading, with the unit.
        kind: how its values are shown.
    """

    title: str
    kind: Kind = Kind.TEXT


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One table.

    Attributes:
        caption: what it shows.
        columns: its columns.
        rows: one text per column each.
        emulated: whether any of its numbers is of nodes that are no boards.
        mark: what is said of them in a table by itself; empty for emulated nodes.
        note: a sentence below it; may be empty.
        links: for each row, where its first cell leads in HTML; empty for nowhere.
    """

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    emulated: bool = False
    mark: str = ""
    note: str = ""
    links: tuple[str, ...] = ()

    def without_empty(self) -> Table:
        """The same table without columns that say nothing in any row."""
        return self._with(
            index
            for index in range(len(self.columns))
            if any(row[index] not in ("", words.NONE) for row in self.rows)
        )

    def without_constant(self, *titles: str) -> Table:
        """The same table without those of the named columns that say the same in every row."""
        return self._with(
            index
            for index, column in enumerate(self.columns)
            if column.title not in titles
            or len({row[index] for row in self.rows} - {words.NONE}) > 1
        )

    def _with(self, indices: Iterable[int]) -> Table:
        kept = tuple(indices)
        return dataclasses.replace(
            self,
            columns=tuple(self.columns[index] for index in kept),
            rows=tuple(tuple(row[index] for index in kept) for row in self.rows),
        )
