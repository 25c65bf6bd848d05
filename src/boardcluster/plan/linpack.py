"""HPL: the work of one worker shared by all, and what its messages cost.

    T = (2/3 N^3 + 3/2 N^2) / (workers x rate) + message N^2 (1 - 1/Q) / P

A panel goes to the other Q - 1 columns of the grid, 1/P of it from each row; what that takes for
each element of the matrix is learned from runs on several workers (Baun 2016, Table 7, on 100
Mbit/s) and scaled by the link. Rows whose matrix leaves the system no memory are not learned from.
Source of the operations: HPL_pdtest.c.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import isqrt

import numpy as np

from boardcluster.catalog.published import read_cells, read_index

__all__ = [
    "PUBLISHED_BOARD",
    "PUBLISHED_LINK_BITS_PER_SECOND",
    "LinpackModel",
    "LinpackRun",
    "fit_linpack",
    "linpack_grid",
    "linpack_operations",
    "linpack_seconds",
    "published_linpack",
]

_TABLE = "baun-2016-table-07"
PUBLISHED_BOARD = "rpi-b-800mhz"
"""The board of the table."""
PUBLISHED_LINK_BITS_PER_SECOND = 1e8
"""Its link: 100 Mbit/s Ethernet."""
_FULL_PERCENT = 95
"""Share of the memory at which the table's rates fall: the matrix leaves the system none."""
_MESSAGES_MOST = 0.5
"""Share of a run that messages, as another board's cost, may explain of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinpackRun:
    """One solved system."""

    n: int
    """Order of the matrix."""
    workers: int
    """Number of workers."""
    p: int
    """Rows of the grid."""
    q: int
    """Columns of the grid."""
    seconds: float
    """Time of the solution."""
    link_bits_per_second: float
    """Rate of a worker's link."""
    source: str
    """Where it is from, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinpackModel:
    """What was learned of one board."""

    rate_gflops: float
    """What one worker computes."""
    message_bits: float
    """What each element of the matrix costs, in bits of the link."""
    log_spread: float
    """How wrong it was, as a standard deviation of the logarithm."""
    source: str
    """From what, in words."""


def linpack_operations(n: float) -> float:
    """Return the floating-point operations that HPL counts."""
    return 2 / 3 * n**3 + 3 / 2 * n**2


def linpack_grid(ranks: int) -> tuple[int, int]:
    """Return P and Q as near to a square as possible, Q not smaller."""
    p = next(p for p in range(isqrt(ranks), 0, -1) if ranks % p == 0)
    return p, ranks // p


def _messages(run: LinpackRun) -> float:
    return run.n**2 * (1 - 1 / run.q) / run.p


def _seconds_per_bit(run: LinpackRun) -> float:
    """What a message costs: nothing on one worker, which may have no link at all."""
    return _messages(run) / run.link_bits_per_second if run.workers > 1 else 0.0


def linpack_seconds(model: LinpackModel, run: LinpackRun) -> float:
    """Return the time of a run; what it took is not looked at."""
    work = linpack_operations(run.n) / (run.workers * model.rate_gflops * 1e9)
    return work + model.message_bits * _seconds_per_bit(run)


def fit_linpack(
    of_board: Sequence[LinpackRun], several: Sequence[LinpackRun], *, source: str
) -> LinpackModel:
    """Learn a board from its own runs, and messages from runs on several workers of any board.

    Args:
        of_board: runs of the board, best on one worker.
        several: runs on several workers, each with one on one worker of the same board.
        source: from what, in words.
    """
    alone = [run for run in several if run.workers == 1]
    left, weights = [], []
    for run in several:
        if run.workers == 1:
            continue
        nearest = min(alone, key=lambda one: abs(one.n - run.n / run.workers**0.5))
        rate = linpack_operations(nearest.n) / nearest.seconds
        spent = run.seconds - linpack_operations(run.n) / (run.workers * rate)
        left.append(spent * run.link_bits_per_second / run.seconds)
        weights.append(_messages(run) / run.seconds)
    message = float(np.dot(left, weights) / np.dot(weights, weights)) if left else 0.0
    rates = []
    for run in of_board:
        spent = min(message * _seconds_per_bit(run), _MESSAGES_MOST * run.seconds)
        rates.append(linpack_operations(run.n) / (run.seconds - spent) / run.workers)
    fitted = LinpackModel(
        rate_gflops=float(np.median(rates)) / 1e9,
        message_bits=max(0.0, message),
        log_spread=0.0,
        source=source,
    )
    # How well messages are known shows at the board whose messages they are.
    own_rates = [linpack_operations(run.n) / run.seconds / 1e9 for run in alone]
    theirs = replace(fitted, rate_gflops=float(np.median(own_rates))) if alone else fitted
    errors = [
        np.log(run.seconds / linpack_seconds(model, run))
        for model, runs in ((theirs, several), (fitted, of_board))
        for run in runs
    ]
    return replace(fitted, log_spread=float(np.sqrt(np.mean(np.square(errors)))) if errors else 0.0)


@cache
def published_linpack() -> Mapping[int, tuple[LinpackRun, ...]]:
    """Return the runs of Baun's Table 7 by their share of the memory in per cent, without 95.

    Raises:
        SpecError: a file of the catalog is missing or wrong.
    """
    index = read_index()
    table = index.tables[_TABLE]
    found: dict[tuple[int, int], dict[str, float]] = {}
    for cell in read_cells(table, folder=index.folder):
        key = int(cell.keys["memory_percent"]), int(cell.keys["nodes"])
        found.setdefault(key, {})[cell.quantity] = float(cell.value)
    runs: dict[int, list[LinpackRun]] = {}
    for (percent, nodes), row in found.items():
        if percent >= _FULL_PERCENT:
            continue
        runs.setdefault(percent, []).append(
            LinpackRun(
                n=int(row["problem_size"]),
                workers=nodes,
                p=int(row["process_rows"]),
                q=int(row["process_columns"]),
                seconds=row["execution_time"],
                link_bits_per_second=PUBLISHED_LINK_BITS_PER_SECOND,
                source=f"{table.paper} {table.table}, {percent} % of the memory",
            )
        )
    return {percent: tuple(rows) for percent, rows in runs.items()}
