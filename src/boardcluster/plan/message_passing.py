"""Predictions for MPI: HPL by its work and messages, NetPIPE by latency and bandwidth."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from boardcluster.analysis.statistics import Interval
from boardcluster.catalog.entry import SourcedFigure
from boardcluster.catalog.lookup import entry_names, find_board
from boardcluster.plan.hardware import OWN_HARDWARE, BoardRates, board_rates
from boardcluster.plan.linpack import (
    PUBLISHED_BOARD,
    PUBLISHED_LINK_BITS_PER_SECOND,
    LinpackModel,
    LinpackRun,
    fit_linpack,
    linpack_grid,
    linpack_operations,
    linpack_seconds,
    published_linpack,
)
from boardcluster.plan.own_runs import nodes_of, on_same_nodes, stands_for
from boardcluster.plan.prediction import (
    PredictedAmount,
    RunNext,
    RuntimePrediction,
    Unknown,
    UnknownReason,
)
from boardcluster.plan.question import Question
from boardcluster.records import Attempt, Measurement, Result, Trial, in_cell
from boardcluster.units import parse_size

__all__ = ["answer_mpi"]

_NUMBER_BYTES = 8
_NORMAL_90 = 1.645
_LEAST_LOG_SPREAD = 0.03
"""No prediction of HPL is surer: what two runs of the same differ by."""
_FULLEST = 0.92
"""Share of the memory beyond which the rates of Baun's Table 7 fall."""
_LINK_RATIO = 2.0
"""A link this many times as fast or as slow as that of every run may cost otherwise."""
_OF_PROGRAM = {"hpl.binary": "built", "hpl.ranks_per_node": "0", "netpipe.transport": "tcp"}
"""Parameters of which another value is another program, and what they are where nobody set them."""

_OwnRun = tuple[Trial, Attempt, Measurement]


def answer_mpi(question: Question, runs: Sequence[Result], board: BoardRates) -> RuntimePrediction:
    """Predict a run of a workload on MPI by the model of its own."""
    answers = {"hpl": _answer_hpl, "netpipe": _answer_netpipe}
    if (answer := answers.get(question.workload)) is None:
        words = f"there is no model of {question.workload}"
        return replace(_unanswered(question, UnknownReason.NO_DATA, words), run_next=None)
    return answer(question, _own_runs(question, runs), board)


def _own_runs(question: Question, runs: Sequence[Result]) -> list[_OwnRun]:
    """Return the runs of the same program on the same board, without those on replaced nodes."""
    file = question.board if question.board.endswith(".toml") else ""
    found = [
        (row.trial, attempt, measured)
        for row in runs
        if (attempt := row.attempt)
        and (measured := row.measurement)
        and in_cell(measured)
        and _board_of(attempt.fingerprint.twin, file, question.board) == question.board
        and all(
            row.trial.parameters.get(name, usual) == question.parameters.get(name, usual)
            for name, usual in _OF_PROGRAM.items()
        )
    ]
    if not found:
        return []
    now = nodes_of(max(found, key=lambda row: row[1].started_utc)[1].fingerprint)
    return [row for row in found if on_same_nodes(nodes_of(row[1].fingerprint), now)]


def _board_of(twin: str, file: str, asked: str) -> str:
    """Return the board that a run is of: the one asked about where it is the slowest of several.

    A question about one's own cluster of several boards is about the slowest, which jobs wait for.
    """
    named = set(re.findall(r"[\w-]+", twin)).intersection(entry_names("boards"))
    if asked in named and asked == min(named, key=lambda name: board_rates(name).cpu_rate or 0.0):
        return asked
    return stands_for(twin, "boards", file)


def _own_linpack(runs: Sequence[_OwnRun]) -> list[LinpackRun]:
    found = []
    for trial, attempt, measured in runs:
        figures = measured.figures
        if not {"n", "gflops_per_second"} <= figures.keys():
            continue
        n = int(figures["n"])
        p, q = linpack_grid(trial.workers)
        found.append(
            LinpackRun(
                n=n,
                workers=trial.workers,
                p=p,
                q=q,
                seconds=linpack_operations(n) / (figures["gflops_per_second"] * 1e9),
                link_bits_per_second=float(attempt.fingerprint.link_bits_per_second),
                source="own runs",
            )
        )
    return found


def _answer_hpl(
    question: Question, runs: Sequence[_OwnRun], board: BoardRates
) -> RuntimePrediction:
    """Predict the time and the rate of a solution; the size is that of the matrix."""
    n = math.isqrt(question.size_bytes // _NUMBER_BYTES)
    if not n:
        words = "without a size, the matrix of hpl depends on the workers' memory; give a size"
        return _unanswered(question, UnknownReason.NO_DATA, words)
    own = _own_linpack(runs)
    published = [run for rows in published_linpack().values() for run in rows]
    # What messages cost shows only beside a run of the same boards that sends none.
    counts = {run.workers for run in own}
    several = own if 1 in counts and len(counts) > 1 else published
    if own:
        said = f"{len(own)} own runs" if len(own) > 1 else "1 own run"
        if several is published:
            said += ", messages by baun-2016 Table 7"
        model = fit_linpack(own, several, source=said)
    elif question.board == PUBLISHED_BOARD:
        alone = [run for run in published if run.workers == 1]
        model = fit_linpack(alone, published, source="baun-2016 Table 7")
    else:
        words = f"no own run of hpl like this on {question.board}, and no published one"
        return _unanswered(question, UnknownReason.NO_DATA, words)
    p, q = linpack_grid(question.workers)  # processes of one node send nothing over the link
    asked = LinpackRun(
        n=n,
        workers=question.workers,
        p=p,
        q=q,
        seconds=0.0,
        link_bits_per_second=question.link_bits_per_second,
        source="",
    )
    return _solved(question, board, model, asked, several)


def _solved(
    question: Question,
    board: BoardRates,
    model: LinpackModel,
    asked: LinpackRun,
    several: Sequence[LinpackRun],
) -> RuntimePrediction:
    seconds = linpack_seconds(model, asked)
    reach = math.exp(_NORMAL_90 * max(model.log_spread, _LEAST_LOG_SPREAD))
    rate = linpack_operations(asked.n) / seconds / 1e9
    efficiency = rate / (model.rate_gflops * question.workers)
    unknown = []
    needs = question.size_bytes / question.workers
    if board.memory_bytes and needs > _FULLEST * board.memory_bytes:
        unknown.append(
            Unknown(
                reason=UnknownReason.MEMORY,
                words=f"the matrix takes {100 * needs / board.memory_bytes:.0f} % of each worker's"
                " memory; beyond 92 % the published rates fall",
            )
        )
    # One worker sends nothing, and may have no link at all.
    measured = [run.link_bits_per_second for run in several if run.workers > 1]
    link = median(measured or [PUBLISHED_LINK_BITS_PER_SECOND])
    ratio = question.link_bits_per_second / link
    if question.workers > 1 and not 1 / _LINK_RATIO <= ratio <= _LINK_RATIO:
        unknown.append(
            Unknown(
                reason=UnknownReason.RESOURCE,
                words=f"messages were measured on {link / 1e6:.0f} Mbit/s only; what they"
                f" cost on {question.link_bits_per_second / 1e6:.0f} Mbit/s is assumed to follow"
                " the link",
            )
        )
    return RuntimePrediction(
        question=question,
        seconds=_around(seconds, reach),
        shares=None,
        intermediate_bytes=None,
        joules=None,
        provenance=(model.source,),
        distance=None,
        backtest=None,
        unknown=tuple(unknown),
        run_next=RunNext(
            workers=2, size_bytes=question.size_bytes // 4, seconds=None, narrows_to=None
        )
        if unknown
        else None,
        figures={
            "gflops_per_second": _around(rate, reach),
            "parallel_efficiency_ratio": _around(efficiency, reach),
        },
    )


def _around(value: float, reach: float) -> PredictedAmount:
    return PredictedAmount(median=value, interval=Interval(low=value / reach, high=value * reach))


def _answer_netpipe(
    question: Question, runs: Sequence[_OwnRun], board: BoardRates
) -> RuntimePrediction:
    """Predict the throughput of the largest message: size / (latency + size / bandwidth)."""
    transport = question.parameters.get("netpipe.transport", "tcp")
    largest = float(parse_size(question.parameters.get("netpipe.largest_bytes", "4 MiB")))
    measured = [
        (found.figures, attempt.fingerprint.link_bits_per_second) for _, attempt, found in runs
    ]
    if measured:
        latency = median(row["latency_mean_microseconds"] for row, _ in measured) * 1e-6
        shares = [
            row["peak_throughput_mean_megabits_per_second"] * 1e6 / link for row, link in measured
        ]
        source = f"{len(measured)} own runs"
    else:
        figures = _peaks(question.board, transport) if board.name != OWN_HARDWARE else []
        if not figures:
            words = f"no own run of netpipe over {transport} on {board.name}, and no published one"
            return _unanswered(question, UnknownReason.NO_DATA, words)
        latency = 0.0
        shares = [row.figure.value / PUBLISHED_LINK_BITS_PER_SECOND for row in figures]
        source = f"{figures[0].source}; latency is not printed there"
    bandwidth = median(shares) * question.link_bits_per_second
    seconds = latency + 8 * largest / bandwidth
    reach = math.exp(_NORMAL_90 * 0.1)
    return RuntimePrediction(
        question=question,
        seconds=_around(seconds, reach),
        shares=None,
        intermediate_bytes=None,
        joules=None,
        provenance=(source,),
        distance=None,
        backtest=None,
        figures={"throughput_megabits_per_second": _around(8 * largest / seconds / 1e6, reach)},
    )


def _peaks(board: str, transport: str) -> list[SourcedFigure]:
    return [
        row
        for row in find_board(board).figures
        if row.figure.name == "netpipe_peak_bits_per_second"
        and row.figure.conditions.get("transport") == transport
    ]


def _unanswered(question: Question, reason: UnknownReason, words: str) -> RuntimePrediction:
    return RuntimePrediction(
        question=question,
        seconds=None,
        shares=None,
        intermediate_bytes=None,
        joules=None,
        provenance=(),
        distance=None,
        backtest=None,
        unknown=(Unknown(reason=reason, words=words),),
        run_next=RunNext(
            workers=question.workers_least,
            size_bytes=question.size_bytes // 4,
            seconds=None,
            narrows_to=None,
        ),
    )
