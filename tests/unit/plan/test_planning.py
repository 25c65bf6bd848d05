"""From limits and parts to the cluster to buy, by a model that a person can check."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from tests.unit.plan.made_up import (
    BOARDS,
    FIVE,
    FOUR,
    MEDIA,
    PRICES,
    made_up,
    make_space,
    plan_for,
)

from boardcluster.errors import CapacityError, PredictionUnknownError, UsageError
from boardcluster.plan.buying import plan_purchase
from boardcluster.plan.composition import PlanModel
from boardcluster.plan.limits import PlanLimits, beyond_time
from boardcluster.plan.offers import find_offers
from boardcluster.plan.planning import explore
from boardcluster.plan.prediction import PredictionBatch, UnknownReason
from boardcluster.plan.question import QuestionBatch
from boardcluster.records import Engine

NVME, CARD = "sk-hynix-gold-p31-500gb", "samsung-pro-plus-256gb"
AT_MOST = 1.2 ** (1.2815515655 / 1.6448536270)
"""The made-up model's intervals reach 1.2 times; this is its 90 % quantile."""


def seconds(board: str, medium: str, workers: int, gigabytes: float = 100) -> float:
    each = 100 * (0.5 if board == FIVE else 1.0) * (4 / 3 if medium == CARD else 1.0)
    return 20 + each * gigabytes / workers


def price(board: str, medium: str, workers: int) -> float:
    one = {FOUR: 75.0, FIVE: 80.0}[board] + PRICES[medium] + PRICES["supply"]
    switches = max(1, -(-workers // 14))
    return (workers + 1) * one + switches * PRICES["switch-1gbit-16"]


def every_cluster(most: int = 64) -> list[tuple[str, str, int]]:
    pairs = [(FOUR, CARD), (FIVE, CARD), (FIVE, NVME)]
    return [(*pair, workers) for pair, workers in itertools.product(pairs, range(1, most + 1))]


def feasible(medium: str, workers: int) -> bool:
    """A worker keeps two copies of input and output, and 70 GB of intermediate data."""
    copies = min(2, workers)
    capacity = 256e9 if medium == CARD else 500e9
    return (2 * 100e9 * copies + 70e9) / (workers * capacity) <= 0.9


def test_with_a_deadline_the_cheapest_cluster_that_keeps_to_it_is_chosen() -> None:
    plan = plan_for(limits=PlanLimits(deadline_seconds=1200))
    kept = [
        row
        for row in every_cluster()
        if seconds(*row) * AT_MOST <= 1200 and feasible(row[1], row[2])
    ]
    assert (plan.best.board, plan.best.medium, plan.best.workers) == min(
        kept, key=lambda row: (price(*row), seconds(*row))
    )
    assert plan.best.price == price(plan.best.board, plan.best.medium, plan.best.workers)
    assert plan.best.most_seconds == pytest.approx(plan.best.seconds * AT_MOST)
    assert sum(part.count * (part.each or 0) for part in plan.best.parts) == plan.best.price


def test_with_a_budget_the_fastest_that_it_buys_is_chosen() -> None:
    plan = plan_for(limits=PlanLimits(budget=1500))
    kept = [row for row in every_cluster() if price(*row) <= 1500 and feasible(row[1], row[2])]
    assert (plan.best.board, plan.best.medium, plan.best.workers) == min(
        kept, key=lambda row: seconds(*row)
    )


def test_numbers_of_workers_between_those_tried_first_are_found() -> None:
    """Of 500 workers not every number is tried first; the answer is exact all the same."""
    deadline = seconds(FIVE, NVME, 203, 2000) * AT_MOST * 1.0001
    plan = plan_for(
        size_bytes=2 * 10**12, limits=PlanLimits(deadline_seconds=deadline), workers_most=500
    )
    assert plan.best.workers == 203


def test_more_boards_than_a_cluster_may_have_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("boardcluster.plan.buying.BOARDS_MAX", 50)
    limits = PlanLimits(deadline_seconds=101)
    plan = plan_for(limits=limits, workers_most=100)
    assert plan.best.workers >= 50
    assert any("at most 49 workers" in row and "--workers-most 49" in row for row in plan.remarks)


def test_numbers_of_workers_between_are_found_for_limits_in_opposite_directions() -> None:
    """The number tried below misses the deadline, the one above the budget."""
    deadline = seconds(FIVE, NVME, 203, 2000) * AT_MOST * 1.0001
    limits = PlanLimits(deadline_seconds=deadline, budget=price(FIVE, NVME, 203))
    plan = plan_for(size_bytes=2 * 10**12, limits=limits, workers_most=500)
    assert plan.best.workers == 203


def test_a_spread_of_energy_that_is_not_times_is_that_of_power() -> None:
    time, power = 0.30, 0.1645  # in logarithms, of which the squares add up
    energy = math.hypot(time, power)
    found = beyond_time(np.exp(np.array([energy, time, 0.1])), np.exp(np.full(3, time)))
    assert found == pytest.approx([math.exp(power), 1.0, 1.0])


def test_limits_of_power_and_energy_hold() -> None:
    plan = plan_for(limits=PlanLimits(watts=60))
    assert plan.best.workers == 6
    assert plan.best.most_watts == pytest.approx(60)
    most = seconds(FIVE, NVME, 4) * 4 * 10 * AT_MOST * 1.001
    assert plan_for(limits=PlanLimits(joules=most)).best.workers == 4


def test_the_front_holds_the_choice_and_nothing_that_another_beats() -> None:
    plan = plan_for(limits=PlanLimits(deadline_seconds=1200))
    rows = [(row.seconds, row.joules or 0, row.price) for row in plan.front]
    assert plan.best in plan.front
    assert not any(
        all(a <= b for a, b in zip(one, other, strict=True)) and one != other
        for one, other in itertools.permutations(rows, 2)
    )


def test_neighbours_fall_out_with_their_reason() -> None:
    plan = plan_for(limits=PlanLimits(deadline_seconds=1200))
    near = {row.change: row.why for row in plan.near}
    assert near["4 workers"] == "takes up to 24 min 24 s, 4 min 24 s over the deadline"
    assert near["6 workers"] == "possible, too: 16 % faster, USD 135 dearer"
    assert near[CARD].startswith("takes up to 26 min 00 s")


def test_a_neighbour_that_does_not_fit_says_the_arithmetic() -> None:
    plan = plan_for(size_bytes=400 * 10**9, limits=PlanLimits(budget=870))
    near = {row.change: row.why for row in plan.near}
    assert plan.best.workers == 5
    assert near["4 workers"].startswith("disks: 400 GB input x 2 + 240 GB intermediate")
    assert near["6 workers"] == "costs USD 1,005, USD 135 over the budget"


def test_what_would_change_the_answer_is_a_node_a_price_a_deadline_a_link() -> None:
    plan = plan_for(limits=PlanLimits(deadline_seconds=1200))
    cheaper = f"4 x {FIVE}, {NVME}, switch-1gbit-16, spark, profile default"
    assert plan.changes == (
        "one more worker costs USD 135 and saves 2 min 47 s, 16.3 % of the time",
        f"if {FIVE} cost over USD 220 (now USD 80), 14 x {FOUR} with {CARD} would be cheaper",
        f"a deadline of 25 min 00 s would save USD 135: {cheaper}",
        "what links of 2.5 Gbit/s would bring is not known",
    )


def test_a_cheaper_cluster_whose_time_and_power_are_not_known_is_told() -> None:
    def predict(batch: QuestionBatch) -> PredictionBatch:
        found = made_up(batch)
        four = np.array([name == FOUR for name in batch.boards])[batch.board]
        return replace(
            found,
            joules=np.where(four, np.nan, found.joules),
            high_joules=np.where(four, np.nan, found.high_joules),
            known=found.known & ~four,
            reason=np.where(four, str(UnknownReason.NO_FIGURE), found.reason),
        )

    space = make_space(limits=PlanLimits(budget=1500))
    plan = plan_purchase(replace(space, model=PlanModel(predict=predict, workers_seen=8)))
    assert plan.best.board == FIVE
    [hint] = [words for words in plan.changes if "might be enough" in words]
    assert hint.startswith(f"3 x {FOUR}")
    assert f"might be enough for USD {price(FOUR, CARD, 3):.0f}, but its time is not known" in hint


def test_the_price_at_which_another_board_wins_is_where_it_does() -> None:
    limits = PlanLimits(deadline_seconds=1200)
    for amount, board in ((219.0, FIVE), (222.0, FOUR)):
        offers = find_offers(
            boards=BOARDS,
            media=MEDIA,
            switches=["switch-1gbit-16"],
            prices=PRICES | {FIVE: amount},
        )
        assert plan_for(limits=limits, offers=offers).best.board == board


def test_a_deadline_that_nothing_keeps_says_the_fastest() -> None:
    with pytest.raises(UsageError) as caught:
        plan_for(limits=PlanLimits(deadline_seconds=10))
    assert "--deadline 10 s: the fastest cluster that is known and fits takes up to 1 min 53 s" in (
        caught.value.message
    )


def test_a_budget_that_buys_nothing_says_the_cheapest() -> None:
    with pytest.raises(UsageError, match=r"--budget USD 20: the cheapest .* costs USD 330"):
        plan_for(limits=PlanLimits(budget=20))


def test_of_limits_that_exclude_each_other_the_one_that_binds_is_said() -> None:
    with pytest.raises(UsageError) as caught:
        plan_for(limits=PlanLimits(deadline_seconds=900, budget=500))
    assert "--budget binds" in caught.value.message
    assert "--budget USD 500 is USD 640 (128 %) short" in caught.value.message
    assert caught.value.hint == "--budget 1140 would be enough"
    enough = PlanLimits(deadline_seconds=900, budget=1140)
    assert plan_for(limits=enough).best.workers == 7


def test_data_that_no_disks_hold_is_refused_with_the_arithmetic() -> None:
    with pytest.raises(CapacityError) as caught:
        plan_for(size_bytes=10**16)
    assert "no cluster of up to 64 workers holds the data" in caught.value.message
    assert "10000 TB input x 2" in caught.value.message


def test_data_that_is_held_without_margin_is_refused_with_that_arithmetic() -> None:
    """Its median share of the disks is less than the sentence says fits."""
    said = []
    for steps in range(40):
        try:
            plan_for(size_bytes=int(10**12 * 1.07**steps))
        except CapacityError as error:
            said.append(error.message)
    fits = [words for words in said if "holds the data with margin;" in words]
    assert fits
    assert all("YARN leaves nodes out whose disks are more than 90% full" in row for row in fits)
    assert all("upper end of the data" not in row for row in said if row not in fits)


def test_boards_without_the_memory_are_refused_with_the_arithmetic() -> None:
    offers = find_offers(
        boards=["rpi-4b-1gb-1500mhz"], media=["samsung-evo-32gb"], switches=["switch-1gbit-16"]
    )
    with pytest.raises(CapacityError, match="no board has the memory: memory: master"):
        plan_for(offers=offers, size_bytes=10**9)


def test_a_run_that_the_model_does_not_know_is_refused_with_the_reason() -> None:
    offers = find_offers(
        boards=[FIVE], media=[NVME], switches=["switch-100mbit-16"], prices={"switch": 20.0}
    )
    with pytest.raises(PredictionUnknownError, match="resource that never bound before"):
        plan_for(offers=offers)


def test_what_has_no_price_is_in_none_and_said() -> None:
    offers = find_offers(boards=[FIVE], media=[NVME], switches=["switch-1gbit-16"])
    plan = plan_for(offers=offers, limits=PlanLimits(budget=400))
    assert plan.best.workers == 4
    assert plan.best.price == 400
    unpriced, left, *_ = plan.remarks
    assert unpriced.startswith("no price of medium, switch, supply is known")
    assert left == "USD 0 of the budget are left for them"


def test_both_engines_are_tried_and_a_profile_is_named() -> None:
    space = make_space(engines=(Engine.MAPREDUCE, Engine.SPARK), profiles=("default", "upstream"))
    found = explore(space)
    assert set(found.candidates.engine) == {0, 1}
    assert not found.feasible[
        (found.candidates.profile == 1) & (found.candidates.engine == 0)
    ].any(), "upstream promises YARN 8 GiB of 8"
    assert np.isin(found.replication, [1, 2, 3]).all()
