"""Figures as inline SVG whose colours follow the page.

Matplotlib draws with marker colours that are then replaced by CSS variables, so that one drawing
serves light and dark screens and paper. Nothing global is left changed.
"""

from __future__ import annotations

import html
import io
import re
import textwrap
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from boardcluster.analysis import Cell
from boardcluster.records import Engine
from boardcluster.report import words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["NARROW_POINTS", "WIDE_POINTS", "draw_durations"]

WIDE_POINTS = 980
NARROW_POINTS = 350

_INK, _MUTED, _LINE, _PAGE = "#010101", "#020202", "#030303", "#040404"
_STRONG = {Engine.MAPREDUCE: "#0a0001", Engine.SPARK: "#0b0001", Engine.MPI: "#0c0001"}
_SOFT = {Engine.MAPREDUCE: "#0a0002", Engine.SPARK: "#0b0002", Engine.MPI: "#0c0002"}
_MARKERS = {Engine.MAPREDUCE: "o", Engine.SPARK: "s", Engine.MPI: "D"}
_VARIABLES = {
    _INK: "--ink",
    _MUTED: "--muted",
    _LINE: "--line",
    _PAGE: "--page",
    **{colour: f"--{engine}" for engine, colour in _STRONG.items()},
    **{colour: f"--{engine}-soft" for engine, colour in _SOFT.items()},
}
_STYLE: Any = {
    "svg.fonttype": "none",  # text stays text: it can be selected, searched and scaled
    "svg.hashsalt": "boardcluster",  # the same data gives the same bytes
    "font.family": "DejaVu Sans",
    "font.size": 13,
    "text.parse_math": False,
    "axes.unicode_minus": False,
}
_ROW_POINTS = 66
_TITLE_POINTS = 26
_LINE_POINTS = 17
_AXIS_POINTS = 58
_RIGHT_POINTS = 12
_LABEL_GAP_POINTS = 12
_CHARACTER_POINTS = 7.6  # wide enough for bold digits of the label's size


def draw_durations(
    groups: Sequence[tuple[str, Sequence[Cell]]],
    *,
    width_points: int,
    name: str,
    description: str,
    emulated: bool,
    twins: str = "",
) -> str:
    """Draw time per engine: every run as a point, the mean as a bar, its 95 % interval.

    Args:
        groups: a title (may be empty) and the cells of one configuration each.
        width_points: width of the drawing; text keeps its size.
        name: unique on the page; prefixes every id inside.
        description: for people who do not see it.
        emulated: whether the axis says that nodes are emulated.
        twins: as which boards, see ``analysis.twin_words``; may be empty.

    Returns:
        An ``<svg>`` element.
    """
    # Half a second to load, and commands that draw nothing must not pay it.
    import matplotlib as mpl  # noqa: PLC0415
    from matplotlib.backends.backend_svg import FigureCanvasSVG  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    rows = sum(len(cells) for _, cells in groups)
    left_points = 96 if width_points >= WIDE_POINTS else 86
    characters = int((width_points - left_points) / _CHARACTER_POINTS)
    wrapped = [(textwrap.fill(title, characters), cells) for title, cells in groups]
    titles_points = sum(_title_points(title) for title, _ in wrapped)
    height_points = rows * _ROW_POINTS + titles_points + _AXIS_POINTS
    with mpl.rc_context(_STYLE), warnings.catch_warnings():
        # A script that the measuring font lacks is still drawn by the reader's own fonts.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = Figure(figsize=(width_points / 72, height_points / 72), dpi=72)
        FigureCanvasSVG(figure)
        figure.patch.set_visible(False)
        axes = figure.add_axes(
            (
                left_points / width_points,
                (_AXIS_POINTS - 6) / height_points,
                1 - (left_points + _RIGHT_POINTS) / width_points,
                1 - _AXIS_POINTS / height_points,
            )
        )
        _draw(
            axes,
            wrapped,
            width_points=width_points - left_points - _RIGHT_POINTS,
            ticks=9 if width_points >= WIDE_POINTS else 4,
        )
        axes.set_xlabel(
            f"seconds ({twins or 'emulated nodes on one machine'})" if emulated else "seconds",
            color=_MUTED,
            fontsize=12,
        )
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return _inline(buffer.getvalue(), name=name, description=description)


def _draw(
    axes: Axes,
    groups: Sequence[tuple[str, Sequence[Cell]]],
    *,
    width_points: float,
    ticks: int,
) -> None:
    """Lay rows out from the top; one unit of the vertical axis is one point."""
    cells = [cell for _, group in groups for cell in group]
    # The axis is long enough that every label fits behind its row's last mark.
    right = max(_end(cell) / (1 - _label_points(cell) / width_points) for cell in cells)
    gap = right * _LABEL_GAP_POINTS / width_points
    y = 0.0
    places: list[tuple[float, str]] = []
    for title, group in groups:
        if title:
            middle = y + _title_points(title) / 2 + 2
            axes.text(gap, middle, title, color=_INK, va="center", weight="bold")
            y += _title_points(title)
        for cell in group:
            places.append((y + _ROW_POINTS / 2, words.engine_name(cell.engine)))
            _draw_row(axes, cell, y + _ROW_POINTS / 2, gap=gap)
            y += _ROW_POINTS
    axes.set_xlim(0, right)
    axes.set_ylim(y, 0)
    axes.set_yticks([place for place, _ in places], [label for _, label in places])
    axes.locator_params(axis="x", nbins=ticks)
    axes.tick_params(axis="y", length=0, pad=8, labelcolor=_INK)
    axes.tick_params(axis="x", length=0, pad=6, labelcolor=_MUTED, labelsize=12)
    axes.grid(visible=True, axis="x", color=_LINE, linewidth=1)
    axes.set_axisbelow(True)
    axes.patch.set_visible(False)
    for side, spine in axes.spines.items():
        spine.set_visible(side == "left")
        spine.set_color(_MUTED)


def _title_points(title: str) -> float:
    """Height of a title of one or more lines; an empty one takes none."""
    return _TITLE_POINTS + _LINE_POINTS * title.count("\n") if title else 0.0


def _end(cell: Cell) -> float:
    interval = cell.interval_seconds
    return max(cell.maximum_seconds, interval.high if interval else 0.0)


def _labels(cell: Cell) -> tuple[str, str]:
    interval = cell.interval_seconds
    second = f"{words.interval(interval)} s" if interval else "one run, no interval"
    return words.seconds_with_unit(cell.mean_seconds), second


def _label_points(cell: Cell) -> float:
    longest = max(len(text) for text in _labels(cell))
    return _LABEL_GAP_POINTS + longest * _CHARACTER_POINTS


def _draw_row(axes: Axes, cell: Cell, y: float, *, gap: float) -> None:
    """Bar to the mean; every run in the upper part, the interval of the mean below them."""
    axes.barh(y, cell.mean_seconds, height=50, color=_SOFT[cell.engine], linewidth=0)
    axes.plot([cell.mean_seconds] * 2, [y - 25, y + 25], color=_INK, linewidth=2, zorder=3)
    step = 26 / max(1, cell.count - 1)
    offsets = [index * step - 18 if cell.count > 1 else -4 for index in range(cell.count)]
    axes.plot(
        cell.durations_seconds,
        [y + offset for offset in offsets],
        linestyle="none",
        marker=_MARKERS[cell.engine],
        markersize=8.5,
        markerfacecolor=_STRONG[cell.engine],
        markeredgecolor=_PAGE,
        markeredgewidth=1.2,
        zorder=4,
    )
    if cell.interval_seconds is not None:
        low, high = max(0.0, cell.interval_seconds.low), cell.interval_seconds.high
        axes.plot([low, high], [y + 18, y + 18], color=_INK, linewidth=1.6, zorder=5)
        for edge in (low, high):
            axes.plot([edge] * 2, [y + 13, y + 23], color=_INK, linewidth=1.6, zorder=5)
    first, second = _labels(cell)
    start = _end(cell) + gap
    axes.text(start, y - 7, first, color=_INK, va="center", weight="bold", fontsize=14)
    axes.text(start, y + 11, second, color=_MUTED, va="center", fontsize=12)


def _inline(svg: str, *, name: str, description: str) -> str:
    """Make a stand-alone SVG document an element of a page: ids, colours, fonts, title."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'(href="#|url\(#)', rf"\g<1>{name}-", svg)
    svg = re.sub(r"font: ([^;\"]*?)([\d.]+px)[^;\"]*", r"font: \1\2 var(--sans)", svg)
    for colour, variable in _VARIABLES.items():
        svg = svg.replace(colour, f"var({variable})")
    found = re.search(r'viewBox="[^"]*"', svg)
    box = found[0] if found else ""
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" {box}'
        f' role="img" aria-labelledby="{name}-title"><title id="{name}-title">'
        f"{html.escape(description)}</title>"
    )
    return opening + svg[svg.index(">") + 1 :].strip()
