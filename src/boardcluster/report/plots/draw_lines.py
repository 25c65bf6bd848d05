"""Draw means over a number: lines with markers and error bars, fits and an ideal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boardcluster.report.plots.figure import Figure, Lines, Point, Series
from boardcluster.report.plots.frames import (
    LegendEntry,
    Sheet,
    clean_axes,
    lay_out,
    nice_ticks,
    tick_text,
    width_of,
    with_remark,
)
from boardcluster.report.plots.themes import DASHES, MARKERS, Theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

__all__ = ["draw_lines"]

_PLOT, _PLOT_WIDE = 210, 300
_WIDE = 600
_BOTTOM, _RIGHT, _GAP = 46, 14, 8
_LINE = 16
_DODGE, _DODGE_MOST = 4.0, 18.0
"""Between series and between the outermost, so that error bars at one place are all seen."""
_ABOVE = 1.06


def draw_lines(figure: Figure, body: Lines, *, width_points: float, theme: Theme) -> Canvas:
    """Draw a figure of a width; its labels are on the axes."""
    width = width_points / theme.scale
    most = _ABOVE * max(_top(row) for row in body.series)
    most = max(most, *(y for _, y in body.ideal)) if body.ideal else most
    least, most = (0.0, most or 1.0) if body.from_zero else _close_reach(body)
    ticks = nice_ticks(least, most, 6)
    left = 12 + max(width_of(tick_text(value)) for value in ticks)
    title = with_remark(figure.y_label, figure.remark, width)
    legend = lay_out(_entries(body), width)
    heading = (title.count("\n") + 1) * _LINE
    top = heading + legend.height + _GAP
    plot = _PLOT_WIDE if width >= _WIDE else _PLOT
    sheet = Sheet(width_points=width_points, height=top + plot + _BOTTOM, theme=theme)
    sheet.legend(legend)
    sheet.text(0, legend.height, title)
    axes = sheet.axes(left=left, right=_RIGHT, top=top, bottom=_BOTTOM)
    _frame(axes, body, ticks=ticks, reach=(least, most), about=9 if width >= _WIDE else 5)
    clean_axes(axes, theme, grid="y", spine="bottom")
    if body.ideal:
        xs, ys = zip(*body.ideal, strict=True)
        axes.plot(xs, ys, color=theme.muted, linewidth=theme.scale, linestyle=(0, (1.5, 2.5)))
    for value in body.levels:
        axes.axhline(value, color=theme.muted, linewidth=theme.scale, linestyle=(0, (1.5, 2.5)))
    fitted = any(row.fit for row in body.series)
    low, high = axes.get_xlim()
    inner = width - left - _RIGHT
    step = min(_DODGE, _DODGE_MOST / len(body.series)) * (high - low) / inner
    for place, row in enumerate(body.series):
        shift = (place - (len(body.series) - 1) / 2) * step
        _draw_series(axes, row, theme, shift=shift, dashed=not fitted)
    sheet.text(width - _RIGHT, top + plot + 26, figure.x_label, ha="right")
    return sheet.canvas


def _top(row: Series) -> float:
    found = [value for point in row.points for value in (point.y, point.high) if value is not None]
    return max(found + [y for _, y in row.fit])


def _close_reach(body: Lines) -> tuple[float, float]:
    """The values that an axis shows which need not start at 0, with some room."""
    found = [point.y for row in body.series for point in row.points] + list(body.levels)
    room = (_ABOVE - 1) * (max(found) - min(found)) or (_ABOVE - 1) * max(found)
    return max(0.0, min(found) - room), max(found) + room


def _entries(body: Lines) -> list[LegendEntry]:
    fitted = any(row.fit for row in body.series)
    kind = "points" if fitted else "line"
    return [
        LegendEntry(label=row.label, kind=kind, colour=row.style.colour, pattern=row.style.pattern)
        for row in body.series
    ]


def _frame(
    axes: Axes, body: Lines, *, ticks: list[float], reach: tuple[float, float], about: int
) -> None:
    places = [point.x for row in body.series for point in row.points]
    low, high = min(places), max(places)
    span = (high - low) or 1.0
    low, high = low - 0.06 * span, high + 0.06 * span
    if not body.ticks:
        low = 0.0
    axes.set_xlim(low, high)
    axes.set_ylim(*reach)
    axes.set_yticks(ticks, [tick_text(value) for value in ticks])
    across = list(body.ticks) or nice_ticks(low, high, about)
    axes.set_xticks(across, [tick_text(value) for value in across])


def _draw_series(axes: Axes, row: Series, theme: Theme, *, shift: float, dashed: bool) -> None:
    colour = theme.strong[row.style.colour]
    if row.fit:
        xs, ys = zip(*row.fit, strict=True)
        axes.plot(xs, ys, color=colour, linewidth=theme.scale, linestyle=(0, (4, 3)))
    else:
        axes.plot(
            [point.x + shift for point in row.points],
            [point.y for point in row.points],
            color=colour,
            linewidth=1.6 * theme.scale,
            linestyle=DASHES[row.style.pattern] if dashed else "-",
            zorder=3,
        )
    _error_bars(axes, row, theme, shift=shift)
    for alone in (False, True):
        points = [point for point in row.points if _is_alone(point) is alone]
        if not points:
            continue
        axes.plot(
            [point.x + shift for point in points],
            [point.y for point in points],
            linestyle="none",
            marker=MARKERS[row.style.pattern],
            markersize=7.5 * theme.scale,
            markerfacecolor=theme.page if alone else colour,
            markeredgecolor=colour if alone else theme.page,
            markeredgewidth=(1.6 if alone else 0.8) * theme.scale,
            zorder=5,
        )


def _is_alone(point: Point) -> bool:
    """Whether it is of one run: no error bar, and a hollow marker."""
    return point.low is None or point.high is None


def _error_bars(axes: Axes, row: Series, theme: Theme, *, shift: float) -> None:
    known = [
        (point, max(0.0, point.low), point.high)
        for point in row.points
        if point.low is not None and point.high is not None and point.high > point.low
    ]
    if known:
        axes.errorbar(
            [point.x + shift for point, _, _ in known],
            [point.y for point, _, _ in known],
            yerr=[
                [point.y - low for point, low, _ in known],
                [high - point.y for point, _, high in known],
            ],
            fmt="none",
            color=theme.ink,
            elinewidth=1.2 * theme.scale,
            capsize=3.5 * theme.scale,
            capthick=1.2 * theme.scale,
            zorder=4,
        )
