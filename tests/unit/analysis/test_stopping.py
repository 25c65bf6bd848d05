"""What a campaign is to measure, how precise it is by now, and what it needs."""

import math
from dataclasses import replace
from typing import Any

import pytest
from tests.builders import make_attempt, make_measurement, make_trial

from boardcluster.analysis.inference.sequential import anytime_interval, observations_needed
from boardcluster.analysis.stopping import aims_of, forecast, reached
from boardcluster.records import AttemptState, DeclaredComparison, Engine, Result, Trial, Verdict

ENGINES = DeclaredComparison(factor="engine", levels=("mapreduce", "spark"))


def trial(engine: Engine = Engine.SPARK, block: int = 1, **fields: Any) -> Trial:
    return make_trial(engine=engine, repetition=block, **fields)


def run(seconds: float, of: Trial, **measured: Any) -> Result:
    state = measured.pop("state", AttemptState.OK)
    return Result(
        trial=of,
        attempt=make_attempt(state=state),
        measurement=make_measurement(seconds, **measured),
    )


def pairs(*times: tuple[float, float], **fields: Any) -> list[Result]:
    """Blocks of MapReduce and Spark."""
    return [
        run(seconds, trial(engine, block, **fields))
        for block, both in enumerate(times, start=1)
        for engine, seconds in zip((Engine.MAPREDUCE, Engine.SPARK), both, strict=True)
    ]


TIMES = ((20.0, 10.0), (30.0, 15.3), (25.0, 12.4), (40.0, 20.2), (22.0, 11.0))


def trials(results: list[Result]) -> list[Trial]:
    return [row.trial for row in results]


def test_what_is_declared_is_compared_within_blocks() -> None:
    results = pairs(*TIMES)
    [aim] = aims_of([ENGINES], trials(results))
    assert aim.label == "grep: spark against mapreduce"

    [found] = reached([aim], results, by_start=False)

    expected = anytime_interval([math.log(spark / mapreduce) for mapreduce, spark in TIMES])
    assert found.result == pytest.approx(math.exp(expected.mean))
    assert found.half_width == pytest.approx(math.expm1(expected.half_width))
    assert found.half_width < 0.05  # blocks differ by half, and cancel
    assert found.count == 5


def test_without_a_declaration_it_is_every_mean() -> None:
    results = pairs(*TIMES)
    aims = aims_of([], trials(results))
    assert sorted(aim.label for aim in aims) == ["grep on mapreduce", "grep on spark"]
    found = reached(aims, results, by_start=False)
    assert all(row.half_width > 0.3 for row in found)


def test_every_level_is_compared_with_the_first_all_else_being_equal() -> None:
    rows = [
        trial(engine, size_bytes=size, workers=workers)
        for engine in (Engine.MAPREDUCE, Engine.SPARK)
        for size in (1000, 2000)
        for workers in (1, 2, 4)
    ]
    workers = DeclaredComparison(
        factor="workers", levels=(1, 2, 4), where={"engine": ("spark",), "size_bytes": (2000,)}
    )
    assert [aim.label for aim in aims_of([workers], rows)] == [
        "grep on spark, size 2000 B: 2 workers against 1 worker",
        "grep on spark, size 2000 B: 4 workers against 1 worker",
    ]
    assert len(aims_of([ENGINES], rows)) == 6
    assert len(aims_of([ENGINES, ENGINES, workers], rows)) == 8  # each ratio once


def test_settings_of_the_engines_are_compared() -> None:
    rows = [trial(settings={"spark.executor.cores": cores, "a.b": "1"}) for cores in "12"]
    cores = DeclaredComparison(factor="spark.executor.cores", levels=("1", "2"))
    [aim] = aims_of([cores], rows)
    assert aim.label == (
        "grep on spark, a.b 1: spark.executor.cores 2 against spark.executor.cores 1"
    )


def test_only_runs_that_count_are_in_a_value() -> None:
    results = pairs(*TIMES)
    measured = results[0].measurement
    assert measured is not None
    results[0] = replace(results[0], measurement=replace(measured, verdict=Verdict.TAINTED))
    results[3] = run(1.0, results[3].trial, state=AttemptState.INVALID)
    results[4] = Result(trial=results[4].trial, attempt=None, measurement=None)
    results += [run(9.0, trial(engine, 9, warm_up=True)) for engine in Engine]
    aims = aims_of([ENGINES], trials(pairs(*TIMES)))
    [found] = reached(aims, results, by_start=False)
    assert found.count == 2
    assert math.isinf(found.half_width)
    [none] = reached(aims, [], by_start=False)
    assert (none.count, none.result, none.is_verified) == (0, 0.0, False)


def test_what_is_only_disturbed_is_told_from_what_fails() -> None:
    aims = aims_of([ENGINES], trials(pairs(*TIMES)))
    disturbed = [
        run(9.0, row.trial, verdict=Verdict.TAINTED) if row.trial.engine == "spark" else row
        for row in pairs(*TIMES)
    ]
    [found] = reached(aims, disturbed, by_start=False)
    assert (found.count, found.is_verified) == (0, True)
    failed = [
        run(9.0, row.trial, state=AttemptState.FAILED) if row.trial.engine == "spark" else row
        for row in pairs(*TIMES)
    ]
    [found] = reached(aims, failed, by_start=False)
    assert (found.count, found.is_verified) == (0, False)


def started(ratios: dict[int, tuple[float, ...]]) -> list[Result]:
    """Starts with the ratios of Spark to MapReduce in their blocks."""
    found, block = [], 0
    for start, blocks in ratios.items():
        for ratio in blocks:
            block += 1
            found.append(run(20.0, trial(Engine.MAPREDUCE, block, start=start)))
            found.append(run(20.0 * ratio, trial(Engine.SPARK, block, start=start)))
    return found


def test_a_start_is_one_value() -> None:
    ratios = {1: (1.0, 1.02), 2: (1.1, 1.12), 3: (0.95,), 4: (1.0, 1.0, 1.0), 5: (1.01,)}
    results = started(ratios)
    aims = aims_of([ENGINES], trials(results))

    [found] = reached(aims, results, by_start=True)

    means = [sum(map(math.log, blocks)) / len(blocks) for blocks in ratios.values()]
    assert found.count == 5
    assert found.half_width == pytest.approx(math.expm1(anytime_interval(means).half_width))
    [blind] = reached(aims, results, by_start=False)
    assert blind.half_width < found.half_width  # it takes blocks of one start for replicates


def test_the_forecast_is_from_the_variation_within_campaigns() -> None:
    first = pairs(*TIMES)
    slower = pairs(*((2 * one, 2.4 * other) for one, other in TIMES))
    aims = aims_of([ENGINES], trials(first))
    stores: list[list[list[Result]]] = [[first], [first, slower], [[]]]
    one, both, none = (
        forecast(aims, rows, precision=0.03, by_start=False, blocks=3)[0] for rows in stores
    )
    assert one.deviation is not None
    assert both.deviation == pytest.approx(one.deviation)  # not what lies between them
    assert one.needed == observations_needed(one.deviation, math.log1p(0.03))
    assert (none.deviation, none.needed) == (None, None)


def test_a_forecast_of_starts_says_whether_it_knows_how_they_differ() -> None:
    blocks = pairs(*TIMES)
    starts = started({1: (1.0, 1.02), 2: (1.1, 1.12), 3: (0.95, 0.94)})
    aims = aims_of([ENGINES], trials(blocks))
    guess, known = (
        forecast(aims, [rows], precision=0.03, by_start=True, blocks=4)[0]
        for rows in (blocks, starts)
    )
    [plain] = forecast(aims, [blocks], precision=0.03, by_start=False, blocks=4)
    assert plain.deviation is not None
    assert guess.deviation == pytest.approx(plain.deviation / 2)
    assert (guess.from_starts, known.from_starts) == (False, True)
    assert known.needed is not None
    assert guess.needed is not None
    assert known.needed > guess.needed
