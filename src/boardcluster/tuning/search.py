"""The search: what to run next, from the record alone.

Points are tried on small inputs first; the best third of each size is promoted to the next (L. Li
et al., "A System for Massively Parallel Hyperparameter Tuning", MLSys 2020: successive halving that
waits for nothing). What is compared is the logarithm of time (or energy) against the base's at the
same size, so that sizes and moods of the machine cancel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from boardcluster.tuning.record import (
    BASE,
    Candidate,
    Objective,
    Outcome,
    Purpose,
    TrialRecord,
    TuningRecord,
)
from boardcluster.tuning.sampler import Tried, propose
from boardcluster.tuning.space import Dimension, RuledOut, settings_of_params

__all__ = [
    "SearchEnd",
    "SearchField",
    "SearchStep",
    "Standing",
    "Step",
    "next_step",
    "proof_pairs",
    "proof_seconds",
    "sizes_of",
]

_FRACTIONS = (4, 8)
"""The smaller sizes, as parts of the whole."""
_LEAST_BYTES = 1_000_000
_LEAST_SAVING = 0.7
"""A smaller size that takes more than this of the next larger one's time saves too little."""
_PROMOTED_SHARE = 3
"""One in so many is promoted."""
_HOPELESS = math.log(1.05)
"""What is so much slower than the base at a small size is not promoted."""
_FAILED_SCORE = math.log(10)
_DRIFT_EVERY = 6
"""Runs between two looks at the base."""
_AGAIN_MOST = 3
"""The best is measured at most so often before the proof."""
_LIMIT_TIMES = {Objective.TIME: 2.0, Objective.ENERGY: 4.0, Objective.BOTH: 2.0}
"""A run is stopped after so many times what the fastest took at this size. A slower one takes less
energy only if it takes less power by as much, and a quarter is less than idle boards take."""
_LIMIT_LEAST_SECONDS = 20.0
_FAILURES_MOST = 4
"""So many failures one after the other stop the search."""
_LOST_MOST = 2
"""A candidate of which so many runs in a row were lost at a size counts as failed there."""
_AROUND_LIKELY_SECONDS = 20.0
"""What is likely around a run: conditions, gathering, reading the output back."""
_RESERVE = 1.1
"""What a pair may take more than two runs of the base."""
_PAIRS_MOST = 10
_DRAWS_MOST = 40
_RUNS_MOST = 1000


class SearchEnd(StrEnum):
    """Why a search ends."""

    BUDGET = "the search budget is used up"
    EXHAUSTED = "every other point has already been tried or cannot run"
    FAILING = "one run after another failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A run to make."""

    candidate: Candidate
    """Of what."""
    rung: int
    """At which size: an index of ``sizes_of``."""
    purpose: Purpose
    """Why."""
    limit_seconds: float | None
    """When it is stopped; None without a limit of ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchStep:
    """What comes next: a run, or the end of the search."""

    step: Step | None = None
    """The run."""
    end: SearchEnd | None = None
    """The end, if there is no run."""
    cause: str = ""
    """What the last failure said, where failures are the end."""
    ruled_out: tuple[RuledOut, ...] = ()
    """What was drawn on the way and cannot run."""


_Run: TypeAlias = "tuple[Candidate, int, Purpose]"
"""What runs, at which size, and why."""


def sizes_of(size_bytes: int) -> tuple[int, ...]:
    """Return the sizes to try points at, the whole first."""
    smaller = (size_bytes // part // 1000 * 1000 for part in _FRACTIONS)  # tera's rows have 100 B
    return (size_bytes, *(size for size in smaller if size >= _LEAST_BYTES))


def proof_seconds(run_seconds: float, pairs: int) -> float:
    """Return what so many pairs take, if a run of the base with all around it takes that long."""
    return 2 * pairs * run_seconds * _RESERVE


def proof_pairs(record: TuningRecord, spent_seconds: float) -> int:
    """Return how many pairs the rest of the budget is for; never fewer than were asked for.

    It is decided before the first pair, since to stop when it looks good would favour the best.
    """
    left = record.budget_seconds - spent_seconds
    possible = int(left / proof_seconds(Standing(record).wall_seconds(0), 1))
    return max(record.request.pairs, min(_PAIRS_MOST, possible))


def _telling(record: TuningRecord) -> list[TrialRecord]:
    """Return the runs that say something of their candidate.

    One that a node, disk or host lost is made again; if that is lost as well, it may be because of
    the candidate. One that never began says nothing.
    """
    telling: list[TrialRecord] = []
    lost: dict[tuple[str, int], list[TrialRecord]] = {}
    for run in record.runs:
        key = (run.candidate, run.rung)
        if run.outcome is not Outcome.INVALID:
            lost.pop(key, None)
            telling.append(run)
        elif run.run:
            in_a_row = lost.setdefault(key, [])
            in_a_row.append(run)
            if len(in_a_row) >= _LOST_MOST:
                telling += in_a_row if len(in_a_row) == _LOST_MOST else [run]
    return telling


def _is_given_up(record: TuningRecord, rung: int) -> bool:
    """Whether the base failed twice at a size smaller than the whole."""
    failed = [
        run
        for run in record.runs
        if (run.candidate, run.rung, run.outcome) == (BASE, rung, Outcome.FAILED)
    ]
    return rung > 0 and len(failed) >= _LOST_MOST


class Standing:
    """What the runs say so far.

    Args:
        record: the record.
    """

    def __init__(self, record: TuningRecord) -> None:
        self._record = record
        self._base: dict[int, list[TrialRecord]] = {}
        self._runs: dict[tuple[str, int], list[TrialRecord]] = {}
        self._scores: dict[tuple[str, int], float] = {}
        for run in _telling(record):
            self._runs.setdefault((run.candidate, run.rung), []).append(run)
            if run.candidate == BASE and run.outcome is Outcome.OK and run.value > 0:
                self._base.setdefault(run.rung, []).append(run)
        self.rungs = self._rungs()

    def _rungs(self) -> tuple[int, ...]:
        """Return the sizes in use, the smallest first, as far as the base was measured at them."""
        kept: list[int] = []
        for rung in sorted(self._base):  # by first looks, since later ones are of a changed machine
            took = self._base[rung][0].seconds
            if kept and took > _LEAST_SAVING * self._base[kept[-1]][0].seconds:
                break
            kept.append(rung)
        return tuple(reversed(kept))

    @property
    def next_base(self) -> int | None:
        """The size at which the base must be measured next; None if that is done.

        A size at which it failed twice is not used, nor is any smaller one: a pattern may match
        nothing in a part of a text.
        """
        for rung in range(len(sizes_of(self._record.request.size_bytes))):
            if rung not in self._base:
                return None if _is_given_up(self._record, rung) else rung
            if rung not in self.rungs:
                return None  # a smaller one would save even less
        return None

    @property
    def ran(self) -> set[str]:
        """Candidates with a run that says something of them."""
        return {name for name, _ in self._runs}

    def wall_seconds(self, rung: int) -> float:
        """Return what a run of the base takes at a size, with all around it, of the budget."""
        jobs = [run.seconds * run.dilation for run in self._base[rung]]
        return math.fsum(jobs) / len(jobs) + self._around_seconds

    def longest_seconds(self, rung: int) -> float:
        """Return the same of a candidate's run that is stopped: none takes more."""
        return self._limit_seconds(rung) * self._base[rung][0].dilation + self._around_seconds

    @property
    def looks_seconds(self) -> float:
        """What the first looks at the base at smaller sizes took of the budget."""
        looks = [run for run in self._record.runs if run.purpose is Purpose.BASE and run.rung > 0]
        return math.fsum(run.wall_seconds for run in looks)

    @property
    def _around_seconds(self) -> float:
        """The least of what is around any run.

        The first one at a size also makes the input, which can take longer than the run: as long as
        there are only such, it is likely no more than a constant.
        """
        known = [run for run in self._record.runs if run.seconds]
        least = min(run.wall_seconds - run.seconds * run.dilation for run in known)
        if len({run.rung for run in known}) == len(known):
            least = min(least, _AROUND_LIKELY_SECONDS)
        return max(0.0, least)

    def level(self, spent_seconds: float, *, of_time: bool = False) -> float:
        """Return the logarithm of how slow the machine is, against its first look.

        It is what the base took at the smallest size of what is made less of, or of time,
        interpolated between looks.
        """
        base = self._base[self.rungs[0]]
        looks = [
            (run.spent_seconds, math.log(run.seconds if of_time else run.value)) for run in base
        ]
        first = looks[0][1]
        before = [look for look in looks if look[0] <= spent_seconds]
        after = [look for look in looks if look[0] > spent_seconds]
        if not before or not after:
            return (before[-1] if before else after[0])[1] - first
        (t0, v0), (t1, v1) = before[-1], after[0]
        return v0 + (v1 - v0) * (spent_seconds - t0) / (t1 - t0) - first

    @property
    def drift(self) -> tuple[float, float]:
        """How fast the machine was at its fastest and slowest look, against its first one."""
        if not self.rungs:
            return 1.0, 1.0
        levels = [math.exp(self.level(run.spent_seconds)) for run in self._base[self.rungs[0]]]
        return min(levels), max(levels)

    def relative(self, run: TrialRecord) -> float:
        """Return the logarithm of a run against the base at its size, at the same moment."""
        if run.outcome in {Outcome.FAILED, Outcome.INVALID} or not run.value > 0:
            return _FAILED_SCORE
        base = [math.log(row.value) - self.level(row.spent_seconds) for row in self._base[run.rung]]
        return math.log(run.value) - self.level(run.spent_seconds) - math.fsum(base) / len(base)

    def score(self, candidate: str, rung: int) -> float | None:
        """Return the mean of that over a candidate's runs at a size; None without any.

        Runs that failed or were stopped count: what fails now and then is not the best.
        """
        key = (candidate, rung)
        if (runs := self._runs.get(key)) is None:
            return None
        if key not in self._scores:
            values = [self.relative(row) for row in runs]
            self._scores[key] = math.fsum(values) / len(values)
        return self._scores[key]

    def ranking(self, rung: int) -> list[tuple[float, str]]:
        """Return scores and candidates at a size, the best first, without the base."""
        scored = ((self.score(name, rung), name) for name in self._record.candidates)
        return sorted((score, name) for score, name in scored if score is not None and name != BASE)

    @property
    def best(self) -> str | None:
        """The best candidate at the whole size; None while none is better than the base there."""
        found = self.ranking(0)
        return found[0][1] if found and found[0][0] < 0 else None

    @property
    def incumbent(self) -> tuple[str, float, int]:
        """The best at the largest size that has any, its times of the base, and that size."""
        for rung in reversed(self.rungs):
            found = self.ranking(rung)
            if found and found[0][0] < 0:
                return found[0][1], math.exp(found[0][0]), rung
        return BASE, 1.0, 0

    def tried(self) -> tuple[Tried, ...]:
        """Return every candidate as the sampler takes it."""
        found = []
        for candidate in self._record.candidates.values():
            scores = [self.score(candidate.id, rung) for rung in self.rungs]
            known = [score for score in scores if score is not None]
            if known and candidate.params:
                at_whole = self.score(candidate.id, 0) is not None
                found.append(Tried(params=candidate.params, scores=tuple(known), finished=at_whole))
        return tuple(found)

    def limit_seconds(self, candidate: str, rung: int) -> float | None:
        """Return when a run is stopped, as it cannot be the best any more; never for the base."""
        return None if candidate == BASE else self._limit_seconds(rung)

    def _limit_seconds(self, rung: int) -> float:
        now = self.level(self._record.spent_seconds, of_time=True)
        took = [
            run.seconds * math.exp(now - self.level(run.spent_seconds, of_time=True))
            for run in self._record.runs
            if run.rung == rung and run.outcome is Outcome.OK
        ]
        times = _LIMIT_TIMES[self._record.request.objective]
        return max(_LIMIT_LEAST_SECONDS, times * min(took))


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchField:
    """Where points are drawn from."""

    space: Sequence[Dimension]
    """The settings."""
    known: Sequence[Candidate]
    """What other profiles set."""
    refusal_of: Callable[[Mapping[str, str]], str]
    """Says why settings cannot run; empty if they can."""
    checked: Callable[[Mapping[str, str]], dict[str, str]]
    """Returns settings as the engines read them."""


def next_step(record: TuningRecord, field: SearchField, *, spent_seconds: float) -> SearchStep:
    """Say what to run next.

    1. The base at the whole size, then at the smaller ones as long as that saves time and leaves
       room for a run of the whole.
    2. What other profiles set, at the smallest size.
    3. Every six runs the base again there (drift), and the best again.
    4. Whatever deserves the next larger size; else a new point.
    5. Instead, while nothing is better at the whole size: what looks best, before there is no room
       or no point left.

    Args:
        record: what was measured.
        field: where points are drawn from.
        spent_seconds: what was spent of the budget up to now.
    """
    if cause := _failing(record):
        return SearchStep(end=SearchEnd.FAILING, cause=cause)
    standing = Standing(record)
    rung = standing.next_base
    if rung == 0:
        return _look(record, 0)
    whole_seconds = standing.wall_seconds(0)
    reserved = proof_seconds(whole_seconds, record.request.pairs)
    left_seconds = record.budget_seconds - spent_seconds - reserved
    # A look at a smaller size takes less than one at the next larger one.
    if rung is not None and left_seconds >= whole_seconds + standing.wall_seconds(rung - 1):
        return _look(record, rung)
    full = len(record.runs) >= _RUNS_MOST
    found, out = (None, ()) if full else _chosen(record, standing, field, left_seconds)
    if found is None:
        return SearchStep(end=SearchEnd.EXHAUSTED, ruled_out=out)
    candidate, rung, purpose = found
    if standing.wall_seconds(rung) > left_seconds:
        return SearchStep(end=SearchEnd.BUDGET, ruled_out=out)
    limit = standing.limit_seconds(candidate.id, rung)
    step = Step(candidate=candidate, rung=rung, purpose=purpose, limit_seconds=limit)
    return SearchStep(step=step, ruled_out=out)


def _look(record: TuningRecord, rung: int) -> SearchStep:
    """Return the first run of the base at a size."""
    base = record.candidates[BASE]
    step = Step(candidate=base, rung=rung, purpose=Purpose.BASE, limit_seconds=None)
    return SearchStep(step=step)


def _chosen(
    record: TuningRecord, standing: Standing, field: SearchField, left_seconds: float
) -> tuple[_Run | None, tuple[RuledOut, ...]]:
    """Return the run of a candidate that comes next, and what was drawn and cannot run."""
    out: tuple[RuledOut, ...] = ()
    unproven = standing.best is None
    found = _planned(record, standing, field) or _deserved(record, standing)
    rung = found[1] if found else standing.rungs[0]
    if unproven and left_seconds < standing.longest_seconds(rung) + standing.wall_seconds(0):
        found = _untried(record, standing) or found
    if found is None:
        drawn, out = _drawn(record, standing, field)
        if drawn is not None:
            found = (drawn, rung, Purpose.NEW)
        elif unproven:
            found = _untried(record, standing)
    return found, out


def _failing(record: TuningRecord) -> str:
    """Return why the last runs failed, if they are too many in a row; of the base, two are.

    What the base cannot do at a smaller size only rules that size out.
    """
    bad = {Outcome.FAILED, Outcome.INVALID}
    telling = [
        run
        for run in record.runs_of_sitting
        if not (run.purpose is Purpose.BASE and run.rung and run.outcome is Outcome.FAILED)
    ]
    last = telling[-_FAILURES_MOST:]
    of_base = [row for row in last[-2:] if row.outcome in bad and row.candidate == BASE]
    if len(of_base) == 2 or (len(last) == _FAILURES_MOST and all(r.outcome in bad for r in last)):
        return last[-1].reason
    return ""


def _planned(record: TuningRecord, standing: Standing, field: SearchField) -> _Run | None:
    """Return what is due in any case: what was interrupted, what others set, looks at drift."""
    smallest = standing.rungs[0]
    ran = standing.ran
    for candidate in (*record.candidates.values(), *field.known):
        if candidate.id not in ran:
            purpose = Purpose.NEW if candidate.origin == "search" else Purpose.KNOWN
            return candidate, smallest, purpose
    since = _runs_since(record, smallest)
    if since >= _DRIFT_EVERY:
        return record.candidates[BASE], smallest, Purpose.DRIFT
    best = standing.best
    if best is not None and since == 0 and record.runs[-1].purpose is Purpose.DRIFT:
        measured = sum((row.candidate, row.rung) == (best, 0) for row in record.runs)
        if measured < _AGAIN_MOST:
            return record.candidates[best], 0, Purpose.AGAIN
    return None


def _deserved(record: TuningRecord, standing: Standing) -> _Run | None:
    """Return what deserves the next larger size."""
    if promoted := _promoted(standing):
        return record.candidates[promoted[0]], promoted[1], Purpose.PROMOTED
    return None


def _untried(record: TuningRecord, standing: Standing) -> _Run | None:
    """Return what looks best, each by its largest size, of what never ran at the whole size."""
    scores = {name: score for rung in standing.rungs for score, name in standing.ranking(rung)}
    tried = {name for _, name in standing.ranking(0)}
    good = [
        (score, name) for name, score in scores.items() if name not in tried and score < _HOPELESS
    ]
    return (record.candidates[min(good)[1]], 0, Purpose.PROMOTED) if good else None


def _runs_since(record: TuningRecord, smallest: int) -> int:
    """Count the runs since the base was last measured at the smallest size."""
    count = 0
    for row in reversed(record.runs):
        if (row.candidate, row.rung, row.outcome) == (BASE, smallest, Outcome.OK):
            break
        count += 1
    return count


def _promoted(standing: Standing) -> tuple[str, int] | None:
    """Return the candidate that deserves the next larger size, the largest sizes first."""
    rungs = standing.rungs
    for place in range(len(rungs) - 2, -1, -1):
        ranked = standing.ranking(rungs[place])
        good = [name for score, name in ranked if score < _HOPELESS]
        for name in good[: len(ranked) // _PROMOTED_SHARE]:
            if standing.score(name, rungs[place + 1]) is None:
                return name, rungs[place + 1]
    return None


def _drawn(
    record: TuningRecord, standing: Standing, field: SearchField
) -> tuple[Candidate | None, tuple[RuledOut, ...]]:
    """Draw a point that can run and was not tried yet."""
    out: dict[str, RuledOut] = {}
    before = [row.settings for row in record.candidates.values()]
    number = sum(row.origin == "search" for row in record.candidates.values()) + 1
    tried = standing.tried()
    for draw in range(_DRAWS_MOST):
        seed = (record.request.seed * 1_000_003 + number * 101 + draw) % (1 << 32)
        params = propose(field.space, tried, seed=seed)
        settings = settings_of_params(field.space, params)
        if reason := field.refusal_of(settings):
            out[reason] = RuledOut(what=f"draw {number}.{draw + 1}", reason=reason)
            continue
        settings = field.checked(settings)
        if settings not in before:
            candidate = Candidate(id=str(number), origin="search", settings=settings, params=params)
            return candidate, tuple(out.values())
    return None, tuple(out.values())
