"""What HPL tries before it runs, how large, and what it takes."""

from typing import Any

import pytest
from tests.unit.workloads.hpl.test_plan import case

from boardcluster.workloads.hpl.search import (
    Candidates,
    candidates,
    chosen,
    fastest,
    fits,
    search_key,
    second_n,
)

LARGE = 8 * 6144 * 6144


def test_a_large_matrix_tries_every_nb_on_the_two_squarest_grids() -> None:
    found = candidates(case(LARGE, workers=4))
    assert found == Candidates(nbs=(64, 128, 192, 256), grids=((2, 2), (1, 4)), seconds=60.0)
    assert found.count == 8


def test_eight_processes_try_two_grids() -> None:
    found = candidates(case(LARGE, workers=8))
    assert found is not None
    assert found.grids == ((2, 4), (1, 8))


@pytest.mark.parametrize(
    ("size", "given"),
    [
        (8 * 4000 * 4000, {}),  # starting and ending decide
        (LARGE, {"search": "0"}),
        (LARGE, {"nb": "192"}),  # on two processes there is one grid
        (LARGE, {"nb": "192", "p": "1"}),
    ],
)
def test_nothing_is_tried_where_there_is_nothing_to_gain(size: int, given: dict[str, Any]) -> None:
    assert candidates(case(size, **given)) is None


def test_what_is_given_is_not_searched_for() -> None:
    found = candidates(case(LARGE, workers=4, nb="32"))
    assert found is not None
    assert (found.nbs, found.grids) == ((32,), ((2, 2), (1, 4)))
    found = candidates(case(LARGE, workers=4, p="4"))
    assert found is not None
    assert found.grids == ((4, 1),)


@pytest.mark.parametrize(
    ("gflops", "most", "n"),
    [
        (100.0, 20000, 9984),  # 8 x 2/3 x 9984^3 operations take 53 s of 60
        (100.0, 6144, 6144),  # never larger than what will be run
        (0.2, 20000, 768),  # a Raspberry Pi 1
    ],
)
def test_all_of_it_takes_no_longer_than_it_may(gflops: float, most: int, n: int) -> None:
    tried = Candidates(nbs=(64, 128, 192, 256), grids=((2, 2), (1, 4)), seconds=60.0)
    found = second_n(tried, gflops=gflops, most=most)
    assert found == n
    assert 8 * 2 / 3 * found**3 / (gflops * 1e9) <= 60.0


def test_the_fastest_is_taken() -> None:
    assert fastest([(64, 2, 2, 3.0), (192, 1, 4, 9.0), (256, 2, 2, 8.9)]) == (192, 1)
    spec = chosen(case(LARGE, workers=4), 192, 1)
    assert (spec.parameters["nb"], spec.parameters["p"]) == ("192", "1")
    assert candidates(spec) is None


def test_what_was_found_is_for_equal_specs_on_equal_nodes() -> None:
    spec = case(LARGE)
    assert search_key(spec, "home", "b") == search_key(case(LARGE), "home", "b")
    others = [search_key(case(LARGE, workers=3), "home", "b"), search_key(spec, "home", "c")]
    assert search_key(spec, "home", "b") not in others


def test_settings_that_do_not_fit_the_workers_are_not_chosen() -> None:
    spec = case(7301444403, workers=2, cores=2, memory_mib=4096)
    found = {nb: fits(spec, nb, 2) for nb in (64, 128, 192, 256)}
    assert True in found.values()
    assert False in found.values()
