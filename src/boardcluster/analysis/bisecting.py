"""Which few of many changes make a difference: delta debugging. Pure.

Source: A. Zeller and R. Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", *IEEE
Transactions on Software Engineering* 28(2), 2002: the algorithm ddmin, and its bounds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import TypeVar

__all__ = ["fewest_sets", "most_sets", "smallest_set"]

_Item = TypeVar("_Item")


def smallest_set(
    items: Sequence[_Item], makes_it: Callable[[tuple[_Item, ...]], bool]
) -> tuple[_Item, ...]:
    """Return a set of which no item can be left out: without any, the difference is not shown.

    Halves are tried, then what is left without each of them, then smaller parts. No set is tried
    twice. That all items together make the difference must be known already.

    Args:
        items: the changes; at least one.
        makes_it: whether a set of them, in the order of items, makes the difference by itself.
    """
    tried: dict[tuple[_Item, ...], bool] = {}

    def test(part: tuple[_Item, ...]) -> bool:
        if part not in tried:
            tried[part] = makes_it(part)
        return tried[part]

    left, parts = tuple(items), 2
    while len(left) > 1:  # each turn makes `left` smaller or `parts` more, up to its length
        chunks = _chunks(left, parts)
        rests = [tuple(row for row in left if row not in chunk) for chunk in chunks]
        chunk = next((row for row in chunks if test(row)), None)
        rest = next((row for row in rests if test(row)), None) if chunk is None else None
        if chunk is not None:
            left, parts = chunk, 2
        elif rest is not None and parts > 2:
            left, parts = rest, max(2, parts - 1)
        elif parts < len(left):
            parts = min(len(left), 2 * parts)
        else:
            break
    return left


def _chunks(items: tuple[_Item, ...], parts: int) -> list[tuple[_Item, ...]]:
    ends = [round(place * len(items) / parts) for place in range(parts + 1)]
    return [items[low:high] for low, high in itertools.pairwise(ends)]


def fewest_sets(count: int) -> int:
    """How many sets are tried at least, where one of so many changes makes the difference."""
    return math.ceil(math.log2(count)) if count > 1 else 0


def most_sets(count: int) -> int:
    """How many are tried at most; only where many of them are needed together."""
    return count * count + 3 * count if count > 2 else 2 * (count - 1)
