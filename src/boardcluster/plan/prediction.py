"""What is answered: a time with its interval and parts, and what speaks against believing it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from boardcluster.analysis.statistics import Interval
from boardcluster.plan.feasibility import RunFit
from boardcluster.plan.question import Question

__all__ = [
    "PREDICTION_COVERAGE",
    "BacktestAtDistance",
    "DataDistance",
    "PredictedAmount",
    "PredictionBatch",
    "RunNext",
    "RuntimePrediction",
    "TimeShares",
    "Unknown",
    "UnknownReason",
]

PREDICTION_COVERAGE = 0.9
"""Share of runs that the intervals of predictions are to hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedAmount:
    """A predicted amount, in the unit of its field."""

    median: float
    """As likely too low as too high."""
    interval: Interval
    """Holds 90 % of runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeShares:
    """Of what the predicted time consists; shares from 0 to 1 that add up to 1."""

    start: float
    """Start of the job: application master, containers, executors."""
    fixed_tasks: float
    """Tasks whose number does not follow the input's size."""
    cpu: float
    """Work on the input that the medium does not slow down."""
    storage: float
    """What the medium's slowness adds."""
    network: float
    """Output copied to other nodes."""
    serial: float
    """What more workers do not shorten: the driver, a single reducer."""
    spill: float
    """Data beyond the sort memory, written and read again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataDistance:
    """How far a question is from what was learned, as ratios; 1 is inside."""

    workers: float
    """Its workers by the most that were run, or the least by its own."""
    size: float
    """Its size by the largest that was run, or the smallest by its own."""
    medium: float
    """Its medium's slowness by that of the nearest that was run."""
    cpu: float
    """Its board's CPU by that of the nearest that was run, the larger by the smaller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestAtDistance:
    """How well cells as far from their data as this question were predicted."""

    protocol: str
    """What was held out, in words."""
    cells: int
    """How many cells were predicted."""
    mean_error: float
    """Mean of |predicted - measured| / measured."""
    within_20_percent: float
    """Share of cells within 20 %."""
    coverage: float
    """Share of cells inside their 90 % interval."""


class UnknownReason(StrEnum):
    """Why there is no answer; the values are stable and stand in the JSON."""

    NO_DATA = "no data"
    MEMORY = "memory oversubscribed"
    THRESHOLD = "threshold not crossed by any run"
    WIDE = "interval wider than 50 %"
    CONTRADICTION = "runs contradict each other"
    RESOURCE = "resource that never bound before"
    NO_FIGURE = "hardware without the figure that is needed"
    SLOTS = "another number of task slots than any run had"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """One reason for not answering."""

    reason: UnknownReason
    """Which."""
    words: str
    """One sentence with the figures behind it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunNext:
    """The run that would help most."""

    workers: int
    """Its workers."""
    size_bytes: int
    """Its input."""
    seconds: float | None
    """How long it would take; None where not known."""
    narrows_to: float | None
    """Width of the interval after it by that before; None where not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimePrediction:
    """The answer to one question."""

    question: Question
    """What was asked."""
    seconds: PredictedAmount | None
    """Time; None where nothing at all can be said. With ``lower_bound`` the median is the least."""
    shares: TimeShares | None
    """Parts of it; None for models without parts (hpl, netpipe)."""
    intermediate_bytes: PredictedAmount | None
    """What the engine writes to local storage besides the output; None where not known."""
    joules: PredictedAmount | None
    """Energy of the workers; None where the board's power is not known."""
    provenance: tuple[str, ...]
    """From what it was learned, in words, the most trusted first."""
    distance: DataDistance | None
    """How far that is; None without data."""
    backtest: BacktestAtDistance | None
    """How good such predictions were; None where none could be made."""
    unknown: tuple[Unknown, ...] = ()
    """Why it is not to be believed; empty for an answer."""
    lower_bound: bool = False
    """Whether the time is only the least it can be."""
    run_next: RunNext | None = None
    """The run that would help most."""
    figures: dict[str, PredictedAmount] | None = None
    """Other results, of hpl (``gflops``, ``efficiency``) and netpipe."""
    fit: RunFit | None = None
    """Whether it fits the disks and the memory; None where nothing is known of either."""

    @property
    def is_known(self) -> bool:
        """Whether it is an answer."""
        return self.seconds is not None and not self.unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionBatch:
    """Answers to a ``QuestionBatch``; arrays in its order, NaN where nothing can be said."""

    median_seconds: NDArray[np.float64]
    """Time."""
    low_seconds: NDArray[np.float64]
    """Lower end of its 90 % interval."""
    high_seconds: NDArray[np.float64]
    """Upper end."""
    intermediate_bytes: NDArray[np.float64]
    """What the engine writes to local storage besides the output."""
    high_intermediate_bytes: NDArray[np.float64]
    """Upper end of its 90 % interval."""
    joules: NDArray[np.float64]
    """Energy of the workers."""
    high_joules: NDArray[np.float64]
    """Upper end of its 90 % interval."""
    known: NDArray[np.bool_]
    """Whether it is an answer; False keeps the numbers, which are then only for orientation."""
    reason: NDArray[np.str_]
    """One of ``UnknownReason`` where it is not; else empty."""
