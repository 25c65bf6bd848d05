"""Whether what ran before a run mattered."""

from __future__ import annotations

import random

import pytest
from tests.unit.analysis.runs import result

from boardcluster.analysis.cells import summarise
from boardcluster.analysis.order import CarryOver, carry_over
from boardcluster.records import AttemptState, Engine, Result, Verdict

GREP = "grep on spark"
SORT = "terasort on mapreduce"


def found(runs: list[Result], *, tainted: bool = False) -> tuple[CarryOver, ...]:
    return carry_over(summarise(runs, tainted=tainted), runs)


def campaign(effect: float, *, blocks: int = 24, scatter: float = 0.01) -> list[Result]:
    """Three workloads in random order; pi on Spark is slower by a share right after terasort."""
    draw = random.Random(11)
    runs: list[Result] = []
    before = ""
    for block in range(1, blocks + 1):
        names = ["pi", "grep", "terasort"]
        draw.shuffle(names)
        for name in names:
            seconds = {"pi": 20.0, "grep": 40.0, "terasort": 90.0}[name] * draw.gauss(1, scatter)
            if (name, before) == ("pi", "terasort"):
                seconds *= 1 + effect
            runs.append(
                result(
                    seconds,
                    workload=name,
                    engine=Engine.MAPREDUCE if name == "terasort" else Engine.SPARK,
                    position=len(runs),
                    repetition=block,
                )
            )
            before = name
    return runs


def test_an_effect_is_found_and_no_other() -> None:
    rows = {(row.workload, row.before): row for row in found(campaign(0.2))}
    row = rows["pi", SORT]
    assert row.difference_share == pytest.approx(0.2, abs=0.03)
    assert row.interval.low < row.difference_share < row.interval.high
    assert row.is_shown
    assert min(row.runs, row.others) >= 5
    assert row.runs + row.others == 24
    assert not rows["terasort", GREP].is_shown


def test_an_effect_is_found_with_its_size_also_over_several_cells() -> None:
    """Cells of other sizes have other means, which is no effect of what ran before."""
    both = [
        *campaign(0.2, blocks=12),
        *(
            result(
                row.measurement.duration_seconds * 3,
                workload=row.trial.workload,
                engine=row.trial.engine,
                position=row.trial.position,
                repetition=row.trial.repetition,
                campaign="d",
                size_bytes=3 * 10**9,
            )
            for row in campaign(0.2, blocks=12)
            if row.measurement
        ),
    ]
    (row,) = (row for row in found(both) if (row.workload, row.before) == ("pi", SORT))
    assert row.difference_share == pytest.approx(0.2, abs=0.03)
    assert row.runs + row.others == 24


def test_without_an_effect_nothing_is_shown() -> None:
    rows = found(campaign(0.0))
    assert rows
    assert sum(row.is_shown for row in rows) <= 1, "of twenty one by chance"


def test_fewer_than_five_on_a_side_say_nothing() -> None:
    assert found(campaign(0.5, blocks=4)) == ()
    assert found([]) == ()


def test_failed_runs_and_warm_ups_come_before_as_well() -> None:
    runs = []
    for number in range(12):
        hot = number % 2 == 0
        runs.append(
            result(
                1.0,
                workload="terasort" if hot else "grep",
                engine=Engine.MAPREDUCE if hot else Engine.SPARK,
                position=2 * number,
                repetition=number,
                **({"state": AttemptState.FAILED} if hot else {"warm_up": True}),
            )
        )
        seconds = (22.0 if hot else 20.0) + number % 3 / 100
        runs.append(result(seconds, workload="pi", position=2 * number + 1, repetition=number))
    rows = {row.before: row for row in found(runs)}
    assert set(rows) == {SORT, GREP}
    assert rows[SORT].difference_share == pytest.approx(2 / 21, rel=0.01)
    assert rows[SORT].difference_share == pytest.approx(-rows[GREP].difference_share)
    assert (rows[SORT].runs, rows[SORT].others) == (6, 6)


def test_the_first_run_of_a_campaign_is_after_nothing() -> None:
    runs = [
        result(20.0 + number / 100, workload="pi", position=2 * number, campaign=f"c{number}")
        for number in range(12)
    ]
    assert found(runs) == ()


def test_tainted_runs_count_only_when_asked_for_but_always_come_before() -> None:
    runs = campaign(0.2)
    spoilt = [
        result(
            row.measurement.duration_seconds,
            workload=row.trial.workload,
            engine=row.trial.engine,
            position=row.trial.position,
            repetition=row.trial.repetition,
            verdict=Verdict.TAINTED if row.trial.workload == "terasort" else Verdict.VALID,
        )
        for row in runs
        if row.measurement
    ]
    assert {row.workload for row in found(spoilt)} == {"pi", "grep"}
    assert found(spoilt, tainted=True) == found(runs)
    (row,) = (row for row in found(spoilt) if (row.workload, row.before) == ("pi", SORT))
    assert row.is_shown
