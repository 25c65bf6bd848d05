"""Cells that are watched round by round: their control charts, and what changed."""

from __future__ import annotations

from collections.abc import Iterator

from boardcluster.analysis.control_chart import FALSE_ALARM, ControlChart, ControlPoint
from boardcluster.analysis.watched import WatchedCell, WatchStanding
from boardcluster.report import words
from boardcluster.report.material import Material
from boardcluster.report.parts import Part, named, present
from boardcluster.report.plots import Figure
from boardcluster.report.plots.figure import Lines, Point, Series, Style
from boardcluster.report.tables import Display, Getter, Getters, tabulate

__all__ = ["watch_section"]

_TEXT = (
    "`boardcluster watch-performance` runs the same small campaign again and again. The first "
    "rounds of a cell set its limits. A round beyond them, or a moving average beyond its own, is "
    "not explained by the first rounds."
)
_NOTE = (
    "Individuals and EWMA charts of logarithms, with the limits of a prediction from the baseline:"
    f" while nothing changes, at most {FALSE_ALARM * 100:.1f} % of rounds are outside them, over "
    "all cells of a watch. No limit is closer than 5 %. A change is placed where it is largest, so "
    "its size is more likely over- than underestimated."
)
_TICKS_MOST = 8


def _stands(row: ControlPoint) -> str:
    if row.value.seconds is None:
        return "no run counts"
    if row.in_baseline:
        return "baseline"
    if row.level_seconds is None:
        return ""
    return {"round": "outside its limits", "level": "moving average outside"}.get(row.out, "within")


_POINTS: Getters[ControlPoint] = (
    Getter("Round", lambda row: str(row.number), Display.NUMBER),
    Getter("Begun", lambda row: row.value.started_utc, Display.MOMENT),
    Getter("Runs", lambda row: str(row.value.runs), Display.NUMBER),
    Getter(
        "Time (s)",
        lambda row: words.seconds(row.value.seconds) if row.value.seconds else "",
        Display.NUMBER,
    ),
    Getter(
        "Moving average (s)",
        lambda row: words.seconds(row.level_seconds) if row.level_seconds else "",
        Display.NUMBER,
    ),
    Getter("Stands", _stands),
    Getter("Campaign", lambda row: row.value.round, Display.CODE),
)
_CHANGED: Getters[str] = (Getter("Before and after", lambda row: row, Display.LONG),)


def watch_section(material: Material) -> Iterator[Part]:
    """The section, where something is watched."""
    unusable = material.evidence.unusable_watches
    if not material.watches and not unusable:
        return
    yield Part(
        title="Watched over time",
        name="watched",
        contents="Watched",
        text=(_TEXT, *(f"The record of a watch cannot be used: {why}." for why in unusable)),
        notes=(_NOTE,),
        parts=tuple(
            _part(cell, f"watched-{number}-{place}", material)
            for number, watch in enumerate(material.watches, start=1)
            for place, cell in enumerate(_out_first(watch), start=1)
        ),
    )


def _out_first(watch: WatchStanding) -> list[WatchedCell]:
    return sorted(watch.cells, key=lambda row: not row.chart.is_out)


def _part(cell: WatchedCell, name: str, material: Material) -> Part:
    cluster = material.cluster
    emulated = cluster is not None and bool(cluster.capabilities.mark)
    warning = (
        "The cell changed while its baseline was measured, so its limits mean little. Start a new "
        "baseline with `--new`."
    )
    return Part(
        title=cell.name[:1].upper() + cell.name[1:],
        name=name,
        text=(
            f"{cell.words[:1].upper()}{cell.words[1:]}.",
            *([warning] if cell.baseline_drifts else []),
        ),
        figures=named(_figures(cell, emulated=emulated, twins=material.twins), name),
        fold="Every round",
        tables=present(
            tabulate(cell.changed, _CHANGED, caption="What changed with it"),
            tabulate(cell.chart.points, _POINTS, caption="Rounds", emulated=emulated),
        ),
    )


def _figures(cell: WatchedCell, *, emulated: bool, twins: str) -> tuple[Figure, ...]:
    """Every round with the limits, and the moving average."""
    chart = cell.chart
    known = [row for row in chart.points if row.value.seconds is not None]
    if len(known) < 2:
        return ()
    step = -(-len(chart.points) // _TICKS_MOST)
    return (
        Figure(
            name="watched",
            title=cell.name,
            caption=_caption(chart),
            emulated=emulated,
            twins=twins,
            x_label="round",
            y_label="time (s)",
            body=Lines(
                series=tuple(_series(known)),
                ticks=tuple(float(x) for x in range(step, len(chart.points) + 1, step)),
                levels=_levels(chart),
                from_zero=False,
            ),
            rows=tuple(
                {
                    "round": row.number,
                    "campaign": row.value.round,
                    "begun_utc": row.value.started_utc,
                    "runs": row.value.runs,
                    "seconds": row.value.seconds,
                    "baseline": row.in_baseline,
                    "average_seconds": row.level_seconds,
                    "out": row.out,
                    "low_seconds": chart.limits_seconds.low if chart.limits_seconds else None,
                    "high_seconds": chart.limits_seconds.high if chart.limits_seconds else None,
                }
                for row in chart.points
            ),
        ),
    )


def _caption(chart: ControlChart) -> str:
    if chart.limits_seconds is None:
        return f"{chart.have} of {chart.wanted} rounds of the baseline; no limits yet."
    said = (
        f"Dotted: mean of the first {chart.wanted} rounds, and the limits of one round. The limits "
        "of the moving average are tighter and are judged separately."
    )
    if chart.change is None:
        return said
    return (
        f"{said} The times changed between rounds {chart.change.before} and {chart.change.after}."
    )


def _levels(chart: ControlChart) -> tuple[float, ...]:
    if chart.limits_seconds is None or chart.centre_seconds is None:
        return ()
    return (chart.limits_seconds.low, chart.centre_seconds, chart.limits_seconds.high)


def _series(known: list[ControlPoint]) -> Iterator[Series]:
    groups = {
        "baseline": [row for row in known if row.in_baseline],
        "round": [row for row in known if not row.in_baseline and row.out != "round"],
        "round outside its limits": [row for row in known if row.out == "round"],
    }
    for place, (label, rows) in enumerate(groups.items()):
        points = tuple(_point(row.number, row.value.seconds) for row in rows)
        if points:  # a fit of no length: rounds are not joined by a line
            alone = ((points[0].x, points[0].y),) * 2
            colour = (7, 0, 1)[place]
            yield Series(label=label, style=Style(colour, place), points=points, fit=alone)
    level = tuple(
        _point(row.number, row.level_seconds) for row in known if row.level_seconds is not None
    )
    if level:
        yield Series(label="moving average", style=Style(2, 3), points=level)


def _point(number: int, seconds: float | None) -> Point:
    return Point(x=float(number), y=seconds or 0.0, low=None, high=None, runs=1)
