from __future__ import annotations

from dataclasses import replace

import pytest

from boardcluster.analysis import compare_engines, summarise
from boardcluster.records import (
    Attempt,
    AttemptState,
    Engine,
    Fingerprint,
    Measurement,
    Result,
    Trial,
)

SETUP = Fingerprint(
    kernel="k",
    os="o",
    cpu="c",
    cpu_cores=2,
    memory_bytes=1,
    java="j",
    hadoop="h",
    spark="s",
    boardcluster="b",
    profile="default",
    config_sha256="0",
    nodes=5,
    node_memory_bytes=1,
    node_cores=1,
    link_bits_per_second=1,
    emulated=True,
)


def _result(
    engine: Engine,
    seconds: float,
    *,
    position: int = 0,
    state: AttemptState = AttemptState.OK,
    size_bytes: int = 100,
    workload: str = "wordcount",
    setup: Fingerprint = SETUP,
) -> Result:
    trial = Trial(
        id=f"t{position}",
        campaign_id="c",
        position=position,
        workload=workload,
        engine=engine,
        profile="default",
        size_bytes=size_bytes,
        workers=4,
        repetition=1,
    )
    attempt = Attempt(
        trial_id=trial.id,
        number=1,
        state=state,
        reason="",
        started_utc=f"2026-08-01T12:00:{position:02d}+00:00",
        ended_utc="2026-08-01T13:00:00+00:00",
        artefacts="",
        fingerprint=setup,
    )
    measurement = Measurement(
        duration_seconds=seconds,
        input_bytes=size_bytes,
        output_bytes=1,
        verification=None,
        exit_status=0,
    )
    return Result(trial=trial, attempt=attempt, measurement=measurement)


def test_runs_are_grouped_and_counted_in_run_order() -> None:
    cells = summarise(
        [
            _result(Engine.SPARK, 30, position=3),
            _result(Engine.SPARK, 20, position=1),
            _result(Engine.MAPREDUCE, 40, position=2),
            _result(Engine.SPARK, 70, position=4, size_bytes=300),
        ]
    )
    assert [(cell.engine, cell.size_bytes, cell.durations_seconds) for cell in cells] == [
        (Engine.MAPREDUCE, 100, (40,)),
        (Engine.SPARK, 100, (20, 30)),
        (Engine.SPARK, 300, (70,)),
    ]
    spark = cells[1]
    assert (spark.count, spark.mean_seconds, spark.median_seconds) == (2, 25, 25)
    assert (spark.minimum_seconds, spark.maximum_seconds) == (20, 30)
    assert spark.throughput_bytes_per_second == 200 / 50
    assert cells[0].interval_seconds is None
    assert spark.interval_seconds is not None


def test_only_verified_runs_of_workloads_count() -> None:
    pending = replace(_result(Engine.SPARK, 1), attempt=None, measurement=None)
    assert (
        summarise(
            [
                pending,
                _result(Engine.SPARK, 1, state=AttemptState.FAILED),
                _result(Engine.SPARK, 1, state=AttemptState.INVALID),
                _result(Engine.SPARK, 1, state=AttemptState.RUNNING),
                _result(Engine.SPARK, 1, workload="submit"),
            ]
        )
        == ()
    )


def test_an_unknown_input_has_no_throughput() -> None:
    (cell,) = summarise([_result(Engine.SPARK, 5, size_bytes=0)])
    assert cell.throughput_bytes_per_second is None


def test_engines_are_compared_at_the_same_configuration_only() -> None:
    cells = summarise(
        [
            _result(Engine.SPARK, 20),
            _result(Engine.SPARK, 22),
            _result(Engine.MAPREDUCE, 40),
            _result(Engine.MAPREDUCE, 44),
            _result(Engine.MAPREDUCE, 99, size_bytes=300),
        ]
    )
    (comparison,) = compare_engines(cells)
    assert comparison.faster.engine is Engine.SPARK
    assert comparison.slower.engine is Engine.MAPREDUCE
    assert comparison.ratio == pytest.approx(2)
    assert comparison.is_shown
    assert comparison.same_setup


def test_a_difference_within_the_noise_or_of_single_runs_is_not_shown() -> None:
    noisy = [_result(engine, value) for engine in Engine for value in (10, 40)]
    noisy.append(_result(Engine.SPARK, 26))
    (comparison,) = compare_engines(summarise(noisy))
    assert not comparison.is_shown
    single = [_result(Engine.SPARK, 1), _result(Engine.MAPREDUCE, 9)]
    (comparison,) = compare_engines(summarise(single))
    assert comparison.difference_interval_seconds is None
    assert not comparison.is_shown


def test_different_setups_are_said() -> None:
    other = replace(SETUP, kernel="other")
    cells = summarise(
        [
            _result(Engine.SPARK, 20),
            _result(Engine.SPARK, 21, setup=other),
            _result(Engine.MAPREDUCE, 40),
        ]
    )
    assert [len(cell.fingerprints) for cell in cells] == [1, 2]
    assert not compare_engines(cells)[0].same_setup
