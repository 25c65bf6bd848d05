"""One question answered: the time with its parts, how far it may be off, and what would help."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from boardcluster.analysis.statistics import Interval
from boardcluster.errors import UsageError
from boardcluster.plan.feasibility import HDFS_SHARES, DiskNeed
from boardcluster.plan.model import (
    LearnedSeries,
    RuntimeModel,
    intermediate_of,
    memory_need_bytes,
    predict_many,
    reach_of,
)
from boardcluster.plan.observations import (
    GIGABYTE,
    WorkArrays,
    amount_of,
    amount_words,
    published_observations,
)
from boardcluster.plan.prediction import (
    DataDistance,
    PredictedAmount,
    PredictionBatch,
    RunNext,
    RuntimePrediction,
    TimeShares,
    Unknown,
    UnknownReason,
)
from boardcluster.plan.question import Question, QuestionBatch
from boardcluster.plan.residual import residual_of
from boardcluster.plan.series import distances
from boardcluster.units import format_bytes

__all__ = [
    "answer_question",
    "batch_of",
    "time_shares",
    "work_of",
]

_LEAST_NARROWING = 0.7
"""A run that leaves more of the interval than this is not worth making."""
_FIRST_RUN_BYTES = 256_000_000
"""Size of a first run where nothing is known."""


def batch_of(question: Question) -> QuestionBatch:
    """Return a question as a batch of one."""
    return QuestionBatch(
        workload=question.workload,
        engine=question.engine,
        boards=(question.board,),
        media=(question.medium,),
        size_bytes=np.array([question.size_bytes], float),
        workers=np.array([question.workers], float),
        board=np.zeros(1, dtype=np.intp),
        medium=np.zeros(1, dtype=np.intp),
        replication=np.array([question.replication], float),
        link_bits_per_second=np.array([question.link_bits_per_second], float),
        slots=np.array([question.slots], float),
        parameters=question.parameters,
        settings=question.settings,
    )


def answer_question(model: RuntimeModel, question: Question) -> RuntimePrediction:
    """Predict one run.

    Raises:
        UsageError: there are no workers.
    """
    if question.workers < 1:
        raise UsageError("a prediction needs at least 1 worker", hint="give --workers 1 or more")
    batch = predict_many(model, batch_of(question))
    learned = model.series.get((question.workload, question.engine))
    if learned is None or np.isnan(batch.median_seconds[0]):
        return _nothing(model, question, learned)
    work = work_of(model, learned, question)
    distance = distances(learned.fitted.data.work, work)[0]
    unknown = _unknown(model, question, learned, batch, work)
    return RuntimePrediction(
        question=question,
        seconds=_amount(batch.median_seconds, batch.low_seconds, batch.high_seconds),
        shares=time_shares(learned, work, question),
        intermediate_bytes=_upper(batch.intermediate_bytes, batch.high_intermediate_bytes),
        joules=_upper(batch.joules, batch.high_joules),
        provenance=_provenance(model, question, learned),
        distance=_ratios(distance),
        backtest=model.calibration.at(distance),
        unknown=unknown,
        lower_bound=any(row.reason is UnknownReason.RESOURCE for row in unknown),
        run_next=_run_next(model, question, learned, unknown),
    )


def work_of(model: RuntimeModel, learned: LearnedSeries, question: Question) -> WorkArrays:
    """Return a question as the model sees it; its hardware must have the figures needed."""
    amount = amount_of(question.workload, question.size_bytes, question.parameters)
    return WorkArrays(
        amount=np.array([amount]),
        workers=np.array([question.workers], float),
        slowness=np.array([learned.slowness(model.media[question.medium]) or 1.0]),
        cpu_rate=np.array([learned.cpu_rate(model.boards[question.board]) or 1.0]),
        replication=np.array([question.replication], float),
    )


def _amount(
    median: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
) -> PredictedAmount:
    return PredictedAmount(
        median=float(median[0]), interval=Interval(low=float(low[0]), high=float(high[0]))
    )


def _upper(
    median: NDArray[np.float64],
    high: NDArray[np.float64],
) -> PredictedAmount | None:
    """Return an amount whose interval reaches as far down as up, as a ratio."""
    if np.isnan(median[0]):
        return None
    return _amount(median, median**2 / np.maximum(high, 1e-9), high)


def time_shares(learned: LearnedSeries, work: WorkArrays, question: Question) -> TimeShares:
    """Return of what the predicted time consists."""
    fitted = learned.fitted.with_rule(learned.rule(question.settings))
    parts = fitted.terms(work)[0]
    parts = parts / max(float(parts.sum()), 1e-9)
    copies = min(question.replication, question.workers)
    copied = float(parts[6]) * (copies - 1) / copies
    return TimeShares(
        start=float(parts[0] + parts[1]),
        fixed_tasks=float(parts[2] + parts[3]),
        cpu=float(parts[4] + parts[6]) - copied,
        storage=float(parts[5] + parts[7]),
        network=copied,
        serial=float(parts[8] + parts[9]),
        spill=float(parts[10] + parts[11]),
    )


def _ratios(distance: NDArray[np.float64]) -> DataDistance:
    size, workers, medium, cpu = (round(float(np.exp(value)), 6) for value in distance)
    return DataDistance(workers=workers, size=size, medium=medium, cpu=cpu)


def _provenance(model: RuntimeModel, question: Question, learned: LearnedSeries) -> tuple[str, ...]:
    board, medium = model.boards[question.board], model.media[question.medium]
    known = learned.fitted.data
    if learned.unrated:
        return learned.sources
    said = list(learned.sources)
    if board.cpu_rate is not None and not np.isclose(known.work.cpu_rate, board.cpu_rate).any():
        said.append(f"the CPU by the ratio of 7-zip ({board.cpu_source})")
    if medium.slowness is not None and question.medium not in known.media:
        said.append(f"the medium by its HDFS write probe ({medium.source})")
    return tuple(said)


def _too_little(question: Question) -> str:
    """Say what is missing of a workload that nothing was learned of."""
    asked = question.workload, question.engine
    programs = {
        run.program for run in published_observations() if (run.workload, run.engine) == asked
    }
    sizes = "two sizes or " if question.size_bytes else ""
    published = "no published series and " if not programs else ""
    other = f"; the published series is of {' and '.join(sorted(programs))}" if programs else ""
    return (
        f"{published}too few own runs of {question.workload} on {question.engine}: {sizes}two"
        f" numbers of workers are needed{other}"
    )


def _nothing(
    model: RuntimeModel, question: Question, learned: LearnedSeries | None
) -> RuntimePrediction:
    """Answer where no time can be given at all."""
    if learned is None:
        what = _too_little(question)
        reason = UnknownReason.NO_DATA
        provenance = model.said.get((question.workload, question.engine), ())
    else:
        reason = UnknownReason.NO_FIGURE
        provenance = learned.sources
        board, medium = model.boards.get(question.board), model.media.get(question.medium)
        lacking = []
        if board is None or board.cpu_rate is None:
            lacking.append(f"{question.board} has no rating of 7-zip (`boardcluster probe`)")
        if medium is None or medium.slowness is None:
            lacking.append(
                f"{question.medium} has no HDFS write probe (`boardcluster run dfsio --size 10GB`)"
            )
        what = "; ".join(lacking)
    return RuntimePrediction(
        question=question,
        seconds=None,
        shares=None,
        intermediate_bytes=None,
        joules=None,
        provenance=provenance,
        distance=None,
        backtest=None,
        unknown=(Unknown(reason=reason, words=what),),
        run_next=RunNext(
            workers=max(min(question.workers, 2), question.workers_least),
            size_bytes=min(question.size_bytes, _FIRST_RUN_BYTES),
            seconds=None,
            narrows_to=None,
        ),
    )


def _unknown(
    model: RuntimeModel,
    question: Question,
    learned: LearnedSeries,
    batch: PredictionBatch,
    work: WorkArrays,
) -> tuple[Unknown, ...]:
    """Return why an answer is not to be believed; the first reason is the batch's."""
    if batch.known[0]:
        return ()
    reason = UnknownReason(str(batch.reason[0]))
    rule = learned.rule(question.settings)
    reach = batch.high_seconds[0] / batch.median_seconds[0] - 1
    need = memory_need_bytes()
    amount = amount_words(question.workload, float(work.amount[0]))
    amount = f"{amount} on " if amount else ""
    words = {
        UnknownReason.MEMORY: (
            f"{question.board} has {format_bytes(model.boards[question.board].memory_bytes)} of"
            f" memory; the runs needed {format_bytes(round(need))} for daemons and one container"
        ),
        UnknownReason.SLOTS: (
            f"{question.slots} tasks at once on a worker; the effect of that was never measured"
        ),
        UnknownReason.THRESHOLD: (
            f"from {rule.threshold:.3g} GB on data passes the disks once more, and no run was"
            f" larger than {learned.fitted.data.work.amount.max():.3g} GB"
        ),
        UnknownReason.RESOURCE: (
            f"the link carries {question.link_bits_per_second / 1e6:.0f} Mbit/s, in the slowest run"
            f" it was {learned.least_link_bits_per_second / 1e6:.0f}; the time is a lower bound"
        ),
        UnknownReason.CONTRADICTION: learned.contradiction,
        UnknownReason.WIDE: (
            f"the 90 % interval reaches {100 * reach:.0f} % above the median: {amount}"
            f"{question.workers} workers is too far from what was measured"
        ),
    }
    return (Unknown(reason=reason, words=words[reason]),)


def _fits_disks(model: RuntimeModel, learned: LearnedSeries, tried: Question) -> bool:
    """Whether nothing that is known of the disks keeps a run from ending."""
    medium, shares = model.media.get(tried.medium), HDFS_SHARES.get(tried.workload)
    if medium is None or not medium.capacity_bytes or shares is None:
        return True
    between, _ = intermediate_of(learned, np.array([tried.size_bytes / GIGABYTE]))
    return DiskNeed(
        size_bytes=tried.size_bytes,
        shares=shares,
        intermediate_bytes=float(np.nan_to_num(between[0])),
        replication=tried.replication,
        workers=tried.workers,
        disk_bytes=medium.capacity_bytes,
    ).fits


def _run_next(
    model: RuntimeModel,
    question: Question,
    learned: LearnedSeries,
    unknown: tuple[Unknown, ...],
) -> RunNext | None:
    """Return the cheapest run that narrows the interval well; None for a prediction without one.

    Where width is not what is wrong, it is the cheapest run that shows what no run has shown.
    """
    fitted, asked = learned.fitted, work_of(model, learned, question)
    if not question.size_bytes:
        sizes = [0]
    else:
        sizes = sorted({question.size_bytes // part for part in (1, 2, 4, 8)})
    if any(row.reason is UnknownReason.THRESHOLD for row in unknown):
        least = learned.rule(question.settings).threshold * GIGABYTE
        sizes = [size for size in sizes if size > least]
    choices = []
    before = float(reach_of(model, learned, asked, fitted.logs(asked, _media(question))[1])[0])
    fewest = question.workers_least
    for size in sizes:
        for workers in sorted({max(fewest, question.workers // part) for part in (1, 2, 4)}):
            tried = _with(question, size, workers)
            if not _fits_disks(model, learned, tried):
                continue
            run = work_of(model, learned, tried)
            seconds = float(np.exp(fitted.logs(run, _media(question))[0][0]))
            choices.append((seconds, workers, size, _reach_after(model, run, asked)))
    if not choices:
        return None
    worth = [row for row in choices if row[3] <= _LEAST_NARROWING * before]
    if unknown and unknown[0].reason is not UnknownReason.WIDE:
        worth = []
    elif not worth and not unknown:
        return None
    if not worth:
        seconds, workers, size, after = min(choices)
        return RunNext(workers=workers, size_bytes=size, seconds=seconds, narrows_to=None)
    seconds, workers, size, after = min(worth)
    return RunNext(
        workers=workers,
        size_bytes=size,
        seconds=seconds,
        narrows_to=after / before,
    )


def _with(question: Question, size_bytes: int, workers: int) -> Question:
    return replace(question, size_bytes=size_bytes, workers=workers)


def _media(question: Question) -> NDArray[np.str_]:
    return np.array([question.medium])


def _reach_after(model: RuntimeModel, run: WorkArrays, asked: WorkArrays) -> float:
    """Return how far the interval of a question reaches after a run on its own hardware."""
    residual = residual_of(run, np.zeros(1))
    _, spread = residual.at(asked)
    distance = distances(run, asked)
    return float((model.calibration.factor(distance) * spread)[0])
