"""What bound a run and its phases: shares, gains, and the numbers behind them."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from boardcluster.analysis.bottleneck.bounds import Bound, Diagnosis, PhaseDiagnosis
from boardcluster.analysis.bottleneck.evidence import evidence
from boardcluster.analysis.bottleneck.limits import node_limits, parallel_disks
from boardcluster.analysis.bottleneck.model import BOUNDS, Array, Prediction, predict
from boardcluster.analysis.bottleneck.queueing import (
    Margin,
    TaskNetwork,
    TaskQuestion,
    predict_tasks,
)
from boardcluster.analysis.bottleneck.usage import Usage, usage_of
from boardcluster.analysis.telemetry import WHOLE_RUN
from boardcluster.analysis.trust.window import seconds_text
from boardcluster.records import Result, Telemetry

__all__ = ["diagnose"]

_TWICE = 2.0
_LEAST_SHARE = 0.01  # of the time; what is less is no bound
_ROUNDING = 1e-6  # parts of the time that floating point may leave of nothing
_AGED = (
    "what tasks waited for: the run predates these records, so a node that computes at all counts "
    "as bound by its CPU"
)
_UNSEEN_SECONDS = 0.5  # less than this is not worth a word


class _Span(NamedTuple):
    name: str
    begin_seconds: float
    end_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Model:
    """Every prediction that phases are read from."""

    usage: Usage
    seen: Prediction
    """The run as it was."""
    tasks: Prediction | None
    """Of the run as it was what its tasks did; None where no engine accounts for them."""
    twice: Mapping[Bound, Prediction]
    """Each resource twice as fast."""
    endless: Mapping[Bound, Prediction]
    """Each resource infinitely fast."""
    extremes: Mapping[Bound, tuple[Prediction, ...]]
    """Each resource twice as fast, by other assumptions that agree with what was seen."""

    @classmethod
    def of(cls, usage: Usage, *, aged: bool) -> Self:
        """Make every prediction.

        Args:
            usage: what every node did.
            aged: whether the run is from before tasks were recorded. What was predicted of it then
                stays, by nodes alone; what is known by now of its tasks widens the bounds.
        """
        fitted = None if usage.demand is None else TaskNetwork.fit(usage.demand)
        network = None if aged else fitted
        others = tuple(_others(usage))
        if aged and fitted is not None:
            others = (*others, (fitted, Margin.LIKELY))
        asked = [
            _Question(network),
            *(_Question(network, bound, _TWICE) for bound in Bound),
            *(_Question(network, bound, math.inf) for bound in Bound),
            *(
                _Question(other, bound, _TWICE, margin)
                for bound in Bound
                for other, margin in others
            ),
        ]
        seen, *answers = _predict(usage, asked)
        count = len(Bound)
        extremes = answers[2 * count :]
        whole = [TaskQuestion(network)] if network and usage.counted else []
        return cls(
            usage=usage,
            seen=seen,
            tasks=next(iter(predict_tasks(whole)), None) if whole else None,
            twice=dict(zip(Bound, answers[:count], strict=True)),
            endless=dict(zip(Bound, answers[count : 2 * count], strict=True)),
            extremes={
                bound: tuple(extremes[place * len(others) : (place + 1) * len(others)])
                for place, bound in enumerate(Bound)
            },
        )

    def of_tasks(self, bound: Bound, seconds: Array) -> float | None:
        """The share of the tasks' time that a bound had; None where they are not accounted for."""
        weights = seconds * self.usage.tasked
        if self.tasks is None or not weights.any():
            return None
        return float(self.tasks.shares[BOUNDS.index(bound)] @ weights / weights.sum())


def _others(usage: Usage) -> Iterable[tuple[TaskNetwork | None, Margin]]:
    """What tasks may have waited for as well, by what is known."""
    demand = usage.demand
    if demand is None:
        yield None, Margin.LEAST
        yield None, Margin.MOST
        return
    likely = TaskNetwork.fit(demand)
    yield likely, Margin.LEAST
    yield likely, Margin.MOST
    if not demand.serial.all():
        one_by_one = replace(demand, serial=np.ones_like(demand.serial))
        yield TaskNetwork.fit(one_by_one), Margin.LIKELY
    if (demand.own_cpu < demand.cpu).any():
        yield TaskNetwork.fit(demand, helpers_first=True), Margin.LIKELY
    if (demand.at_once < 1).any():
        yield TaskNetwork.fit(demand, written_later=True), Margin.LIKELY
    if demand.memory.any():
        yield TaskNetwork.fit(demand, stalled=Margin.LEAST), Margin.LIKELY
        yield TaskNetwork.fit(demand, stalled=Margin.MOST), Margin.LIKELY
    if not usage.counted:
        as_many = np.where(demand.tasks > 0, np.maximum(demand.tasks, demand.cores), 0.0)
        yield TaskNetwork.fit(replace(demand, tasks=as_many)), Margin.LIKELY
        yield None, Margin.LIKELY


class _Question(NamedTuple):
    network: TaskNetwork | None
    bound: Bound | None = None
    times_as_fast: float = 1.0
    margin: Margin = Margin.LIKELY


def _predict(usage: Usage, asked: Sequence[_Question]) -> list[Prediction]:
    """Steps in which tasks ran by their queues; the rest of the run by what nodes did."""
    with_tasks = [
        TaskQuestion(row.network, row.bound, row.times_as_fast, row.margin)
        for row in asked
        if row.network is not None
    ]
    of_tasks = iter(predict_tasks(with_tasks) if with_tasks else ())
    work = usage.work
    of_margin = {
        Margin.LEAST: work.overlapping(),
        Margin.LIKELY: work,
        # Where tasks are known, a machine may be among its own nodes, and queues say who waited.
        Margin.MOST: work.in_turn() if usage.demand is None else work,
    }

    @functools.cache
    def of_nodes(margin: Margin, bound: Bound | None, times_as_fast: float) -> Prediction:
        return predict(of_margin[margin], bound, times_as_fast)

    found = []
    for row in asked:
        alone = of_nodes(row.margin, row.bound, row.times_as_fast)
        if row.network is not None:
            tasks, part = next(of_tasks), usage.tasked
            alone = Prediction(
                lengths=part * tasks.lengths + (1 - part) * alone.lengths,
                shares=part * tasks.shares + (1 - part) * alone.shares,
            )
        found.append(alone)
    return found


def diagnose(result: Result, telemetry: Telemetry | None) -> Diagnosis:
    """Say what bound a run and each of its phases, and what it would gain.

    The run is cut into steps as long as samples are apart. Where tasks ran, what they waited for,
    and how long the step would take were one resource faster, follows from a closed queueing
    network (``boardcluster.analysis.bottleneck.queueing`` has the formulas and their sources);
    elsewhere, and for emulated boards with a CPU limit, from what the busiest node did
    (``boardcluster.analysis.bottleneck.model``). Shares are parts of the time, 0 to 1; gains and
    limits are times as fast, at least 1. They are predictions: how near they came is in
    docs/explanation/bottleneck.md.

    Of the result only the fingerprint is read, for what limited emulated boards. Without telemetry,
    or where it says nothing, there is no bound, and ``missing`` says why.
    """
    if telemetry is None:
        return Diagnosis(run=_nothing(_Span(WHOLE_RUN, 0.0, 0.0)))
    fingerprint = result.attempt.fingerprint if result.attempt else None
    usage = usage_of(
        telemetry,
        node_limits(fingerprint),
        fingerprint.link_bits_per_second if fingerprint else 0,
        parallel_disks(fingerprint),
    )
    spans = _spans(telemetry)
    if usage is None:
        words = "no samples" if telemetry.duration_seconds > 0 else "the run took no time"
        whole, *phases = (_nothing(span, words) for span in spans)
        return Diagnosis(run=whole, phases=tuple(phases))
    model = _Model.of(usage, aged=telemetry.tasks is None)
    nodes = fingerprint.nodes if fingerprint else 0
    missing = (*usage.missing, *_lost(telemetry, nodes))
    if telemetry.tasks is None and usage.demand is not None:
        missing = (*missing, _AGED)
    whole, *phases = (_phase(span, model, missing) for span in spans)
    return Diagnosis(run=whole, phases=tuple(phases))


def _nothing(span: _Span, words: str = "no telemetry") -> PhaseDiagnosis:
    return PhaseDiagnosis(
        phase=span.name,
        begin_seconds=span.begin_seconds,
        duration_seconds=max(0.0, span.end_seconds - span.begin_seconds),
        missing=(words,),
    )


def _spans(telemetry: Telemetry) -> list[_Span]:
    """The whole run first, then its phases as they began; of two at once the longer first."""
    end_seconds = telemetry.duration_seconds
    phases = [
        _Span(name, begin, end)
        for name, (begin, end) in telemetry.phases.items()
        if math.isfinite(begin) and math.isfinite(end)
    ]
    phases.sort(key=lambda span: (span.begin_seconds, -span.end_seconds))
    whole_seconds = end_seconds if math.isfinite(end_seconds) else 0.0
    return [_Span(WHOLE_RUN, 0.0, whole_seconds), *phases]


def _lost(telemetry: Telemetry, nodes: int) -> Iterable[str]:
    """Say that nodes of the cluster gave no samples."""
    own = [node for node in telemetry.nodes if node.scope != "machine"] or telemetry.nodes
    given = sum(1 for node in own if len(node.seconds))
    if nodes > given:
        yield f"no samples of {nodes - given} of {nodes} nodes"


def _phase(span: _Span, model: _Model, missing: tuple[str, ...]) -> PhaseDiagnosis:
    usage = model.usage
    # How much of each step lies within the span; nothing of steps without samples.
    ends = np.minimum(usage.edges[1:], span.end_seconds)
    begins = np.maximum(usage.edges[:-1], span.begin_seconds)
    seconds = np.clip(ends - begins, 0.0, None) * usage.known
    length_seconds = max(0.0, span.end_seconds - span.begin_seconds)
    known_seconds = float(seconds.sum())
    if known_seconds <= 0:
        return _nothing(span, "no samples" if length_seconds > 0 else "it took no time")
    shares = dict(zip(BOUNDS, model.seen.shares @ seconds / known_seconds, strict=True))
    gains = {bound: _gain(row, seconds) for bound, row in model.twice.items()}
    first = _most_saved(gains) or _largest(shares)
    second = None if first is None else _largest(_behind(first, model, seconds))
    words = [words for node in usage.nodes for words in node.missing]
    if length_seconds - known_seconds > _UNSEEN_SECONDS:
        unseen = seconds_text(length_seconds - known_seconds)
        words.append(f"no samples in {unseen} of {seconds_text(length_seconds)}")
    return PhaseDiagnosis(
        phase=span.name,
        begin_seconds=span.begin_seconds,
        duration_seconds=length_seconds,
        known_seconds=known_seconds,
        shares={bound: float(share) for bound, share in shares.items()},
        first=first,
        second=second,
        gains=gains,
        gain_bounds={
            bound: (min(gains[bound], *found), max(gains[bound], *found))
            for bound, rows in model.extremes.items()
            for found in [[_gain(row, seconds) for row in rows]]
        },
        limits={bound: _gain(row, seconds) for bound, row in model.endless.items()},
        evidence=tuple(
            evidence(bound, usage, seconds, model.of_tasks(bound, seconds))
            for bound in (first, second)
            if bound
        ),
        missing=(*missing, *words),
    )


def _gain(prediction: Prediction, seconds: Array) -> float:
    """How many times as fast a span would be; not less than 1, which only rounding could give."""
    left_seconds = float(prediction.lengths @ seconds)
    known_seconds = float(seconds.sum())
    nothing = left_seconds <= _ROUNDING * known_seconds
    return math.inf if nothing else max(1.0, known_seconds / left_seconds)


def _behind(first: Bound, model: _Model, seconds: Array) -> Mapping[Bound, float]:
    """What the time would be made of were a bound gone; parts of the time as it was."""
    left = dict(zip(BOUNDS, model.endless[first].shares @ seconds, strict=True))
    if first is Bound.CPU:
        # What heat added goes with the CPU's time, and can still be had without another CPU.
        left[Bound.HEAT] = model.seen.shares[BOUNDS.index(Bound.HEAT)] @ seconds
    known_seconds = float(seconds.sum())
    return {bound: part / known_seconds for bound, part in left.items() if bound is not first}


def _most_saved(gains: Mapping[Bound, float]) -> Bound | None:
    """The bound of which half, gone, saves most; None if that is next to nothing.

    A resource twice as fast is half of it gone. Memory and heat are gone as a whole.
    """
    saved = {
        bound: (1 - 1 / gain) / (2 if bound in (Bound.MEMORY, Bound.HEAT) else 1)
        for bound, gain in gains.items()
    }
    return _largest(saved)


def _largest(shares: Mapping[Bound, float]) -> Bound | None:
    found = max(shares, key=lambda bound: shares[bound])
    return found if shares[found] >= _LEAST_SHARE else None
