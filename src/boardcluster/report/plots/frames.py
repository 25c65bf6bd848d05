"""What every drawing has: a size, a place for its axes, labels of axes and a legend.

Lengths are in units of the layout: a look's ``scale`` makes points of them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from boardcluster.report.plots.themes import DASHES, HATCHES, MARKERS, Theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

__all__ = [
    "SMALL",
    "Legend",
    "LegendEntry",
    "Sheet",
    "add_boxes",
    "clean_axes",
    "fill",
    "lay_out",
    "nice_ticks",
    "tick_text",
    "width_of",
    "with_remark",
]

SMALL = 12
"""Height of the smallest text."""

_CHARACTER = 0.6  # width over height of an average character of the font
_WIDE = 1.05  # of a character of scripts whose characters are square
_LINE = 16
_ROW = 19
_HANDLE = 26
_BETWEEN = 16
_EDGE = 2
_STEPS = (1, 2, 2.5, 5, 10)


def width_of(text: str, size: float = SMALL) -> float:
    """About how wide a text is; of several lines, the longest."""
    return max(
        (
            sum(
                _WIDE if unicodedata.east_asian_width(sign) in "WF" else _CHARACTER for sign in line
            )
            * size
            for line in text.split("\n")
        ),
        default=0.0,
    )


def fill(text: str, width: float, size: float = SMALL, *, most_lines: int = 3) -> str:
    """Break a text into lines of a width; what is too long ends with an ellipsis."""
    lines = [""]
    for word in text.split():
        for piece in _pieces(word, width, size):
            longer = f"{lines[-1]} {piece}".strip()
            if width_of(longer, size) <= width:
                lines[-1] = longer
            else:
                lines.append(piece)
    if len(lines) > most_lines:
        lines = lines[:most_lines]
        while width_of(f"{lines[-1]} …", size) > width and " " in lines[-1]:
            lines[-1] = lines[-1].rpartition(" ")[0]
        lines[-1] += " …"
    return "\n".join(lines)


def _pieces(word: str, width: float, size: float) -> list[str]:
    """A word as it is, or cut where it is longer than a line, as names without blanks may be."""
    pieces = [""]
    for sign in word:
        if pieces[-1] and width_of(pieces[-1] + sign, size) > width:
            pieces.append("")
        pieces[-1] += sign
    return pieces


def with_remark(label: str, remark: str, width: float) -> str:
    """The label of an axis with what is to be said of its numbers, in lines of a width."""
    if not remark:
        return fill(label, width)
    whole = f"{label} ({remark})"
    return whole if width_of(whole) <= width else f"{fill(label, width)}\n{fill(remark, width)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LegendEntry:
    """One entry of a legend."""

    label: str
    """Its text."""
    kind: str
    """``line``, ``points``, ``curve``, ``bar``, ``band`` or ``mark``."""
    colour: int
    """Number of its colour."""
    pattern: int
    """Number of its marker, dashes or hatch."""


@dataclass(frozen=True, slots=True)
class Legend:
    """Entries with their places."""

    placed: tuple[tuple[float, float, LegendEntry], ...]
    """Left edge, middle line and entry, its label broken into lines."""
    height: float
    """Of all."""


def lay_out(entries: Sequence[LegendEntry], width: float) -> Legend:
    """Put entries side by side, row by row."""
    placed = []
    width -= _EDGE
    x, y = 0.0, float(_EDGE)
    height = 0.0
    for entry in entries:
        label = fill(entry.label, width - _HANDLE)
        wide = _HANDLE + width_of(label)
        if x and x + wide > width:
            x, y = 0.0, y + height
            height = 0.0
        lines = label.count("\n") + 1
        placed.append(
            (
                x,
                y + _ROW / 2,
                LegendEntry(
                    label=label, kind=entry.kind, colour=entry.colour, pattern=entry.pattern
                ),
            )
        )
        height = max(height, _ROW + (lines - 1) * _LINE)
        x += wide + _BETWEEN
    return Legend(tuple(placed), y + height + 4 if entries else 0.0)


class Sheet:
    """A drawing of a width whose parts are placed from its top, in units of the layout."""

    def __init__(self, *, width_points: float, height: float, theme: Theme) -> None:
        from matplotlib.figure import Figure as Canvas  # noqa: PLC0415  half a second to load

        self.theme = theme
        self.width = width_points / theme.scale
        self.height = height
        self.canvas: Canvas = Canvas(figsize=(width_points / 72, height * theme.scale / 72), dpi=72)
        self.canvas.patch.set_visible(False)

    def axes(self, *, left: float, right: float, top: float, bottom: float) -> Axes:
        """Axes that leave so much free at each edge of the drawing."""
        return self.canvas.add_axes(
            (
                left / self.width,
                bottom / self.height,
                1 - (left + right) / self.width,
                1 - (top + bottom) / self.height,
            )
        )

    def text(self, x: float, y: float, text: str, **style: Any) -> None:
        """A text at a place from the top left corner; its size is in units."""
        size = style.pop("size", SMALL) * self.theme.scale
        style = {"color": self.theme.muted, "va": "top", "ha": "left", **style}
        self.canvas.text(
            x / self.width, 1 - y / self.height, text, fontsize=size, linespacing=1.15, **style
        )

    def legend(self, legend: Legend) -> None:
        """Draw a legend at the top."""
        for x, y, entry in legend.placed:
            self._handle(_EDGE + x, y, entry)
            top = y - SMALL * 0.62
            self.text(_EDGE + x + _HANDLE, top, entry.label, color=self.theme.ink)

    def _handle(self, x: float, y: float, entry: LegendEntry) -> None:
        """A small piece of what an entry names, drawn on the sheet: axes would take 10 ms."""
        from matplotlib.lines import Line2D  # noqa: PLC0415
        from matplotlib.patches import Rectangle  # noqa: PLC0415

        theme, right = self.theme, x + _HANDLE - 6
        colour = theme.strong[entry.colour]
        down = 1 - y / self.height
        if entry.kind in ("line", "points", "curve"):
            marked = entry.kind != "curve"
            self.canvas.add_artist(
                Line2D(
                    [x / self.width, (x + right) / 2 / self.width, right / self.width],
                    [down] * 3,
                    color=colour,
                    linewidth=(0 if entry.kind == "points" else 1.6) * theme.scale,
                    linestyle=DASHES[entry.pattern],
                    marker=MARKERS[entry.pattern] if marked else "",
                    markevery=[1],
                    markersize=7.5 * theme.scale,
                    markerfacecolor=colour,
                    markeredgecolor=theme.page,
                    markeredgewidth=0.8 * theme.scale,
                )
            )
            return
        height = {"bar": 11, "band": 9, "mark": 5}[entry.kind]
        plain = {"band": theme.soft[entry.colour], "mark": theme.bad}.get(entry.kind)
        self.canvas.add_artist(
            Rectangle(
                (x / self.width, down - height / 2 / self.height),
                (right - x) / self.width,
                height / self.height,
                facecolor=plain or theme.soft[entry.colour],
                edgecolor=plain or colour,
                linewidth=0.8 * theme.scale,
                hatch="" if plain else HATCHES[entry.pattern],
                transform=self.canvas.transFigure,
            )
        )


def add_boxes(
    axes: Axes,
    boxes: Sequence[tuple[float, float, float, float]],
    *,
    face: str,
    edge: str,
    line: float = 0.0,
    hatch: str = "",
    above: float = 2.0,
) -> None:
    """Draw rectangles that look the same as one thing: each by itself takes ten times as long.

    Args:
        axes: where.
        boxes: left, top, width and height of each, in the axes' own units.
        face: colour of the inside.
        edge: colour of the border and of the hatch.
        line: width of the border in points; 0 draws none.
        hatch: as matplotlib writes it.
        above: what it is drawn over, as matplotlib's ``zorder``.
    """
    from matplotlib.collections import PolyCollection  # noqa: PLC0415

    corners = [
        [(x, y), (x + wide, y), (x + wide, y + high), (x, y + high)] for x, y, wide, high in boxes
    ]
    axes.add_collection(
        PolyCollection(
            corners, facecolors=face, edgecolors=edge, linewidths=line, hatch=hatch, zorder=above
        ),
        autolim=False,
    )


def nice_ticks(low: float, high: float, about: int) -> list[float]:
    """Round numbers between two values, about so many."""
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415

    found = MaxNLocator(nbins=about, steps=_STEPS).tick_values(low, high)
    room = 1e-9 * (high - low)
    return [float(value) for value in found if low - room <= value <= high + room]


def tick_text(value: float) -> str:
    """A round number at an axis."""
    return f"{value:,.6g}"


def clean_axes(axes: Axes, theme: Theme, *, grid: Literal["x", "y"], spine: str) -> None:
    """Take away what is no data: frames, ticks; leave one grid and one line.

    Args:
        axes: the axes.
        theme: how it looks.
        grid: ``x`` or ``y``, the axis whose ticks have a grid.
        spine: ``left`` or ``bottom``.
    """
    axes.patch.set_visible(False)
    axes.grid(visible=True, axis=grid, color=theme.line, linewidth=theme.scale)
    axes.set_axisbelow(True)
    size = SMALL * theme.scale
    axes.tick_params(length=0, pad=5 * theme.scale, labelcolor=theme.muted, labelsize=size)
    for side, line in axes.spines.items():
        line.set_visible(side == spine)
        line.set_color(theme.muted)
        line.set_linewidth(theme.scale)
