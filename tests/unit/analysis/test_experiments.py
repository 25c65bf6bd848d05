"""The table of an experiment: what stands beside what, and what is in no mean."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.analysis.test_cells import _result

from boardcluster.analysis.experiments import (
    FAR_PERCENT,
    PaperResult,
    column_of,
    column_words,
    is_of,
    tabulate,
)
from boardcluster.records import (
    AttemptState,
    Disturbance,
    Engine,
    MasterPlacement,
    Result,
    Verdict,
)


def run(
    seconds: float,
    *,
    engine: Engine = Engine.SPARK,
    workers: int = 4,
    dilation: float = 2.0,
    repetition: int = 1,
    warm_up: bool = False,
    profile: str = "default",
    **named: Any,
) -> Result:
    made = _result(engine, seconds, **named)
    assert made.measurement
    return replace(
        made,
        trial=replace(
            made.trial,
            workers=workers,
            repetition=repetition,
            warm_up=warm_up,
            profile=profile,
        ),
        measurement=replace(made.measurement, dilation=dilation),
    )


def said(seconds: float | None, ratio: float | None = None, **of: str | int) -> PaperResult:
    return PaperResult(of=of, seconds=seconds, ratio=ratio, source=f"paper {seconds or ratio}")


def test_twins_stand_beside_each_other_with_ratios_to_the_first() -> None:
    table = tabulate(
        {"slow": [run(30), run(50, position=1)], "fast": [run(20, dilation=3.0)]},
        vary="twin",
        columns=("slow", "fast"),
        published=(),
    )

    (row,) = table.rows
    assert (row.twin, row.workload, row.engine) == ("", "wordcount", Engine.SPARK)
    assert (row.size_bytes, row.workers, row.profile, row.settings) == (100, 4, "default", "")
    slow, fast = row.entries
    assert (slow.column, slow.count, slow.mean_seconds, slow.ratio) == ("slow", 2, 40, None)
    assert slow.interval_seconds is not None
    assert slow.interval_seconds.low < 30
    assert (fast.column, fast.count, fast.mean_seconds, fast.ratio) == ("fast", 1, 20, 2)
    assert fast.interval_seconds is None
    assert (slow.dilations, fast.dilations) == ((2.0,), (3.0,))
    assert (fast.published_seconds, fast.published_ratio, fast.difference_percent) == (None,) * 3
    assert not fast.is_far


def on_kernel(result: Result, kernel: str, started: str) -> Result:
    assert result.attempt
    setup = replace(result.attempt.fingerprint, kernel=kernel)
    return replace(result, attempt=replace(result.attempt, fingerprint=setup, started_utc=started))


def test_twins_measured_on_different_software_are_compared_and_it_is_said() -> None:
    old, new = "6.1", "6.12"
    slow = [on_kernel(run(40), old, "2026-01-01T00:00:00")]
    fast = [
        on_kernel(run(30), old, "2026-01-02T00:00:00"),
        on_kernel(run(20, position=1, repetition=2), new, "2026-01-03T00:00:00"),
    ]
    two = {"slow": slow, "fast": fast[1:]}
    (row,) = tabulate(two, vary="twin", columns=("slow", "fast"), published=()).rows
    assert (row.entries[1].ratio, row.settings) == (2, "columns differ in kernel")

    split = {"slow": slow, "fast": fast}
    (row,) = tabulate(split, vary="twin", columns=("slow", "fast"), published=()).rows
    assert (row.entries[1].count, row.entries[1].ratio) == (1, 2)
    assert row.settings == "fast: the latest of 2 setups, columns differ in kernel"

    same = {"slow": slow, "fast": fast[:1]}
    (row,) = tabulate(same, vary="twin", columns=("slow", "fast"), published=()).rows
    assert row.settings == ""


def with_limits(result: Result, limits: str) -> Result:
    assert result.attempt
    setup = replace(result.attempt.fingerprint, limits=limits)
    return replace(result, attempt=replace(result.attempt, fingerprint=setup))


@pytest.mark.parametrize(
    ("vary", "first", "second", "said"),
    [
        ("workers", "b, of own files x.toml 1", "b, of own files x.toml 2", "n1"),
        ("workers", "b", "b", ""),
        ("twin", "b", "c", ""),
    ],
)
def test_columns_with_other_boards_are_compared_and_it_is_said(
    vary: str, first: str, second: str, said: str
) -> None:
    one = with_limits(run(40, workers=1), f"n1: 0.5 cores; of a board with {first}")
    four = with_limits(
        run(10, workers=4, position=1),
        f"n1: 0.2 cores; of a board with {second}\nn2: 0.2 cores; of a board with c",
    )
    if vary == "twin":
        results = {"a": [one], "b": [replace(four, trial=replace(four.trial, workers=1))]}
        (row,) = tabulate(results, vary=vary, columns=("a", "b"), published=()).rows
    else:
        (row,) = tabulate({"a": [one, four]}, vary=vary, columns=("1", "4"), published=()).rows
    assert row.entries[1].ratio == 4
    assert row.settings == (f"columns differ in what the boards of {said} have" if said else "")


def test_numbers_of_workers_are_columns_of_each_twin() -> None:
    rows = [run(80, workers=1), run(20, workers=4, position=1)]

    table = tabulate(
        {"a": rows, "b": [run(10, workers=4)]},
        vary="workers",
        columns=("1", "4"),
        published=(),
    )

    assert [(row.twin, row.workers) for row in table.rows] == [("a", None), ("b", None)]
    assert [entry.ratio for row in table.rows for entry in row.entries] == [None, 4, None, None]
    assert [entry.mean_seconds for entry in table.rows[1].entries] == [None, 10]
    assert table.rows[1].entries[0].dilations == ()


def test_engines_and_sizes_are_rows() -> None:
    rows = [
        run(1, engine=Engine.SPARK),
        run(2, engine=Engine.MAPREDUCE, position=1),
        run(3, size_bytes=300, position=2),
    ]

    table = tabulate({"a": rows}, vary="twin", columns=("a",), published=())

    assert [(row.engine, row.size_bytes) for row in table.rows] == [
        (Engine.MAPREDUCE, 100),
        (Engine.SPARK, 100),
        (Engine.SPARK, 300),
    ]


@pytest.mark.parametrize(
    ("vary", "first", "second", "columns"),
    [
        ("concurrency", {"concurrency": 1}, {"concurrency": 2}, ("1", "2")),
        (
            "master",
            {"master": MasterPlacement.SEPARATE},
            {"master": MasterPlacement.COMBINED},
            ("separate", "combined"),
        ),
        ("profile", {"profile": "default"}, {"profile": "upstream"}, ("default", "upstream")),
    ],
)
def test_what_varies_is_not_among_the_settings_of_a_row(
    vary: str, first: dict[str, Any], second: dict[str, Any], columns: tuple[str, str]
) -> None:
    more: dict[str, Any] = {"workload": "grep+pi", "replication": 2}
    if vary != "concurrency":
        more["concurrency"] = 2
    rows = [run(30, **first, **more), run(10, position=1, **second, **more)]

    table = tabulate({"a": rows}, vary=vary, columns=columns, published=())

    (row,) = table.rows
    assert [entry.ratio for entry in row.entries] == [None, 3]
    mix = "" if vary == "concurrency" else "2 at once, "
    assert row.settings == f"{mix}replication 2"
    assert row.profile == ("" if vary == "profile" else "default")


def test_published_times_stand_beside_ours_with_their_own_ratio() -> None:
    table = tabulate(
        {"a": [run(80, workers=1), run(20, workers=4, position=1)]},
        vary="workers",
        columns=("1", "4"),
        published=[said(300.0, workers=1), said(100.0, workers=4, twin="a")],
    )

    one, four = table.rows[0].entries
    assert (one.published_seconds, one.published_ratio, one.published_source) == (
        300.0,
        None,
        "paper 300.0",
    )
    assert (four.ratio, four.published_ratio) == (4, 3)
    assert four.difference_percent == pytest.approx(100 / 3)
    assert four.is_far


@pytest.mark.parametrize(("ratio", "is_far"), [(2.0, False), (1.76, False), (1.7, True), (3, True)])
def test_a_ratio_that_a_paper_states_needs_no_times(ratio: float, is_far: bool) -> None:
    table = tabulate(
        {"a": [run(40)], "b": [run(20)]},
        vary="twin",
        columns=("a", "b"),
        published=[said(None, ratio, twin="b")],
    )

    entry = table.rows[0].entries[1]
    assert (entry.published_seconds, entry.published_ratio) == (None, ratio)
    assert entry.difference_percent == pytest.approx(100 * (2 / ratio - 1))
    assert entry.is_far is is_far
    assert FAR_PERCENT == 15


def test_a_published_time_without_one_of_the_first_column_gives_no_ratio() -> None:
    table = tabulate(
        {"a": [run(40)], "b": [run(20)]},
        vary="twin",
        columns=("a", "b"),
        published=[said(12.0, twin="b")],
    )

    entry = table.rows[0].entries[1]
    assert (entry.published_seconds, entry.published_ratio) == (12.0, None)
    assert entry.difference_percent is None


def test_runs_that_do_not_count_are_listed_and_in_no_mean() -> None:
    failed = run(1, state=AttemptState.FAILED, position=1)
    assert failed.attempt
    failed = replace(failed, attempt=replace(failed.attempt, reason="because"), measurement=None)
    pending = replace(run(1, position=4), attempt=None, measurement=None)
    rows = [
        run(20),
        failed,
        run(900, verdict=Verdict.TAINTED, position=2),
        run(700, verdict=Verdict.INVALID, position=3),
        pending,
        run(500, warm_up=True, position=5),
    ]

    table = tabulate({"a": rows}, vary="twin", columns=("a",), published=())

    assert [entry.mean_seconds for row in table.rows for entry in row.entries] == [20]
    assert [(row.twin, row.trial.position, row.state, row.reason) for row in table.left_out] == [
        ("a", 1, "failed", "because"),
        ("a", 2, "tainted", "pi1: throttled"),
        ("a", 3, "invalid", ""),
        ("a", 4, "pending", ""),
    ]


def test_tainted_runs_that_count_are_counted_as_such() -> None:
    stolen = Disturbance(cause="steal", node="pi1", share=0.1, adjustable=True)
    slow = run(40, verdict=Verdict.TAINTED, position=1)
    assert slow.measurement
    slow = replace(slow, measurement=replace(slow.measurement, disturbances=(stolen,)))

    table = tabulate({"a": [run(20), slow], "b": []}, vary="twin", columns=("a", "b"), published=())

    one, none = table.rows[0].entries
    assert (one.mean_seconds, one.count, one.tainted, none.tainted) == (30, 2, 1, 0)
    assert table.left_out == ()


def test_nothing_measured_is_an_empty_table() -> None:
    table = tabulate({"a": []}, vary="twin", columns=("a",), published=())

    assert (table.rows, table.left_out) == ((), ())


def test_a_trial_and_a_cell_are_described_alike() -> None:
    trial = run(1, workers=3, profile="upstream").trial

    assert is_of({"twin": "a", "workers": 3, "engine": "spark"}, "a", trial)
    assert is_of({}, "a", trial)
    assert not is_of({"twin": "b"}, "a", trial)
    assert not is_of({"workers": 4}, "a", trial)
    assert [column_of(vary, "a", trial) for vary in ("twin", "workers", "master")] == [
        "a",
        "3",
        "declared",
    ]


def test_columns_have_words() -> None:
    assert [
        column_words(*row)
        for row in (
            ("twin", "rpi5"),
            ("workers", "1"),
            ("workers", "8"),
            ("concurrency", "1"),
            ("concurrency", "4"),
            ("master", "combined"),
            ("profile", "default"),
        )
    ] == [
        *("rpi5", "1 worker", "8 workers", "one after the other", "4 at once"),
        *("master combined", "profile default"),
    ]
