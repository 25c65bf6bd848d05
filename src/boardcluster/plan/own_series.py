"""A series of one's own runs, with the published one of the same workload as a prior.

The published coefficients are scaled by two factors, one for the start and one for the work, as a
slower machine or a lighter program changes them; then own runs move each coefficient as far as they
say more. What the engine tells of its start counts as a measurement of its own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from boardcluster.plan.backtest import TIE
from boardcluster.plan.calibration import HeldOut
from boardcluster.plan.observations import amount_words
from boardcluster.plan.series import FittedSeries, SeriesData, distances, fit_series
from boardcluster.plan.spill import SpillRule
from boardcluster.plan.terms import SPILL_TO_PARALLEL, START_TERMS, design, nonnegative_fit

__all__ = ["contradiction", "fit_own", "hold_out_own"]

_PRIOR_WEIGHT = 0.05
"""A coefficient that is off by all that a run takes counts as a run that is 5 % off."""
_START_WEIGHT = 1.0
_CONTRADICTING = 0.25
"""Runs of one configuration that differ by more than this say different things."""

_Floats = NDArray[np.float64]


def _scaled_prior(columns: _Floats, seconds: _Floats, starts: _Floats, prior: _Floats) -> _Floats:
    """Return published coefficients, scaled for start and work."""
    at_start = np.zeros(columns.shape[1], dtype=bool)
    at_start[list(START_TERMS)] = True
    parts = np.stack([columns[:, at] @ prior[at] for at in (at_start, ~at_start)], axis=1)
    known = np.isfinite(starts)
    only_start = np.stack([parts[known, 0], np.zeros(int(known.sum()))], axis=1)
    rows = np.vstack([parts / seconds[:, None], only_start / seconds[known, None]])
    wanted = np.concatenate([np.ones(len(seconds)), starts[known] / seconds[known]])
    # Where both parts look alike, both are scaled by the same.
    whole = parts.sum(axis=1)
    factor = float(np.exp(np.mean(np.log(seconds / np.maximum(whole, 1e-9)))))
    pull = 0.05 * np.eye(2)
    scale = nonnegative_fit(
        np.vstack([rows, pull]), np.concatenate([wanted, 0.05 * factor * np.ones(2)])
    )
    return np.asarray(np.where(at_start, scale[0], scale[1]) * prior)


def _further(
    columns: _Floats, seconds: _Floats, starts: _Floats, expected: _Floats
) -> tuple[_Floats, _Floats]:
    """Return rows that hold coefficients near the expected ones, and those of measured starts."""
    middle = float(np.median(seconds))
    typical = columns.mean(axis=0)
    # A spill that no run had weighs as the work that every run had.
    typical = np.where(typical > 0, typical, np.roll(typical, SPILL_TO_PARALLEL))
    rows = np.diag(typical / middle * _PRIOR_WEIGHT)
    values = typical / middle * _PRIOR_WEIGHT * expected
    known = np.isfinite(starts)
    only_start = np.zeros((int(known.sum()), columns.shape[1]))
    for place in START_TERMS:
        only_start[:, place] = columns[known, place]
    weight = (_START_WEIGHT / seconds[known])[:, None]
    return np.vstack([rows, only_start * weight]), np.concatenate(
        [values, starts[known] * weight[:, 0]]
    )


def fit_own(
    data: SeriesData, starts: _Floats, rule: SpillRule, prior: FittedSeries | None
) -> FittedSeries:
    """Fit one's own runs.

    Args:
        data: the runs.
        starts: seconds of start of each; NaN where not known.
        rule: from which size they spill.
        prior: the published series of the workload; None where there is none.
    """
    columns = design(data.work, rule)
    if prior is None:
        expected = np.zeros(columns.shape[1])
    else:
        expected = _scaled_prior(columns, data.seconds, starts, prior.coefficients)
    further = _further(columns, data.seconds, starts, expected)
    return fit_series(data, rule, tie=TIE, further=further)


def _configurations(data: SeriesData) -> NDArray[np.intp]:
    work = data.work
    columns = (work.amount, work.workers, work.replication, work.cpu_rate, work.slowness)
    rows = np.stack(columns, axis=1)
    _, places = np.unique(rows, axis=0, return_inverse=True)
    return np.asarray(places.ravel(), dtype=np.intp)


def hold_out_own(
    key: str,
    data: SeriesData,
    starts: _Floats,
    rule: SpillRule,
    prior: FittedSeries | None,
) -> list[HeldOut]:
    """Predict each configuration of one's own from the others; nothing for fewer than three."""
    cells = _configurations(data)
    found = []
    for cell in range(int(cells.max(initial=-1)) + 1):
        held = cells == cell
        if cells.max() < 2:
            break
        known, asked = data.taken(~held), data.taken(held)
        fitted = fit_own(known, starts[~held], rule, prior)
        logs, spread = fitted.logs(asked.work, asked.media)
        count = len(asked)
        found.append(
            HeldOut(
                series=np.full(count, key),
                protocol=np.full(count, "own runs, one configuration left out"),
                fold=np.full(count, f"{key}, {cell}"),
                log_error=np.log(asked.seconds) - logs,
                spread=spread,
                distance=distances(known.work, asked.work),
            )
        )
    return found


def contradiction(workload: str, data: SeriesData) -> str:
    """Say which runs of one configuration contradict each other; empty if none do."""
    cells = _configurations(data)
    for cell in range(int(cells.max(initial=-1)) + 1):
        seconds = data.seconds[cells == cell]
        if len(seconds) > 1 and np.std(np.log(seconds), ddof=1) > _CONTRADICTING:
            at = int(np.argmax(cells == cell))
            amount = amount_words(workload, float(data.work.amount[at]))
            of = ", ".join(filter(None, (f"workers {data.work.workers[at]:.0f}", amount)))
            return (
                f"{len(seconds)} runs of the same took {seconds.min():.0f} to"
                f" {seconds.max():.0f} s ({of})"
            )
    return ""
