"""What is known of every cluster that could be bought: time, energy, price, what fits. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from boardcluster.plan.candidates import CandidateSet, PlanTask
from boardcluster.plan.composition import BoardsThere, Predict, compose
from boardcluster.plan.feasibility import (
    DISK_SHARE,
    HDFS_SHARES,
    MARGIN_DISK_SHARE,
    HdfsShares,
    ProfileNeeds,
    disk_shares,
)
from boardcluster.plan.limits import PlanLimits, beyond_time, likely_most
from boardcluster.plan.offers import (
    BoardOffer,
    MediumOffer,
    Offers,
    SupplyOffer,
    SwitchOffer,
    switches_needed,
)
from boardcluster.plan.prediction import PredictionBatch
from boardcluster.records import Engine

__all__ = ["EvaluatedSet", "NeedsOf", "evaluate_candidates", "smallest_board"]

_Floats = NDArray[np.float64]
_Places = NDArray[np.int64]
_Flags = NDArray[np.bool_]

NeedsOf = Callable[[BoardOffer, str, int, Engine], ProfileNeeds]
"""What a profile, by name, asks of clusters of a board with so many workers, for an engine."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EvaluatedSet:
    """Clusters and what is known of each; NaN where nothing is."""

    candidates: CandidateSet
    """The clusters."""
    workers: _Places
    """All workers, with those that are there already."""
    prediction: PredictionBatch
    """Times, intermediate data and energy."""
    most_seconds: _Floats
    """Time that is kept to with the probability of ``limits.MET_PROBABILITY``."""
    most_joules: _Floats
    """Energy of the workers, likewise."""
    most_watts: _Floats
    """Their mean power, likewise."""
    price: _Floats
    """Price of what is bought, without kinds of parts that have none."""
    replication: _Floats
    """Copies of each block."""
    disk_bytes: _Floats
    """Size of the disk of each worker; of the smallest where they differ."""
    disk_share: _Floats
    """Share of the disks that the run takes."""
    most_disk_share: _Floats
    """The same with the upper end of the intermediate data."""
    memory_fits: _Flags
    """Whether a task finds a place."""
    memory_margin: _Flags
    """Whether everything that runs at once does."""

    @property
    def fits(self) -> _Flags:
        """Whether the run is possible."""
        return self.memory_fits & (self.disk_share <= DISK_SHARE)

    @property
    def feasible(self) -> _Flags:
        """Whether it is possible with margin."""
        return self.memory_margin & (self.most_disk_share <= MARGIN_DISK_SHARE)

    def amounts(self) -> dict[str, _Floats]:
        """Return what limits are compared with, by the name of their option."""
        return {
            "deadline": self.most_seconds,
            "budget": self.price,
            "watts": self.most_watts,
            "joules": self.most_joules,
        }

    def meets(self, limits: PlanLimits, *, apart_from: str = "") -> _Flags:
        """Return which are known, feasible and within all limits but perhaps one."""
        found = self.prediction.known & self.feasible
        amounts = self.amounts()
        for name, most in limits.given().items():
            if name != apart_from:
                found = found & (amounts[name] <= most)
        return found

    def criteria(self, limits: PlanLimits) -> tuple[_Flags, ...]:
        """Return which are known and feasible, and which are within each limit by itself."""
        amounts = self.amounts()
        within = (amounts[name] <= most for name, most in limits.given().items())
        return (self.prediction.known & self.feasible, *within)

    def joined(self, other: EvaluatedSet) -> EvaluatedSet:
        """Return both sets as one."""
        rows: dict[str, object] = {}
        for row in fields(self):
            mine, others = getattr(self, row.name), getattr(other, row.name)
            if row.name == "candidates":
                rows[row.name] = mine.joined(others)
            elif row.name == "prediction":
                rows[row.name] = _joined_predictions(mine, others)
            else:
                rows[row.name] = np.concatenate([mine, others])
        return EvaluatedSet(**rows)  # type: ignore[arg-type]  # each has its field's type


def _joined_predictions(one: PredictionBatch, other: PredictionBatch) -> PredictionBatch:
    return PredictionBatch(
        **{
            row.name: np.concatenate([getattr(one, row.name), getattr(other, row.name)])
            for row in fields(PredictionBatch)
        }
    )


def evaluate_candidates(
    candidates: CandidateSet,
    offers: Offers,
    task: PlanTask,
    *,
    profiles: Sequence[str],
    there: BoardsThere,
    predict: Predict,
    needs_of: NeedsOf,
) -> EvaluatedSet:
    """Return what is known of clusters.

    Args:
        candidates: the clusters.
        offers: what their places mean.
        task: what they are for.
        profiles: names of the profiles.
        there: boards that are there already.
        predict: the model.
        needs_of: what profiles ask of boards.
    """
    all_workers = candidates.workers + there.workers
    replication, fits, margin = _profile_arrays(
        candidates, offers, task, profiles=profiles, there=there, needs_of=needs_of
    )
    if task.replication is not None:
        replication = np.full(len(candidates), float(task.replication))
    prediction = compose(
        candidates, offers, task, there=there, replication=replication, predict=predict
    )
    disk_bytes = _disk_bytes(candidates, offers, there)
    prediction = _with_intermediate(prediction, HDFS_SHARES[task.workload])

    def taken(intermediate_bytes: _Floats) -> _Floats:
        return disk_shares(
            size_bytes=np.full(len(candidates), float(task.size_bytes)),
            shares=HDFS_SHARES[task.workload],
            intermediate_bytes=intermediate_bytes,
            replication=replication,
            workers=all_workers.astype(np.float64),
            disk_bytes=disk_bytes,
        )

    seconds = likely_most(prediction.median_seconds, prediction.high_seconds)
    joules = likely_most(prediction.joules, prediction.high_joules)
    watts = prediction.joules / prediction.median_seconds
    own = beyond_time(
        prediction.high_joules / prediction.joules,
        prediction.high_seconds / prediction.median_seconds,
    )
    return EvaluatedSet(
        candidates=candidates,
        workers=all_workers,
        prediction=prediction,
        most_seconds=seconds,
        most_joules=joules,
        most_watts=likely_most(watts, watts * own),
        price=_prices(candidates, offers, there),
        replication=replication,
        disk_bytes=disk_bytes,
        disk_share=taken(prediction.intermediate_bytes),
        most_disk_share=taken(prediction.high_intermediate_bytes),
        memory_fits=fits,
        memory_margin=margin,
    )


def _with_intermediate(prediction: PredictionBatch, shares: HdfsShares) -> PredictionBatch:
    """Put the little that a workload is known to write where the model says nothing."""
    if shares.intermediate_bytes is None:
        return prediction
    unknown = np.isnan(prediction.intermediate_bytes)
    return replace(
        prediction,
        intermediate_bytes=np.where(
            unknown, shares.intermediate_bytes, prediction.intermediate_bytes
        ),
        high_intermediate_bytes=np.where(
            unknown, shares.intermediate_bytes, prediction.high_intermediate_bytes
        ),
    )


def _disk_bytes(candidates: CandidateSet, offers: Offers, there: BoardsThere) -> _Floats:
    """Return the size of the smallest disk of each cluster."""
    capacity = np.array([row.capacity_bytes for row in offers.media])[candidates.medium]
    bought = np.where(candidates.workers > 0, capacity, np.inf)
    return np.asarray(np.minimum(bought, there.least_disk_bytes))


def _profile_arrays(
    candidates: CandidateSet,
    offers: Offers,
    task: PlanTask,
    *,
    profiles: Sequence[str],
    there: BoardsThere,
    needs_of: NeedsOf,
) -> tuple[_Floats, _Flags, _Flags]:
    """Return replication, whether the memory fits, and whether with margin.

    A profile sizes containers by the smallest worker, and asks the same of every number of workers
    from two on.
    """
    shape = (len(offers.boards), len(profiles), len(task.engines), 2, 2)
    replication = np.ones(shape)
    fits, margin = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
    alone = (candidates.workers + there.workers == 1).astype(np.int64)
    some = (candidates.workers > 0).astype(np.int64)
    keys = (candidates.board, candidates.profile, candidates.engine, 1 - alone, some)
    for key in set(zip(*(key.tolist() for key in keys), strict=True)):
        board, profile, engine, several, bought = key
        needs = needs_of(
            smallest_board(offers.boards[board] if bought else None, there),
            profiles[profile],
            1 + several,
            task.engines[engine],
        )
        replication[key] = needs.replication
        fits[key], margin[key] = needs.memory.fits, needs.memory.has_margin
    return replication[keys], fits[keys], margin[keys]


def smallest_board(bought: BoardOffer | None, there: BoardsThere) -> BoardOffer:
    """Return the board with the least memory of those that are bought and those there already."""
    boards = [*([bought] if bought else []), *(row.board for row in there.rows)]
    return min(boards, key=lambda row: row.memory_bytes)


def _amount(offer: BoardOffer | MediumOffer | SwitchOffer | SupplyOffer | None) -> float:
    """Return a price; 0 of a part of a kind that has none."""
    return offer.price.amount if offer is not None and offer.price is not None else 0.0


def _prices(candidates: CandidateSet, offers: Offers, there: BoardsThere) -> _Floats:
    """Return the price of what is bought: with nothing there, also of the master's node."""
    boards = np.array([_amount(row) + _amount(row.supply) for row in offers.boards])
    media = np.array([_amount(row) for row in offers.media])
    switches = np.array([_amount(row) for row in offers.switches])
    ports = np.array([row.ports for row in offers.switches], dtype=np.int64)[candidates.switch]
    extra = {name: price.amount for name, price in offers.extra.items()}
    each = boards[candidates.board] + media[candidates.medium] + extra.get("cooling", 0.0)
    bought = candidates.workers + (0 if there.rows else 1)
    count = switches_needed(candidates.workers + there.workers + 1, ports)
    if there.rows:
        count = count - switches_needed(np.full_like(count, there.workers + 1), ports)
    once = extra.get("other", 0.0)
    return np.asarray(bought * each + count * switches[candidates.switch] + once)
