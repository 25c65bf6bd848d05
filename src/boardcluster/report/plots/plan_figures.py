"""Figures of a plan: the front, and the choice over workers and sizes."""

from __future__ import annotations

from collections.abc import Sequence

from boardcluster.plan.purchase import CurvePoint, PurchasePlan
from boardcluster.report.plots.figure import Figure, Lines, Point, Series, Style
from boardcluster.units import format_bytes

__all__ = ["plan_figures"]

_MINUTE = 60.0
_GIGA = 1e9
_PREDICTED = "Predicted, not measured; bars hold 90 % of runs."


def plan_figures(plan: PurchasePlan) -> tuple[Figure, ...]:
    """Return the figures of a plan; those without at least two points are left out."""
    found = [_front(plan)]
    if len(plan.over_workers) > 1:
        found.append(
            _curve(
                plan,
                plan.over_workers,
                name="plan-workers",
                title="Time by number of workers",
                label="workers",
                scale=1.0,
            )
        )
    if len(plan.over_sizes) > 1:
        found.append(
            _curve(
                plan,
                plan.over_sizes,
                name="plan-sizes",
                title="Time by size",
                label="size (GB)",
                scale=_GIGA,
            )
        )
    return tuple(found)


def _front(plan: PurchasePlan) -> Figure:
    """Clusters that no other beats, by price and time; those of one board in one colour."""
    shown = plan.shown_front
    boards = list(dict.fromkeys(row.board for row in shown))
    series = []
    for place, board in enumerate(boards):
        points = tuple(
            Point(x=row.price, y=row.seconds / _MINUTE, low=None, high=None, runs=0)
            for row in sorted(shown, key=lambda row: row.price)
            if row.board == board
        )
        alone = ((points[0].x, points[0].y),) * 2  # a fit of no length: points are not joined
        style = Style(place % 8, place % 8)
        series.append(Series(label=board, style=style, points=points, fit=alone))
    return Figure(
        name="plan-front",
        title=f"Clusters for {_what(plan)} that no other one beats",
        caption="Predicted, not measured. No other cluster takes less time, energy and price at"
        " once. Clusters of over eight times the price of the choice are in the data only.",
        emulated=False,
        twins="",
        x_label=f"price, {plan.currency}",
        y_label="predicted time, min",
        body=Lines(series=tuple(series)),
        rows=tuple(
            {
                "board": row.board,
                "medium": row.medium,
                "workers": row.workers + row.workers_there,
                "switch": row.switch,
                "engine": row.engine,
                "profile": row.profile,
                "price": row.price,
                "seconds": row.seconds,
                "low_seconds": row.interval_seconds[0],
                "high_seconds": row.interval_seconds[1],
                "joules": row.joules,
            }
            for row in plan.front
        ),
        columns=2,
    )


def _what(plan: PurchasePlan) -> str:
    size = f" of {format_bytes(plan.task.size_bytes)}" if plan.task.size_bytes else ""
    return f"{plan.task.workload}{size}"


def _curve(
    plan: PurchasePlan,
    points: Sequence[CurvePoint],
    *,
    name: str,
    title: str,
    label: str,
    scale: float,
) -> Figure:
    best = plan.best
    series = Series(
        label=f"{best.board}, {best.medium}, {best.engine}",
        style=Style(0, 0),
        points=tuple(
            Point(
                x=row.x / scale,
                y=row.seconds / _MINUTE,
                low=row.low_seconds / _MINUTE,
                high=row.high_seconds / _MINUTE,
                runs=0,
            )
            for row in points
        ),
    )
    return Figure(
        name=name,
        title=f"{title}, {_what(plan)}",
        caption=_PREDICTED,
        emulated=False,
        twins="",
        x_label=label,
        y_label="predicted time, min",
        body=Lines(series=(series,)),
        rows=tuple(
            {
                label: row.x / scale,
                "seconds": row.seconds,
                "low_seconds": row.low_seconds,
                "high_seconds": row.high_seconds,
            }
            for row in points
        ),
    )
