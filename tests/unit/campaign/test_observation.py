"""What is kept of a run beside its numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from boardcluster.campaign.observation import keep_readings
from boardcluster.records import Coverage, PowerSamples
from boardcluster.store.power import read_power

SAMPLES = PowerSamples(
    meter="plug",
    coverage=Coverage.WALL,
    nodes=("master",),
    seconds=np.array([0.0, 1.0]),
    watts=np.array([5.0, 6.0]),
)


def test_readings_of_meters_are_kept_with_the_run(tmp_path: Path) -> None:
    assert keep_readings([SAMPLES], tmp_path) == ()
    [found] = read_power(tmp_path)
    assert found.watts.tolist() == [5.0, 6.0]


def test_without_a_meter_there_is_no_file(tmp_path: Path) -> None:
    assert keep_readings([], tmp_path) == ()
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_costs_the_curve_and_not_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*given: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("boardcluster.store.files.put_in_place", full)
    [remark] = keep_readings([SAMPLES], tmp_path)
    assert remark == "the readings of the meters were not kept: No space left on device"
