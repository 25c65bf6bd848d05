"""What profiles ask of the memory of boards."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.builders import GIB, make_cluster, make_node

from boardcluster.plan.asking import predict_question
from boardcluster.plan.feasibility import ProfileNeeds
from boardcluster.plan.hardware import OWN_HARDWARE
from boardcluster.plan.offers import find_offers
from boardcluster.plan.question import Question
from boardcluster.records import Engine, Role
from boardcluster.services.containers import copies_of, copies_of_profile, fit_of, needs_of_board
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


OWN = Question(
    workload="terasort",
    engine=Engine.MAPREDUCE,
    size_bytes=10**9,
    workers=4,
    board=OWN_HARDWARE,
    medium=OWN_HARDWARE,
)


@pytest.mark.parametrize(
    ("profile", "copies"), [("", 2), ("default", 2), ("paper-2026", 1), ("paper-2021", 3)]
)
def test_own_nodes_keep_the_copies_of_the_profile_that_is_asked_about(
    profile: str, copies: int
) -> None:
    asked = replace(OWN, profile=profile)
    assert copies_of(asked, make_cluster()) == copies
    assert copies_of(asked, make_cluster(workers=1)) == copies, "with workers enough"
    assert copies_of_profile(profile or "/a/profile/that/is/gone.toml") == copies


def test_own_nodes_fit_with_the_workers_that_are_asked_about() -> None:
    """On one worker the application master takes the place of every map."""
    eight = [make_node(name, memory_bytes=8 * GIB) for name in ("master", "worker1", "worker2")]

    def fits(workers: int) -> bool:
        asked = replace(OWN, workers=workers, profile="paper-2021")
        fit = fit_of(predict_question(asked, None), make_cluster(*eight))
        assert fit
        assert fit.memory
        return fit.memory.fits

    assert fits(2)
    assert not fits(1)
    alone = make_cluster(make_node("node", Role.MASTER, Role.WORKER, memory_bytes=8 * GIB))
    fit = fit_of(predict_question(replace(OWN, workers=2, profile="paper-2021"), None), alone)
    assert fit
    assert fit.memory
    assert fit.memory.fits
