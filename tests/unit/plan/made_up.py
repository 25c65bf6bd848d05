"""A model whose answers a person can check, in place of the learned one."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from boardcluster.plan.buying import plan_purchase
from boardcluster.plan.candidates import PlanTask
from boardcluster.plan.composition import BoardsThere, PlanModel
from boardcluster.plan.limits import PlanLimits
from boardcluster.plan.offers import Offers, find_offers
from boardcluster.plan.planning import PlanSpace
from boardcluster.plan.prediction import PredictionBatch, UnknownReason
from boardcluster.plan.purchase import PurchasePlan
from boardcluster.plan.question import QuestionBatch
from boardcluster.records import Engine
from boardcluster.services.containers import needs_of_board
from boardcluster.services.pair import pair_ids

__all__ = ["BOARDS", "FIVE", "FOUR", "MEDIA", "PRICES", "made_up", "make_space", "plan_for"]

FOUR, FIVE = "rpi-4b-8gb-1800mhz", "rpi-5b-8gb-2400mhz"
BOARDS = (FOUR, FIVE)
MEDIA = ("samsung-pro-plus-256gb", "sk-hynix-gold-p31-500gb")
PRICES = {"samsung-pro-plus-256gb": 25.0, "sk-hynix-gold-p31-500gb": 45.0} | {
    "switch-1gbit-16": 60.0,
    "supply": 10.0,
}


def made_up(batch: QuestionBatch) -> PredictionBatch:
    """Answer: 20 s and 100 s/GB by a worker; half of that on a 5B, a third more on a card.

    Intervals reach 1.2 times up and down; intermediate data is 0.6 of the input, 0.7 at most; a
    worker draws 10 W. Only links of 1 Gbit/s are known.
    """
    fast = np.array(["5b" in name for name in batch.boards])[batch.board]
    card = np.array(["hynix" not in name for name in batch.media])[batch.medium]
    gigabytes = batch.size_bytes / 1e9
    each = 100 * np.where(fast, 0.5, 1.0) * np.where(card, 4 / 3, 1.0)
    seconds = 20 + each * gigabytes / batch.workers
    joules = seconds * batch.workers * 10
    known = batch.link_bits_per_second == 1e9
    return PredictionBatch(
        median_seconds=seconds,
        low_seconds=seconds / 1.2,
        high_seconds=seconds * 1.2,
        intermediate_bytes=0.6 * batch.size_bytes,
        high_intermediate_bytes=0.7 * batch.size_bytes,
        joules=joules,
        high_joules=joules * 1.2,
        known=known,
        reason=np.where(known, "", UnknownReason.RESOURCE),
    )


def make_space(
    *,
    workload: str = "wordcount",
    engines: tuple[Engine, ...] = (Engine.SPARK,),
    size_bytes: int = 100 * 10**9,
    limits: PlanLimits | None = None,
    offers: Offers | None = None,
    profiles: tuple[str, ...] = ("default",),
    there: BoardsThere | None = None,
    replication: int | None = None,
    workers_most: int = 64,
) -> PlanSpace:
    """Make a space of two boards, two media and one switch, all with prices."""
    return PlanSpace(
        task=PlanTask(
            workload=workload, engines=engines, size_bytes=size_bytes, replication=replication
        ),
        limits=limits or PlanLimits(),
        offers=offers
        or find_offers(boards=BOARDS, media=MEDIA, switches=["switch-1gbit-16"], prices=PRICES),
        profiles=profiles,
        there=there or BoardsThere(),
        model=PlanModel(predict=made_up, workers_seen=8),
        needs_of=partial(needs_of_board, engines=pair_ids()[0]),
        currency="USD",
        workers_most=workers_most,
    )


def plan_for(**changes: Any) -> PurchasePlan:
    """Plan with that space; see ``make_space``."""
    return plan_purchase(make_space(**changes))
