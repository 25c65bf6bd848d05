"""Draw time per engine: every run as a point, the mean as a bar, its 95 % interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from boardcluster.analysis.cells import Cell
from boardcluster.report import words
from boardcluster.report.plots.figure import Durations, Figure
from boardcluster.report.plots.frames import Sheet, add_boxes, clean_axes, fill
from boardcluster.report.plots.themes import ENGINE_COLOURS, MARKERS, Theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

__all__ = ["draw_durations"]

_ROW, _BAR = 66, 50
_TITLE, _TITLE_SIZE, _TITLE_LINES = 26, 13, 6
_LINE = 17
_AXIS = 58
_RIGHT = 12
_LABEL_GAP = 12
_CHARACTER = 7.6  # wide enough for bold digits of the label's size
_WIDE = 600


def draw_durations(figure: Figure, body: Durations, *, width_points: float, theme: Theme) -> Canvas:
    """Draw a figure of a width; its labels are on the axes."""
    width = width_points / theme.scale
    left = 96 if width >= _WIDE else 86
    room = width - left - _RIGHT
    groups = [
        (fill(title, room, _TITLE_SIZE, most_lines=_TITLE_LINES), cells)
        for title, cells in body.groups
    ]
    rows = sum(len(cells) for _, cells in groups)
    height = rows * _ROW + sum(_title_height(title) for title, _ in groups) + _AXIS
    sheet = Sheet(width_points=width_points, height=height, theme=theme)
    axes = sheet.axes(left=left, right=_RIGHT, top=6, bottom=_AXIS - 6)
    _draw(axes, groups, width=room, ticks=9 if width >= _WIDE else 4, theme=theme)
    remark = f" ({figure.remark})" if figure.remark else ""
    axes.set_xlabel(f"{figure.x_label}{remark}", color=theme.muted, fontsize=12 * theme.scale)
    return sheet.canvas


def _draw(
    axes: Axes,
    groups: Sequence[tuple[str, Sequence[Cell]]],
    *,
    width: float,
    ticks: int,
    theme: Theme,
) -> None:
    """Lay rows out from the top; one unit of the vertical axis is one of the layout."""
    cells = [cell for _, group in groups for cell in group]
    # The axis is long enough that every label fits behind its row's last mark.
    right = max(_end(cell) / (1 - _label_width(cell) / width) for cell in cells)
    gap = right * _LABEL_GAP / width
    y = 0.0
    placed: list[tuple[Cell, float]] = []
    for title, group in groups:
        if title:
            middle = y + _title_height(title) / 2 + 2
            axes.text(
                gap,
                middle,
                title,
                color=theme.ink,
                va="center",
                weight="bold",
                fontsize=_TITLE_SIZE * theme.scale,
            )
            y += _title_height(title)
        for cell in group:
            placed.append((cell, y + _ROW / 2))
            _draw_row(axes, cell, y + _ROW / 2, gap=gap, theme=theme)
            y += _ROW
    _draw_means(axes, placed, theme)
    axes.set_xlim(0, right)
    axes.set_ylim(y, 0)
    names = [words.engine_name(cell.engine) for cell, _ in placed]
    axes.set_yticks([place for _, place in placed], names)
    axes.locator_params(axis="x", nbins=ticks)
    clean_axes(axes, theme, grid="x", spine="left")
    axes.tick_params(
        axis="y", pad=8 * theme.scale, labelcolor=theme.ink, labelsize=13 * theme.scale
    )


def _title_height(title: str) -> float:
    """Height of a title of one or more lines; an empty one takes none."""
    return _TITLE + _LINE * title.count("\n") if title else 0.0


def _end(cell: Cell) -> float:
    interval = cell.interval_seconds
    return max(cell.maximum_seconds, interval.high if interval else 0.0)


def _labels(cell: Cell) -> tuple[str, str]:
    interval = cell.interval_seconds
    second = f"{words.interval(interval)} s" if interval else "one run, no interval"
    return words.seconds_with_unit(cell.mean_seconds), second


def _label_width(cell: Cell) -> float:
    longest = max(len(text) for text in _labels(cell))
    return _LABEL_GAP + longest * _CHARACTER


def _draw_means(axes: Axes, placed: Sequence[tuple[Cell, float]], theme: Theme) -> None:
    """Bars that end at the means."""
    for engine in dict.fromkeys(cell.engine for cell, _ in placed):
        colour = theme.soft[ENGINE_COLOURS[engine]]
        boxes = [
            (0, y - _BAR / 2, cell.mean_seconds, _BAR)
            for cell, y in placed
            if cell.engine is engine
        ]
        add_boxes(axes, boxes, face=colour, edge=colour, above=1)
    axes.vlines(
        [cell.mean_seconds for cell, _ in placed],
        [y - _BAR / 2 for _, y in placed],
        [y + _BAR / 2 for _, y in placed],
        colors=theme.ink,
        linewidths=2 * theme.scale,
        zorder=3,
    )


def _draw_row(axes: Axes, cell: Cell, y: float, *, gap: float, theme: Theme) -> None:
    """Every run in the upper part of a bar, the interval of the mean below them."""
    number, scale = ENGINE_COLOURS[cell.engine], theme.scale
    step = 26 / max(1, cell.count - 1)
    offsets = [index * step - 18 if cell.count > 1 else -4 for index in range(cell.count)]
    axes.plot(
        cell.durations_seconds,
        [y + offset for offset in offsets],
        linestyle="none",
        marker=MARKERS[number],
        markersize=8.5 * scale,
        markerfacecolor=theme.strong[number],
        markeredgecolor=theme.page,
        markeredgewidth=1.2 * scale,
        zorder=4,
    )
    if cell.interval_seconds is not None:
        low, high = max(0.0, cell.interval_seconds.low), cell.interval_seconds.high
        width = 1.6 * scale
        axes.plot([low, high], [y + 18, y + 18], color=theme.ink, linewidth=width, zorder=5)
        for edge in (low, high):
            axes.plot([edge] * 2, [y + 13, y + 23], color=theme.ink, linewidth=width, zorder=5)
    first, second = _labels(cell)
    start = _end(cell) + gap
    axes.text(start, y - 7, first, color=theme.ink, va="center", weight="bold", fontsize=14 * scale)
    axes.text(start, y + 11, second, color=theme.muted, va="center", fontsize=12 * scale)
