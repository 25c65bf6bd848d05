"""One shape for what stands below a heading, so that HTML and Markdown show the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from boardcluster.report.plots import Figure
from boardcluster.report.tables import Table

__all__ = ["Part", "named"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What stands below one heading, in the order of the attributes.

    Attributes:
        title: the heading.
        name: its anchor, unique on the page; also in the names of files.
        text: paragraphs.
        figures: drawings, each with its data.
        tables: tables.
        notes: smaller paragraphs at the end.
        link: a page that says more, relative to the report; empty for none.
        link_words: what that page is; empty likewise.
    """

    title: str
    name: str
    text: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    link: str = ""
    link_words: str = ""

    def is_empty(self) -> bool:
        """Whether there is nothing below the heading."""
        return not (self.text or self.figures or self.tables or self.notes)


def named(figures: Sequence[Figure], name: str) -> tuple[Figure, ...]:
    """The same figures with the name of their part, which no other has; from the second numbered.

    Builders name figures by words of the workload, and two workloads may have the same.
    """
    return tuple(
        replace(figure, name=f"{name}-{place}" if place > 1 else name)
        for place, figure in enumerate(figures, start=1)
    )
