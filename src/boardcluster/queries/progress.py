"""The progress of a campaign, read from the store and from nothing else."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from boardcluster.analysis.cells import verdict_of
from boardcluster.records import Attempt, AttemptState, Campaign, Result, Trial, Verdict
from boardcluster.store import Store

__all__ = [
    "Progress",
    "left_seconds",
    "progress_document",
    "progress_of",
    "seconds_since",
    "typical_seconds",
]

_ENDED = (AttemptState.OK, AttemptState.FAILED, AttemptState.INVALID)

Typical = Mapping[tuple[str, str, int, int], float]
"""Mean seconds of earlier runs by workload, engine, size in bytes and number of workers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The progress of a campaign."""

    campaign: Campaign
    """The campaign."""
    results: tuple[Result, ...]
    """Each of its trials with its latest attempt."""
    typical_seconds: Typical
    """What runs like these took before, on this machine."""
    newest: bool = True
    """Whether no later campaign is in the store."""

    def count(self, state: AttemptState) -> int:
        """How many trials' latest attempt is in a state."""
        return sum(row.attempt is not None and row.attempt.state is state for row in self.results)

    @property
    def done(self) -> int:
        """Trials whose latest attempt has ended."""
        return sum(self.count(state) for state in _ENDED)

    @property
    def running(self) -> tuple[Trial, Attempt] | None:
        """The trial that runs now, or that a killed driver left so."""
        found = (
            (row.trial, row.attempt)
            for row in self.results
            if row.attempt is not None and row.attempt.state is AttemptState.RUNNING
        )
        return next(found, None)

    @property
    def last(self) -> Result | None:
        """The attempt that ended last."""
        ended = [row for row in self.results if row.attempt is not None and row.attempt.ended_utc]
        return max(ended, key=_ended_utc, default=None)

    @property
    def verdicts(self) -> dict[str, int]:
        """How many of the measured runs have each verdict."""
        tally = Counter(verdict_of(row) for row in self.results if row.measurement is not None)
        return {verdict.value: tally[verdict] for verdict in Verdict if tally[verdict]}


def _ended_utc(row: Result) -> str:
    return row.attempt.ended_utc if row.attempt is not None else ""


def progress_of(home: Path, campaign_id: str | None) -> Progress | None:
    """Read the progress of a campaign; None while the store has none.

    Args:
        home: the cluster's state folder.
        campaign_id: the campaign; None for the one that runs, else that was planned last.

    Raises:
        EmptySelectionError: there is no such campaign.
        StoreError: the store cannot be read.
    """
    with Store.open(home, read_only=True) as store:
        campaigns = {row.id: row for row in store.campaigns()}
        newest = max(campaigns, key=lambda name: (campaigns[name].created_utc, name), default=None)
        running = max(store.running(), key=lambda attempt: attempt.started_utc, default=None)
        at_work = (
            name for name in campaigns if running and running.trial_id.startswith(f"{name}-")
        )
        wanted = campaign_id or next(at_work, newest)
        if wanted is None:
            return None
        return Progress(
            results=store.results(wanted),
            campaign=campaigns[wanted],
            typical_seconds=store.typical_seconds(),
            newest=wanted == newest,
        )


def left_seconds(progress: Progress, now_utc: datetime.datetime) -> tuple[float, int]:
    """Estimate what the trials that have not ended will still take, on this machine.

    Each is expected to take the mean of earlier runs of the same workload, engine, size and
    workers, plus the mean time around a run (preparing, verifying, cooling down) in this campaign.
    The time that the present run has taken already is subtracted. Repeats of disturbed runs and
    changes of the cluster variant are not included.

    Returns:
        The time in seconds, and for how many trials nothing is known, which are not in it.
    """
    around = _around_seconds(progress)
    running = progress.running
    seconds, unknown = 0.0, 0
    for row in progress.results:
        if row.attempt is not None and row.attempt.state in _ENDED:
            continue
        took = typical_seconds(progress, row.trial)
        if took is None:
            unknown += 1
        elif running is not None and row.trial is running[0]:
            seconds += max(0.0, took + around - seconds_since(running[1].started_utc, now_utc))
        else:
            seconds += took + around
    return seconds, unknown


def typical_seconds(progress: Progress, trial: Trial) -> float | None:
    """Return what runs like a trial took before, on average; None if none was measured."""
    key = (trial.workload, str(trial.engine), trial.size_bytes, trial.workers)
    return progress.typical_seconds.get(key)


def _around_seconds(progress: Progress) -> float:
    """Mean time of an attempt besides what was measured; 0 while none has ended."""
    found = [
        max(0.0, seconds_since(row.attempt.started_utc, _moment(row.attempt.ended_utc)) - took)
        for row in progress.results
        if row.attempt is not None and row.attempt.ended_utc and row.measurement is not None
        for took in [row.measurement.duration_seconds * row.measurement.dilation]
    ]
    return sum(found) / len(found) if found else 0.0


def _moment(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text)


def seconds_since(text: str, now_utc: datetime.datetime) -> float:
    """Seconds since a stored moment; none where the clock was set back."""
    return max(0.0, (now_utc - _moment(text)).total_seconds())


def progress_document(
    progress: Progress, driver: str, now_utc: datetime.datetime
) -> dict[str, object]:
    """What ``--watch --json`` prints on each change, in a line."""
    campaign, running, last = progress.campaign, progress.running, progress.last
    seconds, unknown = left_seconds(progress, now_utc)
    return {
        "moment_utc": now_utc.isoformat(timespec="seconds"),
        "campaign": campaign.id,
        "name": campaign.name,
        "cluster": campaign.cluster,
        "emulated": campaign.emulated,
        "driver": driver or None,
        "planned": len(progress.results),
        "done": progress.done,
        **{state.value: progress.count(state) for state in _ENDED},
        "verdicts": progress.verdicts,
        "running": None
        if running is None
        else {
            **_trial(running[0]),
            "attempt": running[1].number,
            "elapsed_seconds": seconds_since(running[1].started_utc, now_utc),
            "typical_seconds": typical_seconds(progress, running[0]),
        },
        "last": None
        if last is None or last.attempt is None
        else {
            **_trial(last.trial),
            "attempt": last.attempt.number,
            "state": last.attempt.state.value,
            "reason": last.attempt.reason,
            "duration_seconds": last.measurement.duration_seconds if last.measurement else None,
            "verdict": verdict_of(last).value if last.measurement else None,
        },
        "left_seconds": seconds,
        "left_unknown_runs": unknown,
    }


def _trial(trial: Trial) -> dict[str, object]:
    return {
        "trial": trial.id,
        "workload": trial.workload,
        "engine": trial.engine.value,
        "size_bytes": trial.size_bytes,
        "workers": trial.workers,
        "repetition": trial.repetition,
        "warm_up": trial.warm_up,
    }
