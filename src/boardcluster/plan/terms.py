"""Time as a sum of terms with coefficients that are not negative, fitted on relative errors.

    T = start + fixed / n + parallel D / n + output D R + serial D + spill S / n

D is the input, n the workers, R = min(r, n) / n what each worker stores of r copies of the output,
S the input that passes the disks once more. Each coefficient is a + b w: a is slowed by the board's
CPU, b by the medium, whose slowness w is shared by all series. The start is not: it waits for
heartbeats and for the master (Hadoop Pi starts in 23 s on the 4B and in 21 s on the 5B by
lee-oh-park-2021 Table 18 and lee-park-2026 Table 16). Non-negative least squares: Lawson
and Hanson, *Solving Least Squares Problems*, 1974, chapter 23, in the form of Bro and de Jong, *J.
Chemometrics* 11, 1997, which works on the normal equations. SciPy's takes longer to load than all
of a prediction takes. Weights: Huber, *Robust Statistics*, 1981, applied twice.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from boardcluster.plan.observations import WorkArrays
from boardcluster.plan.spill import SpillRule

__all__ = [
    "SPILL_TO_PARALLEL",
    "START_TERMS",
    "TERMS",
    "SpillTie",
    "design",
    "fit_terms",
    "nonnegative_fit",
]

TERMS = ("start", "fixed_tasks", "parallel", "output", "serial", "spill")
"""Each has two columns of ``design``: the CPU's and the medium's."""

START_TERMS = (0, 1, 2, 3)
"""Columns that do not follow the size."""

SPILL_TO_PARALLEL = 6
"""How many columns the spill stands behind the parallel work."""

SpillTie = tuple[float, float]
"""What a further pass costs of a pass, by CPU and by medium, where no run has shown it."""

_HUBER = 0.1
"""Relative error from which a cell counts less."""
_REWEIGHTINGS = 2
_RIDGE = 1e-3
_TIE = 0.05
_OUTER_MAX = 200
_PREFERRED = (0, 4, 2, 6, 8, 10, 1, 5, 3, 7, 9, 11)
"""Which of two columns that the runs cannot tell apart is kept: the first one here."""
_SPILL, _PARALLEL, _OUTPUT, _SERIAL = 10, 4, 6, 8


def design(work: WorkArrays, rule: SpillRule) -> NDArray[np.float64]:
    """Return one row for each run and two columns for each of ``TERMS``."""
    amount, workers = work.amount, work.workers
    copies = np.minimum(work.replication, workers) / workers
    bases = (
        np.ones_like(amount),
        1 / workers,
        amount / workers,
        amount * copies,
        amount,
        rule.spilled(amount) / workers,
    )
    columns = [column for base in bases for column in (base / work.cpu_rate, base * work.slowness)]
    columns[0] = bases[0]
    return np.stack(columns, axis=1)


def nonnegative_fit(rows: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return x >= 0 with the least |rows x - values|."""
    gram, moment = rows.T @ rows, rows.T @ values
    size = len(moment)
    free = np.zeros(size, dtype=bool)
    found = np.zeros(size)
    tolerance = 1e-12 * max(1.0, float(np.abs(moment).max(initial=0.0)))
    for _ in range(_OUTER_MAX):
        slope = moment - gram @ found
        slope[free] = -np.inf
        if free.all() or slope.max() <= tolerance:
            break
        free[int(slope.argmax())] = True
        while True:
            trial = np.zeros(size)
            trial[free] = np.linalg.solve(gram[np.ix_(free, free)], moment[free])
            if (trial[free] > 0).all():
                found = trial
                break
            falling = free & (trial <= 0)
            step = np.min(found[falling] / (found[falling] - trial[falling]), initial=1.0)
            found = found + step * (trial - found)
            free &= found > tolerance
            found[~free] = 0.0
            if not free.any():
                break
    return found


def _told_apart(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the columns, with zeros in those that the runs cannot tell from another one.

    Output with one copy is spread as the parallel work is, and of runs of one size the serial work
    looks like the start; left in, either would get a part by chance.
    """
    kept = columns.copy()
    seen: list[NDArray[np.float64]] = []
    for place in _PREFERRED:
        length = np.linalg.norm(columns[:, place])
        if not length:
            continue
        direction = columns[:, place] / length
        if any(np.abs(direction - other).max() < 1e-9 for other in seen):
            kept[:, place] = 0.0
        else:
            seen.append(direction)
    return kept


def _tie_rows(tie: SpillTie, typical_seconds: float) -> NDArray[np.float64]:
    """Return rows that ask a pass beyond memory to cost a share of the passes within it."""
    rows = np.zeros((2, 2 * len(TERMS)))
    for place, share in enumerate(tie):
        rows[place, _SPILL + place] = 1.0
        rows[place, _PARALLEL + place] = -share
    rows[1, _OUTPUT + 1] = -tie[1]
    rows[1, _SERIAL + 1] = -2 * tie[1]
    return rows / typical_seconds


def fit_terms(
    columns: NDArray[np.float64],
    seconds: NDArray[np.float64],
    *,
    tie: SpillTie,
    further: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
) -> NDArray[np.float64]:
    """Fit the coefficients on relative errors.

    Args:
        columns: of ``design``.
        seconds: measured times.
        tie: what a further pass costs where no run has shown it.
        further: rows and values that hold besides, in units of relative error.

    Returns:
        A coefficient for each column, in seconds.
    """
    if further is None:
        columns = _told_apart(columns)
    relative = columns / seconds[:, None]
    weights = np.ones_like(seconds)
    ties = _tie_rows(tie, float(np.median(seconds))) * _TIE * np.sqrt(len(seconds))
    extra, wanted = further or (np.zeros((0, columns.shape[1])), np.zeros(0))
    found = np.zeros(columns.shape[1])
    for _ in range(_REWEIGHTINGS + 1):
        root = np.sqrt(weights)
        rows = relative * root[:, None]
        lengths = np.linalg.norm(np.vstack([rows, extra]), axis=0)
        # A column without data, such as a spill that no run had, is held by its tie alone.
        scale = np.where(lengths > 1e-9, lengths, _RIDGE)
        stacked = np.vstack([rows, ties, extra]) / scale
        stacked = np.vstack([stacked, np.eye(len(scale)) * _RIDGE])
        values = np.concatenate([root, np.zeros(len(ties)), wanted, np.zeros(len(scale))])
        found = nonnegative_fit(stacked, values) / scale
        errors = np.abs(columns @ found / seconds - 1)
        weights = np.minimum(1.0, _HUBER / np.maximum(errors, 1e-9))
    return found
