"""One workload on one engine, fitted: terms, and a residual for each medium."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from boardcluster.plan.observations import WorkArrays
from boardcluster.plan.residual import LogResidual, residual_of
from boardcluster.plan.spill import SpillRule
from boardcluster.plan.terms import SpillTie, design, fit_terms

__all__ = ["FittedSeries", "SeriesData", "distances", "fit_series"]

_LEAST_SECONDS = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesData:
    """The runs of one workload on one engine."""

    work: WorkArrays
    """What they worked on."""
    seconds: NDArray[np.float64]
    """How long each took."""
    media: NDArray[np.str_]
    """On which medium."""

    def __len__(self) -> int:
        return len(self.seconds)

    def taken(self, places: NDArray[np.bool_]) -> SeriesData:
        """Return some of them."""
        return SeriesData(
            work=self.work.taken(places), seconds=self.seconds[places], media=self.media[places]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedSeries:
    """What was learned of one workload on one engine."""

    data: SeriesData
    """From what."""
    rule: SpillRule
    """From which size it spills."""
    coefficients: NDArray[np.float64]
    """Of the columns of ``design``, in seconds."""
    residuals: Mapping[str, LogResidual]
    """By medium."""
    pooled: LogResidual
    """Of all media together, for one without runs."""

    def with_rule(self, rule: SpillRule) -> FittedSeries:
        """Return the same with other settings, which move the size from which it spills."""
        return replace(self, rule=rule)

    def terms(self, work: WorkArrays) -> NDArray[np.float64]:
        """Return the seconds of each column of ``design``."""
        return design(work, self.rule) * self.coefficients

    def logs(
        self, work: WorkArrays, media: NDArray[np.str_]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the logarithm of the time, and how uncertain it is before calibration."""
        logs = np.log(np.maximum(self.terms(work).sum(axis=1), _LEAST_SECONDS))
        spread = np.empty_like(logs)
        for medium in np.unique(media):
            at = media == medium
            shift, spread[at] = self.residuals.get(str(medium), self.pooled).at(work.taken(at))
            logs[at] += shift
        return logs, spread


def fit_series(
    data: SeriesData,
    rule: SpillRule,
    *,
    tie: SpillTie,
    further: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
) -> FittedSeries:
    """Fit a series.

    Args:
        data: its runs.
        rule: from which size it spills.
        tie: what a further pass costs where no run has shown it.
        further: rows and values that hold besides (``fit_terms``).
    """
    columns = design(data.work, rule)
    found = fit_terms(columns, data.seconds, tie=tie, further=further)
    fitted = np.log(np.maximum(columns @ found, _LEAST_SECONDS))
    logs = np.log(data.seconds) - fitted
    residuals = {
        str(medium): residual_of(data.work.taken(data.media == medium), logs[data.media == medium])
        for medium in np.unique(data.media)
    }
    return FittedSeries(
        data=data,
        rule=rule,
        coefficients=found,
        residuals=residuals,
        pooled=residual_of(data.work, logs),
    )


def distances(learned: WorkArrays, asked: WorkArrays) -> NDArray[np.float64]:
    """Return how far runs are from those learned from, in logarithms; 0 is inside.

    Returns:
        One row for each run asked for: size, workers, medium, CPU.
    """

    def outside(known: NDArray[np.float64], of: NDArray[np.float64]) -> NDArray[np.float64]:
        logs = np.log(np.maximum(of, 1e-3))
        low, high = np.log(np.maximum([known.min(), known.max()], 1e-3))
        return np.asarray(np.maximum(0.0, np.maximum(logs - high, low - logs)))

    def nearest(known: NDArray[np.float64], of: NDArray[np.float64]) -> NDArray[np.float64]:
        values = np.log(np.unique(known))
        return np.asarray(np.abs(np.log(of)[:, None] - values[None, :]).min(axis=1))

    return np.stack(
        [
            outside(learned.amount, asked.amount),
            outside(learned.workers, asked.workers),
            nearest(learned.slowness, asked.slowness),
            nearest(learned.cpu_rate, asked.cpu_rate),
        ],
        axis=1,
    )
