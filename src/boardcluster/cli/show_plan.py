"""What to buy, as a page of text and as JSON."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from typing import Any

from boardcluster.cli.console import print_columns, say
from boardcluster.plan.limits import shown_limit
from boardcluster.plan.purchase import PlannedCluster, PurchasePlan
from boardcluster.units import format_bytes, format_seconds

__all__ = ["plan_fields", "print_plan"]

_FRONT_SHOWN = 10


def plan_fields(plan: PurchasePlan) -> dict[str, Any]:
    """Return a plan as JSON has it."""
    there = [
        {"count": row.count, "board": row.board.name, "medium": row.medium.name}
        for row in plan.there.rows
    ]
    return {
        "task": plan.task,
        "limits": plan.limits.given(),
        "there": there,
        "currency": plan.currency,
        "tried": plan.tried,
        "met": plan.met,
        "best": plan.best,
        "chosen_by": plan.chosen_by,
        "front": plan.front,
        "near": plan.near,
        "changes": plan.changes,
        "over_workers": plan.over_workers,
        "over_sizes": plan.over_sizes,
        "left_out": [dataclasses.asdict(row) for row in plan.left_out],
        "unpriced": plan.unpriced,
        "remarks": plan.remarks,
    }


def print_plan(plan: PurchasePlan) -> None:
    """Print a plan: the choice, the front, the alternatives, what would change it."""
    _print_choice(plan)
    money = plan.currency
    front = {
        "workers": lambda row: str(row.workers + row.workers_there),
        "board": lambda row: row.board,
        "medium": lambda row: row.medium,
        "engine": lambda row: row.engine,
        "time": lambda row: format_seconds(row.seconds),
        "energy": lambda row: _energy(row.joules),
        money: lambda row: f"{row.price:,.0f}",
        "disks": lambda row: "-" if row.disk_share is None else f"{100 * row.disk_share:.0f} %",
    }
    shown = _spread(plan.shown_front, plan.best)
    more = f", {len(shown)} shown of {len(plan.front)}" if len(shown) < len(plan.front) else ""
    print_columns(f"no other cluster beats these in time, energy and price{more}", front, shown)
    if plan.near:
        near = {"instead": lambda row: row.change, "why not": lambda row: row.why}
        print_columns("alternatives to the choice", near, plan.near)
    for line in plan.changes:
        say(f"what would change it: {line}")
    for line in plan.remarks:
        say(f"note: {line}")
    reasons = Counter(row.why for row in plan.left_out)
    for why, count in reasons.most_common():
        names = ", ".join(row.name for row in plan.left_out if row.why == why)
        say(f"left out, {why}: {names}" if count > 1 else f"left out: {names}, {why}")


def _print_choice(plan: PurchasePlan) -> None:
    best, there = plan.best, plan.there
    size = f" of {format_bytes(plan.task.size_bytes)}" if plan.task.size_bytes else ""
    say(
        f"{plan.task.workload}{size}: {plan.met:,} of {plan.tried:,} clusters are within the limits"
    )
    say(f"buy: {best.words} ({plan.chosen_by})")
    if there.rows:
        say(f"  in addition to what is there: {there.words}")
    for part in best.parts:
        each = "price not known" if part.each is None else f"{plan.currency} {part.each:,.2f} each"
        source = f", {part.source}" if part.source else ""
        say(f"  {part.count} x {part.name or part.kind}: {each}{source}")
    low, high = (format_seconds(value) for value in best.interval_seconds)
    without = f" without {', '.join(plan.unpriced)}" if plan.unpriced else ""
    say(f"  price {plan.currency} {best.price:,.0f}{without}")
    say(
        f"  time {format_seconds(best.seconds)} (90 %: {low} to {high}),"
        f" with 90 % probability below {format_seconds(best.most_seconds)}"
    )
    if best.joules is not None:
        say(
            f"  energy {_energy(best.joules)}, likely below {_energy(best.most_joules)};"
            f" power likely below {best.most_watts:,.0f} W"
        )
    say(f"  {best.disks}")
    say(f"  {best.memory}")


def _energy(joules: float | None) -> str:
    return "-" if joules is None else shown_limit("joules", joules, "")


def _spread(front: Sequence[PlannedCluster], best: PlannedCluster) -> Sequence[PlannedCluster]:
    """Return some of many, evenly from the fastest to the slowest, and the choice."""
    if len(front) <= _FRONT_SHOWN:
        return front
    step = (len(front) - 1) / (_FRONT_SHOWN - 1)
    places = {round(place * step) for place in range(_FRONT_SHOWN)}
    return [row for place, row in enumerate(front) if place in places or row == best]
