"""Make a plan: the one function that the command and the Python API call. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from boardcluster.catalog.lookup import entry_names
from boardcluster.errors import UsageError
from boardcluster.plan.composition import MIXED_WORDS
from boardcluster.plan.conflicts import refuse_limits
from boardcluster.plan.evaluation import EvaluatedSet
from boardcluster.plan.feasibility import HDFS_SHARES
from boardcluster.plan.neighbours import near_choices, would_change
from boardcluster.plan.planning import (
    PlanSpace,
    choose,
    describe_cluster,
    explore,
    front_of,
)
from boardcluster.plan.purchase import CurvePoint, PlannedCluster, PurchasePlan
from boardcluster.spec.cluster import BOARDS_MAX

__all__ = ["plan_purchase"]

_FAR = 2
"""How many times the workers of any run are told to be far."""
_CURVE_WORKERS = 16
_LEFT_OUT_SHOWN = 5
_CURVE_SIZES = (0.25, 0.5, 1.0, 1.5, 2.0)

_MANY_SWITCHES = (
    "several switches share the links between them, which the model does not know: the time is too"
    " short where much data moves"
)


def plan_purchase(space: PlanSpace) -> PurchasePlan:
    """Return what to buy for a run.

    Raises:
        UsageError: the workload is not planned, nothing of what is offered fits together, the
            limits exclude everything.
        PredictionUnknownError: the model knows the time of none.
        CapacityError: no cluster holds the data or has the memory.
    """
    if space.task.workload not in HDFS_SHARES:
        raise UsageError(
            f"no plan for {space.task.workload}: it is not a workload of Hadoop or Spark",
            hint=f"choose one of {', '.join(HDFS_SHARES)}",
        )
    _require_parts(space)
    found = explore(space)
    if not len(found.candidates):
        raise UsageError(
            "nothing fits together: none of the media was measured in one of the boards",
            hint="see the boards of a medium with: boardcluster catalog media NAME",
        )
    meets = found.meets(space.limits)
    if not meets.any():
        refuse_limits(found, space)
    best, words = choose(found, space)
    chosen = describe_cluster(found, best, space)
    return PurchasePlan(
        task=space.task,
        limits=space.limits,
        there=space.there,
        currency=space.currency,
        tried=len(found.candidates),
        met=int(np.count_nonzero(meets)),
        best=chosen,
        chosen_by=words,
        front=tuple(describe_cluster(found, int(place), space) for place in front_of(found, space)),
        over_workers=_over_workers(found, best),
        over_sizes=_over_sizes(found, best, space),
        near=near_choices(found, best, space),
        changes=would_change(found, best, space),
        left_out=space.offers.left_out,
        unpriced=space.offers.unpriced,
        remarks=tuple(_remarks(chosen, space)),
    )


def _require_parts(space: PlanSpace) -> None:
    """Refuse to plan where nothing of a kind is left to choose from.

    Raises:
        UsageError: names the kind, and why the others were left out.
    """
    offers = space.offers
    for what, kind, rows in (
        ("board", "boards", offers.boards),
        ("medium", "media", offers.media),
        ("network", "networks", offers.switches),
    ):
        if not rows:
            names = entry_names(kind)
            out = [row for row in offers.left_out if row.name in names or _is_own(row.name)]
            why = "; ".join(f"{row.name}: {row.why}" for row in out[:_LEFT_OUT_SHOWN])
            raise UsageError(
                f"there is no {what} to choose from: {why}", hint=f"name another one with --{what}"
            )


def _is_own(name: str) -> bool:
    """Say whether a name is that of a file, which may describe any kind of part."""
    return name.endswith(".toml")


def _remarks(best: PlannedCluster, space: PlanSpace) -> Iterator[str]:
    """Yield what a reader of the plan must know."""
    if space.offers.unpriced:
        what = ", ".join(space.offers.unpriced)
        yield f"no price of {what} is known, so no total here includes it; set one with --price"
    if space.offers.unpriced and space.limits.budget is not None:
        left = space.limits.budget - best.price
        yield f"{space.currency} {left:,.0f} of the budget are left for them"
    yield "energy and power are those of the workers, without master and switch"
    workers, seen = best.workers + best.workers_there, space.model.workers_seen
    if workers >= BOARDS_MAX:
        yield (
            f"boardcluster itself runs at most {BOARDS_MAX - 1:,} workers today; limit the plan "
            f"with --workers-most {BOARDS_MAX - 1}"
        )
    if workers > _FAR * seen:
        yield (
            f"none of the runs behind this had more than {seen} workers, and this has {workers}: "
            "try part of it before you buy all of it"
        )
    kinds = {(row.board.name, row.medium.name) for row in space.there.rows}
    if len(kinds | {(best.board, best.medium)} if best.workers else kinds) > 1:
        yield MIXED_WORDS
    if any(part.kind == "switch" and part.count > 1 for part in best.parts):
        yield _MANY_SWITCHES


def _over_workers(found: EvaluatedSet, best: int) -> tuple[CurvePoint, ...]:
    """Return the times of the chosen kind of cluster, from few workers to twice as many."""
    kinds = found.candidates.kinds
    most = max(_CURVE_WORKERS, 2 * int(found.workers[best]))
    same = np.flatnonzero((kinds == kinds[best]) & (found.workers <= most))
    return _curve(found, same[np.argsort(found.workers[same])], found.workers)


def _over_sizes(found: EvaluatedSet, best: int, space: PlanSpace) -> tuple[CurvePoint, ...]:
    """Return the times of the chosen cluster for sizes around that of the run."""
    one = found.candidates.take(np.array([best]))
    points: list[CurvePoint] = []
    for factor in _CURVE_SIZES if space.task.size_bytes else ():
        size_bytes = round(space.task.size_bytes * factor)
        other = replace(space, task=replace(space.task, size_bytes=size_bytes)).evaluate(one)
        points += _curve(other, np.zeros(1, dtype=np.int64), np.array([size_bytes]))
    return tuple(points)


def _curve(
    found: EvaluatedSet, places: NDArray[np.int64], across: NDArray[np.int64]
) -> tuple[CurvePoint, ...]:
    answer = found.prediction
    return tuple(
        CurvePoint(
            float(across[place]),
            float(answer.median_seconds[place]),
            float(answer.low_seconds[place]),
            float(answer.high_seconds[place]),
        )
        for place in places
        if answer.known[place]
    )
