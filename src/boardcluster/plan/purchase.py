"""The records of a plan: what to buy, what lies beside it, and what would change the answer."""

from __future__ import annotations

from dataclasses import dataclass

from boardcluster.plan.candidates import PlanTask
from boardcluster.plan.composition import BoardsThere
from boardcluster.plan.limits import PlanLimits
from boardcluster.plan.offers import OmittedPart

__all__ = ["CurvePoint", "NearChoice", "PlannedCluster", "PlannedPart", "PurchasePlan"]

_PRICES_SHOWN = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPart:
    """One line of a shopping list."""

    kind: str
    """One of ``offers.PRICED_KINDS``."""
    name: str
    """The catalog's name; empty where any will do."""
    count: int
    """How many."""
    each: float | None
    """Price of one; None where nobody says it."""
    source: str
    """Who says the price; empty without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCluster:
    """One cluster that could be bought."""

    board: str
    """Board of the master and of each worker to buy."""
    medium: str
    """Their medium."""
    workers: int
    """Workers to buy."""
    workers_there: int
    """Workers that are there already."""
    switch: str
    """The switch."""
    link_bits_per_second: float
    """Rate of a port of it."""
    profile: str
    """The engine configuration."""
    engine: str
    """The engine."""
    replication: int
    """Copies of each block of HDFS."""
    seconds: float
    """Predicted time."""
    interval_seconds: tuple[float, float]
    """Holds 90 % of runs."""
    most_seconds: float
    """Time that is kept to with 90 % probability."""
    joules: float | None
    """Energy of the workers; None where the board's power is not known."""
    most_joules: float | None
    """The same with 90 % probability."""
    most_watts: float | None
    """Mean power of the workers, likewise."""
    price: float
    """Price of what is bought, without kinds of parts that have none."""
    disk_share: float | None
    """Share of the disks that the run takes; None where its intermediate data is not known."""
    parts: tuple[PlannedPart, ...]
    """What to buy."""
    disks: str
    """The arithmetic of the disks."""
    memory: str
    """The arithmetic of the memory."""

    @property
    def words(self) -> str:
        """What it is, for people."""
        if not self.workers:
            return f"nothing, {self.engine}, profile {self.profile}"
        more = " more" if self.workers_there else ""
        return (
            f"{self.workers}{more} x {self.board}, {self.medium}, {self.switch},"
            f" {self.engine}, profile {self.profile}"
        )


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Predicted time of the chosen cluster with another number of workers, or of another size."""

    x: float
    """Workers, or bytes."""
    seconds: float
    """Predicted time."""
    low_seconds: float
    """Lower end of its 90 % interval."""
    high_seconds: float
    """Upper end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NearChoice:
    """A cluster that differs in one thing from the chosen one."""

    change: str
    """What differs."""
    why: str
    """Why it is not chosen."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PurchasePlan:
    """What to buy for a run."""

    task: PlanTask
    """The run."""
    limits: PlanLimits
    """What was asked to be kept."""
    there: BoardsThere
    """What is there already."""
    currency: str
    """Of all prices."""
    tried: int
    """How many clusters were looked at."""
    met: int
    """How many of them keep to the limits."""
    best: PlannedCluster
    """The choice."""
    chosen_by: str
    """Why that one, in words."""
    front: tuple[PlannedCluster, ...]
    """Clusters that no other beats in time, energy and price at once, the fastest first."""
    near: tuple[NearChoice, ...]
    """Clusters beside the choice, and why each falls out."""
    over_workers: tuple[CurvePoint, ...]
    """The choice with other numbers of workers, whether or not they keep to the limits."""
    over_sizes: tuple[CurvePoint, ...]
    """The choice with other sizes; empty for a run without a size."""
    changes: tuple[str, ...]
    """What would change the answer, a sentence each."""
    left_out: tuple[OmittedPart, ...]
    """What was not tried."""
    unpriced: tuple[str, ...]
    """Kinds of parts that are in no price."""
    remarks: tuple[str, ...]
    """What a reader must know, a sentence each."""

    @property
    def shown_front(self) -> tuple[PlannedCluster, ...]:
        """The part of the front that a person looks at: up to so many times the choice's price."""
        most = _PRICES_SHOWN * self.best.price
        return tuple(row for row in self.front if row.price <= most or not most)
