"""Terms: fitted without negative coefficients, and only where the runs tell them apart."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import nnls

from boardcluster.plan.observations import WorkArrays
from boardcluster.plan.spill import SpillRule, map_spill_bytes, own_spill_rule, spill_rule
from boardcluster.plan.terms import design, fit_terms, nonnegative_fit
from boardcluster.records import Engine

NEVER = SpillRule(threshold=math.inf, whole=False)


def work(
    amount: list[float], workers: list[float], *, copies: float = 1.0, slowness: float = 1.0
) -> WorkArrays:
    same = np.ones(len(amount))
    return WorkArrays(
        amount=np.array(amount),
        workers=np.array(workers),
        slowness=slowness * same,
        cpu_rate=same,
        replication=copies * same,
    )


@pytest.mark.parametrize("seed", range(20))
def test_the_fit_is_that_of_scipy(seed: int) -> None:
    random = np.random.default_rng(seed)
    rows, values = random.normal(size=(30, 8)), random.normal(size=30)
    found, expected = nonnegative_fit(rows, values), nnls(rows, values)[0]
    assert found == pytest.approx(expected, abs=1e-8)
    assert (found >= 0).all()


def test_a_law_is_found_from_its_runs() -> None:
    runs = work([1, 1, 1, 2, 2, 2, 4, 4], [1, 2, 4, 1, 2, 4, 2, 4])
    columns = design(runs, NEVER)
    seconds = 20 + 60 * runs.amount / runs.workers
    found = fit_terms(columns, seconds, tie=(0.0, 0.0))
    assert columns @ found == pytest.approx(seconds, rel=1e-3)
    assert found[0] == pytest.approx(20, rel=0.01)
    assert found[4] == pytest.approx(60, rel=0.01)


def test_what_runs_cannot_tell_apart_gets_nothing_by_chance() -> None:
    """With one copy output is spread as the work is; four workers with three copies then differ."""
    runs = work([1, 1, 2, 2], [1, 2, 1, 2])
    seconds = 5 + 100 * runs.amount / runs.workers
    found = fit_terms(design(runs, NEVER), seconds, tie=(0.0, 0.0))
    assert found[6:10] == pytest.approx(0, abs=0.02)
    asked = design(work([1], [4], copies=3), NEVER)
    assert (asked @ found)[0] == pytest.approx(30, rel=0.01)


def test_a_pass_that_no_run_had_costs_its_share_of_those_within_memory() -> None:
    rule = SpillRule(threshold=3.0, whole=True)
    runs = work([1, 1, 2, 2], [1, 2, 1, 2])
    seconds = 100 * runs.amount / runs.workers
    found = fit_terms(design(runs, rule), seconds, tie=(0.5, 0.0))
    assert found[10] == pytest.approx(50, rel=0.05)


def test_one_wild_cell_does_not_bend_the_rest() -> None:
    runs = work([1, 1, 1, 2, 2, 2, 4, 4, 4], [1, 2, 4] * 3)
    seconds = 20 + 60 * runs.amount / runs.workers
    seconds[4] *= 2
    found = fit_terms(design(runs, NEVER), seconds, tie=(0.0, 0.0))
    assert found[4] == pytest.approx(60, rel=0.08)


def test_the_start_is_not_shortened_by_a_faster_cpu() -> None:
    slow = work([1], [1])
    columns = design(
        WorkArrays(
            amount=slow.amount,
            workers=slow.workers,
            slowness=slow.slowness,
            cpu_rate=np.array([2.0]),
            replication=slow.replication,
        ),
        NEVER,
    )
    assert columns[0, 0] == 1.0
    assert columns[0, 4] == 0.5


def test_a_map_spills_after_69_megabytes_of_terasort() -> None:
    assert map_spill_bytes({}) == pytest.approx(72.3e6, rel=0.001)


@pytest.mark.parametrize(
    ("workload", "engine", "settings", "threshold", "whole"),
    [
        ("terasort", Engine.MAPREDUCE, {"mapreduce.job.maps": "48"}, 3.47, True),
        (
            "terasort",
            Engine.MAPREDUCE,
            {"mapreduce.job.maps": "48", "mapreduce.task.io.sort.mb": "200"},
            6.94,
            True,
        ),
        ("wordcount", Engine.MAPREDUCE, {"mapreduce.reduce.memory.mb": "4096"}, 0.88, False),
        ("wordcount", Engine.MAPREDUCE, {}, 0.22, False),
        ("wordcount", Engine.SPARK, {}, 0.91, False),
        ("wordcount", Engine.SPARK, {"spark.executor.memory": "2g"}, 2.2, False),
        ("wordcount", Engine.SPARK, {"spark.executor.memory": "much"}, 0.91, False),
    ],
)
def test_the_size_that_spills_follows_from_the_settings(
    workload: str, engine: Engine, settings: dict[str, str], threshold: float, whole: bool
) -> None:
    found = spill_rule(workload, engine, settings)
    assert found.threshold == pytest.approx(threshold, rel=0.01)
    assert found.whole is whole


@pytest.mark.parametrize(
    ("engine", "one", "other"),
    [
        (Engine.SPARK, {"spark.executor.memory": "4096"}, {"spark.executor.memory": "4g"}),
        (Engine.SPARK, {"spark.executor.memory": "4294967296b"}, {"spark.executor.memory": "4g"}),
        (
            Engine.SPARK,
            {"spark.memory.fraction": "0.3"},
            {"spark.executor.instances": "1"},  # half of the memory, too
        ),
        (
            Engine.MAPREDUCE,
            {"mapreduce.reduce.shuffle.input.buffer.percent": "0.35"},
            {"mapreduce.reduce.shuffle.merge.percent": "0.33"},
        ),
    ],
)
def test_each_setting_that_moves_the_spill_counts(
    engine: Engine, one: dict[str, str], other: dict[str, str]
) -> None:
    found = spill_rule("wordcount", engine, one).threshold
    assert found == pytest.approx(spill_rule("wordcount", engine, other).threshold)
    assert found != pytest.approx(spill_rule("wordcount", engine, {}).threshold)


@pytest.mark.parametrize(
    ("workload", "engine", "settings", "threshold"),
    [
        ("wordcount", Engine.SPARK, {}, math.inf),
        ("wordcount", Engine.SPARK, {"spark.executor.memory": "2g"}, math.inf),
        (
            "wordcount",
            Engine.SPARK,
            {"spark.executor.memory": "2g", "spark.executor.instances": "2"},
            2.2,
        ),
        ("wordcount", Engine.MAPREDUCE, {"mapreduce.reduce.memory.mb": "4096"}, math.inf),
        (
            "wordcount",
            Engine.MAPREDUCE,
            {"mapreduce.reduce.memory.mb": "4096", "mapreduce.job.reduces": "1"},
            0.88,
        ),
        ("terasort", Engine.MAPREDUCE, {"mapreduce.job.maps": "48"}, math.inf),
        (
            "terasort",
            Engine.MAPREDUCE,
            {"mapreduce.job.maps": "48", "mapreduce.task.io.sort.mb": "200"},
            6.94,
        ),
        ("grep", Engine.SPARK, {}, math.inf),
    ],
)
def test_own_runs_spill_from_where_their_settings_say_it(
    workload: str, engine: Engine, settings: dict[str, str], threshold: float
) -> None:
    """What the profile set for a job is not among them."""
    found = own_spill_rule(workload, engine, settings)
    assert found.threshold == pytest.approx(threshold, rel=0.01)


def test_what_spills() -> None:
    sizes = np.array([1.0, 4.0])
    assert SpillRule(threshold=3.0, whole=True).spilled(sizes).tolist() == [0.0, 4.0]
    assert SpillRule(threshold=3.0, whole=False).spilled(sizes).tolist() == [0.0, 1.0]
    assert spill_rule("grep", Engine.SPARK, {}).spilled(sizes).tolist() == [0.0, 0.0]
