"""Further rounds of a campaign that runs until its intervals are narrow.

A round is one more block of every cell, or one more start of the cluster with all its blocks where
the campaign has several starts. What is decided depends on what is stored and on nothing else, so a
campaign that was killed and resumed decides what it would have decided.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from boardcluster.analysis.stopping import AimPrecision, Forecast, aims_of, forecast, reached
from boardcluster.campaign.plan import plan
from boardcluster.factors import levels
from boardcluster.records import Campaign, CampaignKind, CampaignSpec, ClusterSpec, Result, Trial
from boardcluster.store import Store

__all__ = ["Outlook", "Round", "look_ahead", "next_round"]

_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What follows a round of a campaign."""

    trials: tuple[Trial, ...] = ()
    """The next round's trials, which are not stored yet; none where it ends."""
    words: str = ""
    """Why, in one line; empty where there is nothing to decide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What a precision will take, as far as stored runs tell."""

    precision: float
    """How far intervals may reach, as a share of the result."""
    forecasts: tuple[Forecast, ...]
    """What each mean or declared comparison needs."""
    runs_of_each_cell: int | None
    """Measured runs of each cell, at least the minimum and at most the maximum; None where the
    variation of an aim is unknown."""
    suffices: bool
    """Whether the maximum is enough, as far as is known."""
    trials: tuple[Trial, ...]
    """All that will have run then; what is planned first where a variation is unknown."""


def next_round(
    store: Store, campaign: Campaign, spec: CampaignSpec, declared: ClusterSpec
) -> Round:
    """Decide by what is stored whether a campaign has another round, and which.

    Nothing is decided while trials are pending: those that ``--only`` left out, for example. A
    mean or comparison of which a cell has no verified run does not hold up the others.

    Args:
        store: the results.
        campaign: the campaign.
        spec: its specification, as it was begun.
        declared: its cluster.
    """
    if spec.precision is None:
        return Round()
    results = store.results(campaign.id)
    if pending := sum(row.attempt is None for row in results):
        return Round(words=f"not decided yet: {pending} planned runs are pending")
    planned = tuple(row.trial for row in results)
    found = reached(
        aims_of(spec.comparisons, planned),
        store.results(campaign.id, all_attempts=True),
        by_start=spec.starts > 1,
    )
    # What was only disturbed may be quiet in the next round; what fails, fails again.
    wide = [row for row in found if row.is_verified and row.half_width > spec.precision]
    counts = _runs_of_each_cell(planned)
    runs = " to ".join(map(str, dict.fromkeys((min(counts), max(counts)))))
    if not wide:
        words = _narrow_words(found, spec.precision, runs)
        return Round(words=words + _restart_words(results, spec))
    following = plan(spec, declared, campaign_id=campaign.id, further=_rounds_of(planned, spec) + 1)
    words = _wide_words(wide, spec.precision)
    if max(_runs_of_each_cell(following)) > spec.repetitions_max:
        return Round(words=f"stopped at {runs} runs of each cell, the most allowed: {words}")
    return Round(trials=following[len(planned) :], words=f"another round: {words}")


def _runs_of_each_cell(trials: Sequence[Trial]) -> Collection[int]:
    """Return how many measured runs each cell has."""
    return Counter(levels(trial) for trial in trials if not trial.warm_up).values()


def _rounds_of(planned: Sequence[Trial], spec: CampaignSpec) -> int:
    """Return how many further rounds are planned already."""
    if spec.starts > 1:
        return max(trial.start for trial in planned) - spec.starts
    first = max(matrix.repetitions for matrix in spec.matrices)
    return max(trial.repetition for trial in planned if not trial.warm_up) - first


def _percent(share: float) -> str:
    return "unknown" if math.isinf(share) else f"±{share * 100:.3g} %"


def _wide_words(wide: Sequence[AimPrecision], precision: float) -> str:
    widest = sorted(wide, key=lambda row: -row.half_width)
    shown = [
        f"{row.aim.label} ({_percent(row.half_width)} after {row.count})" for row in widest[:_SHOWN]
    ]
    rest = f" and {len(wide) - _SHOWN} more" if len(wide) > _SHOWN else ""
    return f"wanted {_percent(precision)}, but these are wider: {'; '.join(shown)}{rest}"


def _narrow_words(found: Sequence[AimPrecision], precision: float, runs: str) -> str:
    none = [row.aim.label for row in found if not row.is_verified]
    if len(none) == len(found):
        return f"stopped after {runs} runs of each cell: none of them is verified"
    words = f"every 95 % interval is within {_percent(precision)} after {runs} runs of each cell"
    if none:
        words += f"; without a verified run: {', '.join(none[:_SHOWN])}"
    return words


def _restart_words(results: Sequence[Result], spec: CampaignSpec) -> str:
    """Say that a campaign of one start had several, as its blocks were the values all the same."""
    starts = {row.attempt.start_id for row in results if row.attempt and row.measurement} - {""}
    if spec.starts > 1 or len(starts) < 2:
        return ""
    return (
        f"; its runs are of {len(starts)} starts of the cluster, whose means the report uses as "
        "the values, so its intervals are wider"
    )


def look_ahead(
    store: Store,
    spec: CampaignSpec,
    declared: ClusterSpec,
    planned: Sequence[Trial],
) -> Outlook | None:
    """Say what a campaign's precision will take; None for one that runs what is planned.

    Args:
        store: the results; earlier runs of the same cells say how much they vary.
        spec: its specification.
        declared: its cluster.
        planned: its trials so far.
    """
    if spec.precision is None:
        return None
    by_start = spec.starts > 1
    blocks = max(matrix.repetitions for matrix in spec.matrices)
    forecasts = forecast(
        aims_of(spec.comparisons, planned),
        [
            store.results(row.id, all_attempts=True)
            for row in store.campaigns()
            if row.kind is CampaignKind.RUN
        ],
        precision=spec.precision,
        by_start=by_start,
        blocks=blocks,
    )
    is_known = all(row.deviation is not None for row in forecasts)
    first, each = (spec.starts, blocks) if by_start else (blocks, 1)
    most = spec.repetitions_max // each
    wanted = max(most + 1 if row.needed is None else row.needed for row in forecasts)
    number = min(max(first, wanted), most) if is_known else first
    further = max(number - first, _rounds_of(planned, spec))
    return Outlook(
        precision=spec.precision,
        forecasts=forecasts,
        runs_of_each_cell=number * each if is_known else None,
        suffices=not is_known or wanted <= most,
        trials=plan(spec, declared, campaign_id=planned[0].campaign_id, further=further),
    )
