"""From a task, limits and what can be bought to a plan. Pure.

1. ``enumerate_candidates`` lists clusters, ``evaluate_candidates`` asks the model for all at once.
2. Where a limit is crossed between two numbers of workers, those in between are tried, too.
3. Without any that keeps to the limits, ``conflicts`` says which limit binds and by how much.
4. Of the others one is chosen; the front, what is beside the choice and what would change it
   (``neighbours``) is told with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from boardcluster.plan.candidates import (
    WORKERS_MOST,
    CandidateSet,
    PlanTask,
    enumerate_candidates,
    worker_counts,
)
from boardcluster.plan.composition import BoardsThere, PlanModel
from boardcluster.plan.evaluation import (
    EvaluatedSet,
    NeedsOf,
    evaluate_candidates,
    smallest_board,
)
from boardcluster.plan.feasibility import HDFS_SHARES, DiskNeed
from boardcluster.plan.front import pareto_front
from boardcluster.plan.limits import PlanLimits
from boardcluster.plan.offers import Offers, UnitPrice, switches_needed
from boardcluster.plan.purchase import PlannedCluster, PlannedPart

__all__ = ["PlanSpace", "choose", "describe_cluster", "explore", "front_of"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlanSpace:
    """What a plan searches, and whom it asks."""

    task: PlanTask
    """The run."""
    limits: PlanLimits
    """What must be kept."""
    offers: Offers
    """What can be bought."""
    profiles: tuple[str, ...]
    """Engine configurations to try."""
    there: BoardsThere
    """What is there already."""
    model: PlanModel
    """The model."""
    needs_of: NeedsOf
    """What profiles ask of boards."""
    currency: str
    """Of all prices."""
    workers_most: int = WORKERS_MOST
    """Most workers to buy."""

    def evaluate(self, candidates: CandidateSet) -> EvaluatedSet:
        """Ask for everything that is known of clusters."""
        return evaluate_candidates(
            candidates,
            self.offers,
            self.task,
            profiles=self.profiles,
            there=self.there,
            predict=self.model.predict,
            needs_of=self.needs_of,
        )


def explore(space: PlanSpace) -> EvaluatedSet:
    """Look at every cluster, and at every number of workers around those that cross a limit."""
    least = 0 if space.there.rows else 1
    counts = worker_counts(space.workers_most, least=least)
    candidates = enumerate_candidates(
        space.offers, space.task, profiles=len(space.profiles), workers=counts
    )
    found = space.evaluate(candidates)
    between = _between(candidates, found.criteria(space.limits))
    return found.joined(space.evaluate(between)) if len(between) else found


def _between(candidates: CandidateSet, criteria: Sequence[NDArray[np.bool_]]) -> CandidateSet:
    """Return the clusters between neighbours of a kind of which only one keeps to a limit.

    Each limit counts by itself: where fewer workers miss the deadline and more the budget, some
    between them may keep to both.
    """
    order = np.lexsort((candidates.workers, candidates.kinds))
    kinds, workers = candidates.kinds[order], candidates.workers[order]
    flips = np.any([met[order][1:] != met[order][:-1] for met in criteria], axis=0)
    crossed = np.flatnonzero((kinds[1:] == kinds[:-1]) & flips)
    gaps = workers[crossed + 1] - workers[crossed] - 1
    places = np.repeat(order[crossed], gaps)
    offsets = np.concatenate([np.arange(1, gap + 1) for gap in gaps] or [np.zeros(0)])
    found = candidates.take(places)
    return replace(found, workers=found.workers + offsets.astype(np.int64))


def _ordered(found: EvaluatedSet, space: PlanSpace, meets: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the places of those that keep to the limits: fewer switches and faster links first."""
    places = np.flatnonzero(meets)
    chosen = found.candidates.take(places)
    switches = _switches(chosen, space)
    links = np.array([row.link_bits_per_second for row in space.offers.switches])
    return places[np.lexsort((chosen.profile, -links[chosen.switch], switches))]


def _switches(candidates: CandidateSet, space: PlanSpace) -> NDArray[np.int64]:
    ports = np.array([row.ports for row in space.offers.switches], dtype=np.int64)
    nodes = candidates.workers + space.there.workers + 1
    return switches_needed(nodes, ports[candidates.switch])


def choose(found: EvaluatedSet, space: PlanSpace) -> tuple[int, str]:
    """Return the place of the cluster to buy, and why it, in words.

    With a deadline it is the cheapest, with another limit the fastest. Without any it is the one
    with the least product of time and price, from which on time or money buys less than its share.
    Of equal ones the faster, the cheaper, the one with fewer switches and the faster link is taken.
    """
    places = _ordered(found, space, found.meets(space.limits))
    seconds, price = found.prediction.median_seconds[places], found.price[places]
    if space.limits.deadline_seconds is not None:
        best, words = np.lexsort((seconds, price))[0], "the cheapest within the limits"
    elif space.limits.given():
        best, words = np.lexsort((price, seconds))[0], "the fastest within the limits"
    else:
        best = np.lexsort((seconds, seconds * np.maximum(price, 1.0)))[0]
        words = "the lowest product of time and price; give a limit for another choice"
    return int(places[best]), words


def front_of(found: EvaluatedSet, space: PlanSpace) -> NDArray[np.int64]:
    """Return the places of clusters that no other beats in time, energy and price at once."""
    places = _ordered(found, space, found.meets(space.limits))
    values = np.column_stack(
        [found.prediction.median_seconds, found.prediction.joules, found.price]
    )[places]
    return places[pareto_front(values)]


def describe_cluster(found: EvaluatedSet, place: int, space: PlanSpace) -> PlannedCluster:
    """Return one cluster with its arithmetic."""
    one = found.candidates.take(np.array([place]))
    offers, prediction = space.offers, found.prediction
    board, medium = offers.boards[one.board[0]], offers.media[one.medium[0]]
    switch = offers.switches[one.switch[0]]
    profile, engine = space.profiles[one.profile[0]], space.task.engines[one.engine[0]]
    workers = int(found.workers[place])
    smallest = smallest_board(board if one.workers[0] else None, space.there)
    needs = space.needs_of(smallest, profile, min(workers, 2), engine)
    intermediate = float(prediction.intermediate_bytes[place])
    disks = DiskNeed(
        size_bytes=space.task.size_bytes,
        shares=HDFS_SHARES[space.task.workload],
        intermediate_bytes=intermediate,
        replication=int(found.replication[place]),
        workers=workers,
        disk_bytes=float(found.disk_bytes[place]),
    )
    known = not np.isnan(intermediate)
    return PlannedCluster(
        board=board.name,
        medium=medium.name,
        workers=int(one.workers[0]),
        workers_there=space.there.workers,
        switch=switch.name,
        link_bits_per_second=switch.link_bits_per_second,
        profile=profile,
        engine=engine.value,
        replication=disks.copies,
        seconds=float(prediction.median_seconds[place]),
        interval_seconds=(
            float(prediction.low_seconds[place]),
            float(prediction.high_seconds[place]),
        ),
        most_seconds=float(found.most_seconds[place]),
        joules=_or_none(prediction.joules[place]),
        most_joules=_or_none(found.most_joules[place]),
        most_watts=_or_none(found.most_watts[place]),
        price=float(found.price[place]),
        disk_share=disks.share if known else None,
        parts=_parts(one, space),
        disks=disks.words if known else "disks: the intermediate data is not known",
        memory=needs.memory.words,
    )


def _or_none(value: np.float64) -> float | None:
    return None if np.isnan(value) else float(value)


def _parts(one: CandidateSet, space: PlanSpace) -> tuple[PlannedPart, ...]:
    """Return the shopping list of one cluster."""
    offers, bought = space.offers, int(one.workers[0]) + (0 if space.there.rows else 1)
    board, medium = offers.boards[one.board[0]], offers.media[one.medium[0]]
    switch = offers.switches[one.switch[0]]
    count = int(_switches(one, space)[0])
    if space.there.rows:
        count -= int(_switches(replace(one, workers=np.zeros(1, dtype=np.int64)), space)[0])
    supply = board.supply
    rows: list[tuple[str, str, int, UnitPrice | None]] = [
        ("board", board.name, bought, board.price),
        ("medium", medium.name, bought, medium.price),
        ("supply", supply.name if supply else "", bought, supply.price if supply else None),
        ("switch", switch.name, count, switch.price),
    ]
    for kind, price in offers.extra.items():
        rows.append((kind, "", bought if kind == "cooling" else 1, price))
    return tuple(
        PlannedPart(
            kind=kind,
            name=name,
            count=number,
            each=price.amount if price else None,
            source=price.source if price else "",
        )
        for kind, name, number, price in rows
        if number
    )
