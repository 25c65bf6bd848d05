"""What profiles ask of the memory of boards."""

from __future__ import annotations

import pytest

from boardcluster.plan.feasibility import ProfileNeeds
from boardcluster.plan.offers import find_offers
from boardcluster.records import Engine
from boardcluster.services.containers import needs_of_board
from boardcluster.services.pair import pair_ids

EIGHT, TWO, ONE = "rpi-5b-8gb-2400mhz", "rpi-4b-2gb-1500mhz", "rpi-4b-1gb-1500mhz"


def needs(
    board: str, profile: str, *, workers: int = 2, engine: Engine = Engine.SPARK
) -> ProfileNeeds:
    [offer] = find_offers(boards=[board]).boards
    return needs_of_board(offer, profile, workers, engine, engines=pair_ids()[0])


@pytest.mark.parametrize("engine", [Engine.SPARK, Engine.MAPREDUCE])
@pytest.mark.parametrize("board", [EIGHT, TWO])
def test_the_default_profile_always_has_margin(board: str, engine: Engine) -> None:
    row = needs(board, "default", engine=engine).memory
    assert row.has_margin
    assert 0.9 < row.share <= 1


def test_a_gigabyte_is_too_little_and_the_arithmetic_is_said() -> None:
    assert "needs" not in needs(TWO, "default").memory.refusal
    assert "= 1472 MiB, but it has 1024 MiB" in needs(ONE, "default").memory.refusal


def test_the_2026_papers_settings_promise_more_to_maps_than_its_boards_have() -> None:
    """8,192 MB for containers (Table 9) on boards of 8 GiB; Spark's one executor is small."""
    assert needs(EIGHT, "paper-2026").memory.has_margin
    row = needs(EIGHT, "paper-2026", engine=Engine.MAPREDUCE).memory
    assert row.fits
    assert not row.has_margin


def test_the_2021_papers_settings_run_nothing_on_one_worker() -> None:
    row = needs(EIGHT, "paper-2021", workers=1, engine=Engine.MAPREDUCE).memory
    assert "no map task could ever start" in row.refusal


@pytest.mark.parametrize(
    ("profile", "workers", "copies"),
    [("default", 1, 1), ("default", 2, 2), ("upstream", 2, 3), ("paper-2026", 2, 1)],
)
def test_profiles_keep_their_number_of_copies(profile: str, workers: int, copies: int) -> None:
    assert needs(EIGHT, profile, workers=workers).replication == copies
