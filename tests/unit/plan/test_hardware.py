"""What the model needs of boards and media, and what it says where a figure is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from boardcluster.errors import UsageError
from boardcluster.plan.hardware import (
    REFERENCE_BOARD,
    REFERENCE_MEDIUM,
    board_rates,
    medium_rates,
)

OWN_MEDIUM = """\
id = "my-card"
name = "My card"
kind = "microSD"

[[figure]]
name = "hdfs_write_bytes_per_second"
value = 5908725.76
unit = "bytes per second"
conditions = {}
source = "own run"
"""


def test_the_5b_computes_2_45_times_as_fast_by_7_zip() -> None:
    assert board_rates(REFERENCE_BOARD).cpu_rate == 1.0
    assert board_rates("rpi-5b-8gb-2400mhz").cpu_rate == pytest.approx(2.45, abs=0.005)


def test_a_rating_is_scaled_by_the_clock_of_the_same_processor() -> None:
    slow, fast = board_rates("rpi-4b-8gb-1500mhz"), board_rates("rpi-4b-8gb-1800mhz")
    assert slow.cpu_rate
    assert fast.cpu_rate
    assert fast.cpu_rate / slow.cpu_rate == pytest.approx(1.2)
    assert "scaled by the clock" in slow.cpu_source
    assert "scaled" not in fast.cpu_source


def test_a_board_without_a_rating_has_none() -> None:
    found = board_rates("rpi-zero-w")
    assert found.cpu_rate is None
    assert found.stress_watts is None


def test_power_is_that_of_the_nearest_clock_of_the_same_processor() -> None:
    assert board_rates("rpi-5b-16gb-2400mhz").idle_watts == 5.54


def test_media_are_compared_by_their_hdfs_write_probe() -> None:
    assert medium_rates(REFERENCE_MEDIUM).slowness == 1.0
    assert medium_rates("samsung-evo-32gb").slowness == pytest.approx(5.58, abs=0.005)
    assert medium_rates("sandisk-extreme-pro-64gb").slowness == pytest.approx(2.21, abs=0.005)
    assert medium_rates("sk-hynix-gold-p31-500gb").slowness == pytest.approx(0.954, abs=0.005)
    assert medium_rates("sony-sd-16gb-class10").slowness is None


def test_an_own_file_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "card.toml"
    path.write_text(OWN_MEDIUM)
    assert medium_rates(str(path)).slowness == pytest.approx(2.0, rel=0.001)


def test_the_nearest_name_is_offered() -> None:
    with pytest.raises(UsageError, match='did you mean "rpi-5b-8gb-2400mhz"'):
        board_rates("rpi5b-8gb")
    with pytest.raises(UsageError, match='did you mean "samsung-evo-32gb"'):
        medium_rates("samsung-evo")
