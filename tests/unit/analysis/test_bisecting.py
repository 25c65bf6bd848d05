"""Delta debugging, on differences of which it is known what they make."""

from __future__ import annotations

import pytest

from boardcluster.analysis.bisecting import fewest_sets, most_sets, smallest_set


@pytest.mark.parametrize("count", range(1, 18))
def test_one_culprit_is_found_wherever_it_is(count: int) -> None:
    for culprit in range(count):
        tried: list[tuple[int, ...]] = []

        def makes_it(part: tuple[int, ...], wanted: int = culprit) -> bool:
            tried.append(part)  # noqa: B023  one list for each culprit
            return wanted in part

        assert smallest_set(range(count), makes_it) == (culprit,)
        assert len(tried) <= 2 * fewest_sets(count)
        assert len(tried) == len(set(tried))


@pytest.mark.parametrize("pair", [(0, 1), (0, 7), (2, 5), (6, 7)])
def test_two_that_make_it_only_together_are_both_found(pair: tuple[int, int]) -> None:
    tried = []

    def makes_it(part: tuple[int, ...]) -> bool:
        tried.append(part)
        return set(pair) <= set(part)

    assert smallest_set(range(8), makes_it) == pair
    assert len(tried) <= most_sets(8)


def test_where_nothing_can_be_left_out_all_are_returned() -> None:
    assert smallest_set("abcd", lambda part: len(part) == 4) == tuple("abcd")


def test_the_bounds_of_small_sets() -> None:
    assert [fewest_sets(count) for count in (1, 2, 3, 4, 5)] == [0, 1, 2, 2, 3]
    assert [most_sets(count) for count in (1, 2)] == [0, 2]
