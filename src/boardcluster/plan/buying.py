"""Make a plan: the one function that the command and the Python API call. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from boardcluster.errors import UsageError
from boardcluster.plan.composition import MIXED_WORDS
from boardcluster.plan.conflicts import refuse_limits
from boardcluster.plan.feasibility import HDFS_SHARES
from boardcluster.plan.neighbours import near_choices, would_change
from boardcluster.plan.planning import (
    PlanSpace,
    choose,
    describe_cluster,
    explore,
    front_of,
)
from boardcluster.plan.purchase import PlannedCluster, PurchasePlan

__all__ = ["plan_purchase"]

_MANY_SWITCHES = (
    "several switches share the links between them, which the model does not know: the time is too"
    " short where much data moves"
)


def plan_purchase(space: PlanSpace) -> PurchasePlan:
    """Return what to buy for a run.

    Raises:
        UsageError: the workload is not planned, nothing of what is offered fits together, the
            limits exclude everything, or the model knows none of it.
        CapacityError: no cluster holds the data or has the memory.
    """
    if space.task.workload not in HDFS_SHARES:
        raise UsageError(
            f"no plan for {space.task.workload}: it is not a workload of Hadoop or Spark",
            hint=f"choose one of {', '.join(HDFS_SHARES)}",
        )
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
        near=near_choices(found, best, space),
        changes=would_change(found, best, space),
        left_out=space.offers.left_out,
        unpriced=space.offers.unpriced,
        remarks=tuple(_remarks(chosen, space)),
    )


def _remarks(best: PlannedCluster, space: PlanSpace) -> Iterator[str]:
    """Yield what a reader of the plan must know."""
    if space.offers.unpriced:
        what = ", ".join(space.offers.unpriced)
        yield f"no price of {what} is known, so no price here counts it; --price gives one"
    if space.offers.unpriced and space.limits.budget is not None:
        left = space.limits.budget - best.price
        yield f"of the budget {space.currency} {left:,.0f} are left for that"
    yield "energy and power are those of the workers, without master and switch"
    kinds = {(row.board.name, row.medium.name) for row in space.there.rows}
    if len(kinds | {(best.board, best.medium)} if best.workers else kinds) > 1:
        yield MIXED_WORDS
    if any(part.kind == "switch" and part.count > 1 for part in best.parts):
        yield _MANY_SWITCHES
