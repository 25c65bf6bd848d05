"""Times of clusters of one kind of board, and of clusters that mix several. Pure.

No published table has a mixed cluster. Two bounds are known: tasks that are handed out one by one
take the harmonic mean of the kinds' times, and work that is divided evenly waits for the slowest.
A mixed cluster is predicted in between, its interval from the lower end of the one to the upper end
of the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from boardcluster.plan.candidates import CandidateSet, PlanTask
from boardcluster.plan.limits import beyond_time
from boardcluster.plan.offers import BoardOffer, MediumOffer, Offers
from boardcluster.plan.prediction import PredictionBatch
from boardcluster.plan.question import QuestionBatch

__all__ = ["MIXED_WORDS", "BoardsThere", "PlanModel", "Predict", "WorkersThere", "compose"]

_Floats = NDArray[np.float64]

MIXED_WORDS = (
    "mixed clusters are predicted between the harmonic mean of their boards' times and that of"
    " the slowest; no published run has one"
)

Predict = Callable[[QuestionBatch], PredictionBatch]
"""The model: ``predict_many`` with what was learned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanModel:
    """The model, and how far its runs reach."""

    predict: Predict
    """Answers questions."""
    workers_seen: int
    """Most workers of the runs of the workload that it was learned from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkersThere:
    """Workers of one kind that are there already."""

    count: int
    """How many."""
    board: BoardOffer
    """Their board."""
    medium: MediumOffer
    """Their medium."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardsThere:
    """What is there already: workers, and with them a master and a network."""

    rows: tuple[WorkersThere, ...] = ()
    """By kind; empty where everything is to be bought."""

    @property
    def workers(self) -> int:
        """How many workers are there."""
        return sum(row.count for row in self.rows)

    @property
    def least_disk_bytes(self) -> float:
        """Size of the smallest of their disks; infinite without any."""
        return min((row.medium.capacity_bytes for row in self.rows), default=float("inf"))

    @property
    def slowest_link(self) -> float:
        """Rate of the slowest of their links in bits per second; infinite without any."""
        return min((row.board.link_bits_per_second for row in self.rows), default=float("inf"))

    @property
    def words(self) -> str:
        """What it is, for people."""
        return " + ".join(f"{row.count} x {row.board.name}, {row.medium.name}" for row in self.rows)


def compose(
    candidates: CandidateSet,
    offers: Offers,
    task: PlanTask,
    *,
    there: BoardsThere,
    replication: _Floats,
    predict: Predict,
) -> PredictionBatch:
    """Predict clusters of workers to buy and those there already."""
    workers = (candidates.workers + there.workers).astype(np.float64)
    links = np.array([row.link_bits_per_second for row in offers.switches])[candidates.switch]
    own = np.array([row.link_bits_per_second for row in offers.boards])[candidates.board]
    links = np.minimum(np.minimum(links, own), there.slowest_link)
    boards = tuple(row.name for row in offers.boards)
    media = tuple(row.name for row in offers.media)
    kinds = [
        (candidates.workers.astype(np.float64), boards, media, candidates.board, candidates.medium)
    ]
    zeros = np.zeros(len(candidates), dtype=np.int64)
    for row in there.rows:
        count = np.full(len(candidates), float(row.count))
        kinds.append((count, (row.board.name,), (row.medium.name,), zeros, zeros))
    found = [
        (
            count,
            _by_engine(
                candidates,
                task,
                predict,
                boards=names,
                media=disks,
                board=board,
                medium=medium,
                workers=workers,
                replication=replication,
                links=links,
            ),
        )
        for count, names, disks, board, medium in kinds
    ]
    return found[0][1] if len(found) == 1 else _mixed(found)


def _by_engine(
    candidates: CandidateSet,
    task: PlanTask,
    predict: Predict,
    *,
    boards: tuple[str, ...],
    media: tuple[str, ...],
    board: NDArray[np.int64],
    medium: NDArray[np.int64],
    workers: _Floats,
    replication: _Floats,
    links: _Floats,
) -> PredictionBatch:
    """Ask the model once for each engine, and put the answers where they belong."""
    parts: list[tuple[NDArray[np.bool_], PredictionBatch]] = []
    for place, engine in enumerate(task.engines):
        mine = candidates.engine == place
        size = np.full(int(mine.sum()), float(task.size_bytes))
        batch = QuestionBatch(
            workload=task.workload,
            engine=engine,
            boards=boards,
            media=media,
            size_bytes=size,
            workers=workers[mine],
            board=board[mine].astype(np.intp),
            medium=medium[mine].astype(np.intp),
            replication=replication[mine],
            link_bits_per_second=links[mine],
            slots=np.zeros_like(size),
        )
        parts.append((mine, predict(batch)))
    if len(parts) == 1:
        return parts[0][1]
    rows = {}
    for name in PredictionBatch.__dataclass_fields__:
        values = [getattr(answer, name) for _, answer in parts]
        whole = np.empty(len(candidates), dtype=np.result_type(*values))
        for (mine, _), value in zip(parts, values, strict=True):
            whole[mine] = value
        rows[name] = whole
    return PredictionBatch(**rows)


def _mixed(kinds: list[tuple[_Floats, PredictionBatch]]) -> PredictionBatch:
    """Compose clusters from answers for clusters of as many workers that are all of one kind.

    Args:
        kinds: for each kind how many workers it has, and the answer. A kind with none has no say.
    """
    counts = np.array([count for count, _ in kinds])
    shares = counts / counts.sum(axis=0)
    there = counts > 0

    def rows(name: str) -> _Floats:
        return np.array([getattr(answer, name) for _, answer in kinds], dtype=np.float64)

    def harmonic(name: str) -> _Floats:
        return np.asarray(1 / np.where(there, shares / rows(name), 0.0).sum(axis=0))

    def slowest(name: str) -> _Floats:
        return np.asarray(np.where(there, rows(name), -np.inf).max(axis=0))

    with np.errstate(divide="ignore", invalid="ignore"):
        median = np.sqrt(harmonic("median_seconds") * slowest("median_seconds"))
        high = slowest("high_seconds")
        watts = np.where(there, shares * rows("joules") / rows("median_seconds"), 0.0).sum(axis=0)
        spread = np.where(there, rows("high_joules") / rows("joules"), 1.0).max(axis=0)
        of_time = np.where(there, rows("high_seconds") / rows("median_seconds"), 1.0).max(axis=0)
        # The power's own spread, with that of the mixed time.
        own = np.exp(np.hypot(np.log(beyond_time(spread, of_time)), np.log(high / median)))
        joules = watts * median
        known = np.array([answer.known for _, answer in kinds]) | ~there
        reasons = np.full(len(median), "", dtype=kinds[0][1].reason.dtype)
        for place, (_, answer) in enumerate(kinds):
            empty = (reasons == "") & there[place]
            reasons = np.where(empty, answer.reason, reasons)
        return PredictionBatch(
            median_seconds=median,
            low_seconds=harmonic("low_seconds"),
            high_seconds=high,
            intermediate_bytes=slowest("intermediate_bytes"),
            high_intermediate_bytes=slowest("high_intermediate_bytes"),
            joules=joules,
            high_joules=joules * own,
            known=np.asarray(known.all(axis=0)),
            reason=reasons,
        )
