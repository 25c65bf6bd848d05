"""Two rates by class of workload, and that they are from published cells."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from boardcluster.catalog.published import find_cell, find_table, read_index
from boardcluster.records import Engine
from boardcluster.twin.calibration import (
    Calibration,
    TimedRun,
    calibrated_with,
    calibration_of,
    calibrations,
)
from boardcluster.units import parse_size
from boardcluster.workloads import workload_names

PAGE = Path(__file__).parents[3] / "docs" / "explanation" / "fidelity.md"
FIRST = calibrations()[0]
RUNS = (
    TimedRun(start_seconds=14.0, seconds=34.0, machine="this one"),
    TimedRun(start_seconds=16.0, seconds=36.0, machine="this one"),
)


@pytest.mark.parametrize("row", calibrations(), ids=lambda row: row.name)
def test_a_class_is_calibrated_with_a_published_cell(row: Calibration) -> None:
    table = find_table(row.table, index=read_index())
    cell = find_cell(table, row.cell, "execution_time")

    assert float(cell.value) == row.published_seconds
    assert parse_size(row.cell["data_size"]) == row.size_bytes


@pytest.mark.parametrize("row", calibrations(), ids=lambda row: row.name)
def test_a_class_names_workloads_that_exist(row: Calibration) -> None:
    assert set(row.workloads) <= set(workload_names())


def test_no_workload_is_in_two_classes() -> None:
    pairs = [(name, row.engine) for row in calibrations() for name in row.workloads]
    assert len(pairs) == len(set(pairs))
    assert calibration_of("terasort", Engine.SPARK) == calibrations()[1]
    assert calibration_of("hpl", Engine.MPI) is None


def test_every_class_stands_in_the_page_with_its_rates() -> None:
    text = PAGE.read_text()
    for row in calibrations():
        rates = (row.start_seconds, row.work_seconds_per_gb, row.published_work_seconds_per_gb)
        cells = [f"{rate:.1f}" if rate is not None else "not run" for rate in rates]
        cells.append(f"{row.factor:.2f}" if row.factor is not None else "not run")
        words = ", ".join(row.workloads)
        line = f"| `{row.name}` | {words} | {row.published_seconds:g} s | {' | '.join(cells)} |"
        assert line in text, line


def test_what_the_start_leaves_of_the_published_time_is_work() -> None:
    row = replace(FIRST, size_bytes=500_000_000, published_seconds=115.0, runs=RUNS)

    assert row.start_seconds == 15.0
    assert row.work_seconds_per_gb == pytest.approx(40.0)
    assert row.published_work_seconds_per_gb == pytest.approx(200.0)
    assert row.factor == pytest.approx(5.0)
    assert row.calibrated_seconds(start_seconds=15.0, seconds=35.0) == pytest.approx(115.0)
    # Four workers: the start is as long, and only the work is stretched.
    assert row.calibrated_seconds(start_seconds=17.0, seconds=22.0) == pytest.approx(42.0)


def test_without_runs_or_with_a_start_that_is_too_long_there_is_no_factor() -> None:
    unknown = replace(FIRST, runs=())
    late = replace(FIRST, runs=(replace(RUNS[0], start_seconds=130.0, seconds=140.0),))

    assert (unknown.start_seconds, unknown.work_seconds_per_gb) == (None, None)
    for row in (unknown, late):
        assert row.factor is None
        assert row.calibrated_seconds(start_seconds=1.0, seconds=2.0) is None


def test_cells_that_calibrate_are_told_from_others() -> None:
    keys = {**FIRST.cell, "engine": "Spark"}
    assert calibrated_with(FIRST.table, keys) == "spark-count"
    assert calibrated_with(FIRST.table, {**keys, "nodes": "4"}) == ""
    assert calibrated_with("lee-park-2026-table-16", FIRST.cell) == ""
