"""What the terms leave over, as a Bayesian line in logarithms that widens with the distance.

log T = log f + phi . g + noise, with phi = (1, 1/2 ln n, ln D) and g ~ N(0, diag(0.35, 0.12,
0.12)^2): own runs move it, and far from them it says how little they say. In closed form: Bishop,
*Pattern Recognition and Machine Learning*, 2006, section 3.3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from boardcluster.plan.observations import WorkArrays

__all__ = ["NOISE", "LogResidual", "residual_of"]

_PRIOR = np.array([0.35, 0.12, 0.12])
NOISE = 0.07
"""What two runs of the same differ by, and what the terms cannot say: log units."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogResidual:
    """What is known of g, in units of its prior."""

    mean: NDArray[np.float64]
    """Expected values."""
    covariance: NDArray[np.float64]
    """Their covariance."""

    def at(self, work: WorkArrays) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the mean of the log residual, and its standard deviation with the noise."""
        rows = _rows(work)
        spread = np.einsum("ij,jk,ik->i", rows, self.covariance, rows)
        return rows @ self.mean, np.sqrt(NOISE**2 + spread)


def _rows(work: WorkArrays) -> NDArray[np.float64]:
    amount = np.log(np.maximum(work.amount, 1e-3))
    rows = np.stack([np.ones_like(amount), 0.5 * np.log(work.workers), amount], axis=1)
    return np.asarray(rows * _PRIOR)


def residual_of(work: WorkArrays, logs: NDArray[np.float64]) -> LogResidual:
    """Return what runs say.

    Args:
        work: the runs.
        logs: of each, the logarithm of its time by that of the terms.
    """
    rows = _rows(work)
    precision = np.eye(rows.shape[1]) + rows.T @ rows / NOISE**2
    covariance = np.asarray(np.linalg.inv(precision), np.float64)
    return LogResidual(mean=covariance @ rows.T @ logs / NOISE**2, covariance=covariance)
