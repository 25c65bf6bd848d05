"""Time over the number of workers and over the size of the input, speed-up and efficiency."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from boardcluster.analysis.cells import Cell
from boardcluster.analysis.scaling import (
    NodeScaling,
    latest_cells,
    node_scalings,
    predict,
    predict_size,
    scaling_among,
    size_fit,
    work_follows_size,
)
from boardcluster.report import words
from boardcluster.report.plots.bar_figures import ERROR_BARS
from boardcluster.report.plots.cells import (
    GIGA,
    MOST_SERIES,
    cell_row,
    chunks,
    is_emulated,
    part_words,
    rest_of,
    runs_words,
    series_label,
    slug,
    styles,
    twins_of,
    workload_groups,
)
from boardcluster.report.plots.figure import Figure, Lines, Point, Series
from boardcluster.report.ratio_words import work_size

__all__ = ["speed_up", "times_by_nodes", "times_by_size"]

_RATIO_BARS = (
    "Error bars are 95 % confidence intervals of the ratio of times (Student's t of logarithms)."
)
_OLDER = "Where a place was measured on several setups, the latest one is shown."
_FIT_POINTS = 3
_CURVE_POINTS = 41


def times_by_nodes(
    cells: Sequence[Cell], scalings: Sequence[NodeScaling] | None = None
) -> tuple[Figure, ...]:
    """Mean time over the number of workers, one line for each engine, medium, size and profile.

    From three numbers of workers on, Amdahl's law is drawn dashed as the tables state it: not where
    the runs refute it, nor where the set bends back.

    Args:
        cells: of any workloads; those that were measured with one number of workers are left out.
        scalings: how they scale, as the tables have it; None works it out.

    Returns:
        One figure for each workload, or several where there are more lines than can be told apart.
    """
    return tuple(_over(cells, "workers", node_scalings(cells) if scalings is None else scalings))


def times_by_size(cells: Sequence[Cell]) -> tuple[Figure, ...]:
    """Mean time over the size of the input in GB (10^9 bytes), one line for each of the rest.

    From three sizes on, a straight line is fitted and drawn dashed, where the work is in proportion
    to the size.

    Args:
        cells: of any workloads; those that were measured with one size are left out.

    Returns:
        As ``times_by_nodes``.
    """
    return tuple(_over([cell for cell in cells if cell.size_bytes], "size_bytes"))


def _place(cell: Cell, factor: str) -> float:
    return float(cell.workers) if factor == "workers" else cell.size_bytes / GIGA


def _over(
    cells: Sequence[Cell], factor: str, scalings: Sequence[NodeScaling] = ()
) -> Iterator[Figure]:
    for workload, group in workload_groups(cells).items():
        rows = [row for row in _rows(group, factor) if len(row[0]) > 1]
        parts = chunks(rows, MOST_SERIES)
        for number, part in enumerate(parts, start=1):
            shown = [latest for latest, _ in part]
            said = _OLDER if any(older for _, older in part) else ""
            yield _times(workload, shown, factor, scalings, said, number=number, parts=len(parts))


def _rows(cells: Sequence[Cell], factor: str) -> list[tuple[list[Cell], int]]:
    """Cells that differ in nothing but a factor, by its rising value, as the tables have them.

    With each row comes how many cells are not in it, because a later one is of another setup.
    """
    found: dict[object, list[Cell]] = {}
    for cell in cells:
        found.setdefault(rest_of(cell, factor), []).append(cell)
    rows = []
    for group in found.values():
        latest = latest_cells(group, lambda cell: _place(cell, factor))
        rows.append((latest, len(group) - len(latest)))
    return rows


def _times(
    workload: str,
    rows: Sequence[Sequence[Cell]],
    factor: str,
    scalings: Sequence[NodeScaling],
    said: str,
    *,
    number: int,
    parts: int,
) -> Figure:
    shown = [cell for row in rows for cell in row]
    firsts = [row[0] for row in rows]
    labels = [series_label(cell, firsts, without=[factor]) for cell in firsts]
    series = tuple(
        Series(
            label=label,
            style=style,
            points=tuple(_point(cell, _place(cell, factor)) for cell in row),
            fit=_amdahl(row, scalings) if factor == "workers" else _straight(row),
        )
        for row, label, style in zip(rows, labels, styles(firsts, labels), strict=True)
    )
    by_nodes = factor == "workers"
    law = "Amdahl's law" if by_nodes else "a straight line"
    over = "number of workers" if by_nodes else "size of the input"
    title = f"{words.workload_name(workload)}: time by {over}{part_words(number, parts)}"
    return Figure(
        name=slug(
            "times-by-nodes" if by_nodes else "times-by-size",
            workload,
            str(number) if parts > 1 else "",
        ),
        title=title,
        caption=_caption(
            title,
            f"{ERROR_BARS} {said}".strip(),
            f"Dashed: {law}, fitted." if any(row.fit for row in series) else "",
            alone=runs_words(shown),
        ),
        emulated=is_emulated(shown),
        twins=twins_of(shown),
        x_label="workers" if by_nodes else "input in GB (10⁹ bytes)",
        y_label="seconds",
        body=Lines(series=series, ticks=_ticks(series) if by_nodes else ()),
        rows=tuple(cell_row(cell) for cell in shown),
    )


def _caption(title: str, *sentences: str, alone: str) -> str:
    hollow = f"Hollow: {alone}" if alone else ""
    return " ".join(filter(None, (f"{title}.", *sentences, hollow)))


def _ticks(series: Sequence[Series]) -> tuple[float, ...]:
    return tuple(sorted({point.x for row in series for point in row.points}))


def _point(cell: Cell, x: float) -> Point:
    interval = cell.interval_seconds
    return Point(
        x=x,
        y=cell.mean_seconds,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        runs=cell.count,
    )


def _amdahl(
    row: Sequence[Cell], scalings: Sequence[NodeScaling]
) -> tuple[tuple[float, float], ...]:
    """The law between the least and the most workers: a straight line in 1 / n."""
    scaling = scaling_among(scalings, row)
    fit = scaling.law if scaling else None
    if scaling is None or fit is None or len(scaling.points) < _FIT_POINTS:
        return ()
    low, high = scaling.base_workers, scaling.points[-1].workers
    first, last = predict(fit, low), predict(fit, high)
    places = [low + (high - low) * place / (_CURVE_POINTS - 1) for place in range(_CURVE_POINTS)]
    shares = [(1 / low - 1 / place) / (1 / low - 1 / high) for place in places]
    return tuple(
        (place, first + (last - first) * share) for place, share in zip(places, shares, strict=True)
    )


def _straight(row: Sequence[Cell]) -> tuple[tuple[float, float], ...]:
    points = [(cell.size_bytes, cell.mean_seconds) for cell in row]
    several = len({size for size, _ in points}) >= _FIT_POINTS and work_follows_size(row[0])
    fit = size_fit(points) if several else None
    if fit is None:
        return ()
    ends = (points[0][0], points[-1][0])
    return tuple((size / GIGA, predict_size(fit, size)) for size in ends)


def speed_up(scalings: Sequence[NodeScaling]) -> tuple[Figure, ...]:
    """Speed-up and efficiency over the number of workers, with the ideal line.

    Args:
        scalings: of any workloads, see ``analysis.scaling.node_scalings``.

    Returns:
        Two figures for each workload and smallest number of workers, or more where there are more
        lines than can be told apart.
    """
    groups: dict[tuple[str, int, bool], list[NodeScaling]] = {}
    for row in scalings:
        groups.setdefault((row.configuration.workload, row.base_workers, row.scaled), []).append(
            row
        )
    found = []
    for (workload, base, scaled), rows in groups.items():
        parts = chunks(rows, MOST_SERIES)
        for number, part in enumerate(parts, start=1):
            more = part_words(number, len(parts))
            stem = [
                workload,
                "grown" if scaled else "",
                f"from-{base}" if base != 1 else "",
                str(number) if len(parts) > 1 else "",
            ]
            found += [
                _scaling(part, stem, more, base=base, scaled=scaled, efficiency=efficiency)
                for efficiency in (False, True)
            ]
    return tuple(found)


def _scaling(
    rows: Sequence[NodeScaling],
    stem: Sequence[str],
    more: str,
    *,
    base: int,
    scaled: bool,
    efficiency: bool,
) -> Figure:
    shown = [cell for row in rows for cell in row.cells]
    firsts = [row.cells[0] for row in rows]
    hidden = ["workers", "size_bytes"] if scaled else ["workers"]
    labels = [series_label(cell, firsts, without=hidden) for cell in firsts]
    if scaled and len({work_size(row) for row in rows}) > 1:
        labels = [f"{label}, {work_size(row)}" for label, row in zip(labels, rows, strict=True)]
    series = tuple(
        Series(
            label=label,
            style=style,
            points=_scaling_points(row, efficiency=efficiency),
        )
        for row, label, style in zip(rows, labels, styles(firsts, labels), strict=True)
    )
    what = "Efficiency" if efficiency else "Speed-up"
    against = words.count(base, "worker")
    grown = ", the size growing with the workers" if scaled else ""
    name = words.workload_name(rows[0].configuration.workload)
    title = f"{name}: {what.lower()} against {against}{grown}{more}"
    most = max(point.x for row in series for point in row.points)
    return Figure(
        name=slug("efficiency" if efficiency else "speed-up", *stem),
        title=title,
        caption=_caption(
            title,
            _RATIO_BARS,
            "Efficiency is speed-up divided by the factor by which the number of workers grew."
            if efficiency
            else "",
            "Dotted: the ideal.",
            alone=_without_interval(series),
        ),
        emulated=is_emulated(shown),
        twins=twins_of(shown),
        x_label="workers",
        y_label=f"{what.lower()} against {against}",
        body=Lines(
            series=series,
            ticks=_ticks(series),
            ideal=((base, 1.0), (most, 1.0 if efficiency else most / base)),
        ),
        rows=tuple(
            {
                **cell_row(cell),
                "base_workers": base,
                "speed_up": point.speed_up.value,
                "low_speed_up": point.speed_up.interval.low if point.speed_up.interval else None,
                "high_speed_up": point.speed_up.interval.high if point.speed_up.interval else None,
                "efficiency": point.efficiency,
            }
            for row in rows
            for cell, point in zip(row.cells, row.points, strict=True)
        ),
    )


def _without_interval(series: Sequence[Series]) -> str:
    """A sentence about ratios of a time of one run; empty if there is none."""
    alone = sum(point.low is None for row in series for point in row.points)
    if not alone:
        return ""
    verb = "is" if alone == 1 else "are"
    return f"{words.count(alone, 'ratio')} {verb} of one run: no interval."


def _scaling_points(row: NodeScaling, *, efficiency: bool) -> tuple[Point, ...]:
    found = []
    for point in row.points:
        share = row.base_workers / point.workers if efficiency else 1.0
        value, interval = point.speed_up.value * share, point.speed_up.interval
        low, high = (interval.low * share, interval.high * share) if interval else (None, None)
        if point.workers == row.base_workers:  # 1 by definition, however many runs
            low = high = value
        found.append(Point(x=float(point.workers), y=value, low=low, high=high, runs=point.count))
    return tuple(found)
