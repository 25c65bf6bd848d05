"""How long moments of a run would take were a resource faster, where only nodes are known.

That is where no task runs, and of emulated boards with a CPU limit.

Each node spends a step of time with its resources at work: CPU, storage, network, memory. Where
what they need adds up to less than the step, they took turns, and the rest is waiting. Where it is
more, they overlapped, at least by as much as makes it fit. So a node is busy in a step for

    busy = (1 - overlap) * sum(u) + overlap * max(u)

with ``u`` the share of the step that each resource needs, and ``overlap`` solved from what was
seen. With a resource ``k`` times as fast its ``u`` is divided by ``k``; the overlap stays. What
overlaps is elastic: it may be done at any time of the step. The cluster's step takes as long as
that of its busiest node, and the time in which no node was busy stays.

Sources: K. Ousterhout and others, "Making Sense of Performance in Data Analytics Frameworks", NSDI
2015 (blocked time: take away what is waited for, see what is left); K. Ousterhout, C. Canel, S.
Ratnasamy and S. Shenker, "Monotasks: Architecting for Performance Clarity in Data Analytics
Frameworks", SOSP 2017 (the ideal time of each resource; the largest one binds). They see each task;
samples see nodes, so how tasks overlap is inferred here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from boardcluster.analysis.bottleneck.bounds import Bound

__all__ = ["BOUNDS", "PARTS", "Array", "Prediction", "Work", "predict"]

Array: TypeAlias = NDArray[np.float64]

PARTS = ("cpu", "heat", "own cpu", "storage", "network", "memory")
"""What a node does in a step. ``heat`` is the CPU time that a lowered clock added. ``own cpu`` is
CPU time of an emulated board that its limit did not hold back: it ran at this machine's speed."""

BOUNDS = tuple(Bound)
"""The order of bounds in ``Prediction.shares``."""

_BOUNDS_OF_PARTS = (
    *(Bound.CPU, Bound.HEAT, Bound.CPU),
    *(Bound.STORAGE, Bound.NETWORK, Bound.MEMORY),
)
_CPU_PARTS = 3
_SPED_UP: Mapping[Bound, tuple[int, ...]] = {
    Bound.CPU: (0, 1),
    Bound.STORAGE: (3,),
    Bound.NETWORK: (4,),
}
_REMOVED: Mapping[Bound, tuple[int, ...]] = {Bound.MEMORY: (5,), Bound.HEAT: (1,)}
_TINY = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Work:
    """What every node did in every step, in shares of the step."""

    uses: Array
    """By part, node and step, 0 to 1: what the node needs of the step for it."""
    busy: Array
    """By node and step: how much of the step anything of it was busy."""
    overlap: Array
    """By node and step: how far its resources overlapped, 0 to 1."""

    @classmethod
    def of(cls, uses: Array, hidden: Array) -> Self:
        """Solve for the overlap.

        Args:
            uses: by part, node and step.
            hidden: by node and step: how much of storage is known to have been overlapped by CPU
                time; 0 where that is not known.
        """
        kinds = _kinds(uses)
        total, most = kinds.sum(axis=0), kinds.max(axis=0)
        busy = np.maximum(np.minimum(total - hidden, 1.0), most)
        room = total - most
        overlap = np.divide(total - busy, room, out=np.zeros_like(room), where=room > _TINY)
        return cls(uses=uses, busy=busy, overlap=overlap)

    def overlapping(self) -> Self:
        """The same with as much overlap as there can have been, for the least that a gain can be.

        A node was then busy for as long as its longest resource, and waited for the rest.
        """
        most = _kinds(self.uses).max(axis=0)
        return replace(self, busy=most, overlap=np.ones_like(self.overlap))

    def in_turn(self) -> Self:
        """The same if nodes waited for one another, for the most that a gain can be.

        While the busiest node waited, the others did what they did, as far as that fits: a step is
        then one node that did all of it.
        """
        steps = np.arange(self.busy.shape[1])
        busiest = self.busy.argmax(axis=0)
        of_busiest = self.busy[busiest, steps]
        of_others = self.busy.sum(axis=0) - of_busiest
        room = np.minimum(1 - of_busiest, of_others)
        part = np.divide(room, of_others, out=np.zeros_like(room), where=of_others > _TINY)
        parts = np.broadcast_to(part, self.busy.shape).copy()
        parts[busiest, steps] = 1.0
        uses = (self.uses * parts).sum(axis=1, keepdims=True)
        # What overlapped within a node still does.
        hidden = (np.maximum(_kinds(self.uses).sum(axis=0) - self.busy, 0.0) * parts).sum(axis=0)
        return self.of(uses, hidden[np.newaxis])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prediction:
    """The steps of a run, in parts of what they took."""

    lengths: Array
    """Of each step; 1 where nothing changes."""
    shares: Array
    """By bound, in the order of BOUNDS, and step: how it is made up; adds up to lengths. Of
    resources that overlap, the longest has the time."""


def predict(work: Work, bound: Bound | None = None, times_as_fast: float = 1.0) -> Prediction:
    """Say what each step would take were one resource faster.

    Args:
        work: what was seen; ``uses`` has at least one node.
        bound: what is faster; None leaves all as it was. Memory then suffices and heat is gone, by
            whatever factor.
        times_as_fast: at least 1; may be infinite.
    """
    before, overlap = work.busy, work.overlap
    uses = work.uses.copy()
    for part in _SPED_UP.get(bound, ()) if bound else ():
        uses[part] /= times_as_fast
    for part in _REMOVED.get(bound, ()) if bound else ():
        uses[part] = 0.0
    kinds = _kinds(uses)
    longest = kinds.argmax(axis=0)
    after = (1 - overlap) * kinds.sum(axis=0) + overlap * kinds.max(axis=0)
    waiting = 1 - before.max(axis=0)
    if bound is Bound.START_UP:
        waiting = waiting / times_as_fast
    # The busiest node says how long the step takes, and of what it is made.
    critical = after.argmax(axis=0)
    steps = np.arange(uses.shape[2])
    of_critical = uses[:, critical, steps]
    serial = 1 - overlap[critical, steps]
    owner = np.array([0, 0, 0, 1, 2, 3])[:, np.newaxis] == longest[critical, steps]
    made_of = of_critical * (serial + (1 - serial) * owner)
    shares = np.zeros((len(BOUNDS), uses.shape[2]))
    for bound_of_part, row in zip(_BOUNDS_OF_PARTS, made_of, strict=True):
        shares[BOUNDS.index(bound_of_part)] += row
    shares[BOUNDS.index(Bound.START_UP)] = waiting
    return Prediction(lengths=after[critical, steps] + waiting, shares=shares)


def _kinds(uses: Array) -> Array:
    """What each resource needs, by resource, node and step: all CPU time is one resource's."""
    return np.concatenate((uses[:_CPU_PARTS].sum(axis=0, keepdims=True), uses[_CPU_PARTS:]))
