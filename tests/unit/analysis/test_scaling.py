"""Scaling with workers, with size, and with one thing else."""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests.builders import make_fingerprint
from tests.unit.analysis.runs import result

from boardcluster.analysis.cells import summarise
from boardcluster.analysis.inference import ComparisonMethod
from boardcluster.analysis.scaling import (
    Law,
    amdahl_fit,
    efficiency,
    factor_effects,
    gustafson_fit,
    intermediate_share,
    node_scalings,
    predict,
    predict_size,
    setup_of,
    size_fit,
    size_scalings,
)
from boardcluster.records import Checksum, Engine, MasterPlacement, Security

GB = 10**9


def amdahl(share: float, workers: int, one_seconds: float = 100.0) -> float:
    return one_seconds * (share + (1 - share) / workers)


# Fits


@pytest.mark.parametrize("share", [0.0, 0.05, 0.4, 1.0])
def test_amdahls_law_is_found_again(share: float) -> None:
    fit = amdahl_fit([(n, amdahl(share, n)) for n in (1, 2, 4, 8)])
    assert fit is not None
    assert fit.law is Law.AMDAHL
    assert fit.serial_share == pytest.approx(share, abs=1e-9)
    assert fit.one_worker_seconds == pytest.approx(100)
    assert fit.residuals == pytest.approx([0, 0, 0, 0], abs=1e-9)
    assert fit.r_squared == (None if share == 1 else pytest.approx(1))
    if share > 0:
        assert fit.largest_speed_up == pytest.approx(1 / share)
    assert predict(fit, 16) == pytest.approx(amdahl(share, 16))


def test_a_share_of_nothing_has_no_largest_speed_up() -> None:
    fit = amdahl_fit([(1, 100.0), (2, 49.0), (4, 24.0)])
    assert fit is not None
    assert (fit.serial_share, fit.largest_speed_up) == (0, None)


def test_amdahls_law_need_not_begin_at_one_worker() -> None:
    fit = amdahl_fit([(n, amdahl(0.2, n)) for n in (3, 5, 9)])
    assert fit is not None
    assert fit.one_worker_seconds == pytest.approx(100)
    assert predict(fit, 1) == pytest.approx(100)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_gustafsons_law_is_found_again(share: float) -> None:
    def seconds(workers: int) -> float:
        return 50.0 * workers / (workers - share * (workers - 1))

    fit = gustafson_fit([(n, seconds(n)) for n in (1, 2, 4, 8)])
    assert fit is not None
    assert fit.law is Law.GUSTAFSON
    assert fit.serial_share == pytest.approx(share, abs=1e-9)
    assert fit.one_worker_seconds == pytest.approx(50)
    assert fit.largest_speed_up is None
    assert predict(fit, 32) == pytest.approx(seconds(32))


def test_with_slower_times_on_more_workers_the_share_stays_at_one() -> None:
    fit = amdahl_fit([(1, 40.0), (2, 44.0), (4, 50.0)])
    assert fit is not None
    assert fit.serial_share == 1
    assert fit.r_squared == pytest.approx(0, abs=1e-9)
    assert fit.residuals[0] < 0 < fit.residuals[2]


def test_no_other_share_fits_better() -> None:
    draw = random.Random(5)
    points = [(n, amdahl(0.15, n) * draw.gauss(1, 0.05)) for n in (1, 2, 3, 4, 6, 8)]
    fit = amdahl_fit(points)
    assert fit is not None

    def squares(share: float, one_seconds: float) -> float:
        return sum((1 - amdahl(share, n, one_seconds) / seconds) ** 2 for n, seconds in points)

    best = squares(fit.serial_share, fit.one_worker_seconds)
    assert best == pytest.approx(sum(value**2 for value in fit.residuals))
    for share in (-0.02, 0.02):
        for factor in (0.97, 1.0, 1.03):
            assert squares(fit.serial_share + share, fit.one_worker_seconds * factor) > best
    assert fit.r_squared is not None
    assert 0.9 < fit.r_squared < 1


def test_the_serial_share_is_in_its_interval() -> None:
    """One point scatters far more than the others: it weighs less in the interval alone."""
    points = [(1, 100.0), (2, 60.0), (4, 40.0), (8, 24.0)]
    fit = amdahl_fit(points, [0.03, 0.03, 0.03, 0.2], degrees=16)
    assert fit is not None
    assert fit.serial_interval is not None
    assert fit.serial_interval.low <= fit.serial_share <= fit.serial_interval.high
    assert not fit.is_refuted


def test_two_points_are_exact_and_say_nothing_about_the_fit() -> None:
    fit = amdahl_fit([(1, 100.0), (4, 40.0)])
    assert fit is not None
    assert (fit.exact, fit.residuals, fit.r_squared) == (True, (), None)
    assert fit.serial_share == pytest.approx(0.2)


def test_two_points_that_a_law_cannot_go_through_are_not_called_exact() -> None:
    """Five times as fast with four workers, slower with two; twice the size in three times."""
    for points in ([(1, 100.0), (4, 20.0)], [(1, 100.0), (2, 110.0)]):
        fit = amdahl_fit(points)
        assert fit is not None
        assert not fit.exact
        assert max(map(abs, fit.residuals)) > 0.04
    line = size_fit([(GB, 10.0), (2 * GB, 30.0)])
    assert line is not None
    assert not line.exact
    assert max(map(abs, line.residuals)) > 0.04


def test_one_number_of_workers_has_no_fit() -> None:
    assert amdahl_fit([(4, 40.0)]) is None
    assert gustafson_fit([(4, 40.0), (4, 41.0)]) is None
    assert amdahl_fit([]) is None
    assert size_fit([(GB, 3.0)]) is None


@pytest.mark.parametrize("points", [[(0, 1.0), (2, 1.0)], [(1, 0.0), (2, 1.0)], [(1, -1.0)]])
def test_what_cannot_be_fitted_is_refused(points: list[tuple[int, float]]) -> None:
    for fit in (amdahl_fit, gustafson_fit, size_fit):
        with pytest.raises(ValueError, match="cannot be fitted"):
            fit(points)


def test_predictions_and_efficiencies_of_no_workers_are_refused() -> None:
    fit = amdahl_fit([(1, 100.0), (4, 40.0)])
    line = size_fit([(GB, 3.0), (2 * GB, 5.0)])
    assert fit is not None
    assert line is not None
    with pytest.raises(ValueError, match="0 workers"):
        predict(fit, 0)
    with pytest.raises(ValueError, match="-1 bytes"):
        predict_size(line, -1)
    with pytest.raises(ValueError, match="efficiency of 0 workers"):
        efficiency(1.0, workers=0)


def test_efficiency_is_against_the_base() -> None:
    assert efficiency(6.0, workers=8) == 0.75
    assert efficiency(1.5, workers=8, base_workers=4) == 0.75


def test_a_start_and_a_throughput_are_found_again() -> None:
    fit = size_fit([(size * GB, 5 + size * 10.0) for size in (1, 2, 4, 8)])
    assert fit is not None
    assert fit.start_seconds == pytest.approx(5)
    assert fit.throughput_bytes_per_second == pytest.approx(1e8)
    assert fit.residuals == pytest.approx([0] * 4, abs=1e-9)
    assert fit.exponent < 1, "a fixed part weighs"
    assert predict_size(fit, 16 * GB) == pytest.approx(165)


def test_the_exponent_of_a_power_is_found_again() -> None:
    fit = size_fit([(size * GB, 3.0 * size**1.5) for size in (1, 2, 4)])
    assert fit is not None
    assert fit.exponent == pytest.approx(1.5)
    assert fit.start_seconds == 0, "a time of no input is not below nothing"
    assert not fit.exact


def test_time_that_does_not_grow_has_no_throughput() -> None:
    fit = size_fit([(GB, 30.0), (2 * GB, 29.0), (4 * GB, 28.0)])
    assert fit is not None
    assert fit.throughput_bytes_per_second is None
    assert predict_size(fit, 8 * GB) == fit.start_seconds == pytest.approx(29, rel=0.01)


# Cells by workers


def campaign(share: float = 0.1) -> list[tuple[int, list[float]]]:
    return [(n, [amdahl(share, n) * factor for factor in (0.98, 1.0, 1.02)]) for n in (1, 2, 4)]


def test_cells_that_differ_in_workers_scale() -> None:
    runs = [
        result(seconds, workers=workers, position=10 * workers + place, repetition=place + 1)
        for workers, times in campaign()
        for place, seconds in enumerate(times)
    ]
    (scaling,) = node_scalings(summarise(runs))
    assert (scaling.engine, scaling.base_workers, scaling.scaled) == (Engine.MAPREDUCE, 1, False)
    assert (scaling.configuration.workers, scaling.configuration.size_bytes) == (0, GB)
    assert [point.workers for point in scaling.points] == [1, 2, 4]
    assert [point.count for point in scaling.points] == [3, 3, 3]
    last = scaling.points[-1]
    assert last.speed_up.value == pytest.approx(100 / amdahl(0.1, 4))
    assert last.speed_up.method is ComparisonMethod.UNPAIRED
    assert last.speed_up.allows_for_starts
    assert last.speed_up.interval is not None
    assert last.efficiency == pytest.approx(last.speed_up.value / 4)
    assert scaling.amdahl is not None
    assert scaling.amdahl.serial_share == pytest.approx(0.1)
    assert scaling.fit is scaling.amdahl
    assert scaling.gustafson is None


def test_base_is_the_smallest_number_that_is_there() -> None:
    (scaling,) = node_scalings(summarise([result(60, workers=2), result(20, workers=8)]))
    assert scaling.base_workers == 2
    assert scaling.points[0].speed_up.value == 1
    assert scaling.points[0].efficiency == 1
    assert scaling.points[1].speed_up.value == pytest.approx(3)
    assert scaling.points[1].efficiency == pytest.approx(0.75)
    assert scaling.points[1].speed_up.interval is None
    assert scaling.amdahl is not None
    assert scaling.amdahl.exact


def test_cells_that_differ_in_more_than_workers_do_not_scale() -> None:
    runs = [
        result(60, workers=2),
        result(50, workers=4, engine=Engine.SPARK),
        result(40, workers=4, profile="upstream"),
        result(30, workers=4, replication=1),
        result(20, workers=4, workload="grep"),
    ]
    assert node_scalings(summarise(runs)) == ()


def test_sizes_that_grow_with_the_workers_scale_as_gustafson_has_it() -> None:
    runs = [
        result(seconds, workers=workers, size_bytes=workers * GB)
        for workers, seconds in ((1, 50.0), (2, 55.0), (4, 60.0))
    ]
    (scaling,) = node_scalings(summarise(runs))
    assert scaling.scaled
    assert scaling.amdahl is None
    assert scaling.gustafson is scaling.fit is not None
    assert (scaling.configuration.workers, scaling.configuration.size_bytes) == (0, 0)
    assert [point.speed_up.value for point in scaling.points] == pytest.approx(
        [1, 2 * 50 / 55, 4 * 50 / 60]
    )
    assert [point.efficiency for point in scaling.points] == pytest.approx([1, 50 / 55, 50 / 60])
    assert [point.size_bytes for point in scaling.points] == [GB, 2 * GB, 4 * GB]


def test_both_kinds_of_scaling_from_one_campaign() -> None:
    runs = [
        result(30.0 * size / workers + 5, workers=workers, size_bytes=size * GB)
        for workers in (1, 2)
        for size in (1, 2)
    ]
    found = node_scalings(summarise(runs))
    assert [scaling.scaled for scaling in found] == [False, False, True]
    assert [(cell.workers, cell.size_bytes) for cell in found[2].cells] == [(1, GB), (2, 2 * GB)]


@pytest.mark.parametrize("workload", ["hpl", "netpipe", "hpl+netpipe"])
def test_work_that_follows_from_the_workers_has_no_speed_up(workload: str) -> None:
    """HPL's matrix grows with the workers' memory, and NetPIPE has more pairs to measure."""
    runs = [
        result(seconds, workers=workers, workload=workload, engine=Engine.MPI, size_bytes=0)
        for workers, seconds in ((2, 100.0), (4, 141.0))
    ]
    assert node_scalings(summarise(runs)) == ()


def test_hpl_has_a_speed_up_for_one_matrix_and_no_proportion_of_sizes() -> None:
    runs = [
        result(
            30.0 * size**1.5 / workers,
            workers=workers,
            workload="hpl",
            engine=Engine.MPI,
            size_bytes=size * GB,
        )
        for workers in (1, 2)
        for size in (1, 2)
    ]
    found = node_scalings(summarise(runs))
    assert [scaling.scaled for scaling in found] == [False, False]
    assert [scaling.points[1].speed_up.value for scaling in found] == pytest.approx([2, 2])


def test_boards_and_media_of_twins_are_kept_apart() -> None:
    runs = [
        result(
            seconds,
            workers=workers,
            position=place,
            setup=make_fingerprint(twin=f"1 x rpi-5b + {workers} x rpi-5b with {medium}"),
        )
        for place, (workers, medium, seconds) in enumerate(
            [(1, "microsd", 90.0), (2, "microsd", 50.0), (1, "nvme", 40.0), (2, "nvme", 25.0)]
        )
    ]
    found = node_scalings(summarise(runs))
    assert [[point.mean_seconds for point in row.points] for row in found] == [[90, 50], [40, 25]]
    assert all(row.differences == () for row in found), "only the number of nodes differs"


def on_media(*media: str) -> dict[str, Any]:
    """On as many boards as media, after a master."""
    lines = (
        "pi0: RPi 5B, sd SD128",
        *(f"pi{n}: RPi 5B, {name}" for n, name in enumerate(media, 1)),
    )
    setup = make_fingerprint(emulated=False, nodes=len(lines), hardware=lines)
    return {"workers": len(media), "setup": setup}


def test_media_of_boards_are_kept_apart() -> None:
    """Four boards were measured again with another medium, which is no speed-up over one board."""
    runs = [
        result(90.0, position=0, **on_media("sd EVO")),
        result(50.0, position=1, **on_media(*["sd EVO"] * 2)),
        result(30.0, position=2, **on_media(*["sd EVO"] * 4)),
        result(10.0, position=3, **on_media(*["nvme P31"] * 4)),
        result(70.0, position=4, size_bytes=3 * GB, **on_media(*["nvme P31"] * 4)),
        result(60.0, position=5, size_bytes=2 * GB, **on_media(*["sd EVO"] * 4)),
    ]
    (scaling,) = [row for row in node_scalings(summarise(runs)) if not row.scaled]
    assert [point.mean_seconds for point in scaling.points] == [90, 50, 30]
    assert scaling.older == 0
    by_size = [
        [point.mean_seconds for point in row.points] for row in size_scalings(summarise(runs))
    ]
    assert sorted(by_size) == [[10, 70], [30, 60]]


def test_boards_whose_kernel_counts_less_memory_scale_and_the_difference_is_named() -> None:
    def lines(memory: str, count: int) -> tuple[str, ...]:
        return tuple(f"pi{n}: RPi 5B, {memory} GiB, sd EVO" for n in range(count))

    runs = [
        result(
            seconds,
            workers=workers,
            position=workers,
            setup=make_fingerprint(
                emulated=False, nodes=workers + 1, hardware=lines(memory, workers + 1)
            ),
        )
        for seconds, workers, memory in ((90.0, 1, "7.87"), (50.0, 2, "7.86"))
    ]
    (scaling,) = node_scalings(summarise(runs))
    assert [point.mean_seconds for point in scaling.points] == [90, 50]
    assert scaling.differences


def test_boards_of_several_kinds_scale() -> None:
    """What a further board is tells nothing apart."""
    runs = [
        result(90.0, position=0, **on_media("sd EVO")),
        result(50.0, position=1, **on_media("sd EVO", "nvme P31")),
    ]
    (scaling,) = node_scalings(summarise(runs))
    assert [point.mean_seconds for point in scaling.points] == [90, 50]


def test_runs_on_the_same_setup_find_each_other_whatever_else_was_measured() -> None:
    """Workers got more memory; then two of three numbers of workers were measured again."""
    runs = [
        result(
            seconds / workers,
            workers=workers,
            position=workers,
            campaign=f"c{memory_bytes}",
            setup=make_fingerprint(
                nodes=workers + 1,
                node_memory_bytes=memory_bytes,
                config_sha256=f"{memory_bytes}",
            ),
        )
        for memory_bytes, seconds, numbers in ((GB, 90.0, (1, 2, 4)), (2 * GB, 60.0, (1, 4)))
        for workers in numbers
    ]
    found = [[point.mean_seconds for point in row.points] for row in node_scalings(summarise(runs))]
    assert sorted(found) == [[60, 15], [90, 45, 22.5]]


def test_means_of_earlier_setups_are_counted() -> None:
    """The configuration differs with the workers, so nothing tells which earlier ones belong."""
    runs = [
        result(
            seconds / workers,
            workers=workers,
            position=place,
            setup=make_fingerprint(nodes=workers + 1, config_sha256=f"{workers}{seconds}"),
        )
        for place, (seconds, workers) in enumerate(
            [(90.0, 1), (90.0, 2), (60.0, 1), (60.0, 2), (60.0, 4)]
        )
    ]
    (scaling,) = node_scalings(summarise(runs))
    assert [point.mean_seconds for point in scaling.points] == [60, 30, 15]
    assert scaling.older == 2


def test_what_else_differs_is_named() -> None:
    runs = [
        result(60, workers=1, setup=make_fingerprint(nodes=2, config_sha256="1", kernel="k")),
        result(40, workers=2, setup=make_fingerprint(nodes=3, config_sha256="2", kernel="l")),
    ]
    (scaling,) = node_scalings(summarise(runs))
    assert scaling.differences == ("kernel: k, l",)


# Cells by size


def test_cells_that_differ_in_size_scale() -> None:
    runs = [
        result(5 + 10.0 * size, position=10 * size + place, size_bytes=size * GB, repetition=place)
        for size in (1, 2, 4)
        for place in (1, 2)
    ]
    (scaling,) = size_scalings(summarise([*runs, result(7, workload="pi", size_bytes=0)]))
    assert scaling.configuration.size_bytes == 0
    assert [point.size_bytes for point in scaling.points] == [GB, 2 * GB, 4 * GB]
    assert scaling.points[2].throughput_bytes_per_second == pytest.approx(4 * GB / 45)
    assert scaling.fit.start_seconds == pytest.approx(5)
    assert scaling.fit.throughput_bytes_per_second == pytest.approx(1e8)


def test_the_work_of_hpl_is_not_in_proportion_to_its_size() -> None:
    runs = [
        result(3.0 * size**1.5, workload="hpl", engine=Engine.MPI, size_bytes=size * GB)
        for size in (1, 2, 4)
    ]
    assert size_scalings(summarise(runs)) == ()


def test_one_size_does_not_scale() -> None:
    assert size_scalings(summarise([result(5), result(6, engine=Engine.SPARK)])) == ()


def test_intermediate_data_per_byte_of_input() -> None:
    (cell,) = summarise(
        [result(5, intermediate_bytes=4 * GB), result(5, intermediate_bytes=GB, position=1)]
    )
    assert intermediate_share(cell) == 2.5
    (silent,) = summarise([result(5, intermediate_bytes=GB), result(5, position=1)])
    assert intermediate_share(silent) is None
    (unknown,) = summarise([result(5, size_bytes=0, intermediate_bytes=GB)])
    assert intermediate_share(unknown) is None


# One thing else


@pytest.mark.parametrize(
    ("factor", "more", "words"),
    [
        ("profile", {"profile": "upstream"}, ("default", "upstream")),
        ("replication", {"replication": 1}, ("0", "1")),
        ("checksum", {"checksum": Checksum.NULL}, ("crc32c", "null")),
        ("master", {"master": MasterPlacement.SEPARATE}, ("declared", "separate")),
        ("engine", {"engine": Engine.SPARK}, ("mapreduce", "spark")),
        ("concurrency", {"concurrency": 2}, ("1", "2")),
        (
            "security",
            {"setup": make_fingerprint(security=Security.CLOSED)},
            ("emulated", "closed"),
        ),
    ],
)
def test_one_factor(factor: str, more: dict[str, object], words: tuple[str, str]) -> None:
    fast = result(20, position=1, **more)  # type: ignore[arg-type]
    (effect,) = factor_effects(summarise([result(30), fast]))
    assert effect.factor == factor
    assert (effect.slower_value, effect.faster_value) == words
    assert effect.ratio.value == pytest.approx(1.5)
    assert effect.slower.mean_seconds == 30
    assert effect.differences == ()


def test_two_factors_at_once_are_no_pair() -> None:
    runs = [result(30), result(20, position=1, replication=1, profile="upstream")]
    assert factor_effects(summarise(runs)) == ()


def test_workers_and_sizes_are_no_factor() -> None:
    runs = [result(30), result(20, workers=8), result(60, size_bytes=2 * GB)]
    assert factor_effects(summarise(runs)) == ()


def test_a_parameter_is_a_factor_where_both_say_it() -> None:
    runs = [
        result(30, parameters={"terasort.reducers": "1"}),
        result(20, position=1, parameters={"terasort.reducers": "4"}),
        result(25, position=2),
    ]
    (effect,) = factor_effects(summarise(runs))
    assert (effect.factor, effect.slower_value, effect.faster_value) == (
        "terasort.reducers",
        "1",
        "4",
    )


def test_pairs_of_one_campaign_are_used() -> None:
    runs = [
        result(seconds * drift, position=2 * number + place, engine=engine, repetition=number)
        for number, drift in ((1, 1.0), (2, 2.0), (3, 4.0))
        for place, (engine, seconds) in enumerate(
            ((Engine.MAPREDUCE, 31.0 - number / 10), (Engine.SPARK, 20.0))
        )
    ]
    (effect,) = factor_effects(summarise(runs))
    assert effect.ratio.method is ComparisonMethod.PAIRED
    assert effect.ratio.is_shown


def test_boards_and_media_are_never_in_one_cell() -> None:
    lines = ("RPi 4B, sd EVO", "RPi 5B, nvme P31")
    runs = [
        result(
            seconds,
            position=place,
            setup=make_fingerprint(
                emulated=False,
                hardware=(f"pi0: {line}", f"pi1: {line}"),
                kernel="k",
            ),
        )
        for place, (seconds, line) in enumerate(((90.0, lines[0]), (40.0, lines[1])))
    ]
    cells = summarise(runs)
    assert sorted(setup_of(cell.results[0]) for cell in cells) == sorted(lines)
    (effect,) = factor_effects(cells)
    assert effect.factor == "boards and media"
    assert (effect.slower_value, effect.faster_value) == lines
    assert effect.ratio.value == pytest.approx(2.25)
    assert effect.differences == ()


def test_another_kernel_is_no_other_board() -> None:
    """The lines have the form that ``hardware_line`` of the campaign gives them."""
    board = "Raspberry Pi 5, {} x Cortex-A76 at 2.40 GHz, 8 GiB, nvme P31, PCIe 3 x1, 1 Gbit/s"
    software = "16 KiB pages, Debian GNU/Linux 12, kernel {}, governor ondemand"
    runs = [
        result(
            40.0 + place,
            position=place,
            setup=make_fingerprint(
                emulated=False,
                hardware=(f"pi0: {board.format(cores)}, {software.format(kernel)}",),
            ),
        )
        for place, (cores, kernel) in enumerate(((4, "6.6.31"), (4, "6.12.1"), (2, "6.12.1")))
    ]
    cells = summarise(runs)
    assert [cell.count for cell in cells] == [1, 1, 1], "a kernel can change the number"
    boards = [setup_of(run) for run in runs]
    assert boards == [board.format(4), board.format(4), board.format(2)]
    values = [(row.slower_value, row.faster_value) for row in factor_effects(cells)]
    assert all(slower != faster for slower, faster in values)
