"""Curves over the time of a run as inline SVG, written directly.

A page of a run has a dozen of them. Matplotlib, which draws the figures of the report, takes 20 ms
and 18 kB for each; this takes less than one and a few. Colours are classes of the page's style
sheet, so that one drawing serves light and dark screens and paper.
"""

from __future__ import annotations

import html
import io
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from boardcluster.foreign import write_csv

__all__ = ["COLOURS", "Band", "Chart", "Line", "Mark", "Series", "csv_link", "describe", "draw"]

Series: TypeAlias = NDArray[np.float64]

COLOURS = 5
"""Different colours; lines beyond that have the same ones, dashed."""

_WIDTH, _HEIGHT = 440, 218
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 10, 32, 36
_TICKS_ACROSS, _TICKS_UP = 6, 4
_MARK_POINTS = 5
_ROW_POINTS = 14
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_MINUTES_FROM_SECONDS = 600.0
_HOURS_FROM_SECONDS = 3 * 3600.0
_ROOM_ABOVE = 1.06
_CHARACTER_POINTS = 6.6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Line:
    """One curve."""

    label: str
    """What it shows."""
    values: Series
    """One for each interval of its chart; NaN is unknown and leaves a gap."""
    colour: int
    """Number of its colour, from 0."""
    dashed: bool = False
    """Whether it is dashed."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Band:
    """A range between two curves, for what is too many curves."""

    label: str
    """What it shows."""
    low: Series
    """Lower edge in each interval."""
    high: Series
    """Upper edge."""
    strong: bool = False
    """Whether it is drawn stronger than others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A time that is marked on the axis."""

    label: str
    """Why."""
    begin_seconds: float
    """From the start of the run."""
    end_seconds: float
    """Likewise."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Chart:
    """One figure."""

    name: str
    """Unique on the page; also in the name of its CSV."""
    title: str
    """What it shows."""
    unit: str
    """Of its values, for the axis."""
    edges: Series
    """Of the intervals, in seconds from the start of the run."""
    lines: tuple[Line, ...]
    """Its curves."""
    bands: tuple[Band, ...] = ()
    """Ranges below the curves."""
    stacked: bool = False
    """Whether each line is drawn upon the one before it."""
    from_zero: bool = True
    """Whether the axis starts at 0."""
    most: float = math.nan
    """The axis reaches at least so far; NaN for as far as the values do."""
    phases: tuple[tuple[str, float, float], ...] = ()
    """Submissions, each with begin and end in seconds."""
    parts: tuple[tuple[str, float, float], ...] = ()
    """The engine's phases within these, likewise; they may overlap."""
    marks: tuple[Mark, ...] = ()
    """Times when something disturbed."""
    note: str = ""
    """A sentence below it; may be empty."""

    @property
    def has_two_rows(self) -> bool:
        """Whether submissions and the engine's phases in them each need a row of names."""
        return len(self.phases) > 1 and bool(self.parts)

    def shown_phases(self) -> list[tuple[str, float, float]]:
        """The engine's phases, and submissions without any, in order of time."""
        alone = [
            (name, begin, end)
            for name, begin, end in self.phases
            if not any(begin <= first and last <= end for _, first, last in self.parts)
        ]
        return sorted((*self.parts, *alone), key=lambda row: row[1:])

    def span(self) -> tuple[float, float]:
        """The ends of the axis: from zero, or so that noise does not fill the drawing."""
        rows = [line.values for line in self.lines]
        if self.stacked and rows:
            rows = [np.sum([np.nan_to_num(row) for row in rows], axis=0)]
        rows += [edge for band in self.bands for edge in (band.low, band.high)]
        known = np.concatenate([row[~np.isnan(row)] for row in rows]) if rows else np.empty(0)
        low, high = 0.0, float(known.max()) if len(known) else 0.0
        if self.from_zero:
            high = max(high, float(np.nan_to_num(self.most)))
        elif len(known):  # a quarter of the highest at least
            low = max(0.0, min(float(known.min()), 0.75 * high) - 0.02 * abs(high))
        if high <= low:
            high = low + 1.0
        return low, low + (high - low) * _ROOM_ABOVE

    def columns(self) -> list[tuple[str, Series]]:
        """Everything that is drawn, by its name."""
        found = [(line.label, line.values) for line in self.lines]
        for band in self.bands:
            found += [(f"{band.label}: from", band.low), (f"{band.label}: to", band.high)]
        return found


@dataclass(frozen=True, slots=True)
class _Frame:
    """Maps seconds and values to points of the drawing, which is higher by a row of names."""

    begin: float
    end: float
    low: float
    high: float
    more: int

    @property
    def top(self) -> int:
        return _TOP + self.more

    @property
    def height(self) -> int:
        return _HEIGHT + self.more

    def across(self, begin: float, end: float) -> tuple[float, float]:
        return self.x(max(begin, self.begin)), self.x(min(end, self.end))

    def x(self, seconds: float) -> float:
        return _LEFT + (seconds - self.begin) / (self.end - self.begin) * (_WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return self.height - _BOTTOM - share * (self.height - self.top - _BOTTOM)


def draw(chart: Chart) -> str:
    """Draw a chart; return an ``<svg>`` element."""
    frame = _frame(chart)
    middles = (chart.edges[:-1] + chart.edges[1:]) / 2
    box, named = f"0 0 {_WIDTH} {frame.height}", html.escape(f"{chart.name}-title")
    parts = [
        f'<svg viewBox="{box}" role="img" aria-labelledby="{named}">',
        f'<title id="{named}">{html.escape(describe(chart))}</title>',
        *_phases(chart, frame),
        *_axes(chart, frame),
    ]
    for band in chart.bands:
        strength = "strong" if band.strong else "weak"
        parts += [
            f'<path class="band {strength}" d="{_area(frame, middles[run], low, high)}"/>'
            for run, (low, high) in _whole(band.low, band.high)
        ]
    below = np.zeros(len(middles))
    for line in chart.lines:
        if chart.stacked:
            above = below + np.nan_to_num(line.values)
            parts += [
                f'<path class="area a{line.colour}" d="{_area(frame, middles[run], low, high)}"/>'
                for run, (low, high) in _whole(below + 0 * line.values, above + 0 * line.values)
            ]
            below = above
        else:
            style = f"line l{line.colour}" + (" dashed" if line.dashed else "")
            parts += [
                f'<path class="{style}" d="M{_points(frame, middles[run], values)}"/>'
                for run, (values,) in _whole(line.values)
            ]
    parts += _marks(chart, frame)
    return "".join([*parts, "</svg>"])


def describe(chart: Chart) -> str:
    """Say in words what a chart shows, for people who do not see it."""
    said = [f"{chart.title}, in {chart.unit}, over {chart.edges[-1]:.0f} s"]
    for line in chart.lines:
        known = line.values[~np.isnan(line.values)]
        if len(known):
            said.append(
                f"{line.label}: mean {known.mean():.3g}, {known.min():.3g} to {known.max():.3g}"
            )
    said += [
        f"{mark.label} from {mark.begin_seconds:.0f} to {mark.end_seconds:.0f} s"
        for mark in chart.marks[:5]
    ]
    return "; ".join(said)


def csv_link(chart: Chart) -> str:
    """The values of a chart as a ``data:`` link; ``seconds`` is the end of each interval."""
    buffer = io.StringIO()
    columns = chart.columns()
    write_csv(buffer, [["seconds", *(f"{label} ({chart.unit})" for label, _ in columns)]])
    for place, end in enumerate(chart.edges[1:]):
        values = (values[place] for _, values in columns)
        shown = ("" if math.isnan(value) else f"{value:.5g}" for value in values)
        write_csv(buffer, [[f"{end:.2f}", *shown]])
    return "data:text/csv;charset=utf-8," + quote(buffer.getvalue(), safe=",: ()", errors="replace")


def _frame(chart: Chart) -> _Frame:
    low, high = chart.span()
    more = _ROW_POINTS if chart.has_two_rows else 0
    return _Frame(float(chart.edges[0]), float(chart.edges[-1]), low, high, more)


def _ticks(low: float, high: float, about: int) -> list[float]:
    """Round numbers between two values, about so many."""
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * step for step in _STEPS if power * step >= 0.999 * rough)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [place * step for place in range(first, last + 1)]


def _time_unit(seconds: float) -> tuple[str, float]:
    if seconds < _MINUTES_FROM_SECONDS:
        return "seconds", 1.0
    return ("minutes", 60.0) if seconds < _HOURS_FROM_SECONDS else ("hours", 3600.0)


def _axes(chart: Chart, frame: _Frame) -> Iterator[str]:
    bottom, right = frame.height - _BOTTOM, _WIDTH - _RIGHT
    for value in _ticks(frame.low, frame.high, _TICKS_UP):
        y = frame.y(value)
        yield f'<path class="grid" d="M{_LEFT} {y:.1f}H{right}"/>'
        yield f'<text class="end" x="{_LEFT - 6}" y="{y + 4:.1f}">{value:,.6g}</text>'
    word, unit_seconds = _time_unit(frame.end - frame.begin)
    for value in _ticks(frame.begin / unit_seconds, frame.end / unit_seconds, _TICKS_ACROSS):
        x = frame.x(value * unit_seconds)
        yield f'<path class="axis" d="M{x:.1f} {bottom}v4"/>'
        yield f'<text class="middle" x="{x:.1f}" y="{bottom + 17}">{value:.6g}</text>'
    yield f'<path class="axis" d="M{_LEFT} {bottom}H{right}"/>'
    yield f'<text class="unit" x="0" y="11">{html.escape(chart.unit)}</text>'
    yield f'<text class="end unit" x="{right}" y="{frame.height - 4}">{word} from the start</text>'


def _phases(chart: Chart, frame: _Frame) -> Iterator[str]:
    """Every other phase shaded, each with its name where there is room.

    The engine's phases stand for the submission that they are in; its name is above theirs where
    there are several submissions.
    """
    if chart.has_two_rows:
        yield from _names(chart.phases, frame, _TOP - 4)
    shown = chart.shown_phases()
    for place, (name, begin, end) in enumerate(shown):
        left, right = frame.across(begin, end)
        if right > left:
            yield (
                f'<rect class="phase p{place % 2}" x="{left:.1f}" y="{frame.top}"'
                f' width="{right - left:.1f}" height="{frame.height - frame.top - _BOTTOM}">'
                f"<title>{html.escape(name)}, {begin:.1f} to {end:.1f} s</title></rect>"
            )
    yield from _names(chart.parts if chart.has_two_rows else shown, frame, frame.top - 4)


def _names(rows: Iterable[tuple[str, float, float]], frame: _Frame, y: float) -> Iterator[str]:
    """The names that have room, none over another; of long ones the beginning that says it, too.

    ``stage 3`` of ``stage 3: collect``, ``reduce`` of ``reduce after the last map``.
    """
    free = float(_LEFT)
    for name, begin, end in rows:
        left, right = frame.across(begin, end)
        left = max(left + 3, free)
        short = name.partition(":")[0].partition(" after ")[0]
        for words in dict.fromkeys((name, short)):
            reach = left + len(words) * _CHARACTER_POINTS
            if reach < right:
                yield f'<text class="phase-name" x="{left:.1f}" y="{y}">{html.escape(words)}</text>'
                free = reach + 3
                break


def _marks(chart: Chart, frame: _Frame) -> Iterator[str]:
    for mark in chart.marks:
        left, right = frame.across(mark.begin_seconds, mark.end_seconds)
        if right > left:
            yield (
                f'<rect class="mark" x="{left:.1f}" y="{frame.height - _BOTTOM - _MARK_POINTS}"'
                f' width="{max(2.0, right - left):.1f}" height="{_MARK_POINTS}">'
                f"<title>{html.escape(mark.label)}</title></rect>"
            )


def _whole(
    *rows: Series,
) -> Iterator[tuple[slice, tuple[Series, ...]]]:
    """Parts of the rows in which every value is known."""
    known = np.logical_and.reduce([~np.isnan(row) for row in rows])
    bounds = np.flatnonzero(np.diff(np.concatenate(([False], known, [False])).astype(np.int8)))
    for begin, end in zip(bounds[::2], bounds[1::2], strict=True):
        run = slice(int(begin), int(end))
        yield run, tuple(row[run] for row in rows)


def _points(frame: _Frame, seconds: Series, values: Series) -> str:
    points = [
        f"{frame.x(moment):.1f} {frame.y(value):.1f}"
        for moment, value in zip(seconds.tolist(), values.tolist(), strict=True)
    ]
    if len(points) == 1:  # one point has no length: a short dash makes it visible
        points.append(f"{frame.x(float(seconds[0])) + 2:.1f} {frame.y(float(values[0])):.1f}")
    return "L".join(points)


def _area(frame: _Frame, seconds: Series, low: Series, high: Series) -> str:
    there = _points(frame, seconds, high)
    back = _points(frame, seconds[::-1], low[::-1])
    return f"M{there}L{back}Z"
