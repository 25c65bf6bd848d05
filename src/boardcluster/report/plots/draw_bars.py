"""Draw horizontal bars: in groups with error bars, and shares behind each other.

Each bar has its label above it, so that long names fit on a phone and in a column of a paper.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from boardcluster.report.plots.figure import Bar, Bars, Figure, Stack
from boardcluster.report.plots.frames import (
    SMALL,
    Entry,
    Sheet,
    clean_axes,
    fill,
    lay_out,
    nice_ticks,
    tick_text,
    width_of,
    with_remark,
)
from boardcluster.report.plots.looks import HATCHES, Look

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

__all__ = ["draw_bars", "draw_stack"]

_BAR, _BAR_STACKED, _LINE, _GAP = 26, 18, 16, 9
_TITLE, _TITLE_GAP = 14, 8
_BOLD = SMALL * 1.12  # height of a normal text that is as wide as a bold one of 12
_BOTTOM, _LEFT, _RIGHT, _TOP = 44, 6, 4, 4
_WIDE = 600
_ENOUGH_SHARE_WIDTH = 34


def draw_bars(figure: Figure, body: Bars, *, width_points: float, look: Look) -> Canvas:
    """Draw groups of bars with their values and error bars.

    Args:
        figure: labels of the axes.
        body: what is drawn.
        width_points: width of the drawing.
        look: how it looks.
    """
    width = width_points / look.scale
    labels = {id(bar): fill(bar.label, width - 8) for group in body.groups for bar in group.bars}
    titles = {id(group): fill(group.title, width - 8, _TITLE) for group in body.groups}
    height = sum(
        _title_height(titles[id(group)])
        + sum(_row_height(labels[id(bar)], _BAR) for bar in group.bars)
        for group in body.groups
    )
    label = with_remark(figure.x_label, figure.remark, width)
    bottom = _BOTTOM + _LINE * label.count("\n")
    sheet = Sheet(width_points=width_points, height=_TOP + height + bottom, look=look)
    axes = sheet.axes(left=_LEFT, right=_RIGHT, top=_TOP, bottom=bottom)
    inner = width - _LEFT - _RIGHT
    bars = [bar for group in body.groups for bar in group.bars]
    right = max(_end(bar) / max(0.2, 1 - _words_width(bar) / inner) for bar in bars) or 1.0
    axes.set_xlim(0, right)
    axes.set_ylim(height, 0)
    y = 0.0
    size = SMALL * look.scale
    for group in body.groups:
        title = titles[id(group)]
        if title:
            axes.text(
                0,
                y + _TITLE_GAP,
                title,
                color=look.ink,
                va="top",
                weight="bold",
                fontsize=_TITLE * look.scale,
                linespacing=1.15,
            )
            y += _title_height(title)
        for bar in group.bars:
            text = labels[id(bar)]
            axes.text(0, y + 3, text, color=look.ink, va="top", fontsize=size, linespacing=1.15)
            y += _row_height(text, _BAR)
            _draw_bar(axes, bar, look, y=y - _GAP - _BAR / 2, gap=8 * right / inner)
    _finish(axes, sheet, look, label, right=right, about=9 if width >= _WIDE else 4)
    return sheet.canvas


def _finish(axes: Axes, sheet: Sheet, look: Look, label: str, *, right: float, about: int) -> None:
    ticks = nice_ticks(0, right, about)
    axes.set_xticks(ticks, [tick_text(value) for value in ticks])
    axes.set_yticks([])
    clean_axes(axes, look, grid="x", spine="left")
    lines = label.count("\n") + 1
    sheet.text(sheet.width / 2, sheet.height - 2 - lines * _LINE, label, ha="center")


def _title_height(title: str) -> float:
    return _TITLE_GAP + (title.count("\n") + 1) * (_LINE + 2) if title else 0.0


def _row_height(label: str, bar: float) -> float:
    return (label.count("\n") + 1) * _LINE + 3 + bar + _GAP


def _end(bar: Bar) -> float:
    return max(bar.value, bar.high or 0.0)


def _words_width(bar: Bar) -> float:
    return 12 + max(width_of(bar.words[0], _BOLD), width_of(bar.words[1]))


def _draw_bar(axes: Axes, bar: Bar, look: Look, *, y: float, gap: float) -> None:
    axes.barh(
        y,
        bar.value,
        height=_BAR,
        facecolor=look.soft[bar.style.colour],
        edgecolor=look.strong[bar.style.colour],
        linewidth=0.9 * look.scale,
        hatch=HATCHES[bar.style.pattern],
        zorder=2,
    )
    if bar.low is not None and bar.high is not None:
        axes.errorbar(
            [bar.value],
            [y],
            xerr=[[bar.value - max(0.0, bar.low)], [bar.high - bar.value]],
            fmt="none",
            color=look.ink,
            elinewidth=1.4 * look.scale,
            capsize=4 * look.scale,
            capthick=1.4 * look.scale,
            zorder=4,
        )
    start = _end(bar) + gap
    size = SMALL * look.scale
    first, second = bar.words
    axes.text(start, y - 6, first, color=look.ink, va="center", weight="bold", fontsize=size)
    axes.text(start, y + 8, second, color=look.muted, va="center", fontsize=size)


def draw_stack(figure: Figure, body: Stack, *, width_points: float, look: Look) -> Canvas:
    """Draw shares behind each other, with a legend.

    Args:
        figure: labels of the axes.
        body: what is drawn.
        width_points: width of the drawing.
        look: how it looks.
    """
    width = width_points / look.scale
    legend = lay_out(
        [
            Entry(label=part, kind="bar", colour=place % 8, pattern=place % 8)
            for place, part in enumerate(body.parts)
        ],
        width,
    )
    labels = [fill(label, width - 8) for label, _ in body.rows]
    height = sum(_row_height(label, _BAR_STACKED) for label in labels)
    label = with_remark(figure.x_label, figure.remark, width)
    bottom = _BOTTOM + _LINE * label.count("\n")
    top = _TOP + legend.height
    sheet = Sheet(width_points=width_points, height=top + height + bottom, look=look)
    sheet.legend(legend)
    axes = sheet.axes(left=_LEFT, right=_RIGHT, top=top, bottom=bottom)
    axes.set_ylim(height, 0)
    inner = width - _LEFT - _RIGHT
    y = 0.0
    for text, (_, shares) in zip(labels, body.rows, strict=True):
        axes.text(
            0, y + 3, text, color=look.ink, va="top", fontsize=SMALL * look.scale, linespacing=1.15
        )
        y += _row_height(text, _BAR_STACKED)
        _draw_shares(axes, shares, look, y=y - _GAP - _BAR_STACKED / 2, inner=inner)
    axes.set_xlim(0, 1)
    _finish(axes, sheet, look, label, right=1.0, about=5)
    ticks = [0, 0.25, 0.5, 0.75, 1]
    axes.set_xticks(ticks, [f"{100 * value:.0f} %" for value in ticks])
    first, *_, last = axes.get_xticklabels()
    first.set_horizontalalignment("left")
    last.set_horizontalalignment("right")
    return sheet.canvas


def _draw_shares(
    axes: Axes, shares: tuple[float, ...], look: Look, *, y: float, inner: float
) -> None:
    begin = 0.0
    for place, share in enumerate(shares):
        if share <= 0:
            continue
        axes.barh(
            y,
            share,
            left=begin,
            height=_BAR_STACKED,
            facecolor=look.soft[place % 8],
            edgecolor=look.strong[place % 8],
            linewidth=0.9 * look.scale,
            hatch=HATCHES[place % 8],
            zorder=2,
        )
        if share * inner > _ENOUGH_SHARE_WIDTH:
            axes.text(
                begin + share / 2,
                y,
                f"{100 * share:.0f} %",
                color=look.ink,
                va="center_baseline",
                ha="center",
                fontsize=SMALL * look.scale,
                zorder=5,
                bbox={"facecolor": look.soft[place % 8], "linewidth": 0, "pad": 1.2 * look.scale},
            )
        begin += share
