"""How often intervals miss the truth when one looks after every block, and what validity costs.

    benchmarks/until.py [--paths 20000]

Prints a table for campaigns with known truth: normal logarithms of times, and a heavier tail;
blocks of one start, and starts that differ. Each row has Student's interval, as if the number of
runs had been fixed, and the confidence sequence that ``run --until`` takes. Every number in it is
simulated. Ends with status 1 if a confidence sequence misses in more than 5 % of the campaigns
whose assumptions hold.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from boardcluster.analysis.inference.sequential import anytime_quantile

LOOKS = 100
"""Blocks, or starts, at most: ten times as many as a campaign of 3 starts and 3 blocks plans."""

Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]


def normal(deviation: float) -> Draw:
    """Return what draws values of one start, or of starts that blocks are averaged over."""
    return lambda draws, paths: draws.normal(0, deviation, size=(paths, LOOKS))


def heavy(deviation: float) -> Draw:
    """Return what draws from Student's t with 4 degrees of freedom, of the same deviation."""
    scale = deviation / math.sqrt(2)
    return lambda draws, paths: scale * draws.standard_t(4, size=(paths, LOOKS))


def blind(between: float, within: float) -> Draw:
    """Return what draws blocks of starts, 5 each, that are taken for replicates."""

    def drawn(draws: np.random.Generator, paths: int) -> NDArray[np.float64]:
        starts = draws.normal(0, between, size=(paths, LOOKS // 5, 1))
        blocks = starts + draws.normal(0, within, size=(paths, LOOKS // 5, 5))
        return np.asarray(blocks.reshape(paths, LOOKS))

    return drawn


def averaged(between: float, within: float) -> Draw:
    """Return what draws the means of such starts."""

    def drawn(draws: np.random.Generator, paths: int) -> NDArray[np.float64]:
        starts = draws.normal(0, between, size=(paths, LOOKS))
        return np.asarray(starts + draws.normal(0, within / math.sqrt(5), size=(paths, LOOKS)))

    return drawn


ROWS: tuple[tuple[str, Draw, float, bool], ...] = (
    ("blocks, variation 2 %", normal(0.02), 0.03, True),
    ("blocks, variation 3 %", normal(0.03), 0.03, True),
    ("blocks, variation 5 %", normal(0.05), 0.03, True),
    ("blocks, variation 3 %, heavy tail", heavy(0.03), 0.03, False),
    ("starts of 5 blocks, 2 % between, 3 % within", averaged(0.02, 0.03), 0.03, True),
    ("the same, blocks taken for replicates", blind(0.02, 0.03), 0.03, False),
)
"""What is drawn, how narrow the interval is to be, and whether the assumptions hold."""


def judged(
    values: NDArray[np.float64], quantiles: NDArray[np.float64], width: float
) -> tuple[float, float, float]:
    """Return how often any look misses, how often the last one does, and the mean count."""
    count = np.arange(1, LOOKS + 1)
    mean = values.cumsum(axis=1) / count
    squares = np.maximum((values**2).cumsum(axis=1) - count * mean**2, 0)
    error = np.sqrt(squares / np.maximum(count - 1, 1) / count)
    finite = np.isfinite(quantiles)
    half_width = np.where(finite, np.where(finite, quantiles, 0.0) * error, np.inf)
    missed = np.abs(mean) > half_width
    narrow = half_width <= math.log1p(width)
    last = np.where(narrow.any(axis=1), narrow.argmax(axis=1), LOOKS - 1)
    at_end = missed[np.arange(len(values)), last]
    return float(missed.any(axis=1).mean()), float(at_end.mean()), float((last + 1).mean())


def main() -> int:
    """Print the table; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--paths", type=int, default=20_000, help="campaigns for each row")
    paths = parser.parse_args().paths
    count = range(1, LOOKS + 1)
    ways = {
        "Student": np.array([stats.t.ppf(0.975, n - 1) if n > 2 else math.inf for n in count]),
        "sequence": np.array([anytime_quantile(n - 1) for n in count]),
    }
    print(f"{paths:,} campaigns a row, a look after each value from 3 on, at most {LOOKS}.\n")
    print("| values | wanted | interval | ever misses | misses when it stops | values needed |")
    print("|---|--:|---|--:|--:|--:|")
    status = 0
    for words, draw, width, holds in ROWS:
        values = draw(np.random.default_rng(33), paths)
        for name, quantiles in ways.items():
            ever, at_end, needed = judged(values, quantiles, width)
            print(f"| {words} | ±{width:.0%} | {name} | {ever:.1%} | {at_end:.1%} | {needed:.1f} |")
            status |= holds and name == "sequence" and ever > 0.05
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
