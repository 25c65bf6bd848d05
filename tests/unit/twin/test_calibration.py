"""Shares of the CPU quota by class of workload, and that they are from published cells."""

from __future__ import annotations

from pathlib import Path

import pytest

from boardcluster.catalog.published import find_cell, find_table, read_index
from boardcluster.records import Engine
from boardcluster.twin.calibration import Calibration, calibrations, cpu_share_of, share_of
from boardcluster.workloads import workload_names

PAGE = Path(__file__).parents[3] / "docs" / "explanation" / "fidelity.md"


@pytest.mark.parametrize("row", calibrations(), ids=lambda row: row.name)
def test_a_class_is_calibrated_with_a_published_cell(row: Calibration) -> None:
    table = find_table(row.table, index=read_index())
    cell = find_cell(table, row.cell, "execution_time")

    assert float(cell.value) == row.published_seconds
    assert 0 < row.share <= 1
    assert row.runs


@pytest.mark.parametrize("row", calibrations(), ids=lambda row: row.name)
def test_a_class_names_workloads_that_exist(row: Calibration) -> None:
    assert set(row.workloads) <= set(workload_names())


def test_no_workload_is_in_two_classes() -> None:
    pairs = [(name, row.engine) for row in calibrations() for name in row.workloads]
    assert len(pairs) == len(set(pairs))


def test_every_class_stands_in_the_page_with_its_runs_and_residual() -> None:
    text = PAGE.read_text()
    for row in calibrations():
        runs = ", ".join(f"{seconds:g} s at {share:g}" for share, seconds in row.runs)
        residual = "not run" if row.residual is None else f"{100 * row.residual:+.0f} %"
        cells = (
            f"| `{row.name}` | {', '.join(row.workloads)} | {row.published_seconds:g} s | {runs} | "
            f"{row.share:g} | {residual} |"
        )
        assert cells in text, cells


def test_jobs_get_the_share_of_their_class_and_mixes_the_mean() -> None:
    sort = next(row for row in calibrations() if row.name == "spark-sort")
    count = next(row for row in calibrations() if row.name == "spark-count")

    assert cpu_share_of(["terasort"], Engine.SPARK) == (sort.share, ("spark-sort",))
    share, names = cpu_share_of(["terasort", "wordcount"], Engine.SPARK)
    assert share == pytest.approx((sort.share + count.share) / 2)
    assert names == ("spark-sort", "spark-count")
    assert cpu_share_of(["hpcc"], Engine.MPI) == (1.0, ("uncalibrated",))
    assert cpu_share_of(["terasort", "no-such"], Engine.SPARK)[0] == pytest.approx(
        (sort.share + 1) / 2
    )


def test_a_share_makes_a_run_as_long_as_it_should_be() -> None:
    # Time is 40 s / share: 160 s with a quarter, 80 s with a half.
    assert share_of([(1.0, 40.0), (0.25, 160.0)], 80.0) == pytest.approx(0.5)
    assert share_of([(1.0, 40.0), (0.25, 160.0)], 40.0) == pytest.approx(1.0)
    # Of three runs the two nearest to the time count.
    assert share_of([(1.0, 40.0), (0.5, 80.0), (0.1, 9000.0)], 60.0) == pytest.approx(2 / 3)


def test_a_share_needs_two_runs_that_differ() -> None:
    with pytest.raises(ValueError, match="two runs"):
        share_of([(1.0, 40.0)], 80.0)
    with pytest.raises(ValueError, match="two runs"):
        share_of([(0.5, 40.0), (0.5, 41.0)], 80.0)
    with pytest.raises(ValueError, match="did not get shorter"):
        share_of([(1.0, 40.0), (0.5, 30.0)], 80.0)
