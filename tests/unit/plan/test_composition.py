"""Clusters of boards that are there already, with others beside them."""

from __future__ import annotations

import pytest
from tests.unit.plan.made_up import FIVE, FOUR, make_space, plan_for

from boardcluster.plan.composition import MIXED_WORDS, BoardsThere, WorkersThere
from boardcluster.plan.limits import PlanLimits
from boardcluster.plan.offers import find_offers

NVME, CARD = "sk-hynix-gold-p31-500gb", "samsung-pro-plus-256gb"


def have(count: int, board: str, medium: str) -> BoardsThere:
    offers = find_offers(boards=[board], media=[medium])
    row = WorkersThere(count=count, board=offers.boards[0], medium=offers.media[0])
    return BoardsThere(rows=(row,))


def test_more_of_the_same_is_no_mixture() -> None:
    limits = PlanLimits(deadline_seconds=1200)
    plan = plan_for(there=have(3, FIVE, NVME), limits=limits)
    bought = plan_for(limits=limits).best
    assert plan.best.workers + plan.best.workers_there == bought.workers
    assert plan.best.seconds == pytest.approx(bought.seconds)
    assert plan.best.price == 2 * 135, "the master and the switch are there"
    assert MIXED_WORDS not in plan.remarks


def test_a_mixture_lies_between_the_harmonic_mean_and_the_slowest() -> None:
    space = make_space(
        there=have(4, FOUR, CARD),
        offers=find_offers(boards=[FIVE], media=[NVME], switches=["switch-1gbit-16"]),
    )
    plan = plan_for(there=space.there, offers=space.offers, limits=PlanLimits(budget=4 * 80 + 1))
    slow, fast = 20 + 100 * 4 / 3 * 100 / 8, 20 + 50 * 100 / 8
    harmonic = 1 / (0.5 / slow + 0.5 / fast)
    assert plan.best.workers == 4
    assert plan.best.seconds == pytest.approx((slow * harmonic) ** 0.5)
    assert plan.best.interval_seconds == pytest.approx((harmonic / 1.2, slow * 1.2))
    assert MIXED_WORDS in plan.remarks


def test_what_is_there_may_be_enough() -> None:
    plan = plan_for(there=have(6, FIVE, NVME), limits=PlanLimits(deadline_seconds=1200))
    assert plan.best.workers == 0
    assert plan.best.price == 0
    assert plan.best.parts == ()
    assert [row.change for row in plan.near] == ["1 worker"], "nothing else of nothing differs"


def test_the_smallest_disk_limits_every_node() -> None:
    plan = plan_for(
        there=have(1, FOUR, CARD), size_bytes=500 * 10**9, limits=PlanLimits(deadline_seconds=10**6)
    )
    assert "256 GB" in plan.best.disks


def test_a_switch_is_bought_only_where_more_ports_are_needed() -> None:
    plan = plan_for(there=have(13, FIVE, NVME), limits=PlanLimits(deadline_seconds=330))
    kinds = {part.kind: part.count for part in plan.best.parts}
    assert plan.best.workers + 13 > 14
    assert kinds["switch"] == 1
