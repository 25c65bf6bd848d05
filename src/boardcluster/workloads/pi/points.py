"""How many points each engine must find within the circle, computed here from the definitions.

Nothing is shared with the engines, and memory does not grow with the number of points.

MapReduce, ``QuasiMonteCarlo`` of Hadoop's examples: point i, from 1, is the radical inverse of i in
base 2 and in base 3; it is inside if its distance from (1/2, 1/2) is at most 1/2. Hadoop does not
invert each i: a map adds powers of 1/3 to the value of the point before, so its rounding errors
grow along its points, while the values here are right to the last few bits. A point whose squared
distance is nearer to 1/4 than that error can be may fall on either side; such points are counted as
a margin.

Spark, ``io.boardcluster.jobs.Pi``: partition p, from 0, draws from SplitMix64 that starts at
mix(seed + (p + 1) * golden); two draws, their upper 53 bits as fractions, are a point (x, y); it is
inside if x * x + y * y is at most 1. These sums are the same in every IEEE 754 arithmetic.
Source: Apache Hadoop 3.4.2, ``QuasiMonteCarlo.HaltonSequence``; Steele, Lea and Flood, "Fast
splittable pseudorandom number generators", OOPSLA 2014.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["HitRange", "halton_inside", "likely_inside", "random_inside"]

_Values: TypeAlias = NDArray[np.float64]
_Words: TypeAlias = NDArray[np.uint64]

_CHUNK_POINTS = 1 << 16
"""Points at a time: the arrays of a step stay in a processor's cache."""

_TABLE_DIGITS = {2: 16, 3: 10}
"""Digits that are inverted by table, per base: 65,536 and 59,049 entries."""

_HALF_ULP = 2.0**-53
"""Largest rounding error of one addition below 2."""

_GOLDEN = 0x9E3779B97F4A7C15
_MODULUS = 1 << 64
_STANDARD_ERRORS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class HitRange:
    """How many points may lie within the circle."""

    least: int
    """The smallest right count."""
    most: int
    """The largest right count; equal to the smallest where the count is exact."""
    total: int
    """Number of all points."""

    def __str__(self) -> str:
        if self.least == self.most:
            return f"inside {self.least} of {self.total}"
        return f"inside {self.least} to {self.most} of {self.total}"


def likely_inside(total: int) -> HitRange:
    """Return the counts within four standard errors of the true share, pi / 4.

    The standard error is that of a binomial distribution; a random count is outside once in 16,000
    seeds.
    """
    share = math.pi / 4
    reach = _STANDARD_ERRORS * math.sqrt(total * share * (1 - share))
    least = max(0, math.ceil(total * share - reach))
    return HitRange(least=least, most=min(total, math.floor(total * share + reach)), total=total)


def halton_inside(maps: int, samples: int) -> HitRange:
    """Return how many points of Hadoop's Halton sequence lie within the circle.

    Args:
        maps: number of map tasks.
        samples: points of each.
    """
    total = maps * samples
    bound = _halton_error(samples)
    inside = doubtful = 0
    for first in range(1, total + 1, _CHUNK_POINTS):
        count = min(_CHUNK_POINTS, total + 1 - first)
        x = _radical_inverse(2, first, count) - 0.5
        y = _radical_inverse(3, first, count) - 0.5
        beyond = x * x + y * y - 0.25
        inside += int(np.count_nonzero(beyond <= 0))
        doubtful += int(np.count_nonzero(np.abs(beyond) <= bound))
    return HitRange(
        least=max(0, inside - doubtful), most=min(total, inside + doubtful), total=total
    )


def _halton_error(samples: int) -> float:
    """Return how far Hadoop's squared distances and ours can be apart.

    Base 2 is exact. In base 3 a point of a map takes two sums on average: one addition, and a
    subtraction and an addition for each carry, of which there are 1/3 + 1/9 + ... = 1/2 per point.
    Each sum is wrong by at most 2^-53 for its rounding and a third of that for the power of 1/3.
    Starting values, the last carries and the squares add less than 300 such errors. The squared
    distance changes by at most as much as the coordinate, which is at most 1/2 from the centre.
    """
    return (3 * samples + 300) * _HALF_ULP


def _radical_inverse(base: int, first: int, count: int) -> _Values:
    """Return the radical inverses of consecutive numbers: their digits mirrored at the point."""
    table = _inverses(base)
    values = np.empty(count, dtype=np.float64)
    done = 0
    while done < count:
        upper, lower = divmod(first + done, len(table))
        size = min(count - done, len(table) - lower)
        offset = _inverse(base, upper) / len(table)
        np.add(table[lower : lower + size], offset, out=values[done : done + size])
        done += size
    return values


@cache
def _inverses(base: int) -> _Values:
    """Return the radical inverses of all numbers of a few digits."""
    values = np.zeros(1, dtype=np.float64)
    weight = 1.0
    for _ in range(_TABLE_DIGITS[base]):
        weight /= base
        # The next digit is the most significant one and so the last after the point.
        values = np.concatenate([values + digit * weight for digit in range(base)])
    return values


def _inverse(base: int, number: int) -> float:
    mirrored, scale = 0, 1
    while number:
        number, digit = divmod(number, base)
        mirrored, scale = mirrored * base + digit, scale * base
    return mirrored / scale  # whole numbers: correctly rounded


def random_inside(partitions: int, samples: int, seed: int) -> HitRange:
    """Return how many random points of Spark's partitions lie within the circle.

    Args:
        partitions: number of partitions.
        samples: points of each.
        seed: start of all generators.
    """
    inside = 0
    for partition in range(partitions):
        seeds = np.array([(seed + (partition + 1) * _GOLDEN) % _MODULUS], dtype=np.uint64)
        start = int(_mix(seeds)[0])
        for first in range(0, samples, _CHUNK_POINTS):
            count = min(_CHUNK_POINTS, samples - first)
            x = _draws(start, 2 * first + 1, count)
            y = _draws(start, 2 * first + 2, count)
            inside += int(np.count_nonzero(x * x + y * y <= 1.0))
    return HitRange(least=inside, most=inside, total=partitions * samples)


def _draws(start: int, first: int, count: int) -> _Values:
    """Return every second draw of a generator, from the draw of that number, counted from 1."""
    state = (start + first * _GOLDEN) % _MODULUS
    states = _steps()[:count] + np.uint64(state)
    return (_mix(states) >> np.uint64(11)).astype(np.float64) * 2.0**-53


@cache
def _steps() -> _Words:
    return np.arange(_CHUNK_POINTS, dtype=np.uint64) * np.uint64(2 * _GOLDEN % _MODULUS)


def _mix(words: _Words) -> _Words:
    """Return the finaliser of SplitMix64; products are modulo 2^64."""
    mixed = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
