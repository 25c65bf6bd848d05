"""The campaign that runs, or ran last: its cells, the time left, and the latest verdicts."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from typing import Any

from boardcluster.analysis.cells import verdict_if_ok
from boardcluster.factors import levels
from boardcluster.queries.progress import (
    Progress,
    left_seconds,
    progress_document,
    seconds_since,
    typical_seconds,
)
from boardcluster.records import AttemptState, Result, Trial
from boardcluster.web.words import outcome_words, trial_title

__all__ = ["campaign_document", "cell_counts", "left_interval"]

_LATEST = 8
_NORMAL_QUANTILE = 1.96  # both sides of 95 %
_UNKNOWN_SPREAD = 0.2
"""Of one run alone, as a share of its time: what runs on small boards vary at most, as a rule."""


def campaign_document(
    progress: Progress, driver: str, now_utc: datetime.datetime
) -> dict[str, Any]:
    """What the page shows of a campaign, as JSON takes it."""
    running = progress.running
    found: dict[str, Any] = {
        **progress_document(progress, driver, now_utc),
        "title": progress.campaign.name or progress.campaign.id,
        "cells": cell_counts(progress.results),
        "left_interval_seconds": left_interval(progress, now_utc),
        "latest": [_ended(row) for row in _latest(progress.results)],
    }
    if running is not None:
        trial, attempt = running
        found["now"] = {
            "run": attempt.name,
            "title": trial_title(trial),
            "place": _place(progress, trial),
            "started_utc": attempt.started_utc,
            "elapsed_seconds": seconds_since(attempt.started_utc, now_utc),
            "typical_seconds": typical_seconds(progress, trial),
        }
    return found


def _place(progress: Progress, trial: Trial) -> int:
    return 1 + next((place for place, row in enumerate(progress.results) if row.trial is trial), 0)


def _latest(results: Sequence[Result]) -> list[Result]:
    ended = [row for row in results if row.attempt is not None and row.attempt.ended_utc]
    ended.sort(key=lambda row: row.attempt.ended_utc if row.attempt else "", reverse=True)
    return ended[:_LATEST]


def _ended(row: Result) -> dict[str, Any]:
    attempt = row.attempt
    return {
        "run": attempt.name if attempt else "",
        "title": trial_title(row.trial),
        "state": attempt.state.value if attempt else "",
        "verdict": verdict_if_ok(row),
        "words": outcome_words(row),
        "ended_utc": attempt.ended_utc if attempt else "",
    }


def cell_counts(results: Sequence[Result]) -> dict[str, int]:
    """Count cells: done (every repetition is ok), failed (one is not), and those to come."""
    cells: dict[object, list[AttemptState | None]] = {}
    for row in results:
        state = row.attempt.state if row.attempt is not None else None
        cells.setdefault(levels(row.trial), []).append(state)
    bad = {AttemptState.FAILED, AttemptState.INVALID}
    failed = sum(any(state in bad for state in states) for states in cells.values())
    done = sum(all(state is AttemptState.OK for state in states) for states in cells.values())
    return {"done": done, "failed": failed, "to_come": len(cells) - done - failed}


def left_interval(progress: Progress, now_utc: datetime.datetime) -> list[float] | None:
    """Between what the time left lies, 19 times out of 20; None where a cell was never measured.

    Runs of a cell scatter about their mean independently, by what the ended runs of this campaign
    scatter, and the mean itself is as uncertain as so few runs make it; with one run of a cell a
    fifth of its time is assumed. Sums of many such times are normal enough.
    """
    middle, unknown = left_seconds(progress, now_utc)
    if unknown:
        return None
    ended: dict[tuple[Any, ...], list[float]] = {}
    left: dict[tuple[Any, ...], tuple[Trial, int]] = {}
    for row in progress.results:
        key = levels(row.trial)
        if row.measurement is not None and not row.trial.warm_up:
            ended.setdefault(key, []).append(
                row.measurement.duration_seconds * row.measurement.dilation
            )
        elif row.attempt is None or row.attempt.state is AttemptState.RUNNING:
            left[key] = (row.trial, left.get(key, (row.trial, 0))[1] + 1)
    variance = 0.0
    for key, (trial, count) in left.items():
        known = ended.get(key, [])
        spread = _deviation(known) if len(known) > 1 else None
        if spread is None:
            spread = _UNKNOWN_SPREAD * (typical_seconds(progress, trial) or 0.0)
        variance += spread**2 * count * (1 + count / max(1, len(known)))
    reach = _NORMAL_QUANTILE * math.sqrt(variance)
    return [max(0.0, middle - reach), middle + reach]


def _deviation(values: Sequence[float]) -> float:
    mean = sum(values) / len(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))
