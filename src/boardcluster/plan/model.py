"""The fitted model, and its answers to many questions at once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from boardcluster.plan.calibration import IntervalCalibration
from boardcluster.plan.hardware import BoardRates, MediumRates
from boardcluster.plan.intermediate import IntermediateCurve
from boardcluster.plan.observations import GIGABYTE, WorkArrays, amount_of
from boardcluster.plan.power import POWER_LOG_SPREAD, WorkloadLoad, worker_watts
from boardcluster.plan.prediction import PredictionBatch, UnknownReason
from boardcluster.plan.question import QuestionBatch
from boardcluster.plan.series import FittedSeries, distances
from boardcluster.plan.spill import SpillRule, own_spill_rule, spill_rule
from boardcluster.records import Engine
from boardcluster.units import MIB

__all__ = [
    "LearnedSeries",
    "RuntimeModel",
    "crosses",
    "intermediate_of",
    "memory_need_bytes",
    "predict_many",
    "reach_of",
    "short_of_memory",
]

_NORMAL_90 = 1.645
"""Half the width of a normal distribution's middle 90 %, in standard deviations."""
_WIDEST = 0.5
"""An interval that reaches further than this share of its median is no answer."""
_CPU_LOG_SPREAD = 0.12
"""How wrong the ratio of 7-zip may be for a board that is e times as fast."""
_INTERMEDIATE_LOG_SPREAD = 0.1
"""How wrong a curve of intermediate bytes may be for each e times beyond its cells."""
_LINK_SHARE = 0.5
"""Below this share of the slowest link of all runs, a link may bind that never did."""
_CONTAINER_MIB = 1024.0 + 384.0
"""The smallest container that the published runs had: an executor of Spark with its overhead."""
_DAEMONS_MIB = 500.0
"""DataNode and NodeManager (docs/explanation/memory-and-start-up.md)."""

_Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedSeries:
    """All that was learned of one workload on one engine."""

    workload: str
    """Name of the workload."""
    engine: Engine
    """The engine."""
    fitted: FittedSeries
    """Its time."""
    settings: dict[str, str]
    """Properties of the engines that its runs had."""
    least_link_bits_per_second: float
    """Slowest link of its runs; 0 where none had one."""
    load: WorkloadLoad
    """How hard it drives a board."""
    sources: tuple[str, ...]
    """From what, in words, the most trusted first."""
    intermediate: IntermediateCurve | None = None
    """Its intermediate bytes by the published tables; None where they have none."""
    intermediate_share: float | None = None
    """Those of own runs, for each byte of input."""
    intermediate_largest: float = 0.0
    """The largest amount that these were measured with."""
    own_watts: Mapping[str, float] = field(default_factory=dict)
    """Power of a worker in own runs, by its board."""
    own_runs: int = 0
    """How many own runs it was learned from."""
    memory_seen_bytes: float = math.inf
    """Memory of the smallest board that they were on."""
    unrated: frozenset[str] = frozenset()
    """Boards and media without a figure that all its runs were on, so that none is needed."""
    contradiction: str = ""
    """Which runs contradict each other; empty if none do."""

    def cpu_rate(self, board: BoardRates | None) -> float | None:
        """Return a board's rate as its runs count it; None where it has none."""
        if board is None:
            return None
        return 1.0 if board.name in self.unrated else board.cpu_rate

    def slowness(self, medium: MediumRates | None) -> float | None:
        """Return a medium's slowness likewise."""
        if medium is None:
            return None
        return 1.0 if medium.name in self.unrated else medium.slowness

    def rule(self, settings: Mapping[str, str]) -> SpillRule:
        """Return from which size it spills with other settings."""
        if not settings:
            return self.fitted.rule
        rule = own_spill_rule if self.own_runs else spill_rule
        return rule(self.workload, self.engine, {**self.settings, **settings})


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeModel:
    """What was learned; made by ``learn`` of ``plan/learning.py``."""

    boards: Mapping[str, BoardRates]
    """Boards that may be asked for, by name."""
    media: Mapping[str, MediumRates]
    """Media that may be asked for, by name."""
    series: Mapping[tuple[str, Engine], LearnedSeries]
    """By workload and engine."""
    calibration: IntervalCalibration
    """What turns an uncertainty into an interval."""
    said: Mapping[tuple[str, Engine], tuple[str, ...]] = field(default_factory=dict)
    """By workload and engine, what is to be said of own runs that were left out."""


def reach_of(
    model: RuntimeModel, learned: LearnedSeries, work: WorkArrays, spread: _Floats
) -> _Floats:
    """Return how far the 90 % interval reaches from the median, as a logarithm."""
    distance = distances(learned.fitted.data.work, work)
    reach = model.calibration.factor(distance) * spread
    board = _NORMAL_90 * _CPU_LOG_SPREAD * distance[:, 3]
    return np.asarray(np.sqrt(reach**2 + board**2))


def predict_many(model: RuntimeModel, questions: QuestionBatch) -> PredictionBatch:
    """Predict many runs at once: 40,000 in well under a second.

    Boards and media are looked up in the model; runs on ones it does not know, or whose figure is
    missing, are not known (``UnknownReason.NO_FIGURE``).
    """
    count = len(questions.size_bytes)
    learned = model.series.get((questions.workload, questions.engine))
    if learned is None:
        return _nothing(count)
    boards = [model.boards.get(name) for name in questions.boards]
    media = [model.media.get(name) for name in questions.media]
    cpu = _looked_up([learned.cpu_rate(row) for row in boards], questions.board)
    slowness = _looked_up([learned.slowness(row) for row in media], questions.medium)
    without_figure = np.isnan(cpu) | np.isnan(slowness)
    amount = _amounts(questions)
    work = WorkArrays(
        amount=amount,
        workers=questions.workers,
        slowness=np.where(without_figure, 1.0, slowness),
        cpu_rate=np.where(without_figure, 1.0, cpu),
        replication=questions.replication,
    )
    rule = learned.rule(questions.settings)
    fitted = learned.fitted.with_rule(rule)
    logs, spread = fitted.logs(work, np.array(questions.media)[questions.medium])
    reach = reach_of(model, learned, work, spread)
    median = np.exp(logs)
    watts = _looked_up(
        [_watts(learned, row) for row in boards],
        questions.board,
    )
    between, high_between = intermediate_of(learned, amount)
    joules = median * watts * questions.workers
    further = np.sqrt(reach**2 + (_NORMAL_90 * POWER_LOG_SPREAD) ** 2)
    memory = _looked_up(
        [float(row.memory_bytes) if row else None for row in boards], questions.board
    )
    reason = _reasons(
        (
            (without_figure, UnknownReason.NO_FIGURE),
            (short_of_memory(learned, memory), UnknownReason.MEMORY),
            (questions.slots > 0, UnknownReason.SLOTS),
            (crosses(learned, rule, amount), UnknownReason.THRESHOLD),
            (
                (questions.link_bits_per_second > 0)  # a node alone has no link, and needs none
                & (
                    questions.link_bits_per_second
                    < _LINK_SHARE * learned.least_link_bits_per_second
                ),
                UnknownReason.RESOURCE,
            ),
            (np.full(count, bool(learned.contradiction)), UnknownReason.CONTRADICTION),
            (np.expm1(reach) > _WIDEST, UnknownReason.WIDE),
        )
    )
    empty = np.where(without_figure, np.nan, 1.0)
    return PredictionBatch(
        median_seconds=median * empty,
        low_seconds=median * np.exp(-reach) * empty,
        high_seconds=median * np.exp(reach) * empty,
        intermediate_bytes=between,
        high_intermediate_bytes=high_between,
        joules=joules * empty,
        high_joules=joules * np.exp(further) * empty,
        known=reason == "",
        reason=reason,
    )


def _nothing(count: int) -> PredictionBatch:
    """Answer where nothing was learned."""
    nothing = np.full(count, np.nan)
    return PredictionBatch(
        median_seconds=nothing,
        low_seconds=nothing,
        high_seconds=nothing,
        intermediate_bytes=nothing,
        high_intermediate_bytes=nothing,
        joules=nothing,
        high_joules=nothing,
        known=np.zeros(count, dtype=bool),
        reason=np.full(count, str(UnknownReason.NO_DATA)),
    )


def _looked_up(values: list[float | None], places: NDArray[np.intp]) -> _Floats:
    return np.array([np.nan if value is None else value for value in values], float)[places]


def _watts(learned: LearnedSeries, board: BoardRates | None) -> float | None:
    if board is None:
        return None
    return learned.own_watts.get(board.name) or worker_watts(board, learned.load)


def _amounts(questions: QuestionBatch) -> _Floats:
    if amount_of(questions.workload, 0, questions.parameters):
        amount = amount_of(questions.workload, 0, questions.parameters)
        return np.full(len(questions.size_bytes), amount)
    return questions.size_bytes / GIGABYTE


def _reasons(cases: tuple[tuple[NDArray[np.bool_], str], ...]) -> NDArray[np.str_]:
    """Return for each run the first reason that holds; empty where none does."""
    return np.select([case for case, _ in cases], [str(reason) for _, reason in cases], default="")


def crosses(learned: LearnedSeries, rule: SpillRule, amount: _Floats) -> NDArray[np.bool_]:
    """Say which inputs spill although no run that was learned from did."""
    seen = learned.fitted.rule.spilled(learned.fitted.data.work.amount)
    return np.asarray((rule.spilled(amount) > 0) & (not seen.any()))


def memory_need_bytes() -> float:
    """Return what the published runs needed on a worker: its daemons and the smallest container."""
    return (_CONTAINER_MIB + _DAEMONS_MIB) * MIB


def short_of_memory(learned: LearnedSeries, memory_bytes: _Floats) -> NDArray[np.bool_]:
    """Say which boards cannot hold the daemons and a container as large as the runs' were.

    Boards with as much memory as one that own runs were on can.
    """
    return np.asarray(memory_bytes < min(memory_need_bytes(), learned.memory_seen_bytes))


def intermediate_of(learned: LearnedSeries, amount: _Floats) -> tuple[_Floats, _Floats]:
    """Return intermediate bytes and the upper end of their 90 % interval; NaN where not known."""
    if learned.intermediate_share is not None:
        found = learned.intermediate_share * amount * GIGABYTE
        # Merges of larger inputs take further rounds, so that the share grows.
        beyond = np.maximum(0.0, np.log(np.maximum(amount, 1e-9) / learned.intermediate_largest))
        spread = _INTERMEDIATE_LOG_SPREAD * np.sqrt(1.0 + beyond**2)
        return found, found * np.exp(_NORMAL_90 * spread)
    curve = learned.intermediate
    if curve is None:
        nothing = np.full(len(amount), np.nan)
        return nothing, nothing
    beyond = np.maximum(0.0, np.log(np.maximum(amount, 1e-9) / curve.largest))
    spread = np.sqrt(curve.log_spread**2 + (_INTERMEDIATE_LOG_SPREAD * beyond) ** 2)
    found = curve.at(amount) * GIGABYTE
    return found, found * np.exp(_NORMAL_90 * spread)
