"""One shape for every figure, so that screen, print and the data file show the same."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from boardcluster.analysis.cells import Cell
from boardcluster.foreign import write_csv
from boardcluster.report import words

if TYPE_CHECKING:
    from boardcluster.report.curves import Chart

__all__ = [
    "Bar",
    "BarGroup",
    "Bars",
    "Body",
    "Curves",
    "Durations",
    "Figure",
    "Lines",
    "Point",
    "Series",
    "Stack",
    "Style",
    "csv_text",
    "describe",
]


@dataclass(frozen=True, slots=True)
class Style:
    """How one of several things is told from the others, in colour and without."""

    colour: int
    """Number of its colour, from 0."""
    pattern: int
    """Number of its marker, dashes and hatch, from 0; differs within a figure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One mean."""

    x: float
    """Its place, in the unit of the figure's ``x_label``."""
    y: float
    """The mean, in the unit of its ``y_label``."""
    low: float | None
    """Lower end of its 95 % interval; None for one run, which has none."""
    high: float | None
    """Upper end; None likewise."""
    runs: int
    """Number of runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One line."""

    label: str
    """What it is."""
    style: Style
    """How it is drawn."""
    points: tuple[Point, ...]
    """Its means, by rising ``x``."""
    fit: tuple[tuple[float, float], ...] = ()
    """A fitted curve as places and values, drawn dashed; empty for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """Means over a number, with error bars."""

    series: tuple[Series, ...]
    """At least one."""
    ticks: tuple[float, ...] = ()
    """The places that are labelled; empty for round numbers."""
    ideal: tuple[tuple[float, float], ...] = ()
    """Two points of a straight line that is the best one could hope for; empty for none."""
    ideal_label: str = ""
    """What that line is."""
    levels: tuple[float, ...] = ()
    """Values that a dotted line is drawn at, such as limits."""
    from_zero: bool = True
    """Whether the vertical axis starts at 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One bar."""

    label: str
    """What it is of."""
    style: Style
    """How it is drawn."""
    value: float
    """Its length, in the unit of the figure's ``x_label``."""
    low: float | None
    """Lower end of the 95 % interval; None where there is none."""
    high: float | None
    """Upper end; None likewise."""
    words: tuple[str, str]
    """The value as text, and a text below it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BarGroup:
    """Bars that are compared with each other."""

    title: str
    """What they have in common; may be empty."""
    bars: tuple[Bar, ...]
    """At least one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """Horizontal bars in groups."""

    groups: tuple[BarGroup, ...]
    """At least one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """Horizontal bars of shares that stand behind each other."""

    parts: tuple[str, ...]
    """What the shares are of."""
    rows: tuple[tuple[str, tuple[float, ...]], ...]
    """Label and one share for each part, as fractions of 1."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curves:
    """Values over the time of one run."""

    chart: Chart
    """The curves."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Durations:
    """Every run as a point, the mean as a bar, its 95 % interval."""

    groups: tuple[tuple[str, tuple[Cell, ...]], ...]
    """A title (may be empty) and the cells of one configuration each."""


Body: TypeAlias = "Lines | Bars | Stack | Curves | Durations"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Figure:
    """One figure."""

    name: str
    """Unique among the figures of a report; the stem of its files and of its CSV."""
    title: str
    """What it shows, in a few words."""
    caption: str
    """What a reader must know to read it, in sentences."""
    emulated: bool
    """Whether any of its numbers is of nodes that are no boards."""
    twins: str
    """What those are, see ``analysis.node_words``; may be empty."""
    x_label: str
    """What the horizontal axis is, with the unit."""
    y_label: str
    """What the vertical axis is, with the unit; empty where rows have labels instead."""
    body: Body
    """What is drawn."""
    rows: tuple[Mapping[str, object], ...]
    """The data: one mapping of column to value for each mark; a None is empty in the CSV."""
    columns: int = 1
    """How many columns of a two-column paper it takes, 1 or 2."""

    @property
    def remark(self) -> str:
        """What axes say of numbers of nodes that are no boards; empty for boards."""
        if not self.emulated:
            return ""
        return self.twins or "emulated nodes on one machine"


def csv_text(figure: Figure) -> str:
    """The data of a figure as CSV with a heading; numbers keep ten digits, None is empty."""
    names = list(dict.fromkeys(name for row in figure.rows for name in row))
    buffer = io.StringIO()
    rows = ([_field(row.get(name)) for name in names] for row in figure.rows)
    write_csv(buffer, [names, *rows])
    return buffer.getvalue()


def _field(value: object) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def describe(figure: Figure) -> str:
    """Say in words what a figure shows, for people who do not see it."""
    body = figure.body
    if isinstance(body, Curves):
        # Charts need numpy, which takes longer to load than a report without them to write.
        from boardcluster.report.curves import describe as describe_chart  # noqa: PLC0415

        said = describe_chart(body.chart)
    elif isinstance(body, Lines):
        said = "; ".join(
            f"{row.label}: "
            + ", ".join(f"{words.number(point.y)} at {point.x:g}" for point in row.points)
            for row in body.series
        )
    elif isinstance(body, Bars):
        said = "; ".join(
            f"{group.title} {bar.label}: {bar.words[0]}".strip()
            for group in body.groups
            for bar in group.bars
        )
    elif isinstance(body, Stack):
        said = "; ".join(
            f"{label}: "
            + ", ".join(
                f"{part} {words.percent(share)}"
                for part, share in zip(body.parts, shares, strict=True)
                if share > 0
            )
            for label, shares in body.rows
        )
    else:
        said = "; ".join(
            f"{title} {words.engine_name(cell.engine)} mean {words.seconds(cell.mean_seconds)} s of"
            f" {words.count(cell.count, 'run')}".strip()
            for title, cells in body.groups
            for cell in cells
        )
    return f"{figure.title}: {said}"
