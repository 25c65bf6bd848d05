"""Figures: what is drawn of made-up cells and runs, and that every output shows the same."""

from __future__ import annotations

import csv
import io
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.builders import make_energy, make_power
from tests.unit.analysis.telemetry import DURATION_SECONDS, node

from boardcluster.analysis.cells import Cell, summarise
from boardcluster.analysis.scaling import node_scalings
from boardcluster.errors import StoreError, UsageError
from boardcluster.records import (
    Coverage,
    Energy,
    EnergyMethod,
    Engine,
    Fingerprint,
    PowerModel,
    PowerSamples,
    Result,
    Telemetry,
)
from boardcluster.report.plots import (
    Figure,
    bottlenecks,
    csv_text,
    describe,
    durations,
    energy,
    intermediate,
    save,
    speed_up,
    svg,
    times_by_factor,
    times_by_nodes,
    times_by_size,
)
from boardcluster.report.plots.cells import MOST_ROWS, MOST_SERIES, board_of, medium_of
from boardcluster.report.plots.figure import Bars, Curves, Durations, Lines, Stack
from boardcluster.report.plots.frames import LegendEntry, fill, lay_out, width_of
from boardcluster.report.plots.runs import telemetry_curves
from boardcluster.report.plots.themes import DASHES, HATCHES, MARKERS, PRINT, SCREEN

Make = Callable[..., Result]
MAPREDUCE, SPARK = Engine.MAPREDUCE, Engine.SPARK
GB = 10**9
TWIN = "1 x rpi-5b with {0}, psu-27w + {1} x rpi-5b with {0}, psu-27w"


def rows_of(figure: Figure) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(csv_text(figure))))


class World:
    """Makes cells of what a test varies."""

    def __init__(self, make: Make, fingerprint: Fingerprint) -> None:
        self._make, self._fingerprint = make, fingerprint
        self._position = 0

    def run(self, seconds: float, *, engine: Engine = SPARK, **more: Any) -> Result:
        workers = more.pop("workers", 4)
        medium = more.pop("medium", "")
        own = {name: more.pop(name) for name in ("kernel", "config_sha256") if name in more}
        setup = replace(self._fingerprint, **own)
        if medium:
            setup = replace(setup, twin=TWIN.format(medium, workers))
        self._position += 1
        made = self._make(self._position, engine, seconds, setup=setup, **more)
        return replace(made, trial=replace(made.trial, workers=workers))

    def cells(self, *groups: Sequence[Result]) -> list[Cell]:
        return [cell for group in groups for cell in summarise(group)]

    def by_nodes(self, *, runs: int = 3, **more: Any) -> list[Result]:
        return [
            self.run(100 / workers + 10 + 0.5 * place, workers=workers, **more)
            for workers in (1, 2, 4, 8)
            for place in range(runs)
        ]


@pytest.fixture
def world(make: Make, fingerprint: Fingerprint) -> World:
    return World(make, fingerprint)


# Times by workers


def test_times_by_nodes_have_a_line_for_each_engine_and_medium(world: World) -> None:
    cells = world.cells(
        *(
            world.by_nodes(engine=engine, medium=medium)
            for engine in (MAPREDUCE, SPARK)
            for medium in ("microsd", "nvme")
        )
    )
    [figure] = times_by_nodes(cells)
    assert isinstance(figure.body, Lines)
    assert [row.label for row in figure.body.series] == [
        "MapReduce, microsd",
        "MapReduce, nvme",
        "Spark, microsd",
        "Spark, nvme",
    ]
    assert list(figure.body.ticks) == [1, 2, 4, 8]
    first = figure.body.series[0].points[0]
    cell = next(cell for cell in cells if cell.workers == 1)
    assert cell.interval_seconds is not None
    assert (first.y, first.low, first.high) == (
        cell.mean_seconds,
        cell.interval_seconds.low,
        cell.interval_seconds.high,
    )
    assert len({row.style for row in figure.body.series}) == 4
    assert len({row.style.pattern for row in figure.body.series}) == 4  # told apart without colour


def test_amdahls_law_goes_through_times_that_follow_it(world: World) -> None:
    [figure] = times_by_nodes(
        world.cells([world.run(100 / n + 10, workers=n) for n in (1, 2, 4, 8)])
    )
    assert isinstance(figure.body, Lines)
    [row] = figure.body.series
    assert row.fit[0] == pytest.approx((1, 110))
    assert row.fit[-1] == pytest.approx((8, 22.5))
    for workers, seconds in row.fit:
        assert seconds == pytest.approx(100 / workers + 10)
    assert "Amdahl" in figure.caption


def test_no_line_joins_runs_on_two_kernels(world: World) -> None:
    """Two of three sizes were measured again with a newer kernel."""
    rows = [
        world.run(seconds * size, size_bytes=size * GB, kernel=kernel)
        for kernel, seconds, sizes in (("6.1", 20.0, (1, 2, 4)), ("6.6", 10.0, (1, 2)))
        for size in sizes
    ]
    [figure] = times_by_size(summarise(rows))
    assert isinstance(figure.body, Lines)
    lines = {row.label: [point.y for point in row.points] for row in figure.body.series}
    assert lines == {"Spark, kernel 6.1": [20, 40, 80], "Spark, kernel 6.6": [10, 20]}
    assert {row["setup"] for row in rows_of(figure)} == {"kernel 6.1", "kernel 6.6"}
    assert "latest" not in figure.caption


def test_of_configurations_that_depend_on_the_workers_the_latest_is_drawn(world: World) -> None:
    """The same as in the tables, which take the latest as well."""
    rows = [
        world.run(seconds / workers, workers=workers, config_sha256=f"{seconds}{workers}")
        for seconds, workers in ((90.0, 1), (90.0, 2), (60.0, 1), (60.0, 2))
    ]
    [figure] = times_by_nodes(summarise(rows))
    assert isinstance(figure.body, Lines)
    [line] = figure.body.series
    assert [(point.x, point.y) for point in line.points] == [(1, 60), (2, 30)]
    assert "the latest one is shown" in figure.caption


def test_two_numbers_of_workers_have_no_fit(world: World) -> None:
    [figure] = times_by_nodes(world.cells([world.run(9, workers=1), world.run(5, workers=2)]))
    assert isinstance(figure.body, Lines)
    assert figure.body.series[0].fit == ()
    assert "Amdahl" not in figure.caption


def test_one_number_of_workers_is_no_figure(world: World) -> None:
    assert times_by_nodes(world.cells([world.run(9), world.run(10)])) == ()
    assert times_by_nodes([]) == ()
    assert speed_up(()) == ()


def test_one_run_has_no_error_bar_and_that_is_said(world: World) -> None:
    several = times_by_nodes(world.cells(world.by_nodes(runs=3)))[0]
    alone = times_by_nodes(world.cells(world.by_nodes(runs=1)))[0]
    assert isinstance(alone.body, Lines)
    assert all(point.low is None for point in alone.body.series[0].points)
    assert "4 means of one run only: no interval" in alone.caption
    assert "one run" not in several.caption
    assert all(row["low_seconds"] == "" for row in rows_of(alone))
    assert all(row["low_seconds"] != "" for row in rows_of(several))
    # A hollow marker is filled with the colour of the page.
    hollow = [
        len(re.findall(r"<use [^>]*fill: var\(--page\)", svg(one, width_points=350, name="a")))
        for one in (several, alone)
    ]
    assert hollow == [0, 4]


def test_too_many_lines_are_cut_into_parts_that_are_named(world: World) -> None:
    count = 2 * MOST_SERIES + 1
    found = times_by_nodes(
        world.cells(
            *(world.by_nodes(runs=1, size_bytes=GB * (number + 1)) for number in range(count))
        )
    )
    lines = [figure.body.series for figure in found if isinstance(figure.body, Lines)]
    assert len(found) == 3
    assert sum(map(len, lines)) == count
    assert max(map(len, lines)) <= MOST_SERIES
    assert len({figure.name for figure in found}) == 3
    assert "part 2 of 3" in found[1].title
    assert "part 2 of 3" in found[1].caption


def test_every_workload_has_its_own_figure(world: World) -> None:
    found = times_by_nodes(
        world.cells(world.by_nodes(), world.by_nodes(workload="terasort"), [world.run(3)])
    )
    assert [figure.name for figure in found] == [
        "times-by-nodes-wordcount",
        "times-by-nodes-terasort",
    ]


# Speed-up, sizes


def test_speed_up_has_its_ideal_and_starts_at_one(world: World) -> None:
    cells = world.cells(world.by_nodes())
    fast, share = speed_up(node_scalings(cells))
    assert isinstance(fast.body, Lines)
    assert list(fast.body.ideal) == [(1, 1), (8, 8)]
    points = fast.body.series[0].points
    assert points[0].y == 1
    assert points[0].low == points[0].high == 1
    assert points[-1].y == pytest.approx(cells[0].mean_seconds / cells[-1].mean_seconds, rel=1e-3)
    assert isinstance(share.body, Lines)
    assert list(share.body.ideal) == [(1, 1), (8, 1)]
    assert share.body.series[0].points[-1].y == pytest.approx(points[-1].y / 8)
    assert float(rows_of(share)[-1]["efficiency"]) == pytest.approx(points[-1].y / 8)


def test_speed_up_says_what_it_is_against(world: World) -> None:
    cells = world.cells([world.run(9, workers=2), world.run(5, workers=4)])
    found = speed_up(node_scalings(cells))[0]
    assert found.y_label == "speed-up against 2 workers"
    assert found.name == "speed-up-wordcount-from-2"
    assert isinstance(found.body, Lines)
    assert list(found.body.ideal) == [(2, 1), (4, 2)]
    assert "ratio of times (Student's t of logarithms)" in found.caption
    assert "Hollow: 1 ratio is of one run: no interval." in found.caption


def test_lines_of_work_that_grows_say_how_much_each_worker_has(world: World) -> None:
    made = [
        world.run(20 * size, workers=workers, size_bytes=size * workers * GB)
        for size in (1, 3)
        for workers in (1, 2, 4)
    ]
    figure = next(row for row in speed_up(node_scalings(world.cells(made))) if "grown" in row.name)
    assert isinstance(figure.body, Lines)
    labels = [row.label for row in figure.body.series]
    assert labels == ["Spark, 1 GB per worker", "Spark, 3 GB per worker"]
    assert len({row.style for row in figure.body.series}) == 2


def test_times_by_size_are_in_gigabytes(world: World) -> None:
    [figure] = times_by_size(
        world.cells([world.run(5 + 10 * size, size_bytes=size * GB) for size in (1, 2, 4)])
    )
    assert isinstance(figure.body, Lines)
    assert [point.x for point in figure.body.series[0].points] == [1, 2, 4]
    assert figure.body.series[0].fit[-1] == pytest.approx((4, 45))
    assert "GB" in figure.x_label


def test_times_of_hpl_by_size_have_no_straight_line(world: World) -> None:
    runs = [
        world.run(3.0 * size**1.5, engine=Engine.MPI, workload="hpl", size_bytes=size * GB)
        for size in (1, 2, 4)
    ]
    [figure] = times_by_size(world.cells(runs))
    assert isinstance(figure.body, Lines)
    assert figure.body.series[0].fit == ()


# Bars


def test_times_by_medium_are_bars_side_by_side(world: World) -> None:
    cells = world.cells(
        *(
            [world.run(base + step, engine=engine, medium=medium) for step in (0.0, 1.0, 2.0)]
            for engine, base in ((MAPREDUCE, 30.0), (SPARK, 20.0))
            for medium in ("microsd", "nvme")
        )
    )
    [figure] = times_by_factor(cells, "medium")
    assert isinstance(figure.body, Bars)
    [group] = figure.body.groups
    assert [bar.label for bar in group.bars] == [
        "MapReduce, microsd",
        "Spark, microsd",
        "MapReduce, nvme",
        "Spark, nvme",
    ]
    assert group.bars[0].value == 31
    assert group.bars[0].words[0] == "31.0 s"
    assert [row["medium"] for row in rows_of(figure)] == ["microsd", "nvme"] * 2
    assert {bar.style.colour for bar in group.bars} == {0, 1}
    assert {bar.style.pattern for bar in group.bars} == {0, 1}


def test_media_that_share_a_cell_are_taken_apart(world: World) -> None:
    """The runs of one store may be of two media: their common mean would be of neither."""
    runs = [world.run(10.0, medium="microsd"), world.run(20.0, medium="nvme")]
    [figure] = times_by_factor(world.cells(runs), "medium")
    assert isinstance(figure.body, Bars)
    assert [bar.value for bar in figure.body.groups[0].bars] == [10, 20]


def test_bars_on_two_kernels_are_named_and_not_compared(world: World) -> None:
    runs = [
        world.run(seconds, kernel=kernel, profile=profile)
        for kernel, profile, seconds in (
            ("6.1", "default", 10.0),
            ("6.1", "upstream", 12.0),
            ("6.6", "default", 20.0),
            ("6.6", "upstream", 24.0),
        )
    ]
    [figure] = times_by_factor(summarise(runs), "profile")
    assert isinstance(figure.body, Bars)
    found = {group.title: [bar.value for bar in group.bars] for group in figure.body.groups}
    assert found == {"kernel 6.1": [10, 12], "kernel 6.6": [20, 24]}


def test_only_what_differs_in_nothing_else_is_compared(world: World) -> None:
    cells = world.cells(
        [world.run(10, profile="default"), world.run(12, profile="paper-2026", workers=8)]
    )
    assert times_by_factor(cells, "profile") == ()


@pytest.mark.parametrize(
    ("factor", "fields", "labels"),
    [
        ("profile", {"profile": "upstream"}, ["profile default", "profile upstream"]),
        ("replication", {"replication": 1}, ["the profile's replication", "replication 1"]),
        ("concurrency", {"concurrency": 3}, ["one after the other", "3 at once"]),
        ("engine", {"engine": MAPREDUCE}, ["MapReduce", "Spark"]),
    ],
)
def test_each_factor_reads_as_words(
    world: World, factor: str, fields: dict[str, Any], labels: list[str]
) -> None:
    [figure] = times_by_factor(world.cells([world.run(10), world.run(12, **fields)]), factor)
    assert isinstance(figure.body, Bars)
    assert [bar.label for bar in figure.body.groups[0].bars] == labels


def test_an_unknown_factor_is_refused_with_what_there_is(world: World) -> None:
    with pytest.raises(UsageError, match=r'"colour"; allowed: .*medium'):
        times_by_factor([], "colour")


def test_boards_and_media_are_read_from_the_fingerprint(
    world: World, make: Make, fingerprint: Fingerprint
) -> None:
    [twin] = world.cells([world.run(1, medium="nvme-980")])
    assert (board_of(twin), medium_of(twin)) == ("rpi-5b", "nvme-980")
    line = "{}: Raspberry Pi 5, 4 x Cortex-A76 at 2.40 GHz, 8 GiB, nvme Samsung 980, 1 Gbit/s"
    real = replace(fingerprint, hardware=(line.format("pi0"), line.format("pi1")), emulated=False)
    [board] = summarise([make(0, SPARK, 1.0, setup=real)])
    assert (board_of(board), medium_of(board)) == ("Raspberry Pi 5", "nvme Samsung 980")
    [plain] = world.cells([world.run(1)])
    assert (board_of(plain), medium_of(plain)) == ("", "")


def test_many_bars_are_cut_into_parts_and_none_is_lost(world: World) -> None:
    cells = world.cells(
        *(
            [world.run(10, profile=profile, size_bytes=GB * (number + 1))]
            for number in range(100)
            for profile in ("default", "upstream")
        )
    )
    assert len(cells) == 200
    found = times_by_factor(cells, "profile")
    bars = [
        [bar for group in figure.body.groups for bar in group.bars]
        for figure in found
        if isinstance(figure.body, Bars)
    ]
    assert sum(map(len, bars)) == sum(len(figure.rows) for figure in found) == 200
    assert max(map(len, bars)) <= MOST_ROWS
    assert f"part 2 of {len(found)}" in found[1].caption


def test_intermediate_data_is_in_gigabytes_and_per_input_byte(world: World) -> None:
    said = [
        world.run(9, size_bytes=2 * GB, measured={"intermediate_bytes": count * GB})
        for count in (5, 7)
    ]
    silent = [world.run(9, engine=Engine.MPI, workload="hpl")]
    [figure] = intermediate(world.cells(said, silent))
    assert isinstance(figure.body, Bars)
    [[bar]] = [group.bars for group in figure.body.groups]
    assert bar.value == 6
    assert bar.words == ("6 GB", "3 for each input byte")
    assert "Unknown for 1 configuration" in figure.caption
    assert float(rows_of(figure)[0]["intermediate_per_input_byte"]) == 3
    assert intermediate(world.cells(silent)) == ()


def test_no_law_is_drawn_that_the_tables_do_not_state(world: World) -> None:
    """Eight workers take longer than four: the table says that the set bends back."""
    times = {1: 100.0, 2: 60.0, 4: 45.0, 8: 80.0}
    runs = [
        world.run(seconds * factor, workers=workers)
        for workers, seconds in times.items()
        for factor in (0.99, 1.0, 1.01)
    ]
    cells = world.cells(runs)
    (scaling,) = node_scalings(cells)
    assert scaling.bends_back
    assert scaling.amdahl is not None
    [figure] = times_by_nodes(cells)
    assert isinstance(figure.body, Lines)
    assert [row.fit for row in figure.body.series] == [()]
    assert "Dashed" not in figure.caption
    shown = replace(scaling, bend=None, amdahl=replace(scaling.amdahl, p_fit=None))
    [figure] = times_by_nodes(cells, [shown])
    assert isinstance(figure.body, Lines)
    assert figure.body.series[0].fit, "it is the table's verdict that decides"


def test_starts_are_the_replicates_of_intermediate_data(world: World) -> None:
    """Two runs in each of two starts: t(0.975, 1) = 12.706 standard errors of two means."""
    runs = [
        world.run(9, start=start, measured={"intermediate_bytes": count * GB})
        for start, count in ((1, 5), (1, 5.2), (2, 7), (2, 7.2))
    ]
    [figure] = intermediate(world.cells(runs))
    assert isinstance(figure.body, Bars)
    [[bar]] = [group.bars for group in figure.body.groups]
    assert bar.high is not None
    assert bar.high - bar.value == pytest.approx(12.706, rel=1e-4)


def joules(value: float | None, method: EnergyMethod) -> dict[str, Energy]:
    return {"energy": make_energy(value, method=method)}


def test_energy_says_how_it_was_found(world: World) -> None:
    cells = world.cells(
        [
            world.run(10, size_bytes=GB, measured=joules(value, EnergyMethod.METERED))
            for value in (90, 100, 110)
        ],
        [
            world.run(
                10, engine=MAPREDUCE, size_bytes=GB, measured=joules(200, EnergyMethod.MODELLED)
            )
        ],
        [world.run(10, workload="terasort", measured=joules(None, EnergyMethod.METERED))],
    )
    per_run, per_watt = energy(cells)
    assert isinstance(per_run.body, Bars)
    spark, mapreduce = per_run.body.groups[0].bars
    assert (spark.value, spark.words[0]) == (100, "100 J")
    assert spark.words[1].startswith("metered, ")
    assert mapreduce.words[1] == "modelled, one run, no interval"
    assert mapreduce.low is None
    assert "no meter measured it" in per_run.caption
    assert "Unknown for 1 configuration" in per_run.caption
    assert [row["method"] for row in rows_of(per_run)] == ["metered", "modelled"]
    assert isinstance(per_watt.body, Bars)
    # 1 GB in 10 s at 10 W, by Lee and Park's definition.
    assert per_watt.body.groups[0].bars[0].value == pytest.approx(0.01, rel=0.02)
    assert "widened" not in per_run.caption
    exact = joules(100, EnergyMethod.METERED)
    inexact = {"energy": replace(exact["energy"], uncertainty_joules=5.0)}
    [figure, _] = energy(world.cells([world.run(10, size_bytes=GB, measured=inexact)] * 2))
    assert "widened by what the meters may be wrong by" in figure.caption


def test_energy_that_was_metered_in_part_is_not_called_wholly_modelled(world: World) -> None:
    whole = joules(200, EnergyMethod.MODELLED)["energy"]
    model = make_power(40, meter="model of pi4", kind="model", method=EnergyMethod.MODELLED)
    silent = make_power(None, nodes=("pi4",))
    for powers, is_said in (((make_power(160), model), True), ((model, silent), False)):
        measured = {"energy": replace(whole, powers=powers)}
        figure = energy(world.cells([world.run(10, size_bytes=GB, measured=measured)]))[0]
        assert ("part of it was modelled" in figure.caption) is is_said
        assert ("no meter measured it" in figure.caption) is not is_said


def test_without_energy_there_is_no_figure_of_it(world: World) -> None:
    assert energy(world.cells([world.run(10)])) == ()


def test_bottlenecks_fill_the_whole_time() -> None:
    [figure] = bottlenecks(
        {"a": {"CPU": 0.5, "storage": 0.25}, "b": {"CPU": 1.0}}, emulated=True, twins="twins"
    )
    assert isinstance(figure.body, Stack)
    assert figure.body.parts == ("CPU", "storage", "unexplained")
    assert figure.body.rows == (("a", (0.5, 0.25, 0.25)), ("b", (1.0, 0.0, 0.0)))
    assert {row["bound"] for row in rows_of(figure) if row["run"] == "a"} == {
        "CPU",
        "storage",
        "unexplained",
    }
    drawn = svg(figure, width_points=350, name="a")
    assert "50 %" in drawn
    assert "(twins)" in drawn


def test_whole_shares_leave_nothing_unexplained() -> None:
    [figure] = bottlenecks({"a": {"CPU": 0.6, "heat": 0.4}}, emulated=False)
    assert isinstance(figure.body, Stack)
    assert figure.body.parts == ("CPU", "heat")
    assert bottlenecks({}, emulated=False) == ()


@pytest.mark.parametrize(
    "shares", [{"CPU": -0.1}, {"CPU": 0.7, "heat": 0.4}, {"CPU": float("nan")}]
)
def test_shares_that_are_none_are_refused(shares: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="shares of a"):
        bottlenecks({"a": shares}, emulated=False)


def test_many_rows_of_bottlenecks_are_cut() -> None:
    found = bottlenecks({f"run {number}": {"CPU": 1.0} for number in range(50)}, emulated=False)
    assert [len(figure.body.rows) for figure in found if isinstance(figure.body, Stack)] == [
        13,
        13,
        13,
        11,
    ]


def test_titles_of_square_letters_stay_within_a_phone(demo: list[Result]) -> None:
    title = "1 GB, 入力 とても長い名前の入力ファイルとても長い名前の入力ファイル, 4 workers"
    [figure] = durations(
        [(title, summarise(demo))], name="times", title="Times", caption="", emulated=False
    )
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", svg(figure, width_points=350, name="times"))
    found = [text for text in texts if "入力" in text]
    assert len(found) > 1
    assert all(width_of(text, 13) < 264 for text in found)


def test_durations_keep_every_run_in_their_data(demo: list[Result]) -> None:
    cells = summarise(demo)
    [figure] = durations([("", cells)], name="times-1", title="t", caption="c", emulated=True)
    assert isinstance(figure.body, Durations)
    assert [float(row["duration_seconds"]) for row in rows_of(figure)] == [
        seconds for cell in cells for seconds in cell.durations_seconds
    ]
    assert durations([], name="n", title="t", caption="c", emulated=True) == ()


# Curves of a run


def telemetry() -> Telemetry:
    return Telemetry(
        duration_seconds=DURATION_SECONDS,
        nodes=(node("pi0"), node("pi1")),
        phases={"sort": (0.0, 60.0), "sort/map": (0.0, 40.0), "sort/reduce": (30.0, 60.0)},
    )


def named(figures: Sequence[Figure], name: str) -> Figure:
    return next(figure for figure in figures if figure.name.endswith(name))


@pytest.fixture
def curves(world: World) -> tuple[Figure, ...]:
    return telemetry_curves(world.run(60), telemetry())


def test_a_run_has_the_curves_of_the_papers(curves: tuple[Figure, ...]) -> None:
    for ending in ("network-received", "iowait", "clock-measured", "cpu-pi0"):
        figure = named(curves, ending)
        assert isinstance(figure.body, Curves)
        assert [name for name, _, _ in figure.body.chart.phases] == ["sort"]
        assert [name for name, _, _ in figure.body.chart.parts] == ["map", "reduce"]
    received = rows_of(named(curves, "network-received"))
    assert {row["series"] for row in received} == {"pi0", "pi1"}
    assert {row["unit"] for row in received} == {"MB/s"}
    assert {round(float(row["value"])) for row in received} == {40}


def test_the_phases_of_a_run_are_named_on_paper(curves: tuple[Figure, ...], tmp_path: Path) -> None:
    [path] = save(named(curves, "network-received"), tmp_path, ["svg"])
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", path.read_text())
    assert {"map", "reduce", "pi0", "pi1", "seconds from the start"} <= set(texts)


def test_what_no_sensor_says_has_no_curve(curves: tuple[Figure, ...]) -> None:
    assert not any(figure.name.endswith(("temperature", "power-metered")) for figure in curves)


def test_no_samples_give_no_curves(world: World) -> None:
    empty = Telemetry(duration_seconds=60.0, nodes=())
    assert telemetry_curves(world.run(60), empty) == ()


def plug(*nodes: str, watts: Sequence[float], seconds: Sequence[float]) -> PowerSamples:
    return PowerSamples(
        meter="plug",
        coverage=Coverage.WALL,
        nodes=nodes,
        seconds=np.array(seconds, dtype=np.float64),
        watts=np.array(watts, dtype=np.float64),
    )


def test_metered_power_lies_between_its_readings(world: World) -> None:
    power = plug("pi0", seconds=range(-1, 62), watts=[2.0 * value for value in range(-1, 62)])
    figure = named(telemetry_curves(world.run(60), telemetry(), power=[power]), "power-metered")
    rows = rows_of(figure)
    assert len(rows) == 60
    for row in rows:  # the value is that of the middle of its interval of a second
        assert float(row["value"]) == pytest.approx(2 * (float(row["seconds"]) - 0.5), abs=0.01)


def test_a_hole_in_the_readings_is_a_hole_in_the_curve(world: World) -> None:
    seconds = [*range(20), *range(40, 61)]
    power = plug("pi0", seconds=seconds, watts=[5.0] * len(seconds))
    rows = rows_of(
        named(telemetry_curves(world.run(60), telemetry(), power=[power]), "power-metered")
    )
    ends = [float(row["seconds"]) for row in rows]
    assert [end for end in ends if 20.5 < end < 39.5] == []
    assert min(ends) <= 1.5
    assert max(ends) >= 59.5


def test_modelled_power_is_named_so_and_only_of_nodes_without_a_meter(world: World) -> None:
    models = [PowerModel(node=name, idle_watts=2.0, stress_watts=10.0) for name in ("pi0", "pi1")]
    power = plug("pi0", seconds=range(61), watts=[5.0] * 61)
    found = telemetry_curves(world.run(60), telemetry(), power=[power], models=models)
    modelled = named(found, "power-modelled")
    assert "modelled" in modelled.title
    rows = rows_of(modelled)
    assert {row["series"] for row in rows} == {"pi1"}
    # 1.93 of 2 cores are busy: 2 + 8 x 0.965.
    assert float(rows[30]["value"]) == pytest.approx(2 + 8 * 1.93 / 2, abs=0.02)


def test_meters_of_this_machine_are_no_power_of_emulated_boards(world: World) -> None:
    power = plug("pi0", seconds=range(61), watts=[5.0] * 61)
    found = telemetry_curves(world.run(60, medium="nvme"), telemetry(), power=[power])
    assert not any("power" in figure.name for figure in found)
    assert all("not divided by the dilation" in figure.caption for figure in found)


# Every output


@pytest.fixture
def all_kinds(world: World, curves: tuple[Figure, ...], demo: list[Result]) -> list[Figure]:
    nodes = world.cells(world.by_nodes(medium="nvme"), world.by_nodes(medium="microsd", runs=1))
    return [
        *times_by_nodes(nodes),
        *speed_up(node_scalings(nodes)),
        *times_by_factor(nodes, "medium"),
        *bottlenecks({"a": {"CPU": 0.5}}, emulated=True),
        *durations([("", summarise(demo))], name="t", title="t", caption="c", emulated=True),
        *curves[:2],
    ]


def test_a_page_gets_drawings_that_follow_its_colours(all_kinds: list[Figure]) -> None:
    for place, figure in enumerate(all_kinds):
        for width in (980, 350):
            name = f"f{place}-{width}"
            text = svg(figure, width_points=width, name=name)
            root = ET.fromstring(text)  # it is well-formed, or this raises
            assert root.attrib["aria-labelledby"] == f"{name}-title"
            fixed = re.sub(r"var\([^()]*\)", "", text)
            assert re.findall(r"#[0-9a-fA-F]{6}\b", fixed) == []
            ids = re.findall(r'\bid="([^"]+)"', text)
            assert len(ids) == len(set(ids))
            assert all(row.startswith(name) for row in ids)
            for used in re.findall(r"url\(#([^)]+)\)", text):
                assert used in ids


def test_numbers_of_emulated_nodes_say_so_on_their_axis(all_kinds: list[Figure]) -> None:
    for figure in all_kinds:
        assert figure.emulated
        if not isinstance(figure.body, Curves):
            drawn = svg(figure, width_points=980, name="a")
            assert "emulated" in re.sub(r"<title.*?</title>", "", drawn)
            bare = svg(replace(figure, emulated=False), width_points=980, name="a")
            assert "emulated" not in re.sub(r"<title.*?</title>", "", bare)


@pytest.mark.parametrize("form", ["svg", "png", "pdf", "csv"])
def test_the_same_data_gives_the_same_bytes(
    all_kinds: list[Figure], form: str, tmp_path: Path
) -> None:
    starts = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}
    for figure in all_kinds:
        [first] = save(figure, tmp_path / "a", [form])
        [second] = save(figure, tmp_path / "b", [form])
        assert first.name == f"{figure.name}.{form}"
        assert first.read_bytes() == second.read_bytes()
        assert first.read_bytes().startswith(starts.get(form, b""))


def test_a_pdf_has_its_fonts_in_it_as_outlines(all_kinds: list[Figure], tmp_path: Path) -> None:
    [path] = save(all_kinds[0], tmp_path, ["pdf"])
    data = path.read_bytes()
    assert b"/FontFile2" in data
    assert b"/Type3" not in data


def test_files_are_as_wide_as_columns_of_a_paper(all_kinds: list[Figure], tmp_path: Path) -> None:
    for columns, width in ((1, 252), (2, 516)):
        figure = replace(all_kinds[0], columns=columns, name=f"columns-{columns}")
        vector, pixels = save(figure, tmp_path, ["svg", "png"])
        found = re.search(r'viewBox="0 0 ([\d.]+) ', vector.read_text())
        assert found
        assert float(found[1]) == width
        assert int.from_bytes(pixels.read_bytes()[16:20]) == round(width / 72 * 300)


def test_an_unknown_format_is_refused(all_kinds: list[Figure], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match='"bmp"; allowed: svg, png, pdf, csv'):
        save(all_kinds[0], tmp_path, ["bmp"])


def test_a_folder_that_cannot_be_written_is_named(all_kinds: list[Figure], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError, match="file"):
        save(all_kinds[0], tmp_path / "file", ["csv"])


def test_names_of_any_script_survive(world: World, tmp_path: Path) -> None:
    [figure] = bottlenecks({"Zürich 東京 <b>&": {"CPU": 1.0}}, emulated=False)
    drawn = svg(figure, width_points=350, name="a")
    assert "Zürich 東京" in drawn
    assert "<b>" not in drawn
    [data] = save(figure, tmp_path, ["csv"])
    assert "Zürich 東京 <b>&" in data.read_text(encoding="utf-8")
    [pdf] = save(replace(figure, name="東京-ü"), tmp_path, ["pdf"])
    assert pdf.name == "東京-ü.pdf"


def test_names_that_look_like_drawings_are_left_as_they_are() -> None:
    name = f'id="x" href="#y" {SCREEN.ink} font: 12px'
    [figure] = bottlenecks({name: {"CPU": 1.0}}, emulated=False)
    root = ET.fromstring(svg(figure, width_points=980, name="a"))
    assert name in [row.text for row in root.iter("{http://www.w3.org/2000/svg}text")]


def test_every_figure_is_said_in_words(all_kinds: list[Figure]) -> None:
    for figure in all_kinds:
        said = describe(figure)
        assert said.startswith(f"{figure.title}: ")
        assert re.search(r"\d", said.removeprefix(f"{figure.title}: "))


def test_nothing_global_is_left_changed(all_kinds: list[Figure]) -> None:
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    svg(all_kinds[0], width_points=350, name="a")
    assert dict(mpl.rcParams) == before


# Looks


def test_eight_things_are_told_apart_without_colour() -> None:
    for marks in (MARKERS, DASHES, HATCHES, PRINT.strong, PRINT.soft, SCREEN.strong, SCREEN.soft):
        assert len(marks) == len(set(marks)) == MOST_SERIES


def luminance(colour: str) -> float:
    """Relative luminance, by WCAG 2.2."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_text_on_soft_colours_can_be_read() -> None:
    for colour in PRINT.soft:
        assert (luminance(colour) + 0.05) / (luminance(PRINT.ink) + 0.05) > 7


def test_a_legend_stays_within_its_width() -> None:
    entries = [
        LegendEntry(
            label=f"MapReduce, medium number {place} of many", kind="bar", colour=0, pattern=0
        )
        for place in range(8)
    ]
    for width in (350, 980):
        legend = lay_out(entries, width)
        assert all(x + width_of(entry.label) <= width for x, _, entry in legend.placed)
        places = [(x, y) for x, y, _ in legend.placed]
        assert len(set(places)) == len(entries)
        assert max(y for _, y in places) < legend.height
    assert lay_out((), 350).height == 0


def test_long_texts_are_broken_and_cut() -> None:
    found = fill("word " * 100, 350)
    assert found.count("\n") == 2
    assert found.endswith("…")
    assert all(width_of(line) <= 350 for line in found.split("\n"))
    assert width_of("東京") > width_of("ab")
