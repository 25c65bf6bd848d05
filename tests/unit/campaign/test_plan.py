"""From the matrix to an order: repeatable, complete, in blocks."""

from collections.abc import Callable

import pytest

from boardcluster.campaign.plan import plan_trials
from boardcluster.errors import EmptySelectionError
from boardcluster.records import Campaign, Engine, Trial

MakeCampaign = Callable[..., Campaign]
BOTH = (Engine.MAPREDUCE, Engine.SPARK)


def plan(
    campaign: Campaign, *, engines: tuple[Engine, ...] = BOTH, repetitions: int = 3
) -> tuple[Trial, ...]:
    return plan_trials(
        campaign,
        workload="wordcount",
        engines=engines,
        profile="default",
        size_bytes=256_000_000,
        workers=4,
        repetitions=repetitions,
    )


def test_every_cell_once_in_numbered_order(make_campaign: MakeCampaign) -> None:
    trials = plan(make_campaign(), repetitions=5)

    assert sorted((t.engine, t.repetition) for t in trials) == [
        (engine, repetition) for engine in BOTH for repetition in range(1, 6)
    ]
    assert [trial.position for trial in trials] == list(range(10))
    assert len({trial.id for trial in trials}) == 10
    assert {t.campaign_id for t in trials} == {"20260801-120000-abcd"}
    assert {(t.workload, t.profile, t.size_bytes, t.workers) for t in trials} == {
        ("wordcount", "default", 256_000_000, 4)
    }


def test_each_repetition_is_a_block_with_every_engine(make_campaign: MakeCampaign) -> None:
    trials = plan(make_campaign(), repetitions=20)

    for first in range(0, 40, 2):
        block = trials[first : first + 2]
        assert {trial.repetition for trial in block} == {first // 2 + 1}
        assert {trial.engine for trial in block} == set(BOTH)


def test_same_seed_same_order(make_campaign: MakeCampaign) -> None:
    one, other = (plan(make_campaign(seed=3), repetitions=50) for _ in range(2))

    assert one == other


def test_the_seed_decides_the_order_and_not_the_ids(make_campaign: MakeCampaign) -> None:
    plans = [plan(make_campaign(seed=seed), repetitions=8) for seed in range(20)]

    assert len({tuple(trial.engine for trial in trials) for trials in plans}) > 10
    assert len({frozenset(trial.id for trial in trials) for trials in plans}) == 1


def test_neither_engine_always_comes_first(make_campaign: MakeCampaign) -> None:
    trials = plan(make_campaign(), repetitions=200)
    first = [trial.engine for trial in trials[::2]]

    assert 60 < first.count(Engine.SPARK) < 140


def test_an_engine_named_twice_runs_once_per_repetition(make_campaign: MakeCampaign) -> None:
    trials = plan(make_campaign(), engines=(Engine.SPARK, Engine.SPARK), repetitions=2)

    assert [(t.engine, t.repetition, t.position) for t in trials] == [
        (Engine.SPARK, 1, 0),
        (Engine.SPARK, 2, 1),
    ]


@pytest.mark.parametrize(("engines", "repetitions"), [((), 3), (BOTH, 0), (BOTH, -1)])
def test_nothing_to_run_is_an_error(
    engines: tuple[Engine, ...], repetitions: int, make_campaign: MakeCampaign
) -> None:
    with pytest.raises(EmptySelectionError, match="nothing to run") as caught:
        plan(make_campaign(), engines=engines, repetitions=repetitions)

    assert "at least one engine" in caught.value.hint
