"""Backtests: cells are held out, predicted from the rest, and compared with what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from boardcluster.plan.calibration import HeldOut
from boardcluster.plan.series import SeriesData, distances, fit_series
from boardcluster.plan.spill import SpillRule
from boardcluster.plan.terms import SpillTie

__all__ = [
    "PROTOCOLS",
    "TIE",
    "TIES",
    "Protocol",
    "ProtocolScore",
    "chosen_ties",
    "hold_out",
    "joined",
    "scores",
]

TIE: SpillTie = (0.3, 1.0)
"""What a pass beyond the memory costs of a pass within it, where no run has shown it: the one of
``TIES`` that all series together choose; a test repeats the choice."""

TIES: tuple[SpillTie, ...] = ((0.0, 0.5), (0.3, 0.5), (0.5, 0.5), (0.3, 1.0))
"""What is chosen from."""

_SMALL_GB = 1.0
_FEW = 2
_LEAST_CELLS = 6

Fold = tuple[NDArray[np.bool_], NDArray[np.bool_]]
"""Which cells are learned from, and which are predicted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """What is held out."""

    name: str
    """In words."""
    error_goal: float
    """Mean error that a test allows on the published tables."""


PROTOCOLS: Mapping[str, Protocol] = {
    row.name: row
    for row in (
        Protocol(name="one cell left out", error_goal=0.06),
        Protocol(name="1 or 2 workers to 3 and more", error_goal=0.11),
        Protocol(name="1 to 3 workers to 4 and more", error_goal=0.11),
        Protocol(name="at most 1 GB to 2 and 4 GB", error_goal=0.11),
        Protocol(name="at most 2 GB to 4 GB", error_goal=0.11),
        Protocol(name="both: fewer workers and smaller", error_goal=0.20),
        Protocol(name="a medium without runs", error_goal=0.08),
    )
}
"""By name, in the order of the page."""


def _folds(data: SeriesData, name: str) -> Iterator[Fold]:
    amount, workers = data.work.amount, data.work.workers
    few, small = workers <= _FEW, amount <= _SMALL_GB
    split: Mapping[str, Fold] = {
        "1 or 2 workers to 3 and more": (few, ~few),
        "1 to 3 workers to 4 and more": (workers <= _FEW + 1, workers > _FEW + 1),
        "at most 1 GB to 2 and 4 GB": (small, ~small),
        "at most 2 GB to 4 GB": (amount <= 2 * _SMALL_GB, amount > 2 * _SMALL_GB),
        "both: fewer workers and smaller": (few & small, ~few & ~small),
    }
    if name in split:
        yield split[name]
    elif name == "one cell left out":
        for place in range(len(data)):
            held = np.arange(len(data)) == place
            yield ~held, held
    else:
        for medium in np.unique(data.media):
            held = data.media == medium
            yield ~held, held


def hold_out(
    key: str,
    data: SeriesData,
    rule: SpillRule,
    *,
    tie: SpillTie = TIE,
    protocols: Sequence[str] = tuple(PROTOCOLS),
) -> list[HeldOut]:
    """Predict cells of one series from its others.

    Args:
        key: name of the series.
        data: its cells.
        rule: from which size it spills.
        tie: what a further pass costs where no run has shown it.
        protocols: what to hold out; those for which it has too few cells are left out.
    """
    found = []
    for name in protocols:
        for number, (learned, held) in enumerate(_folds(data, name)):
            if learned.sum() < _LEAST_CELLS or not held.any():
                continue
            known, asked = data.taken(learned), data.taken(held)
            fitted = fit_series(known, rule, tie=tie)
            logs, spread = fitted.logs(asked.work, asked.media)
            count = len(asked)
            found.append(
                HeldOut(
                    series=np.full(count, key),
                    protocol=np.full(count, name),
                    fold=np.full(count, f"{key}, {name}, {number}"),
                    log_error=np.log(asked.seconds) - logs,
                    spread=spread,
                    distance=distances(known.work, asked.work),
                )
            )
    return found


def joined(parts: Sequence[HeldOut]) -> HeldOut:
    """Return the cells of all parts."""
    return HeldOut(
        series=np.concatenate([part.series for part in parts]),
        protocol=np.concatenate([part.protocol for part in parts]),
        fold=np.concatenate([part.fold for part in parts]),
        log_error=np.concatenate([part.log_error for part in parts]),
        spread=np.concatenate([part.spread for part in parts]),
        distance=np.concatenate([part.distance for part in parts]),
    )


def chosen_ties(
    every: Mapping[str, tuple[SeriesData, SpillRule]],
) -> tuple[dict[str, SpillTie], SpillTie]:
    """Choose what a further pass costs: for each series by the errors of the others, and by all.

    Leaving one cell out says nothing about it, and is not asked.
    """
    names = [name for name in PROTOCOLS if name != "one cell left out"]
    errors = {
        key: [
            float(np.mean(joined(hold_out(key, data, rule, tie=tie, protocols=names)).error))
            for tie in TIES
        ]
        for key, (data, rule) in every.items()
    }
    table = np.array(list(errors.values()))
    without = {
        key: TIES[int((table.sum(axis=0) - np.array(row)).argmin())] for key, row in errors.items()
    }
    return without, TIES[int(table.sum(axis=0).argmin())]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolScore:
    """How good predictions were when one thing was held out."""

    protocol: str
    """What."""
    cells: int
    """How many were predicted."""
    mean_error: float
    """Mean of |predicted - measured| / measured."""
    median_error: float
    """Their median."""
    within_10_percent: float
    """Share of cells within 10 %."""
    within_20_percent: float
    """Share of cells within 20 %."""
    coverage: float
    """Share of cells inside their 90 % interval."""
    by_series: Mapping[str, float]
    """Mean error of each series."""


def scores(cells: HeldOut, inside: NDArray[np.bool_]) -> tuple[ProtocolScore, ...]:
    """Return the score of each protocol, in the order in which they were held out."""
    found = []
    for protocol in dict.fromkeys(cells.protocol.tolist()):
        at = cells.protocol == protocol
        error = cells.error[at]
        series = cells.series[at]
        found.append(
            ProtocolScore(
                protocol=protocol,
                cells=int(at.sum()),
                mean_error=float(error.mean()),
                median_error=float(np.median(error)),
                within_10_percent=float((error <= 0.1).mean()),
                within_20_percent=float((error <= 0.2).mean()),
                coverage=float(inside[at].mean()),
                by_series={
                    key: float(error[series == key].mean())
                    for key in dict.fromkeys(series.tolist())
                },
            )
        )
    return tuple(found)
