"""What a campaign is to measure, how precise it is by now, and what it needs."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.builders import make_attempt, make_fingerprint, make_measurement, make_trial, noon

from boardcluster.analysis.cells import summarise
from boardcluster.analysis.inference import compare, observe, precision_of
from boardcluster.analysis.inference.sequential import (
    anytime_quantile,
    observations_needed,
)
from boardcluster.analysis.stopping import aims_of, forecast, reached
from boardcluster.records import (
    AttemptState,
    DeclaredComparison,
    Disturbance,
    Engine,
    Fingerprint,
    Result,
    Trial,
    Verdict,
)

ENGINES = DeclaredComparison(factor="engine", levels=("mapreduce", "spark"))


def trial(engine: Engine = Engine.SPARK, block: int = 1, **fields: Any) -> Trial:
    position = 2 * block + (engine is Engine.SPARK)
    own = {"id": f"t{position}", "position": position, **fields}
    return make_trial(engine=engine, repetition=block, **own)


def run(
    seconds: float, of: Trial, *, setup: Fingerprint | None = None, start_id: str = "", **rest: Any
) -> Result:
    state = rest.pop("state", AttemptState.OK)
    return Result(
        trial=of,
        attempt=make_attempt(
            state=state,
            started_utc=noon(60 * of.position),
            fingerprint=setup or make_fingerprint(),
            start_id=start_id,
        ),
        measurement=make_measurement(seconds, **rest),
    )


def pairs(
    *times: tuple[float, float], first: int = 1, setup: Fingerprint | None = None
) -> list[Result]:
    """Blocks of MapReduce and Spark, numbered from the first."""
    return [
        run(seconds, trial(engine, block), setup=setup)
        for block, both in enumerate(times, start=first)
        for engine, seconds in zip((Engine.MAPREDUCE, Engine.SPARK), both, strict=True)
    ]


def reach(values: Sequence[float]) -> float:
    """How far the confidence sequence of independent values reaches."""
    error = statistics.stdev(values) / math.sqrt(len(values))
    return anytime_quantile(len(values) - 1) * error


TIMES = ((20.0, 10.0), (30.0, 15.3), (25.0, 12.4), (40.0, 20.2), (22.0, 11.0))


def trials(results: list[Result]) -> list[Trial]:
    return [row.trial for row in results]


def test_what_is_declared_is_compared_within_blocks() -> None:
    results = pairs(*TIMES)
    [aim] = aims_of([ENGINES], trials(results))
    assert aim.label == "grep: spark against mapreduce"

    [found] = reached([aim], results, by_start=False)

    logs = [math.log(spark / mapreduce) for mapreduce, spark in TIMES]
    assert found.result == pytest.approx(math.exp(statistics.fmean(logs)))
    assert found.half_width == pytest.approx(math.expm1(reach(logs)))
    assert found.half_width < 0.05  # blocks differ by half, and cancel
    assert found.count == 5


def test_without_a_declaration_it_is_every_mean() -> None:
    results = pairs(*TIMES)
    aims = aims_of([], trials(results))
    assert sorted(aim.label for aim in aims) == ["grep on mapreduce", "grep on spark"]
    found = reached(aims, results, by_start=False)
    assert all(row.half_width > 0.3 for row in found)
    for row, cell in zip(found, summarise(results), strict=True):
        assert row.result == cell.mean_seconds  # the report's mean, and the report's scatter
        known = precision_of(observe(cell.results))
        assert row.half_width == known.half_width(anytime_quantile)


def test_setups_that_can_change_the_number_are_not_pooled() -> None:
    times = [(20.0 * factor, 10.0 * factor) for factor in (0.99, 1.0, 1.01, 0.98, 1.02)]
    other = make_fingerprint(kernel="6.6.0 x86_64")
    earlier = pairs(*times)
    later = pairs(*[(3 * one, 3 * two) for one, two in times], first=6, setup=other)
    results = [*earlier, *later]
    for declared, expected in (([], 15.0), ([ENGINES], 0.5)):
        aims = aims_of(declared, trials(results))
        found = reached(aims, results, by_start=False)
        assert all(row.count == 5 and row.half_width < 0.1 for row in found)
        if declared:
            assert [row.result for row in found] == pytest.approx([expected])
        else:
            assert sorted(row.result for row in found) == pytest.approx([30.0, 60.0])
        [*old] = forecast(aims, [earlier], precision=0.03, by_start=False, blocks=3)
        [*both] = forecast(aims, [results], precision=0.03, by_start=False, blocks=3)
        assert [row.deviation for row in both] == pytest.approx([row.deviation for row in old])


def test_what_disturbed_runs_is_adjusted_for_as_in_the_report() -> None:
    shares = (0.0, 0.2, 0.02, 0.15, 0.05, 0.1, 0.18, 0.01, 0.12)
    wobbles = (0.01, -0.01, 0.005, 0.0, -0.008, 0.012, -0.006, 0.004, -0.004)
    results = [
        row
        for block, (share, wobble) in enumerate(zip(shares, wobbles, strict=True), start=1)
        for row in (
            run(20.0, trial(Engine.MAPREDUCE, block)),
            run(
                10.0 * (1 + wobble) / (1 - share),
                trial(Engine.SPARK, block),
                disturbances=(Disturbance(cause="steal", node="n1", share=share, adjustable=True),),
            ),
        )
    ]
    aims = aims_of([ENGINES], trials(results))
    [found] = reached(aims, results, by_start=False)
    mapreduce, spark = (observe(cell.results) for cell in summarise(results))
    ratio = compare(spark, mapreduce)
    assert ratio.adjusted_for == ("steal",)
    assert found.result == ratio.value == pytest.approx(0.5, rel=0.02)
    assert found.half_width < 0.05  # without adjustment it is more than 0.1
    [plain] = forecast(aims, [results], precision=0.03, by_start=False, blocks=3)
    assert plain.deviation is not None
    assert plain.deviation < 0.03


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
    assert found.count == 3  # too few pairs, so that each side counts by itself
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
    assert found.half_width == pytest.approx(math.expm1(reach(means)))
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
