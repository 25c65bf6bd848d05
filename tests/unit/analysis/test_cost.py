"""How many workers it takes to beat one program on one node."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from tests.builders import make_board_fingerprint, make_probe_run, make_result

from boardcluster.analysis.cells import summarise
from boardcluster.analysis.cost import Cost, cost, workers_to_match
from boardcluster.analysis.scaling import amdahl_fit
from boardcluster.analysis.twins import undilated_value
from boardcluster.records import (
    Disturbance,
    Engine,
    Fingerprint,
    ProbeFigure,
    ProbeRun,
    Result,
    Verdict,
)

MB = 1_000_000
LINE = "worker1: Raspberry Pi 5, 4 x Cortex-A76, 8 GiB"
LINES = (LINE, LINE.replace("worker1", "worker2"))
BOARDS = make_board_fingerprint(kernel="k", cpu="Cortex-A76", hardware=LINES)
EMULATED = replace(BOARDS, emulated=True, hardware=(), cpu="EPYC", node_memory_bytes=1 << 30)
TWIN = replace(EMULATED, twin="4 x rpi5", limits="worker1: 0.4 cores")
EMULATED_LINE = "worker1: emulated, 4 cores and 1 GiB of lab: 2 x EPYC, 24 GiB"


def result(
    seconds: float,
    *,
    workers: int = 4,
    setup: Fingerprint = BOARDS,
    number: int = 0,
    **changes: Any,
) -> Result:
    return make_result(
        seconds,
        setup=replace(setup, nodes=workers + 1),
        **{
            "id": f"t{workers}-{number}",
            "position": number,
            "workload": "terasort",
            "size_bytes": 256 * MB,
            "workers": workers,
            "repetition": number + 1,
            **changes,
        },
    )


def probed(
    *figures: ProbeFigure,
    probe: str = "single-sort",
    node: str = "worker1",
    hardware: str = "",
    emulated: bool = False,
    identity: str = "p1",
    verdict: Verdict = Verdict.VALID,
    disturbances: tuple[Disturbance, ...] = (),
) -> ProbeRun:
    return make_probe_run(
        probe,
        verdict=verdict,
        disturbances=disturbances,
        id=identity,
        node=node,
        emulated=emulated,
        versions=("sort (GNU coreutils) 9.1",),
        hardware=hardware or LINE.replace("worker1", node),
        figures=figures,
        reason="" if figures else "skipped: no sort",
    )


def figure(
    seconds: float,
    *,
    name: str = "single_sort_seconds",
    size_bytes: int = 256 * MB,
    threads: int = 1,
    **conditions: str,
) -> ProbeFigure:
    common = {"cache": "dropped", "repeats": "2", **conditions}
    return ProbeFigure(
        name=name,
        value=seconds,
        conditions={"size_bytes": str(size_bytes), "threads": str(threads), **common},
    )


def costs(seconds: Mapping[int, float | tuple[float, ...]], *runs: ProbeRun, **more: Any) -> Cost:
    """The one cost of a sort whose times are given by number of workers."""
    results = [
        result(one, workers=workers, number=number, **more)
        for workers, times in seconds.items()
        for number, one in enumerate(times if isinstance(times, tuple) else (times,))
    ]
    (row,) = cost(summarise(results), runs)
    return row


# The answer


def test_a_cluster_that_loses_is_told_so() -> None:
    row = costs({4: (46.0, 47.0, 45.0)}, probed(figure(3.1)))
    assert (row.single_seconds, row.nodes, row.exact, row.predicted_nodes) == (
        3.1,
        None,
        False,
        None,
    )
    assert row.verdict == (
        "GNU sort with one thread on worker1 takes 3.1 s; the cluster with 4 workers 46 s: "
        "at this size no measured cluster beats it"
    )
    (point,) = row.points
    assert (point.workers, point.nodes, point.count) == (4, 5, 3)
    assert point.mean_seconds == 46.0
    assert point.ratio == pytest.approx(46 / 3.1)
    assert (row.single_node, row.single_run, row.single_size_bytes) == ("worker1", "p1", 256 * MB)
    assert row.basis == "measured twice at this size, its input read from storage"
    assert row.remarks == ()


def test_the_smallest_number_of_workers_that_wins_is_the_cost() -> None:
    seconds = {1: (90.0, 91.0, 89.0), 2: (50.0, 51.0, 49.0), 3: (35.0, 36.0, 34.0)}
    row = costs({**seconds, 4: (27.0, 28.0, 26.0)}, probed(figure(40.0)))
    assert (row.nodes, row.exact) == (3, True)
    assert row.verdict.endswith("with 3 workers 35 s: it takes 3 workers to beat one program")
    assert [point.workers for point in row.points] == [1, 2, 3, 4]
    assert [round(point.ratio or 0, 3) for point in row.points] == [2.25, 1.25, 0.875, 0.675]


def test_numbers_that_were_not_tried_make_it_an_upper_limit() -> None:
    row = costs({1: 90.0, 2: 50.0, 4: 27.0}, probed(figure(40.0)))
    assert (row.nodes, row.exact) == (4, False)
    assert "at most 4 workers beat one program" in row.verdict
    row = costs({4: 27.0}, probed(figure(40.0)))
    assert (row.nodes, row.exact) == (4, False)


def test_a_tie_beats_nothing() -> None:
    assert costs({1: 40.0}, probed(figure(40.0))).nodes is None


def test_amdahls_law_says_how_many_would() -> None:
    law = {workers: 100 * (0.1 + 0.9 / workers) for workers in (1, 2, 4)}
    row = costs(law, probed(figure(19.0)))
    assert row.predicted_nodes == pytest.approx(10.0)
    assert row.verdict.endswith("no measured cluster beats it; by Amdahl's law 11 workers would")
    row = costs(law, probed(figure(9.0)))
    assert row.predicted_nodes is None, "one run each shows no limit, and the tables state none"
    assert row.verdict.endswith("at this size no measured cluster beats it")


def test_a_limit_that_the_runs_show_is_one_that_no_number_of_workers_passes() -> None:
    law = {workers: 100 * (0.4 + 0.6 / workers) for workers in (1, 2, 4, 8)}
    times = {
        workers: tuple(seconds * factor for factor in (0.99, 0.995, 1.0, 1.005, 1.01))
        for workers, seconds in law.items()
    }
    row = costs(times, probed(figure(20.0)))
    assert row.predicted_nodes == math.inf
    assert row.verdict.endswith("beats it, and by Amdahl's law no number of workers would")


def test_of_a_set_that_bends_back_amdahls_law_says_nothing() -> None:
    """More workers take longer: the law still fits badly, and gave 'no number of workers would'."""
    times = {1: 100.0, 2: 60.0, 4: 45.0, 8: 80.0}
    several = {
        workers: tuple(seconds * factor for factor in (0.99, 1.0, 1.01))
        for workers, seconds in times.items()
    }
    row = costs(several, probed(figure(40.0)))
    assert row.predicted_nodes is None
    assert row.verdict.endswith("at this size no measured cluster beats it")
    assert any(line.startswith("this set bends back: 8 workers") for line in row.remarks)


def test_a_prediction_that_runs_contradict_is_not_in_the_verdict() -> None:
    row = costs({1: 100.0, 2: 40.0, 4: 38.0}, probed(figure(37.5)))
    assert row.predicted_nodes is not None
    assert row.predicted_nodes < 4
    assert row.verdict.endswith("at this size no measured cluster beats it")


@pytest.mark.parametrize(
    ("seconds", "workers"), [(100.0, 1.0), (120.0, 1.0), (32.5, 4.0), (10.0, math.inf)]
)
def test_workers_to_match_turns_the_law_round(seconds: float, workers: float) -> None:
    fit = amdahl_fit([(1, 100.0), (2, 55.0), (5, 28.0)])
    assert fit is not None
    assert workers_to_match(fit, seconds) == pytest.approx(workers)


def test_one_number_of_workers_is_no_law() -> None:
    assert costs({4: (20.0, 21.0)}, probed(figure(3.0))).predicted_nodes is None


def test_what_the_runs_do_not_show_is_said() -> None:
    assert "46 s (one run, no interval): at this" in costs({4: 46.0}, probed(figure(3.1))).verdict
    row = costs({4: (30.0, 50.0)}, probed(figure(39.0)))
    assert "40 s (its 95 % interval contains both): at this" in row.verdict


# Which program


def test_without_a_program_it_says_what_to_run() -> None:
    for runs in ((), (probed(),), (probed(figure(1.0), probe="stream"),)):
        row = costs({4: 46.0}, *runs)
        assert (row.single_seconds, row.nodes, row.predicted_nodes) == (None, None, None)
        assert [point.ratio for point in row.points] == [None]
        assert row.verdict == (
            "GNU sort was not measured on a node: run `boardcluster probe single-sort` while the "
            "cluster is up"
        )


def test_each_number_of_threads_is_a_row() -> None:
    cells = summarise([result(46.0)])
    one, four = cost(cells, [probed(figure(1.2, threads=4), figure(3.1))])
    assert (one.threads, one.single_seconds) == (1, 3.1)
    assert (four.threads, four.single_seconds) == (4, 1.2)
    assert four.verdict.startswith("GNU sort with 4 threads on worker1 takes 1.2 s;")


def test_of_several_nodes_the_fastest_counts_and_of_each_its_latest_run() -> None:
    runs = (
        probed(figure(1.0), identity="p1"),
        probed(figure(3.0), identity="p2", node="worker2"),
        probed(figure(4.0), identity="p3"),
    )
    row = costs({4: 46.0}, *runs)
    assert (row.single_node, row.single_run, row.single_seconds) == ("worker2", "p2", 3.0)


def test_a_size_that_was_not_measured_is_scaled_from_the_nearest() -> None:
    sizes = (figure(0.7, size_bytes=64 * MB), figure(3.0))
    row = costs({4: 46.0}, probed(*sizes), size_bytes=1000 * MB)
    assert row.single_seconds == pytest.approx(3.0 * 1000 / 256)
    assert row.single_size_bytes == 256 * MB
    assert row.basis == (
        "measured twice at 256 MB, its input read from storage, and scaled in proportion to the "
        "size, 3.91 times; beyond memory it would be slower"
    )
    assert "takes about 11.7 s;" in row.verdict
    row = costs({4: 46.0}, probed(*sizes), size_bytes=100 * MB)
    assert row.single_size_bytes == 64 * MB
    row = costs({4: 46.0}, probed(*sizes), size_bytes=32 * MB)
    assert row.single_seconds == pytest.approx(0.35)
    assert row.basis.endswith("in proportion to the size, 0.5 times")


def test_a_node_that_was_measured_at_this_size_counts_before_a_scaled_one() -> None:
    measured = probed(figure(40.0))
    scaled = probed(figure(1.0, size_bytes=16 * MB), node="worker2", identity="p2")
    assert costs({2: 30.0}, scaled, measured).single_seconds == 40.0
    assert costs({2: 30.0}, measured, scaled).single_node == "worker1"
    nearly = probed(figure(39.0, size_bytes=255 * MB), node="worker2", identity="p2")
    assert costs({2: 30.0}, measured, nearly).single_seconds == 39.0, "texts end with a line"


def test_a_later_run_at_a_size_farther_off_does_not_count() -> None:
    runs = (probed(figure(3.0)), probed(figure(0.1, size_bytes=64 * MB), identity="p2"))
    assert costs({4: 46.0}, *runs).single_run == "p1"


def test_what_is_not_cached_is_said() -> None:
    row = costs({4: 46.0}, probed(figure(3.0, cache="kept", repeats="1")))
    assert row.basis == "measured once at this size, its input perhaps in memory already"


@pytest.mark.parametrize(("engine", "seconds"), [(Engine.MAPREDUCE, 2.0), (Engine.SPARK, 5.0)])
def test_grep_is_compared_with_what_answers_the_same(engine: Engine, seconds: float) -> None:
    name = "single_grep_seconds"
    run = probed(
        figure(2.0, name=name, form="counts", pattern="ATL"),
        figure(5.0, name=name, form="lines", pattern="ATL"),
        probe="single-grep",
    )
    row = costs({4: 46.0}, run, workload="grep", engine=engine)
    assert (row.single_program, row.single_seconds) == ("GNU grep", seconds)
    named = {"workload": "grep", "engine": engine}
    row = costs({4: 46.0}, run, **named, parameters={"grep.pattern": "ATL"})
    assert row.single_seconds == seconds
    row = costs({4: 46.0}, run, **named, parameters={"grep.pattern": "ORD"})
    assert row.single_seconds is None
    assert row.verdict.startswith("GNU grep was only measured for another pattern:")


def test_another_text_is_said() -> None:
    run = probed(figure(2.0, name="single_count_seconds"), probe="single-count")
    named = {"workload": "wordcount", "input": "/data/Bücher.txt"}
    row = costs({4: 46.0}, run, **named)
    assert row.single_program == "Perl"
    assert row.remarks == ("the cluster read /data/Bücher.txt, the program the flights",)


# Which nodes


@pytest.mark.parametrize(
    "hardware",
    [
        LINE.replace("8 GiB", "4 GiB"),
        LINE.replace("worker1", "worker3"),
        EMULATED_LINE,
        "",
    ],
)
def test_a_board_that_the_cluster_did_not_have_does_not_count(hardware: str) -> None:
    run = replace(probed(figure(3.0)), hardware=hardware)
    row = costs({4: 46.0}, run)
    assert row.single_seconds is None
    assert row.verdict == (
        "GNU sort was measured on worker1, but not on a node with the hardware, system and limits "
        "of these runs: run `boardcluster probe single-sort` while the cluster is up"
    )


@pytest.mark.parametrize(
    ("hardware", "emulated", "counts"),
    [
        (EMULATED_LINE, True, True),
        (EMULATED_LINE, False, False),
        (EMULATED_LINE.replace("4 cores", "2 cores"), True, False),
        (EMULATED_LINE.replace("1 GiB of", "2 GiB of"), True, False),
        (EMULATED_LINE.replace("EPYC", "Xeon"), True, False),
        (LINE, True, False),
    ],
)
def test_an_emulated_node_counts_if_it_is_like_the_cells(
    hardware: str, *, emulated: bool, counts: bool
) -> None:
    row = costs(
        {4: 46.0}, probed(figure(3.0), hardware=hardware, emulated=emulated), setup=EMULATED
    )
    assert (row.single_seconds is not None) is counts
    assert row.emulated
    if counts:
        assert "on worker1 (emulated) takes" in row.verdict
        (remark,) = row.remarks
        assert remark.startswith("emulated nodes share one machine")


def twin_run(seconds: float, dilation: float) -> ProbeRun:
    """What the store has of a node that took so many seconds by the clock."""
    value = undilated_value("single_sort_seconds", seconds, dilation)
    assert value is not None
    row = figure(value)
    if dilation != 1:
        row = replace(row, conditions={**row.conditions, "dilation": f"{dilation:g}"})
    return probed(row, hardware=EMULATED_LINE, emulated=True)


def test_both_sides_are_the_boards_seconds() -> None:
    """A program that took 12.4 s on nodes four times too slow takes 3.1 s on the board."""
    row = costs({4: 46.0}, twin_run(12.4, 4.0), setup=TWIN, dilation=4.0)
    assert row.single_seconds == pytest.approx(3.1)
    assert row.points[0].ratio == pytest.approx(46 / 3.1)
    assert row.label == "emulated boards, dilation 4.0"
    assert row.remarks[0].startswith(
        "emulated boards: the program and the cluster run under the same limits"
    )


def test_twins_of_the_same_boards_are_one_row_whatever_their_number() -> None:
    results = [
        result(80.0 / workers, workers=workers, setup=replace(TWIN, twin=f"{workers} x rpi5"))
        for workers in (2, 4)
    ]
    other = result(9.0, workers=4, setup=replace(TWIN, twin="4 x rpi4"), number=1, replication=1)
    rows = cost(summarise([*results, other]), [twin_run(3.0, 1.0)])
    assert [[point.workers for point in row.points] for row in rows] == [[2, 4], [4]]
    assert len(rows[0].remarks) == 1


@pytest.mark.parametrize(("dilation", "counts"), [(1.0, False), (2.0, False), (4.0, True)])
def test_a_node_slowed_down_otherwise_does_not_count(dilation: float, counts: bool) -> None:
    row = costs({4: 46.0}, twin_run(12.4, dilation), setup=TWIN, dilation=4.0)
    assert (row.single_seconds is not None) is counts


def test_numbers_of_workers_are_one_row_though_the_dilation_follows_from_them() -> None:
    results = [
        result(
            seconds, workers=workers, setup=replace(TWIN, twin=f"{workers} x rpi5"), dilation=slow
        )
        for workers, seconds, slow in ((1, 60.0, 2.6), (2, 38.0, 3.9), (4, 22.0, 6.5))
    ]
    (row,) = cost(summarise(results), [twin_run(30.0 * 6.5, 6.5)])
    assert [point.workers for point in row.points] == [1, 2, 4]
    assert row.single_seconds == pytest.approx(30.0)


def test_a_declared_dilation_is_read_also_where_files_of_ones_own_follow_it() -> None:
    board, own = "1; of a board with 4 cores", "of own files fan.toml 0123456789ab"
    setups = {
        workers: replace(TWIN, limits=f"w1: {board}, dilation {slow}, {own}")
        for workers, slow in ((2, "3"), (4, "4"))
    }
    results = [
        result(50.0, workers=workers, setup=setup, dilation=4.0)
        for workers, setup in setups.items()
    ]
    assert len(cost(summarise(results), [])) == 2


def test_a_twin_does_not_count_for_nodes_without_limits() -> None:
    assert costs({4: 46.0}, twin_run(12.4, 4.0), setup=EMULATED).single_seconds is None


# Which cells


def test_what_differs_in_more_than_workers_is_apart() -> None:
    results = [
        result(50.0, workers=2),
        result(46.0, workers=4),
        result(30.0, workers=4, size_bytes=64 * MB, number=1),
        result(60.0, workers=4, engine=Engine.MAPREDUCE, number=2),
        result(55.0, workers=4, replication=1, number=3),
        result(99.0, workers=4, workload="pi", number=4),
        result(99.0, workers=4, workload="terasort+grep", concurrency=2, number=5),
    ]
    rows = cost(summarise(results), [probed(figure(3.0))])
    found = {
        (row.engine, row.size_bytes // MB, row.label): [point.workers for point in row.points]
        for row in rows
    }
    assert found == {
        (Engine.SPARK, 256, ""): [2, 4],
        (Engine.SPARK, 64, ""): [4],
        (Engine.MAPREDUCE, 256, ""): [4],
        (Engine.SPARK, 256, "replication 1"): [4],
    }
    assert {row.configuration.workers for row in rows} == {0}


def test_different_setups_of_the_points_are_said() -> None:
    results = [
        result(50.0, workers=2),
        result(46.0, workers=4, setup=replace(BOARDS, kernel="k2")),
    ]
    (row,) = cost(summarise(results), [probed(figure(3.0))])
    assert row.remarks == ("the cluster's runs are of different setups: kernel: k, k2",)


def test_of_two_setups_with_as_many_workers_the_latest_stands_for_both() -> None:
    older = [result(70.0, number=number) for number in range(2)]
    updated = replace(BOARDS, config_sha256="f" * 64)
    newer = [result(50.0, number=number, setup=updated) for number in (2, 3)]
    (row,) = cost(summarise([*older, *newer]), [probed(figure(60.0))])
    assert [(point.workers, point.mean_seconds) for point in row.points] == [(4, 50.0)]


def stolen(share: float) -> tuple[Disturbance, ...]:
    return (Disturbance(cause="steal", node="worker1", share=share, adjustable=True),)


def test_a_program_that_was_disturbed_is_nothing_to_compare_with() -> None:
    cells = summarise([result(100)])
    slow = probed(figure(200), verdict=Verdict.TAINTED, disturbances=stolen(0.5))
    [row] = cost(cells, [slow])
    assert row.single_seconds is None
    assert "measured on worker1, but something disturbed it too much" in row.verdict
    good = probed(figure(80), identity="p0")
    assert cost(cells, [good, slow])[0].single_seconds == 80
    little = replace(slow, disturbances=stolen(0.1))
    assert cost(cells, [little])[0].single_seconds == 200


def test_a_disturbed_program_counts_where_tainted_runs_do_and_is_marked() -> None:
    cells = summarise([result(100)])
    slow = probed(figure(200), verdict=Verdict.TAINTED, disturbances=stolen(0.5))
    [row] = cost(cells, [slow], tainted=True)
    assert row.single_seconds == 200
    assert "tainted" in row.remarks[0]
    good = probed(figure(80), identity="p0")
    [row] = cost(cells, [good, slow], tainted=True)
    assert row.single_seconds == 80
    assert not [line for line in row.remarks if "tainted" in line]


def test_runs_of_before_probes_were_judged_count_only_where_there_is_no_other() -> None:
    cells = summarise([result(100)])
    old = probed(figure(60), identity="p9", verdict=Verdict.UNJUDGED)
    [row] = cost(cells, [old])
    assert row.single_seconds == 60
    assert "before probes were judged" in row.remarks[0]
    [row] = cost(cells, [probed(figure(80)), old])
    assert row.single_seconds == 80
    assert row.remarks == ()
