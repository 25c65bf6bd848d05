"""Intervals from scores: wide where predictions were wrong, and written down without loss."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from boardcluster.plan.calibration import (
    HeldOut,
    IntervalCalibration,
    calibration_text,
    read_calibration,
)


def cells(log_error: np.ndarray, distance: np.ndarray, *, series: str = "a") -> HeldOut:
    count = len(log_error)
    return HeldOut(
        series=np.full(count, series),
        protocol=np.full(count, "p"),
        fold=np.array([f"{series}{place}" for place in range(count)]),
        log_error=log_error,
        spread=np.full(count, 0.1),
        distance=distance,
    )


def near_and_far() -> HeldOut:
    """Fifty cells inside that are off by up to 5 %, fifty four times as large off by up to 50 %."""
    errors = np.concatenate([np.linspace(0, 0.05, 50), np.linspace(0, 0.5, 50)])
    distance = np.zeros((100, 4))
    distance[50:, 0] = np.log(4)
    return cells(errors, distance)


def test_an_interval_reaches_as_far_as_nine_in_ten_errors_at_its_distance() -> None:
    known = IntervalCalibration(cells=near_and_far(), inside=np.ones(100, bool))
    near, far = known.factor(np.array([[0.0, 0, 0, 0], [np.log(4), 0, 0, 0]]))
    assert near * 0.1 == pytest.approx(0.046, abs=0.002)
    assert far * 0.1 == pytest.approx(0.46, abs=0.02)


def test_farther_than_every_cell_is_as_the_farthest() -> None:
    known = IntervalCalibration(cells=near_and_far(), inside=np.ones(100, bool))
    far, beyond = known.factor(np.array([[np.log(4), 0, 0, 0], [9.0, 0, 0, 0]]))
    assert beyond == pytest.approx(far, rel=0.05)


def test_cells_of_one_fit_count_as_fewer_and_widen_the_interval() -> None:
    errors, distance = np.linspace(0, 1, 30), np.zeros((30, 4))
    alone = cells(errors, distance)
    together = HeldOut(
        series=alone.series,
        protocol=alone.protocol,
        fold=np.full(30, "one"),
        log_error=errors,
        spread=alone.spread,
        distance=distance,
    )
    wide, narrow = (
        IntervalCalibration(cells=found, inside=np.ones(30, bool)).factor(np.zeros((1, 4)))[0]
        for found in (together, alone)
    )
    assert wide > narrow


def test_a_series_is_judged_by_the_others() -> None:
    good = cells(np.full(20, 0.01), np.zeros((20, 4)), series="good")
    bad = cells(np.full(20, 0.5), np.zeros((20, 4)), series="bad")
    both = HeldOut(
        **{
            name: np.concatenate([getattr(good, name), getattr(bad, name)])
            for name in ("series", "protocol", "fold", "log_error", "spread", "distance")
        }
    )
    inside = IntervalCalibration.of(both).inside
    assert inside[:20].all()
    assert not inside[20:].any()


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    known = IntervalCalibration(cells=near_and_far(), inside=np.arange(100) % 2 == 0)
    path = tmp_path / "cells.csv"
    path.write_text(calibration_text(known))
    again = read_calibration(path)
    assert again.cells.log_error == pytest.approx(known.cells.log_error, abs=1e-5)
    assert (again.inside == known.inside).all()
    assert again.factor(np.zeros((1, 4))) == pytest.approx(known.factor(np.zeros((1, 4))), rel=1e-3)


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cells.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="its columns are not series"):
        read_calibration(path)
