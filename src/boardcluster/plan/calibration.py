"""How wide an interval must be, from how wrong earlier predictions were at the same distance.

Normalised conformal prediction: the error of each held-out cell by its own uncertainty is a score,
and an interval reaches as far as 90 % of the scores do (Papadopoulos and others, "Inductive
Confidence Machines for Regression", ECML 2002). Scores of cells that were as far from their data
count most (Tibshirani and others, "Conformal Prediction Under Covariate Shift", NeurIPS 2019).
Cells that were predicted from the same fit err together, so they count as fewer (Kish, *Survey
Sampling*, 1965, section 5.4), and of few the interval reaches further (the n + 1 of conformal
prediction).
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from boardcluster.plan.prediction import PREDICTION_COVERAGE, BacktestAtDistance

__all__ = ["HeldOut", "IntervalCalibration", "calibration_text", "read_calibration"]

_COLUMNS = (
    *("series", "protocol", "fold", "inside", "log_error", "spread"),
    *("size", "workers", "medium", "cpu"),
)
_TEXTS = 4
_BANDWIDTH = 0.25
"""How far apart distances are that count as alike: a factor of 1.28."""
_ALIKE = 0.2
"""Correlation of cells predicted from the same fit. That of these tables is 0.47; with it the
intervals cover 87 to 99 %, with none 84 to 92 %."""
_COMPARED = 3
"""Size, workers and medium; of boards there is too little to calibrate by."""
_GRID = 0.05
_CHUNK = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOut:
    """Cells that were predicted without being learned from; arrays of one length."""

    series: NDArray[np.str_]
    """Workload and engine."""
    protocol: NDArray[np.str_]
    """What was held out."""
    fold: NDArray[np.str_]
    """From which fit it was predicted."""
    log_error: NDArray[np.float64]
    """Logarithm of the measured by the predicted time."""
    spread: NDArray[np.float64]
    """What was thought of it before calibration (``FittedSeries.logs``)."""
    distance: NDArray[np.float64]
    """Four columns (``series.distances``)."""

    def __len__(self) -> int:
        return len(self.series)

    @property
    def error(self) -> NDArray[np.float64]:
        """|predicted - measured| / measured."""
        return np.asarray(np.abs(np.exp(-self.log_error) - 1))

    def taken(self, places: NDArray[np.bool_]) -> HeldOut:
        """Return some of them."""
        return HeldOut(
            series=self.series[places],
            protocol=self.protocol[places],
            fold=self.fold[places],
            log_error=self.log_error[places],
            spread=self.spread[places],
            distance=self.distance[places],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalCalibration:
    """What turns an uncertainty into an interval."""

    cells: HeldOut
    """The cells behind it."""
    inside: NDArray[np.bool_]
    """Of each, whether its measured time was in the interval that the other series gave it."""

    @classmethod
    def of(cls, cells: HeldOut) -> IntervalCalibration:
        """Make one; each cell is judged by the cells of all other series."""
        inside = np.zeros(len(cells), dtype=bool)
        for series in np.unique(cells.series):
            own = cells.series == series
            others = cls(cells=cells.taken(~own), inside=np.zeros(int((~own).sum()), dtype=bool))
            reach = others.factor(cells.distance[own]) * cells.spread[own]
            inside[own] = np.abs(cells.log_error[own]) <= reach
        return cls(cells=cells, inside=inside)

    def _weights(self, distance: NDArray[np.float64]) -> NDArray[np.float64]:
        known = self.cells.distance[:, :_COMPARED]
        # Beyond the farthest cell all are as far, and the uncertainty itself grows.
        asked = np.minimum(distance[:, :_COMPARED], known.max(axis=0, initial=0.0))
        squares = ((asked[:, None, :] - known[None, :, :]) ** 2).sum(axis=2)
        logs = -squares / (2 * _BANDWIDTH**2)
        return np.asarray(np.exp(logs - logs.max(axis=1, keepdims=True)))

    def factor(self, distance: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return by what an uncertainty is multiplied, for each row of distances."""
        grid, places = np.unique(np.round(distance / _GRID), axis=0, return_inverse=True)
        scores = np.abs(self.cells.log_error) / self.cells.spread
        order = np.argsort(scores)
        folds, member = np.unique(self.cells.fold, return_inverse=True)
        of_fold = np.zeros((len(scores), len(folds)))
        of_fold[np.arange(len(scores)), member] = 1.0
        found = np.empty(len(grid))
        for begin in range(0, len(grid), _CHUNK):
            part = slice(begin, begin + _CHUNK)
            weights = self._weights(grid[part] * _GRID)
            alone = (1 - _ALIKE) * (weights**2).sum(axis=1)
            together = _ALIKE * ((weights @ of_fold) ** 2).sum(axis=1)
            count = weights.sum(axis=1) ** 2 / (alone + together)
            share = np.minimum(PREDICTION_COVERAGE * (1 + 1 / count), 1.0)
            summed = np.cumsum(weights[:, order], axis=1)
            below = summed < (share * summed[:, -1])[:, None] * (1 - 1e-12)
            found[part] = scores[order][np.minimum(below.sum(axis=1), len(order) - 1)]
        return found[places.ravel()]

    def at(self, distance: NDArray[np.float64]) -> BacktestAtDistance:
        """Say how well cells at one distance were predicted."""
        weights = self._weights(distance[None, :])[0]
        weights = weights / weights.sum()
        near = weights > weights.max() / np.e**2
        names, counts = np.unique(self.cells.protocol[near], return_counts=True)
        return BacktestAtDistance(
            protocol=str(names[int(counts.argmax())]),
            cells=int(near.sum()),
            mean_error=float(weights @ self.cells.error),
            within_20_percent=float(weights @ (self.cells.error <= 0.2)),
            coverage=float(weights @ self.inside),
        )


def calibration_text(calibration: IntervalCalibration) -> str:
    """Return a calibration as CSV; ``read_calibration`` reads it back."""
    cells = calibration.cells
    folds, fold = np.unique(cells.fold, return_inverse=True)
    del folds
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(_COLUMNS)
    for place in range(len(cells)):
        numbers = (cells.log_error[place], cells.spread[place], *cells.distance[place])
        rows.writerow(
            [
                cells.series[place],
                cells.protocol[place],
                fold[place],
                int(calibration.inside[place]),
                *(f"{number:.5f}" for number in numbers),
            ]
        )
    return out.getvalue()


def read_calibration(path: Path) -> IntervalCalibration:
    """Read a calibration.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not such a file.
    """
    head, *rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"))))
    if tuple(head) != _COLUMNS or not rows:
        raise ValueError(f"its columns are not {', '.join(_COLUMNS)}")
    texts = np.array([row[:_TEXTS] for row in rows])
    numbers = np.array([row[_TEXTS:] for row in rows], dtype=np.float64)
    cells = HeldOut(
        series=texts[:, 0],
        protocol=texts[:, 1],
        fold=texts[:, 2],
        log_error=numbers[:, 0],
        spread=numbers[:, 1],
        distance=numbers[:, 2:],
    )
    return IntervalCalibration(cells=cells, inside=texts[:, 3] == "1")
