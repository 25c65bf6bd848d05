"""Bars: times by one thing that differs, intermediate data, and what bounds a run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from boardcluster.analysis import Cell
from boardcluster.analysis.scaling import by_setup, intermediate_share
from boardcluster.analysis.statistics import mean, mean_interval
from boardcluster.errors import UsageError
from boardcluster.report import words
from boardcluster.report.plots.cells import (
    AXES,
    GIGA,
    MOST_ROWS,
    cell_row,
    chunks,
    cut_groups,
    factor_words,
    is_emulated,
    part_words,
    rest_of,
    runs_words,
    series_label,
    series_words,
    slug,
    styles,
    twins_of,
    value_of,
    workload_groups,
)
from boardcluster.report.plots.figure import Bar, BarGroup, Bars, Figure, Stack, Style

__all__ = ["bottlenecks", "intermediate", "times_by_factor"]

_ERROR = "Error bars are 95 % intervals of the mean (Student's t)."
_REST = "unexplained"
_ROUNDING = 0.005


def times_by_factor(cells: Sequence[Cell], factor: str) -> tuple[Figure, ...]:
    """Mean time by one thing in which cells differ, as grouped bars with 95 % error bars.

    Args:
        cells: of any workloads; those that have no other to be compared with are left out.
        factor: one of ``AXES``: ``medium``, ``board``, ``profile``, ``replication`` and so on; or
            a setting that any of them has: ``dfs.blocksize``.

    Returns:
        One figure for each workload, or several where there are more bars than fit a screen.

    Raises:
        UsageError: there is no such factor.
    """
    allowed = list(dict.fromkeys((*AXES, *(key for cell in cells for key in cell.trial.settings))))
    if factor not in allowed:
        raise UsageError(
            f'no factor of cells: "{factor}"; allowed: {", ".join(allowed)}',
            hint="name a factor that there is",
        )
    apart = [part for cell in cells for part in by_setup(cell)]
    return tuple(
        figure
        for workload, group in workload_groups(apart).items()
        for figure in _by_factor(workload, group, factor)
    )


def _by_factor(workload: str, cells: Sequence[Cell], factor: str) -> Iterator[Figure]:
    rows: dict[object, list[Cell]] = {}
    for cell in cells:
        rows.setdefault(rest_of(cell, factor, "engine"), []).append(cell)
    rows = {
        rest: row
        for rest, row in rows.items()
        if len({factor_words(cell, factor) for cell in row}) > 1
    }
    firsts = [row[0] for row in rows.values()]
    shown = [cell for row in rows.values() for cell in row]
    engines = {cell.engine for cell in shown}
    looks = styles(shown, [factor_words(cell, factor) for cell in shown])
    bars = {id(cell): style for cell, style in zip(shown, looks, strict=True)}
    groups = [
        (
            series_words(row[0], firsts, without=[factor]),
            [
                _time_bar(
                    cell,
                    _value_label(cell, factor, with_engine=len(engines) > 1),
                    bars[id(cell)],
                )
                for cell in sorted(row, key=lambda cell: (value_of(cell, factor), cell.engine))
            ],
        )
        for row in rows.values()
    ]
    name, thing = words.workload_name(workload), factor.replace("_bytes", "")
    parts = list(cut_groups(groups, MOST_ROWS))
    for number, part in enumerate(parts, start=1):
        more = part_words(number, len(parts))
        chosen = {id(cell) for _, found in part for cell, _ in found}
        inside = [cell for cell in shown if id(cell) in chosen]
        yield Figure(
            name=slug(f"times-by-{thing}", workload, str(number) if len(parts) > 1 else ""),
            title=f"{name}: time by {thing}{more}",
            caption=" ".join(
                filter(None, (f"Mean time of {name} by {thing}{more}.", _ERROR, runs_words(inside)))
            ),
            emulated=is_emulated(inside),
            twins=twins_of(inside),
            x_label="seconds",
            y_label="",
            body=Bars(
                groups=tuple(
                    BarGroup(title=title, bars=tuple(bar for _, bar in found))
                    for title, found in part
                )
            ),
            rows=tuple({factor: factor_words(cell, factor), **cell_row(cell)} for cell in inside),
        )


def _value_label(cell: Cell, factor: str, *, with_engine: bool) -> str:
    value = factor_words(cell, factor)
    if factor == "engine" or not with_engine:
        return value
    return f"{words.engine_name(cell.engine)}, {value}"


def _time_bar(cell: Cell, label: str, style: Style) -> tuple[Cell, Bar]:
    interval = cell.interval_seconds
    return cell, Bar(
        label=label,
        style=style,
        value=cell.mean_seconds,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        words=(
            words.seconds_with_unit(cell.mean_seconds),
            f"{words.interval(interval)} s" if interval else "one run, no interval",
        ),
    )


def intermediate(cells: Sequence[Cell]) -> tuple[Figure, ...]:
    """Intermediate data by engine: GB (10^9 bytes), and bytes for each byte of input.

    Args:
        cells: of any workloads; those whose engine does not say it are left out and counted in the
            caption.
    """
    known = [cell for cell in cells if cell.mean_intermediate_bytes is not None]
    missing = len(cells) - len(known)
    groups = []
    for workload, group in workload_groups(known).items():
        labels = [series_label(cell, group) for cell in group]
        looks = styles(group, [series_words(cell, group) for cell in group])
        bars = [
            (cell, _intermediate_bar(cell, label, style))
            for cell, label, style in zip(group, labels, looks, strict=True)
        ]
        groups.append((words.workload_name(workload), bars))
    parts = list(cut_groups(groups, MOST_ROWS))
    said = (
        f"{words.count(missing, 'configuration')} without it: their engines do not say it."
        if missing
        else ""
    )
    return tuple(
        _intermediate_figure(part, number=number, parts=len(parts), said=said)
        for number, part in enumerate(parts, start=1)
    )


def _intermediate_figure(
    part: Sequence[tuple[str, Sequence[tuple[Cell, Bar]]]], *, number: int, parts: int, said: str
) -> Figure:
    more = part_words(number, parts)
    inside = [cell for _, found in part for cell, _ in found]
    return Figure(
        name=slug("intermediate-data", str(number) if parts > 1 else ""),
        title=f"Intermediate data{more}",
        caption=" ".join(
            filter(
                None,
                (
                    f"Written to local storage that is not final output{more}, by the engines' own",
                    "counters; beside it, bytes for each byte of input.",
                    _ERROR,
                    said,
                ),
            )
        ),
        emulated=is_emulated(inside),
        twins=twins_of(inside),
        x_label="intermediate data in GB (10⁹ bytes)",
        y_label="",
        body=Bars(
            groups=tuple(
                BarGroup(title=title, bars=tuple(bar for _, bar in found)) for title, found in part
            )
        ),
        rows=tuple(
            {
                **cell_row(cell),
                "intermediate_gigabytes": bar.value,
                "low_gigabytes": bar.low,
                "high_gigabytes": bar.high,
                "intermediate_per_input_byte": intermediate_share(cell),
            }
            for _, found in part
            for cell, bar in found
        ),
    )


def _intermediate_bar(cell: Cell, label: str, style: Style) -> Bar:
    values = [
        result.measurement.intermediate_bytes / GIGA
        for result in cell.results
        if result.measurement is not None and result.measurement.intermediate_bytes is not None
    ]
    interval, share = mean_interval(values), intermediate_share(cell)
    return Bar(
        label=label,
        style=style,
        value=mean(values),
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        words=(
            f"{words.number(mean(values))} GB",
            f"{share:.3g} for each input byte" if share is not None else "input unknown",
        ),
    )


def bottlenecks(
    rows: Mapping[str, Mapping[str, float]], *, emulated: bool, twins: str = ""
) -> tuple[Figure, ...]:
    """Share of the time that each resource bound a run, as bars of shares behind each other.

    Args:
        rows: what a bar is of, to the share of each bound, as fractions of 1; the rest of the time
            is shown as unexplained.
        emulated: whether any of them is of emulated nodes.
        twins: as which boards, see ``analysis.twin_words``.

    Returns:
        One figure, or several where there are more bars than fit a screen; none without rows.

    Raises:
        ValueError: a share is below 0, or the shares of a row are more than all of its time.
    """
    for label, shares in rows.items():
        wrong = [share for share in shares.values() if not 0 <= share <= 1 + _ROUNDING]
        if wrong or math.fsum(shares.values()) > 1 + _ROUNDING:
            raise ValueError(f"shares of {label} that are no parts of its time: {dict(shares)}")
    bounds = list(dict.fromkeys(bound for shares in rows.values() for bound in shares))
    rests = {label: 1 - math.fsum(shares.values()) for label, shares in rows.items()}
    names = [*bounds, *([_REST] if max(rests.values(), default=0.0) > _ROUNDING else [])]
    parts = chunks(list(rows.items()), MOST_ROWS)
    figures = []
    for number, part in enumerate(parts, start=1):
        more = part_words(number, len(parts))
        whole = [
            (label, {**shares, **({_REST: max(0.0, rests[label])} if _REST in names else {})})
            for label, shares in part
        ]
        figures.append(
            Figure(
                name=slug("bottlenecks", str(number) if len(parts) > 1 else ""),
                title=f"What bound the time{more}",
                caption=f"Share of the time that each resource bound{more}.",
                emulated=emulated,
                twins=twins,
                x_label="share of the time",
                y_label="",
                body=Stack(
                    parts=tuple(names),
                    rows=tuple(
                        (label, tuple(shares.get(name, 0.0) for name in names))
                        for label, shares in whole
                    ),
                ),
                rows=tuple(
                    {
                        "run": label,
                        "bound": name,
                        "share": share,
                        "emulated": emulated,
                        "twins": twins,
                    }
                    for label, shares in whole
                    for name, share in shares.items()
                ),
                columns=2,
            )
        )
    return tuple(figures)
