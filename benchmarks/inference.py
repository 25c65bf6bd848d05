"""What the one layer of inference is worth, by simulation. How to run it: README.md in this folder.

Every number is of runs that are drawn at random (seeded) from what is known to be true: lognormal
times, with a coefficient of variation (CV) within starts of the cluster and one of 2 % between
them. Targets: 95 % intervals hold the truth in 93 to 97 % of cases; of campaigns in which nothing
differs, 5 % at most get a headline that says something does. Beside each stands the method that
was used before: Student's t of pairs, Welch's t of seconds, Spearman's rank correlation, each at p
below 0.05 without correction. Ends with status 1 if a target is missed. ``--write`` puts the tables
into docs/explanation/what-is-computed.md.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from boardcluster.analysis.inference import (
    EffectVerdict,
    RunValue,
    compare,
    estimate,
    family,
    find_drift,
)

SEED = 20261123
BETWEEN = 0.02
PAGE = Path(__file__).parents[1] / "docs" / "explanation" / "what-is-computed.md"
MARK = "<!-- benchmarks/inference.py: {} -->"
COUNTS = (3, 5, 10)
WORKLOADS, SIZES, WORKERS = 4, 6, 4
"""The main matrix of examples/paper-2026.toml: on two engines, five repetitions."""
REPETITIONS = 5
HEADLINES_MOST = 0.05
COVERAGE = (0.93, 0.97)


class Row(NamedTuple):
    """A row of a table, and whether its target is met."""

    cells: tuple[str, ...]
    met: bool = True


def draw_pair(
    draw: np.random.Generator, *, starts: int, count: int, cv: float, effect: float = 0.0
) -> tuple[list[RunValue], list[RunValue]]:
    """Two cells that ran in turn: the second takes ``effect`` longer."""
    sides: tuple[list[RunValue], list[RunValue]] = ([], [])
    for start in range(starts):
        common = draw.normal(0, BETWEEN)
        for block in range(1, count + 1):
            for side, rows in enumerate(sides):
                log = common + draw.normal(0, cv) + side * math.log1p(effect)
                place = 2 * (start * count + block) + side
                rows.append(
                    RunValue(
                        value=100 * math.exp(log), start=("c", start), block=block, position=place
                    )
                )
    return sides


def draw_apart(
    draw: np.random.Generator, *, starts: int, count: int, cv: float
) -> tuple[list[RunValue], list[RunValue]]:
    """Two cells that each had starts of their own, as of two numbers of workers."""
    sides = []
    for side in range(2):
        rows = draw_pair(draw, starts=starts, count=count, cv=cv)[0]
        sides.append([_of(row, side) for row in rows])
    return sides[0], sides[1]


def _of(row: RunValue, side: int) -> RunValue:
    return RunValue(
        value=row.value,
        start=row.start,
        block=row.block,
        position=row.position + 1000 * side,
        variant=str(side),
    )


def holds(draw: np.random.Generator, what: str, *, starts: int, count: int, cv: float) -> bool:
    """Whether one 95 % interval holds the truth, which is a mean, or a ratio of 1."""
    if what == "mean":
        rows, _ = draw_pair(draw, starts=starts, count=count, cv=cv)
        interval = estimate(rows).interval
        truth = 100 * math.exp((cv**2 + BETWEEN**2) / 2)
    else:
        sides = (draw_pair if what == "ratio in turn" else draw_apart)(
            draw, starts=starts, count=count, cv=cv
        )
        interval, truth = compare(*sides).interval, 1.0
    return interval is not None and interval.low <= truth <= interval.high


def coverage(rounds: int) -> Iterator[Row]:
    """Coverage by number of runs, starts and CV."""
    draw = np.random.default_rng(SEED)
    plan = [
        ("ratio in turn", 1),
        ("ratio in turn", 3),
        ("mean", 3),
        ("ratio of separate starts", 3),
        ("ratio of separate starts", 1),
    ]
    for (what, starts), cv in itertools.product(plan, (0.02, 0.05)):
        shares = [
            sum(holds(draw, what, starts=starts, count=count, cv=cv) for _ in range(rounds))
            / rounds
            for count in COUNTS
        ]
        # With one start each there is an allowance, which may be larger than it need be.
        allowed = what == "ratio of separate starts" and starts == 1
        met = all(COVERAGE[0] <= share <= (1.0 if allowed else COVERAGE[1]) for share in shares)
        shown = (f"{100 * share:.1f} %" for share in shares)
        yield Row((what, str(starts), f"{100 * cv:.0f} %", *shown), met)


class Null(NamedTuple):
    """What a campaign in which nothing differs was said to show."""

    differences: int
    differences_before: int
    drifts: int
    drifts_before: int


def null_campaign(draw: np.random.Generator, *, starts: int, cv: float) -> Null:
    """The main matrix with equal times everywhere, but for chance within and between starts."""
    cells: dict[tuple[int, int, int], list[RunValue]] = {}
    place = 0
    for start, workers in itertools.product(range(starts), range(WORKERS)):
        common = draw.normal(0, BETWEEN)
        for block in range(1, REPETITIONS + 1):
            order = list(itertools.product(range(WORKLOADS * SIZES), range(2)))
            for number in draw.permutation(len(order)):
                work, engine = order[number]
                cells.setdefault((work, workers, engine), []).append(
                    RunValue(
                        value=100 * math.exp(common + draw.normal(0, cv)),
                        start=("c", start),
                        block=block,
                        position=place,
                        variant=str(workers),
                    )
                )
                place += 1
    pairs = [
        (cells[work, workers, 0], cells[work, workers, 1], True)
        for work, workers in itertools.product(range(WORKLOADS * SIZES), range(WORKERS))
    ]
    pairs += [
        (cells[work, 0, engine], cells[work, workers, engine], False)
        for work, workers, engine in itertools.product(
            range(WORKLOADS * SIZES), range(1, WORKERS), range(2)
        )
    ]
    ratios = family([compare(one, other) for one, other, _ in pairs])
    rows = list(cells.values())
    return Null(
        sum(ratio.is_shown for ratio in ratios),
        sum(shown_before(one, other, paired=paired) for one, other, paired in pairs),
        sum(found.is_shown for found in find_drift(rows)),
        sum(drift_before(group) for group in rows),
    )


def shown_before(one: Sequence[RunValue], other: Sequence[RunValue], *, paired: bool) -> bool:
    """Whether the earlier method showed it: a t test of all runs, whatever their starts."""
    first, second = ([row.value for row in rows] for rows in (one, other))
    test = stats.ttest_rel if paired else functools.partial(stats.ttest_ind, equal_var=False)
    return bool(test(first, second).pvalue < 0.05)


def drift_before(rows: Sequence[RunValue]) -> bool:
    """Whether the earlier method, Spearman's rank correlation, warned of drift within a cell."""
    if len(rows) < 5:
        return False
    ranks = stats.rankdata([row.value for row in rows])
    if len(rows) > 8:
        return bool(stats.spearmanr(range(len(rows)), ranks).pvalue < 0.05)
    centred = np.arange(len(rows)) - (len(rows) - 1) / 2
    products = np.abs(ranks[_orders(len(rows))] @ centred)
    return bool(np.mean(products >= abs(ranks @ centred) - 1e-9) < 0.05)


@functools.cache
def _orders(count: int) -> NDArray[np.int64]:
    return np.array(list(itertools.permutations(range(count))), dtype=np.int64)


def nulls(campaigns: int) -> Iterator[Row]:
    """False differences and false warnings of drift in null campaigns."""
    draw = np.random.default_rng(SEED + 1)
    for starts, cv in ((1, 0.02), (1, 0.05), (3, 0.03)):
        found = [null_campaign(draw, starts=starts, cv=cv) for _ in range(campaigns)]
        headlines = sum(row.differences > 0 for row in found) / campaigns
        warned = sum(row.drifts > 0 for row in found) / campaigns

        def average(values: Iterator[int]) -> str:
            return f"{sum(values) / campaigns:.1f}"

        # Three standard errors of so few campaigns.
        most = HEADLINES_MOST + 3 * math.sqrt(HEADLINES_MOST * 0.95 / campaigns)
        yield Row(
            (
                str(starts),
                f"{100 * cv:.0f} %",
                f"{100 * headlines:.1f} %",
                average(row.differences_before for row in found),
                f"{100 * warned:.1f} %",
                average(row.drifts_before for row in found),
            ),
            headlines <= most and warned <= most,
        )


def power(rounds: int) -> Iterator[Row]:
    """How often a true difference is shown, alone and as one of twelve, and before."""
    draw = np.random.default_rng(SEED + 2)
    for effect, count in itertools.product((0.05, 0.1), COUNTS):
        alone = among = before = 0
        for _ in range(rounds):
            one, other = draw_pair(draw, starts=1, count=count, cv=0.03, effect=effect)
            ratio = compare(other, one)
            others = [compare(*draw_pair(draw, starts=1, count=count, cv=0.03)) for _ in range(11)]
            alone += ratio.verdict is EffectVerdict.HIGHER
            among += family([ratio, *others])[0].verdict is EffectVerdict.HIGHER
            before += shown_before(one, other, paired=True)
        shares = (f"{100 * value / rounds:.0f} %" for value in (alone, among, before))
        yield Row((f"{100 * effect:.0f} %", str(count), *shares))


TABLES = {
    "coverage": (
        ("95 % interval of", "starts", "CV", *(f"n = {count}" for count in COUNTS)),
        coverage,
    ),
    "nulls": (
        (
            "starts",
            "CV",
            "campaigns with a false difference",
            "false differences before",
            "campaigns with a false warning of drift",
            "false warnings of drift before",
        ),
        nulls,
    ),
    "power": (
        ("true difference", "pairs", "shown alone", "shown as one of twelve", "shown before"),
        power,
    ),
}


def table(titles: Sequence[str], rows: Sequence[Row]) -> str:
    """A Markdown table."""
    lines = [f"| {' | '.join(titles)} |", f"|{'---|' * len(titles)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row.cells)} |" for row in rows)])


def main() -> int:
    """Print the tables; write them where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2000, help="for coverage and power")
    parser.add_argument("--campaigns", type=int, default=200, help="null campaigns of each kind")
    parser.add_argument("--only", choices=tuple(TABLES), help="one table of them")
    parser.add_argument("--write", action="store_true", help=f"write the tables into {PAGE.name}")
    options = parser.parse_args()
    met = True
    chosen = [options.only] if options.only else list(TABLES)
    for name in chosen:
        titles, make = TABLES[name]
        number = options.campaigns if name == "nulls" else options.rounds
        rows = list(make(number))
        text = table(titles, rows)
        print(f"{name}, {number} rounds\n\n{text}\n", flush=True)
        met = met and all(row.met for row in rows)
        if options.write:
            mark = MARK.format(name)
            before, _, rest = PAGE.read_text(encoding="utf-8").partition(f"{mark}\n")
            after = rest.partition(f"{mark}\n")[2]
            PAGE.write_text(f"{before}{mark}\n{text}\n{mark}\n{after}", encoding="utf-8")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
