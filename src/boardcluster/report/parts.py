"""One shape for what is below a heading, so that HTML and Markdown show the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from boardcluster.report.plots import Figure
from boardcluster.report.tables import ReportTable

__all__ = ["DataFile", "KeyPoint", "Part", "named", "present"]


@dataclass(frozen=True, slots=True)
class DataFile:
    """Data to take away."""

    name: str
    """Of the file in the folder ``data``."""
    text: str
    """What is in it."""
    title: str
    """What it holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What is below one heading, in the order of the attributes."""

    title: str
    """The heading."""
    name: str
    """Its anchor, unique on the page; also in the names of files."""
    contents: str = ""
    """Its name in the table of contents; empty where it is not listed."""
    text: tuple[str, ...] = ()
    """Paragraphs."""
    block: str = ""
    """A macro of ``blocks.html.j2`` and ``blocks.md.j2`` that shows ``data``; empty for none."""
    data: Any = None
    """What that macro shows."""
    figures: tuple[Figure, ...] = ()
    """Drawings, each with its data."""
    link: str = ""
    """A page that says more, relative to the report; empty for none."""
    link_words: str = ""
    """What that page is; empty likewise."""
    fold: str = ""
    """Words for tables that are folded until a reader opens them; empty for open ones."""
    tables: tuple[ReportTable, ...] = ()
    """Tables."""
    paper: bool = False
    """Whether its tables are also written for LaTeX."""
    notes: tuple[str, ...] = ()
    """Smaller paragraphs."""
    files: tuple[DataFile, ...] = ()
    """Data to take away that no figure has."""
    parts: tuple[Part, ...] = ()
    """What is below smaller headings."""

    def is_empty(self) -> bool:
        """Whether there is nothing below the heading."""
        return not (self.text or self.figures or self.tables or self.notes)

    def walk(self) -> Iterator[Part]:
        """This part, then those below it."""
        yield self
        for part in self.parts:
            yield from part.walk()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPoint:
    """One finding."""

    name: str
    """What kind of finding it is, in a few words."""
    sentence: str
    """The finding."""
    certainty: str
    """How sure it is."""
    section: str
    """Anchor of the section that shows it."""
    emulated: bool
    """Whether it is of emulated nodes."""


def named(figures: Sequence[Figure], name: str) -> tuple[Figure, ...]:
    """The same figures with the name of their part, which no other has; from the second numbered.

    Builders name figures by words of the workload, and two workloads may have the same.
    """
    return tuple(
        replace(figure, name=f"{name}-{place}" if place > 1 else name)
        for place, figure in enumerate(figures, start=1)
    )


def present(*tables: ReportTable | None) -> tuple[ReportTable, ...]:
    """Those tables that there are."""
    return tuple(table for table in tables if table is not None)
