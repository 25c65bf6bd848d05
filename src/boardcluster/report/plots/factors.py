"""Bars: times by one factor, intermediate data, and what bounds a run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from boardcluster.analysis.cells import Cell
from boardcluster.analysis.inference import estimate, run_value
from boardcluster.analysis.scaling import intermediate_share
from boardcluster.errors import UsageError
from boardcluster.factors import FACTORS_BY_NAME
from boardcluster.report import words
from boardcluster.report.plots.bar_figures import (
    ERROR_BARS,
    ONE_RUN,
    Group,
    bar,
    bar_figures,
    groups_by_workload,
)
from boardcluster.report.plots.cells import (
    AXES,
    GIGA,
    MOST_ROWS,
    cell_row,
    chunks,
    factor_words,
    part_words,
    rest_of,
    runs_words,
    series_words,
    slug,
    styles,
    value_of,
    workload_groups,
)
from boardcluster.report.plots.figure import Bar, Figure, Stack, Style

__all__ = ["bottlenecks", "intermediate", "times_by_factor"]

_REST = "unexplained"
_ROUNDING = 0.005


def times_by_factor(cells: Sequence[Cell], factor: str) -> tuple[Figure, ...]:
    """Mean time by one factor in which cells differ, as grouped bars with 95 % error bars.

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
            f'there is no factor "{factor}"; allowed: {", ".join(allowed)}',
            hint="use one of the allowed factors",
        )
    return tuple(
        figure
        for workload, group in workload_groups(cells).items()
        for figure in _by_factor(workload, group, factor)
    )


def _by_factor(workload: str, cells: Sequence[Cell], factor: str) -> Iterator[Figure]:
    rows: dict[object, list[Cell]] = {}
    for cell in cells:
        rows.setdefault(rest_of(cell, factor, "engine"), []).append(cell)
    kept = [row for row in rows.values() if len({factor_words(cell, factor) for cell in row}) > 1]
    firsts = [row[0] for row in kept]
    shown = [cell for row in kept for cell in row]
    several = len({cell.engine for cell in shown}) > 1
    looks = styles(shown, [factor_words(cell, factor) for cell in shown])
    style_of = {id(cell): style for cell, style in zip(shown, looks, strict=True)}

    def time_bar(cell: Cell) -> Bar:
        interval = cell.interval_seconds
        spread = f"{words.interval(interval)} s" if interval else ONE_RUN
        said = (words.seconds_with_unit(cell.mean_seconds), spread)
        label = factor_words(cell, factor)
        if several and factor != "engine":
            label = f"{words.engine_name(cell.engine)}, {label}"
        return bar(label, style_of[id(cell)], cell.mean_seconds, interval, said)

    groups: list[Group] = [
        (
            series_words(row[0], firsts, without=[factor]),
            [
                (cell, time_bar(cell))
                for cell in sorted(row, key=lambda cell: (value_of(cell, factor), cell.engine))
            ],
        )
        for row in kept
    ]
    name, thing = words.workload_name(workload), words.factor_name(factor)
    key = FACTORS_BY_NAME[factor].file_key if factor in FACTORS_BY_NAME else factor
    return bar_figures(
        groups,
        stem=(f"times-by-{key}", workload),
        title=f"{name}: time by {thing}",
        caption=lambda more, inside: (
            f"Mean time of {name} by {thing}{more}.",
            ERROR_BARS,
            runs_words(inside),
        ),
        x_label="seconds",
        row=lambda cell, _: {factor: factor_words(cell, factor), **cell_row(cell)},
        order=shown,
    )


def intermediate(cells: Sequence[Cell]) -> tuple[Figure, ...]:
    """Intermediate data by engine: GB (10^9 bytes), and bytes for each byte of input.

    Args:
        cells: of any workloads; those whose engine does not say it are left out and counted in the
            caption.
    """
    known = [cell for cell in cells if cell.mean_intermediate_bytes is not None]
    missing = len(cells) - len(known)
    said = (
        f"Unknown for {words.count(missing, 'configuration')}: the engine does not report it."
        if missing
        else ""
    )
    figures = bar_figures(
        groups_by_workload(known, _intermediate_bar),
        stem=("intermediate-data",),
        title="Intermediate data",
        caption=lambda more, _: (
            f"Data written to local storage that is not final output{more}.",
            "They are the engines' own counters, shown with the bytes for each byte of input.",
            ERROR_BARS,
            said,
        ),
        x_label="intermediate data in GB (10⁹ bytes)",
        row=lambda cell, bar: {
            **cell_row(cell),
            "intermediate_gigabytes": bar.value,
            "low_gigabytes": bar.low,
            "high_gigabytes": bar.high,
            "intermediate_per_input_byte": intermediate_share(cell),
        },
    )
    return tuple(figures)


def _intermediate_bar(cell: Cell, label: str, style: Style) -> Bar:
    known = estimate(
        [
            run_value(result, result.measurement.intermediate_bytes / GIGA)
            for result in cell.results
            if result.measurement is not None and result.measurement.intermediate_bytes is not None
        ]
    )
    share = intermediate_share(cell)
    per_byte = "input unknown" if share is None else f"{share:.3g} for each input byte"
    said = (f"{words.number(known.mean)} GB", per_byte)
    return bar(label, style, known.mean, known.interval, said)


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
                title=f"What limited the time{more}",
                caption=f"Share of the time in which each resource held the run back{more}.",
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
