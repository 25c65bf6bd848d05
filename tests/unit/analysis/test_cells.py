from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.builders import make_fingerprint, make_result

from boardcluster.analysis.cells import (
    Cell,
    security_of,
    settings,
    summarise,
    untrusted,
    verdict_of,
)
from boardcluster.analysis.scaling import FactorEffect, factor_effects
from boardcluster.records import (
    AttemptState,
    Checksum,
    Engine,
    MasterPlacement,
    Result,
    Security,
    Verdict,
)

ENGINES = (Engine.MAPREDUCE, Engine.SPARK)
SETUP = make_fingerprint()
CLOSED = replace(SETUP, emulated=False, security=Security.CLOSED)
OPEN = replace(CLOSED, security=Security.INSECURE_LAB)


def _effects(cells: Sequence[Cell], factor: str) -> list[FactorEffect]:
    return [row for row in factor_effects(cells) if row.factor == factor]


def _result(engine: Engine, seconds: float, **changes: Any) -> Result:
    tainted = changes.get("verdict") is Verdict.TAINTED
    return make_result(
        seconds,
        **{
            "engine": engine,
            "workload": "wordcount",
            "size_bytes": 100,
            "verdict_reasons": ("pi1: throttled",) if tainted else (),
            **changes,
        },
    )


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
            _result(Engine.SPARK, 22, position=1),
            _result(Engine.MAPREDUCE, 40),
            _result(Engine.MAPREDUCE, 44, position=1),
            _result(Engine.MAPREDUCE, 99, size_bytes=300),
        ]
    )
    (comparison,) = _effects(cells, "engine")
    assert comparison.faster.engine is Engine.SPARK
    assert comparison.slower.engine is Engine.MAPREDUCE
    assert comparison.ratio.value == pytest.approx(2)
    assert comparison.ratio.is_shown
    assert comparison.differences == ()


def test_a_difference_within_the_noise_or_of_single_runs_is_not_shown() -> None:
    noisy = [
        _result(engine, value, position=place)
        for engine in ENGINES
        for place, value in enumerate((10, 40))
    ]
    noisy.append(_result(Engine.SPARK, 26, position=9))
    (comparison,) = _effects(summarise(noisy), "engine")
    assert not comparison.ratio.is_shown
    single = [_result(Engine.SPARK, 1), _result(Engine.MAPREDUCE, 9)]
    (comparison,) = _effects(summarise(single), "engine")
    assert comparison.ratio.interval is None
    assert not comparison.ratio.is_shown


def test_different_setups_are_said() -> None:
    other = replace(SETUP, kernel="other")
    cells = summarise(
        [
            _result(Engine.SPARK, 20),
            _result(Engine.SPARK, 21, setup=other),
            _result(Engine.MAPREDUCE, 40),
        ]
    )
    assert [(cell.engine, cell.label) for cell in cells] == [
        (Engine.MAPREDUCE, f"kernel {SETUP.kernel}"),
        (Engine.SPARK, f"kernel {SETUP.kernel}"),
        (Engine.SPARK, "kernel other"),
    ]
    assert [row.factor for row in factor_effects(cells)] == ["engine", "software"]


@pytest.mark.parametrize(
    ("change", "label"),
    [
        ({"replication": 1}, "replication 1"),
        ({"checksum": Checksum.NULL}, "checksum null"),
        ({"master": MasterPlacement.COMBINED}, "master combined"),
        ({"input": "/data/my text.txt"}, "input my text.txt"),
        ({"parameters": {"wordcount.pattern": "ATL"}}, "pattern ATL"),
        ({"concurrency": 2}, "2 at once"),
    ],
)
def test_every_setting_makes_a_cell_of_its_own_and_is_named(
    change: dict[str, Any], label: str
) -> None:
    plain, other = _result(Engine.SPARK, 20), _result(Engine.SPARK, 40, **change)
    cells = summarise([plain, _result(Engine.MAPREDUCE, 30), other])
    assert sorted(cell.label for cell in cells) == sorted(["", "", label])
    assert settings(other.trial, security=Security.EMULATED) == label
    (comparison,) = _effects(cells, "engine")
    assert (comparison.faster.label, comparison.slower.label) == ("", "")


def test_a_label_names_all_that_differs() -> None:
    (cell,) = summarise(
        [
            _result(
                Engine.SPARK,
                20,
                replication=1,
                checksum=Checksum.NULL,
                parameters={"wordcount.pattern": "ATL", "wordcount.case": "ignore"},
            )
        ]
    )
    assert cell.label == "replication 1, checksum null, case ignore, pattern ATL"
    mixed = _result(Engine.SPARK, 9, workload="grep+pi", parameters={"grep.pattern": "ATL"})
    words = "one after the other, grep.pattern ATL"
    for security in (Security.EMULATED, Security.CLOSED):
        assert settings(mixed.trial, security=security) == words
    # Whoever reads a label to its end or not: this is what comes first.
    assert settings(mixed.trial, security=Security.INSECURE_LAB) == f"INSECURE LAB, {words}"


@pytest.mark.parametrize("engine", ENGINES)
def test_runs_of_an_open_cluster_are_never_mixed_with_those_of_a_closed_one(
    engine: Engine,
) -> None:
    cells = summarise(
        [
            _result(engine, 20, position=0, setup=CLOSED),
            _result(engine, 60, position=1, setup=OPEN),
            _result(engine, 22, position=2, setup=CLOSED),
            _result(engine, 70, position=3, setup=OPEN),
            _result(engine, 90, position=4),
        ]
    )

    rows = {cell.configuration.security: (cell.durations_seconds, cell.label) for cell in cells}
    assert rows == {
        Security.CLOSED: ((20, 22), ""),
        Security.INSECURE_LAB: ((60, 70), "INSECURE LAB"),
        Security.EMULATED: ((90,), ""),
    }
    assert len(cells) == 3


def test_engines_are_compared_on_clusters_of_the_same_security_only() -> None:
    runs = [
        _result(Engine.SPARK, 20, setup=CLOSED),
        _result(Engine.MAPREDUCE, 40, setup=OPEN),
        _result(Engine.SPARK, 9, workload="grep+pi", concurrency=1, setup=CLOSED),
        _result(Engine.SPARK, 5, workload="grep+pi", concurrency=2, setup=OPEN),
    ]
    assert _effects(summarise(runs), "engine") == []
    assert _effects(summarise(runs), "concurrency") == []

    more = summarise([*runs, _result(Engine.MAPREDUCE, 50, setup=CLOSED)])
    (comparison,) = _effects(more, "engine")
    more = summarise(
        [*runs, _result(Engine.SPARK, 6, workload="grep+pi", concurrency=2, setup=CLOSED)]
    )
    (together,) = _effects(more, "concurrency")
    assert (comparison.faster.mean_seconds, comparison.slower.mean_seconds) == (20, 50)
    assert (together.slower.mean_seconds, together.faster.mean_seconds) == (9, 6)


def test_what_has_not_run_was_reached_by_nobody() -> None:
    run = _result(Engine.SPARK, 20, setup=OPEN)
    assert security_of(run) is Security.INSECURE_LAB
    assert security_of(replace(run, attempt=None, measurement=None)) is Security.EMULATED


def test_warm_ups_stay_out() -> None:
    cells = summarise([_result(Engine.SPARK, 90, warm_up=True), _result(Engine.SPARK, 20)])
    assert [cell.durations_seconds for cell in cells] == [(20,)]
    assert summarise([_result(Engine.SPARK, 90, warm_up=True)]) == ()


def test_figures_and_intermediate_bytes_are_averaged() -> None:
    (cell,) = summarise(
        [
            _result(
                Engine.MAPREDUCE,
                20,
                position=0,
                figures={"z_gigaflops": 2.0, "a_seconds": 1.0},
                intermediate_bytes=10,
            ),
            _result(
                Engine.MAPREDUCE,
                20,
                position=1,
                figures={"z_gigaflops": 4.0},
                intermediate_bytes=30,
            ),
        ]
    )
    assert list(cell.figures) == ["z_gigaflops", "a_seconds"]
    figure = cell.figures["z_gigaflops"]
    assert (figure.mean, figure.count) == (3.0, 2)
    assert figure.interval is not None
    # t(0.975, 1) = 12.706; s / sqrt(2) = 1
    assert figure.interval.half_width == pytest.approx(12.706, rel=1e-4)
    assert (cell.figures["a_seconds"].count, cell.figures["a_seconds"].interval) == (1, None)
    assert cell.mean_intermediate_bytes == 20


def test_intermediate_bytes_are_unknown_unless_every_run_says_them() -> None:
    (cell,) = summarise(
        [
            _result(Engine.SPARK, 20, intermediate_bytes=10),
            _result(Engine.SPARK, 20, position=1),
        ]
    )
    assert cell.mean_intermediate_bytes is None


def test_a_mix_at_once_is_compared_with_one_after_the_other() -> None:
    """The numbers of Lee and Park 2026: 254 s and 134 s are 1.9 times as fast."""
    mix = "wordcount+terasort+grep+pi"
    cells = summarise(
        [
            _result(Engine.SPARK, 254, workload=mix, concurrency=1),
            _result(Engine.SPARK, 134, workload=mix, concurrency=4),
            _result(Engine.SPARK, 99, workload=mix, concurrency=4, size_bytes=5),
            _result(Engine.MAPREDUCE, 99, workload=mix, concurrency=4),
            _result(Engine.SPARK, 99),
        ]
    )
    (comparison,) = _effects(cells, "concurrency")
    assert comparison.slower.mean_seconds == 254
    assert comparison.faster.concurrency == 4
    assert round(comparison.ratio.value, 1) == 1.9
    assert comparison.differences == ()
    assert not comparison.ratio.is_shown


def test_tainted_runs_stay_out_and_are_counted() -> None:
    runs = [
        _result(Engine.SPARK, 20, position=0),
        _result(Engine.SPARK, 90, position=1, verdict=Verdict.TAINTED),
        _result(Engine.SPARK, 22, position=2, verdict=Verdict.UNJUDGED),
        _result(Engine.SPARK, 99, position=3, verdict=Verdict.INVALID),
    ]
    (cell,) = summarise(runs)
    assert list(cell.durations_seconds) == [20, 22]
    assert [result.trial.position for result in cell.left_out] == [1, 3]
    assert (cell.counted(Verdict.VALID), cell.counted(Verdict.UNJUDGED)) == (1, 1)
    assert cell.counted(Verdict.TAINTED) == 0
    assert untrusted(runs) == ()


def test_tainted_runs_count_if_asked_for_and_invalid_ones_never() -> None:
    runs = [
        _result(Engine.SPARK, 20, position=0),
        _result(Engine.SPARK, 90, position=1, verdict=Verdict.TAINTED),
        _result(Engine.SPARK, 99, position=2, verdict=Verdict.INVALID),
    ]
    (cell,) = summarise(runs, tainted=True)
    assert list(cell.durations_seconds) == [20, 90]
    assert cell.counted(Verdict.TAINTED) == 1
    assert [result.trial.position for result in cell.left_out] == [2]


def test_a_configuration_without_a_valid_run_has_no_cell_but_is_not_hidden() -> None:
    runs = [
        _result(Engine.SPARK, 20, position=0),
        _result(Engine.MAPREDUCE, 41, position=2, verdict=Verdict.TAINTED),
        _result(Engine.MAPREDUCE, 40, position=1, verdict=Verdict.TAINTED, replication=0),
        _result(Engine.MAPREDUCE, 50, position=3, verdict=Verdict.TAINTED, replication=1),
    ]
    assert [cell.engine for cell in summarise(runs)] == [Engine.SPARK]
    plain, single = untrusted(runs)
    assert [result.trial.position for result in plain.results] == [1, 2]
    assert (plain.engine, plain.label, single.label) == (Engine.MAPREDUCE, "", "replication 1")
    assert untrusted(runs, tainted=True) == ()
    assert len(summarise(runs, tainted=True)) == 3


def test_what_did_not_end_well_is_neither_in_a_cell_nor_untrusted() -> None:
    bad = Verdict.TAINTED
    runs = [
        _result(Engine.SPARK, 1, state=AttemptState.FAILED, verdict=bad),
        _result(Engine.SPARK, 1, warm_up=True, verdict=bad),
        _result(Engine.SPARK, 1, workload="submit", verdict=bad),
        replace(_result(Engine.SPARK, 1), attempt=None, measurement=None),
    ]
    assert (summarise(runs), untrusted(runs)) == ((), ())
    assert verdict_of(runs[-1]) is Verdict.UNJUDGED


def test_a_cell_has_its_interval_and_outliers() -> None:
    seconds = (20.0, 20.1, 20.2, 20.3, 20.4, 26.0)
    (cell,) = summarise(
        [_result(Engine.SPARK, value, position=place) for place, value in enumerate(seconds)]
    )
    assert cell.interval_seconds is not None
    assert cell.outliers == (5,)
    assert cell.durations_seconds == seconds  # shown, never dropped


def test_what_was_not_recorded_earlier_is_no_difference() -> None:
    later = replace(SETUP, governor="performance", kernel_command_line="quiet", blas="b", numa="1")
    cells = summarise([_result(Engine.SPARK, 20), _result(Engine.MAPREDUCE, 40, setup=later)])
    (comparison,) = _effects(cells, "engine")
    assert comparison.differences == ()
