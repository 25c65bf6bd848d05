"""One shape for what is below a heading, so that HTML and Markdown show the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from boardcluster.report.plots import Figure
from boardcluster.report.tables import Table

__all__ = ["DataFile", "Part", "Point", "named", "present"]


@dataclass(frozen=True, slots=True)
class DataFile:
    """Data to take away.

    Attributes:
        name: of the file in the folder ``data``.
        text: what is in it.
        title: what it holds.
    """

    name: str
    text: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What is below one heading, in the order of the attributes.

    Attributes:
        title: the heading.
        name: its anchor, unique on the page; also in the names of files.
        contents: its name in the table of contents; empty where it is not listed.
        text: paragraphs.
        block: a macro of ``blocks.html.j2`` and ``blocks.md.j2`` that shows ``data``; empty for
            none.
        data: what that macro shows.
        figures: drawings, each with its data.
        link: a page that says more, relative to the report; empty for none.
        link_words: what that page is; empty likewise.
        fold: words for tables that are folded until a reader opens them; empty for open ones.
        tables: tables.
        paper: whether its tables are also written for LaTeX.
        notes: smaller paragraphs.
        files: data to take away that no figure has.
        parts: what is below smaller headings.
    """

    title: str
    name: str
    contents: str = ""
    text: tuple[str, ...] = ()
    block: str = ""
    data: Any = None
    figures: tuple[Figure, ...] = ()
    link: str = ""
    link_words: str = ""
    fold: str = ""
    tables: tuple[Table, ...] = ()
    paper: bool = False
    notes: tuple[str, ...] = ()
    files: tuple[DataFile, ...] = ()
    parts: tuple[Part, ...] = ()

    def is_empty(self) -> bool:
        """Whether there is nothing below the heading."""
        return not (self.text or self.figures or self.tables or self.notes)

    def walk(self) -> Iterator[Part]:
        """This part, then those below it."""
        yield self
        for part in self.parts:
            yield from part.walk()


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One finding.

    Attributes:
        name: what kind of finding it is, in a few words.
        sentence: the finding.
        certainty: how sure it is.
        section: anchor of the section that shows it.
        emulated: whether it is of emulated nodes.
    """

    name: str
    sentence: str
    certainty: str
    section: str
    emulated: bool


def named(figures: Sequence[Figure], name: str) -> tuple[Figure, ...]:
    """The same figures with the name of their part, which no other has; from the second numbered.

    Builders name figures by words of the workload, and two workloads may have the same.
    """
    return tuple(
        replace(figure, name=f"{name}-{place}" if place > 1 else name)
        for place, figure in enumerate(figures, start=1)
    )


def present(*tables: Table | None) -> tuple[Table, ...]:
    """Those tables that there are."""
    return tuple(table for table in tables if table is not None)
