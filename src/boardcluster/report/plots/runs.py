"""Curves over the time of one run: what its nodes did, and what its meters said."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from boardcluster.analysis.energy import gap_limit_seconds
from boardcluster.analysis.telemetry import busy_cores, capacity_cores, window_of
from boardcluster.analysis.twins import is_twin, node_words
from boardcluster.records import PowerModel, PowerSamples, Result, Telemetry
from boardcluster.report import words
from boardcluster.report.curves import COLOURS, Chart, Line
from boardcluster.report.curves import Series as Values
from boardcluster.report.plots.cells import slug
from boardcluster.report.plots.figure import Curves, Figure
from boardcluster.report.run_curves import sections
from boardcluster.report.run_marks import disturbances

__all__ = ["telemetry_curves"]

_ORDER = (
    "network-received",
    "iowait",
    "disk-read",
    "disk-written",
    "temperature",
    "clock-measured",
)
_MACHINE_TIME = "Times are those of this machine, not divided by the dilation."


def telemetry_curves(
    result: Result,
    telemetry: Telemetry,
    *,
    power: Sequence[PowerSamples] = (),
    models: Sequence[PowerModel] = (),
) -> tuple[Figure, ...]:
    """Curves of a representative run: the papers' kinds, phases shaded.

    Network received by each node, I/O wait, disk read and written, temperature, clock, CPU, and
    power where meters or models say it; what nothing says has no figure.

    Args:
        result: the run, with its attempt.
        telemetry: its samples.
        power: readings of its meters, see ``Store.power_samples``; not drawn where nodes stand for
            boards, whose power no meter of this machine sees.
        models: what nodes draw, for nodes without a meter; their power is said to be modelled.
    """
    if is_twin(result):
        power = ()
    found = [
        chart
        for section in sections(telemetry, disturbances(telemetry, limited=is_twin(result)))
        for chart in section.charts
    ]
    if not found:
        return ()
    wanted = {name: place for place, name in enumerate(_ORDER)}
    chosen = sorted(
        (chart for chart in found if chart.name in wanted or chart.name.startswith("cpu-")),
        key=lambda chart: wanted.get(chart.name, len(wanted)),
    )
    watts = _power(telemetry, found[0], power=power, models=models)
    return tuple(_figure(result, chart) for chart in (*chosen, *watts))


def _figure(result: Result, chart: Chart) -> Figure:
    attempt, trial = result.attempt, result.trial
    twins = node_words([result])
    engine = words.engine_name(trial.engine)
    run = f"{trial.id}/{attempt.number if attempt else 0}"
    caption = [
        (
            f"{chart.title} during run {run}: {words.workload_name(trial.workload)} on {engine},"
            f" {words.count(trial.workers, 'worker')}."
        ),
        "Shaded areas are phases." if chart.phases else "",
        chart.note,
        "" if chart.from_zero else "The axis does not start at 0.",
        _MACHINE_TIME if is_twin(result) else "",
    ]
    return Figure(
        name=slug("run", run, chart.name),
        title=chart.title,
        caption=" ".join(filter(None, caption)),
        emulated=bool(attempt and attempt.fingerprint.mark),
        twins=twins,
        x_label="seconds from the start",
        y_label=f"{chart.title}, {chart.unit}",
        body=Curves(chart=chart),
        rows=tuple(_rows(run, chart)),
    )


def _rows(run: str, chart: Chart) -> Iterator[Mapping[str, object]]:
    """One row for each known value; ``seconds`` is the end of its interval."""
    for label, values in chart.columns():
        for end, value in zip(chart.edges[1:].tolist(), values.tolist(), strict=True):
            if not math.isnan(value):
                yield {
                    "run": run,
                    "figure": chart.name,
                    "series": label,
                    "seconds": end,
                    "value": value,
                    "unit": chart.unit,
                }


def _power(
    telemetry: Telemetry,
    like: Chart,
    *,
    power: Sequence[PowerSamples],
    models: Sequence[PowerModel],
) -> Iterator[Chart]:
    """Metered power, and modelled power of the nodes that no meter covers."""
    metered = {node for row in power for node in row.nodes}
    middles = (like.edges[:-1] + like.edges[1:]) / 2
    lines = [(row.meter, _read_off(row, middles)) for row in power]
    free = {model.node: model for model in models if model.node not in metered}
    modelled = [
        (model.node, watts)
        for node in telemetry.nodes
        if (model := free.get(node.node)) is not None
        and (watts := _modelled(telemetry, model, like.edges)) is not None
    ]
    for name, title, rows in (
        ("power-metered", "Power, metered", lines),
        ("power-modelled", "Power, modelled from CPU utilisation", modelled),
    ):
        known = [(label, values) for label, values in rows if not bool(np.isnan(values).all())]
        if known:
            yield replace(
                like,
                name=name,
                title=title,
                unit="W",
                lines=tuple(
                    Line(
                        label=label,
                        values=values,
                        colour=place % COLOURS,
                        dashed=place >= COLOURS,
                    )
                    for place, (label, values) in enumerate(known)
                ),
                bands=(),
                stacked=False,
                from_zero=True,
                most=math.nan,
                marks=(),
                note="",
            )


def _read_off(samples: PowerSamples, moments: Values) -> Values:
    """Power at some moments on the line between two readings; NaN where none is near."""
    known = ~np.isnan(samples.watts)
    at, watts = samples.seconds[known], samples.watts[known]
    if not len(at):
        return np.full(len(moments), np.nan)
    found: Values = np.interp(moments, at, watts, left=np.nan, right=np.nan)
    after = np.clip(np.searchsorted(at, moments), 1, max(1, len(at) - 1))
    if len(at) > 1:
        hole = at[after] - at[after - 1] > gap_limit_seconds(float(np.median(np.diff(at))))
        found = np.where(hole, np.nan, found)
    return found


def _modelled(telemetry: Telemetry, model: PowerModel, edges: Values) -> Values | None:
    """Power by the linear model of ``analysis.energy.model_power``; None without CPU times."""
    node = next(row for row in telemetry.nodes if row.node == model.node)
    window = window_of(node, telemetry)
    busy = busy_cores(window, edges)
    if busy is None:
        return None
    share = np.minimum(busy / capacity_cores(window), 1.0)
    watts: Values = model.idle_watts + (model.stress_watts - model.idle_watts) * share
    return watts
