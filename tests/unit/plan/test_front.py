"""What nothing beats in every respect."""

from __future__ import annotations

import numpy as np

from boardcluster.plan.front import pareto_front


def beats(one: np.ndarray, other: np.ndarray) -> bool:
    return bool(np.all(one <= other) and np.any(one < other))


def test_the_front_is_what_no_other_row_beats() -> None:
    rows = np.random.default_rng(3).integers(0, 12, (300, 3)).astype(float)
    front = pareto_front(rows)
    kept = {tuple(rows[place]) for place in front}
    slow = {tuple(row) for row in rows if not any(beats(other, row) for other in rows)}
    assert kept == slow
    assert len(front) == len(kept), "of equal rows one stays"
    assert list(rows[front, 0]) == sorted(rows[front, 0])


def test_of_equal_rows_the_first_stays() -> None:
    assert list(pareto_front(np.array([[2.0, 1.0], [1.0, 2.0], [1.0, 2.0]]))) == [1, 0]


def test_what_is_not_known_beats_nothing() -> None:
    rows = np.array([[1.0, np.nan], [1.0, 5.0], [0.5, np.nan]])
    assert list(pareto_front(rows)) == [2, 1]
