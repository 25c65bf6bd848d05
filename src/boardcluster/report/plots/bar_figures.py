"""Figures of horizontal bars, cut into parts that fit a screen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from boardcluster.analysis.cells import Cell
from boardcluster.analysis.statistics import Interval
from boardcluster.report import words
from boardcluster.report.plots.cells import (
    MOST_ROWS,
    cut_groups,
    is_emulated,
    part_words,
    series_label,
    series_words,
    slug,
    styles,
    twins_of,
    workload_groups,
)
from boardcluster.report.plots.figure import Bar, BarGroup, Bars, Figure, Style

__all__ = ["ERROR_BARS", "ONE_RUN", "Group", "bar", "bar_figures", "groups_by_workload"]

ERROR_BARS = "Error bars are 95 % confidence intervals of the mean (Student's t)."
ONE_RUN = "one run, no interval"

Group: TypeAlias = "tuple[str, Sequence[tuple[Cell, Bar]]]"
"""A title, which may be empty, and bars with the cell that each is of."""


def bar(
    label: str, style: Style, value: float, interval: Interval | None, said: tuple[str, str]
) -> Bar:
    """Make a bar with the interval of its value, if there is one."""
    low, high = (interval.low, interval.high) if interval else (None, None)
    return Bar(label=label, style=style, value=value, low=low, high=high, words=said)


def groups_by_workload(
    cells: Iterable[Cell], make: Callable[[Cell, str, Style], Bar]
) -> list[Group]:
    """One group of bars for each workload; ``make`` gets a cell, its label and its style."""
    groups: list[Group] = []
    for workload, group in workload_groups(cells).items():
        looks = styles(group, [series_words(cell, group) for cell in group])
        bars = [
            (cell, make(cell, series_label(cell, group), style))
            for cell, style in zip(group, looks, strict=True)
        ]
        groups.append((words.workload_name(workload), bars))
    return groups


def bar_figures(
    groups: Iterable[Group],
    *,
    stem: Sequence[str],
    title: str,
    caption: Callable[[str, Sequence[Cell]], Iterable[str]],
    x_label: str,
    row: Callable[[Cell, Bar], Mapping[str, object]],
    order: Sequence[Cell] = (),
) -> Iterator[Figure]:
    """One figure, or several where there are more bars than fit a screen.

    Args:
        groups: the bars.
        stem: of the figures' names.
        title: what they show.
        caption: sentences, made of the words that name the part, and its cells; empty ones are
            left out.
        x_label: what the axis is, with the unit.
        row: the data of one bar.
        order: the order of the rows of data; empty for that of the bars.
    """
    parts = list(cut_groups(groups, MOST_ROWS))
    for number, part in enumerate(parts, start=1):
        more = part_words(number, len(parts))
        pairs = [pair for _, found in part for pair in found]
        if order:
            places = {id(cell): place for place, cell in enumerate(order)}
            pairs.sort(key=lambda pair: places[id(pair[0])])
        inside = [cell for cell, _ in pairs]
        yield Figure(
            name=slug(*stem, str(number) if len(parts) > 1 else ""),
            title=f"{title}{more}",
            caption=" ".join(filter(None, caption(more, inside))),
            emulated=is_emulated(inside),
            twins=twins_of(inside),
            x_label=x_label,
            y_label="",
            body=Bars(
                groups=tuple(
                    BarGroup(title=text, bars=tuple(bar for _, bar in found))
                    for text, found in part
                )
            ),
            rows=tuple(row(cell, bar) for cell, bar in pairs),
        )
