"""Every cluster that could be bought, as arrays. Pure.

A cluster is a master and its workers, all of one board and medium, with a supply each and as many
switches as connect them. With boards that are there already, workers are added to those; see
``composition``.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from boardcluster.plan.offers import Offers, is_compatible
from boardcluster.records import Engine

__all__ = ["WORKERS_MOST", "CandidateSet", "PlanTask", "enumerate_candidates", "worker_counts"]

_Places = NDArray[np.int64]

WORKERS_MOST = 1000
"""Most workers of a cluster."""

_EVERY_COUNT_TO = 32
_STEP = 1.06
"""Between further numbers of workers; the numbers in between are tried where a limit is crossed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanTask:
    """The run that a cluster is planned for."""

    workload: str
    """Name of the workload."""
    engines: tuple[Engine, ...]
    """Engines that may run it."""
    size_bytes: int
    """Its size."""
    replication: int | None = None
    """Copies of each block of HDFS; None for what each profile keeps."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CandidateSet:
    """Clusters; arrays with one element for each, which are places in what is offered."""

    board: _Places
    """Place in ``offers.boards``."""
    medium: _Places
    """Place in ``offers.media``."""
    switch: _Places
    """Place in ``offers.switches``."""
    profile: _Places
    """Place in the plan's profiles."""
    engine: _Places
    """Place in the task's engines."""
    workers: _Places
    """Workers to buy."""

    def __len__(self) -> int:
        return len(self.workers)

    def take(self, places: NDArray[np.int64] | NDArray[np.bool_]) -> CandidateSet:
        """Return some of them."""
        return CandidateSet(**{row.name: getattr(self, row.name)[places] for row in fields(self)})

    def joined(self, other: CandidateSet) -> CandidateSet:
        """Return both sets as one."""
        return CandidateSet(
            **{
                row.name: np.concatenate([getattr(self, row.name), getattr(other, row.name)])
                for row in fields(self)
            }
        )

    @property
    def kinds(self) -> _Places:
        """All but the number of workers, as one number."""
        found = np.zeros(len(self), dtype=np.int64)
        for part in (self.board, self.medium, self.switch, self.profile, self.engine):
            found = found * (int(part.max(initial=0)) + 1) + part
        return found


def worker_counts(most: int, *, least: int = 1) -> _Places:
    """Return the numbers of workers that are tried first: every small one, then ever fewer."""
    counts = list(range(least, min(most, _EVERY_COUNT_TO) + 1))
    number = float(max(_EVERY_COUNT_TO, least))
    while number * _STEP < most:
        number *= _STEP
        counts.append(round(number))
    return np.unique(np.array([*counts, most], dtype=np.int64))


def enumerate_candidates(
    offers: Offers, task: PlanTask, *, profiles: int, workers: _Places
) -> CandidateSet:
    """Return every combination of what fits together.

    Args:
        offers: what can be bought.
        task: for its engines.
        profiles: how many there are.
        workers: numbers of workers to buy.
    """
    pairs = np.array(
        [
            (place, other)
            for place, board in enumerate(offers.boards)
            for other, medium in enumerate(offers.media)
            if is_compatible(board, medium)
        ],
        dtype=np.int64,
    ).reshape(-1, 2)
    axes = np.meshgrid(
        np.arange(len(pairs)),
        np.arange(len(offers.switches)),
        np.arange(profiles),
        np.arange(len(task.engines)),
        workers,
        indexing="ij",
    )
    pair, switch, profile, engine, count = (axis.ravel() for axis in axes)
    return CandidateSet(
        board=pairs[pair, 0],
        medium=pairs[pair, 1],
        switch=switch,
        profile=profile,
        engine=engine,
        workers=count,
    )
