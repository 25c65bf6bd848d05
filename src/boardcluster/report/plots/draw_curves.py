"""Draw a chart of a run for paper; a page has its own fast drawing in ``report.curves``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from boardcluster.report.curves import Chart
from boardcluster.report.plots.figure import Curves, Figure
from boardcluster.report.plots.frames import (
    SMALL,
    LegendEntry,
    Sheet,
    clean_axes,
    lay_out,
    nice_ticks,
    tick_text,
    width_of,
    with_remark,
)
from boardcluster.report.plots.themes import DASHES, HATCHES, Theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

__all__ = ["draw_curves"]

_PLOT, _BOTTOM, _RIGHT, _GAP, _LINE = 190, 46, 10, 20, 16
_COLOURS = 8
_MARK = 0.025


def draw_curves(figure: Figure, body: Curves, *, width_points: float, theme: Theme) -> Canvas:
    """Draw a figure of a width; its labels are on the axes."""
    chart, width = body.chart, width_points / theme.scale
    low, high = chart.span()
    ticks = nice_ticks(low, high, 5)
    left = 12 + max(width_of(tick_text(value)) for value in ticks)
    title = with_remark(figure.y_label, figure.remark, width)
    legend = lay_out(_entries(chart), width)
    top = legend.height + (title.count("\n") + 1) * _LINE + _GAP
    top += _LINE if chart.has_two_rows else 0
    sheet = Sheet(width_points=width_points, height=top + _PLOT + _BOTTOM, theme=theme)
    sheet.legend(legend)
    sheet.text(0, legend.height, title)
    axes = sheet.axes(left=left, right=_RIGHT, top=top, bottom=_BOTTOM)
    begin, end = float(chart.edges[0]), float(chart.edges[-1])
    axes.set_xlim(begin, end)
    axes.set_ylim(low, high)
    axes.set_yticks(ticks, [tick_text(value) for value in ticks])
    across = nice_ticks(begin, end, 6)
    axes.set_xticks(across, [tick_text(value) for value in across])
    clean_axes(axes, theme, grid="y", spine="bottom")
    inner = width - left - _RIGHT
    _phases(axes, chart, theme, per_unit=(end - begin) / inner)
    _curves(axes, chart, theme)
    for mark in chart.marks:
        axes.axvspan(mark.begin_seconds, mark.end_seconds, 0, _MARK, color=theme.bad, linewidth=0)
    sheet.text(width - _RIGHT, top + _PLOT + 26, figure.x_label, ha="right")
    return sheet.canvas


def _entries(chart: Chart) -> list[LegendEntry]:
    found = [
        LegendEntry(
            label=line.label,
            kind="bar" if chart.stacked else "curve",
            colour=place % _COLOURS,
            pattern=place % len(DASHES),
        )
        for place, line in enumerate(chart.lines)
    ]
    found += [
        LegendEntry(label=band.label, kind="band", colour=0, pattern=0) for band in chart.bands
    ]
    if chart.marks:
        found.append(LegendEntry(label="disturbed", kind="mark", colour=0, pattern=0))
    return found


def _phases(axes: Axes, chart: Chart, theme: Theme, *, per_unit: float) -> None:
    """Every other phase shaded, each with its name where there is room; as on a page.

    The engine's phases stand for the submission that they are in, whose name is above theirs.
    """
    low, high = axes.get_xlim()
    shown = chart.shown_phases()
    for begin, end in [row[1:] for row in shown][::2]:
        axes.axvspan(max(begin, low), min(end, high), color=theme.phase, linewidth=0, zorder=0)
    _names(axes, chart.parts if chart.has_two_rows else shown, theme, per_unit=per_unit, up=3)
    if chart.has_two_rows:
        _names(axes, chart.phases, theme, per_unit=per_unit, up=3 + _LINE)


def _names(
    axes: Axes,
    rows: Sequence[tuple[str, float, float]],
    theme: Theme,
    *,
    per_unit: float,
    up: float,
) -> None:
    """The names that have room, none over another; of ``stage 3: collect`` maybe its beginning."""
    low, high = axes.get_xlim()
    top = axes.get_ylim()[1]
    free = low
    for name, begin, end in rows:
        left, right = max(begin, low, free), min(end, high)
        for text in dict.fromkeys((name, name.partition(":")[0])):
            reach = left + width_of(text) * per_unit
            if reach < right:
                axes.annotate(
                    text,
                    (left, top),
                    xytext=(3 * theme.scale, up * theme.scale),
                    textcoords="offset points",
                    color=theme.muted,
                    fontsize=SMALL * theme.scale,
                )
                free = reach + 3 * per_unit
                break


def _curves(axes: Axes, chart: Chart, theme: Theme) -> None:
    middles = (chart.edges[:-1] + chart.edges[1:]) / 2
    for band in chart.bands:
        alpha = 0.35 if band.strong else 0.2
        axes.fill_between(
            middles, band.low, band.high, color=theme.strong[0], alpha=alpha, linewidth=0
        )
    below = np.zeros(len(middles))
    for place, line in enumerate(chart.lines):
        colour = theme.strong[place % _COLOURS]
        if chart.stacked:
            above = below + np.nan_to_num(line.values)
            known = ~np.isnan(line.values)
            axes.fill_between(
                middles,
                below,
                above,
                where=known.tolist(),
                facecolor=theme.soft[place % _COLOURS],
                edgecolor=colour,
                hatch=HATCHES[place % _COLOURS],
                linewidth=0.8 * theme.scale,
            )
            below = above
        else:
            axes.plot(
                middles,
                line.values,
                color=colour,
                linewidth=1.5 * theme.scale,
                linestyle=DASHES[place % len(DASHES)],
            )
