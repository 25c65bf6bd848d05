"""What a tuning found: its history, what each setting brought, and what was left out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from statistics import median

from boardcluster.factors import settings_words
from boardcluster.tuning.record import (
    BASE,
    Outcome,
    ProofResult,
    Purpose,
    TrialRecord,
    TuningRecord,
)
from boardcluster.tuning.search import Standing, sizes_of
from boardcluster.tuning.space import Level, level_words
from boardcluster.units import format_bytes

__all__ = ["SettingEffect", "TuningRow", "TuningSummary", "summarise_tuning"]

_LEAST_POINTS = 2
"""A value's median is of at least so many points."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningRow:
    """One run of the search."""

    number: int
    """Place in the search, from 1."""
    candidate: str
    """What ran."""
    purpose: Purpose
    """Why."""
    size_bytes: int
    """At which size."""
    outcome: Outcome
    """What it came to."""
    seconds: float
    """How long the job took; 0 if that is not known."""
    times_base: float | None
    """How many times what the base takes then; None for a run that gives no time."""
    best_so_far: float
    """The same of the best at the largest size that any was measured at, after this run."""
    settings: str
    """The settings in words."""
    run: str
    """Its name in the store."""
    reason: str
    """Why it is not ok."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingEffect:
    """What a setting brought, over all points of the smallest size."""

    name: str
    """The setting."""
    better: str
    """Its better values in words."""
    worse: str
    """Its other values."""
    times: float
    """How many times the median of the worse the median of the better takes; at most 1."""
    points: tuple[int, int]
    """How many points have better and worse values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningSummary:
    """A tuning, as it is shown."""

    id: str
    """Its id, also of its search's campaign."""
    title: str
    """What was tuned, in words."""
    words: str
    """What came of it, in one sentence."""
    best: Mapping[str, str]
    """The best settings at the whole size; empty while there are none better than the base."""
    rows: tuple[TuningRow, ...]
    """Every run of the search."""
    effects: tuple[SettingEffect, ...]
    """What each setting brought, the most first."""
    ruled_out: tuple[tuple[str, int], ...]
    """Why something was not tried, and how often that was met."""
    outcomes: Mapping[Outcome, int]
    """How many runs came to what."""
    drift: tuple[float, float]
    """The machine's speed: fastest and slowest look at the base, against the first one."""
    proof: str
    """Id of the campaign that proves it; empty without one."""
    profile: str
    """The profile that was written; empty if none was."""
    result: ProofResult | None
    """What was shown in the end, as the record keeps it; None while it is not finished."""
    spent_seconds: float
    """How long it took."""
    budget_seconds: float
    """How long it was allowed to."""

    @property
    def drift_words(self) -> str:
        """How the machine changed, as a sentence without its full stop."""
        low, high = self.drift
        return (
            f"The base varied from {low:.2f} to {high:.2f} times its first value, and every run is "
            "relative to it"
        )


def summarise_tuning(record: TuningRecord) -> TuningSummary:
    """Return what a tuning found so far."""
    request, end, standing = record.request, record.end, Standing(record)
    size = f", {format_bytes(request.size_bytes)}" if request.size_bytes else ""
    best = record.candidates[standing.best].settings if standing.rungs and standing.best else {}
    return TuningSummary(
        id=request.id,
        title=f"{PurePath(request.target).name} on {request.engine}{size}, for less"
        f" {_objective(request.objective)}, against profile {PurePath(request.base).name}",
        words=_words(record),
        best=best,
        rows=_rows(record),
        effects=_effects(record, standing),
        ruled_out=tuple(Counter(row.reason for row in record.ruled_out).most_common()),
        outcomes=Counter(run.outcome for run in record.runs),
        drift=standing.drift,
        proof=record.proof.campaign if record.proof else "",
        profile=end.profile if end else "",
        result=end,
        spent_seconds=record.spent_seconds,
        budget_seconds=record.budget_seconds,
    )


def _objective(objective: str) -> str:
    return "energy x time" if objective == "both" else objective


def _words(record: TuningRecord) -> str:
    if record.end is None:
        return "not finished: continue it with --continue"
    return record.end.words or f"no proof: {record.end.reason}"


def _rows(record: TuningRecord) -> tuple[TuningRow, ...]:
    """Each run as it looked right after it: the record is replayed once."""
    sizes = sizes_of(record.request.size_bytes)
    standing = Standing(record)
    so_far = TuningRecord(record.request, write=None)
    so_far.replay(record.candidates.values())
    rows = []
    for number, run in enumerate(record.runs, start=1):
        so_far.replay([run])
        then = Standing(so_far)
        known = run.value > 0 and run.rung in standing.rungs
        rows.append(
            TuningRow(
                number=number,
                candidate=run.candidate,
                purpose=run.purpose,
                size_bytes=sizes[run.rung],
                outcome=run.outcome,
                seconds=run.seconds,
                times_base=math.exp(standing.relative(run)) if known else None,
                best_so_far=then.incumbent[1],
                settings=_settings(record, run),
                run=run.run,
                reason=run.reason,
            )
        )
    return tuple(rows)


def _settings(record: TuningRecord, run: TrialRecord) -> str:
    if run.candidate == BASE:
        return "the base"
    candidate = record.candidates[run.candidate]
    origin = "" if candidate.origin == "search" else f"{candidate.origin}: "
    return origin + settings_words(candidate.settings)


def _effects(record: TuningRecord, standing: Standing) -> tuple[SettingEffect, ...]:
    """Compare the medians of a setting's values; what else differs between points cancels or not.

    So it is a hint where the search found its gain, and no proof. A number is divided at its
    median.
    """
    if not standing.rungs:
        return ()
    points = [
        (candidate.params, score)
        for candidate in record.candidates.values()
        if (score := standing.score(candidate.id, standing.rungs[0])) is not None
    ]
    names = dict.fromkeys(name for params, _ in points for name in params)
    found = []
    for name in names:
        own = [(params[name], score) for params, score in points if name in params]
        if (effect := _effect_of(name, own)) is not None:
            found.append(effect)
    return tuple(sorted(found, key=lambda row: row.times))


def _effect_of(name: str, points: Sequence[tuple[Level, float]]) -> SettingEffect | None:
    if all(isinstance(level, str) for level, _ in points):
        groups: dict[str, list[float]] = {}
        for level, score in points:
            groups.setdefault(level_words(level), []).append(score)
    else:
        middle = median(float(level) for level, _ in points)
        groups = {f"up to {middle:g}": [], f"above {middle:g}": []}
        low, high = groups
        for level, score in points:
            groups[low if float(level) <= middle else high].append(score)
    medians = sorted(
        (median(scores), words, len(scores))
        for words, scores in groups.items()
        if len(scores) >= _LEAST_POINTS
    )
    if len(medians) < 2:
        return None
    first, last = medians[0], medians[-1]
    return SettingEffect(
        name=name,
        better=first[1],
        worse=last[1],
        times=math.exp(first[0] - last[0]),
        points=(first[2], last[2]),
    )
