"""Draw horizontal bars: in groups with error bars, and shares behind each other.

Each bar has its label above it, so that long names fit on a phone and in a column of a paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from boardcluster.report.plots.figure import Bar, Bars, Figure, Stack
from boardcluster.report.plots.frames import (
    SMALL,
    LegendEntry,
    Sheet,
    add_boxes,
    clean_axes,
    fill,
    lay_out,
    nice_ticks,
    tick_text,
    width_of,
    with_remark,
)
from boardcluster.report.plots.themes import HATCHES, Theme

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


def draw_bars(figure: Figure, body: Bars, *, width_points: float, theme: Theme) -> Canvas:
    """Draw groups of bars with their values and error bars."""
    width = width_points / theme.scale
    labels = {id(bar): fill(bar.label, width - 8) for group in body.groups for bar in group.bars}
    titles = {id(group): fill(group.title, width - 8, _TITLE) for group in body.groups}
    height = sum(
        _title_height(titles[id(group)])
        + sum(_row_height(labels[id(bar)], _BAR) for bar in group.bars)
        for group in body.groups
    )
    label = with_remark(figure.x_label, figure.remark, width)
    bottom = _BOTTOM + _LINE * label.count("\n")
    sheet = Sheet(width_points=width_points, height=_TOP + height + bottom, theme=theme)
    axes = sheet.axes(left=_LEFT, right=_RIGHT, top=_TOP, bottom=bottom)
    inner = width - _LEFT - _RIGHT
    bars = [bar for group in body.groups for bar in group.bars]
    right = max(_end(bar) / max(0.2, 1 - _words_width(bar) / inner) for bar in bars) or 1.0
    placed: list[tuple[Bar, float]] = []
    y = 0.0
    size = SMALL * theme.scale
    for group in body.groups:
        title = titles[id(group)]
        if title:
            axes.text(
                0,
                y + _TITLE_GAP,
                title,
                color=theme.ink,
                va="top",
                weight="bold",
                fontsize=_TITLE * theme.scale,
                linespacing=1.15,
            )
            y += _title_height(title)
        for bar in group.bars:
            text = labels[id(bar)]
            axes.text(0, y + 3, text, color=theme.ink, va="top", fontsize=size, linespacing=1.15)
            y += _row_height(text, _BAR)
            placed.append((bar, y - _GAP - _BAR / 2))
    _draw_all(axes, placed, theme, gap=8 * right / inner)
    # An error bar moves the axes.
    axes.set_xlim(0, right)
    axes.set_ylim(height, 0)
    _finish(axes, sheet, theme, label, right=right, about=9 if width >= _WIDE else 4)
    return sheet.canvas


def _finish(
    axes: Axes, sheet: Sheet, theme: Theme, label: str, *, right: float, about: int
) -> None:
    ticks = nice_ticks(0, right, about)
    axes.set_xticks(ticks, [tick_text(value) for value in ticks])
    axes.set_yticks([])
    clean_axes(axes, theme, grid="x", spine="left")
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


def _draw_all(axes: Axes, placed: Sequence[tuple[Bar, float]], theme: Theme, *, gap: float) -> None:
    """Draw bars, each at its middle line, with their error bars and words."""
    for style in dict.fromkeys(bar.style for bar, _ in placed):
        add_boxes(
            axes,
            [(0, y - _BAR / 2, bar.value, _BAR) for bar, y in placed if bar.style == style],
            face=theme.soft[style.colour],
            edge=theme.strong[style.colour],
            line=0.9 * theme.scale,
            hatch=HATCHES[style.pattern],
        )
    known = [
        (bar.value, y, bar.value - max(0.0, bar.low), bar.high - bar.value)
        for bar, y in placed
        if bar.low is not None and bar.high is not None
    ]
    if known:
        values, places, below, above = (list(row) for row in zip(*known, strict=True))
        axes.errorbar(
            values,
            places,
            xerr=[below, above],
            fmt="none",
            color=theme.ink,
            elinewidth=1.4 * theme.scale,
            capsize=4 * theme.scale,
            capthick=1.4 * theme.scale,
            zorder=4,
        )
    size = SMALL * theme.scale
    for bar, y in placed:
        start = _end(bar) + gap
        first, second = bar.words
        axes.text(start, y - 6, first, color=theme.ink, va="center", weight="bold", fontsize=size)
        axes.text(start, y + 8, second, color=theme.muted, va="center", fontsize=size)


def draw_stack(figure: Figure, body: Stack, *, width_points: float, theme: Theme) -> Canvas:
    """Draw shares in a row, with a legend."""
    width = width_points / theme.scale
    legend = lay_out(
        [
            LegendEntry(label=part, kind="bar", colour=place % 8, pattern=place % 8)
            for place, part in enumerate(body.parts)
        ],
        width,
    )
    labels = [fill(label, width - 8) for label, _ in body.rows]
    height = sum(_row_height(label, _BAR_STACKED) for label in labels)
    label = with_remark(figure.x_label, figure.remark, width)
    bottom = _BOTTOM + _LINE * label.count("\n")
    top = _TOP + legend.height
    sheet = Sheet(width_points=width_points, height=top + height + bottom, theme=theme)
    sheet.legend(legend)
    axes = sheet.axes(left=_LEFT, right=_RIGHT, top=top, bottom=bottom)
    axes.set_ylim(height, 0)
    inner = width - _LEFT - _RIGHT
    y = 0.0
    placed = []
    for text, (_, shares) in zip(labels, body.rows, strict=True):
        axes.text(
            0,
            y + 3,
            text,
            color=theme.ink,
            va="top",
            fontsize=SMALL * theme.scale,
            linespacing=1.15,
        )
        y += _row_height(text, _BAR_STACKED)
        placed.append((shares, y - _GAP - _BAR_STACKED))
    for place in range(len(body.parts)):
        _draw_part(axes, place, placed, theme, inner=inner)
    axes.set_xlim(0, 1)
    _finish(axes, sheet, theme, label, right=1.0, about=5)
    ticks = [0, 0.25, 0.5, 0.75, 1]
    axes.set_xticks(ticks, [f"{100 * value:.0f} %" for value in ticks])
    first, *_, last = axes.get_xticklabels()
    first.set_horizontalalignment("left")
    last.set_horizontalalignment("right")
    return sheet.canvas


def _draw_part(
    axes: Axes,
    place: int,
    rows: Sequence[tuple[tuple[float, ...], float]],
    theme: Theme,
    *,
    inner: float,
) -> None:
    """Draw one part of every row, with its share as text where there is room."""
    colour = place % len(theme.soft)
    boxes = [
        (sum(shares[:place]), y, shares[place], _BAR_STACKED)
        for shares, y in rows
        if shares[place] > 0
    ]
    face, edge = theme.soft[colour], theme.strong[colour]
    hatch = HATCHES[place % len(HATCHES)]
    add_boxes(axes, boxes, face=face, edge=edge, line=0.9 * theme.scale, hatch=hatch)
    shown = [box for box in boxes if box[2] * inner > _ENOUGH_SHARE_WIDTH]
    half = width_of("00 %") / 2 / inner
    plain = [
        (x + wide / 2 - half, y + 1.5, 2 * half, high - 3) for x, y, wide, high in shown if hatch
    ]
    add_boxes(axes, plain, face=face, edge=face, above=3)
    for x, y, wide, high in shown:
        axes.text(
            x + wide / 2,
            y + high / 2,
            f"{100 * wide:.0f} %",
            color=theme.ink,
            va="center_baseline",
            ha="center",
            fontsize=SMALL * theme.scale,
            zorder=5,
        )
