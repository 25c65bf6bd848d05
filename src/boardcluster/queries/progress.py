"""The progress of a campaign, read from the store and from nothing else."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from boardcluster.analysis.cells import verdict_if_ok, verdict_of
from boardcluster.records import (
    Attempt,
    AttemptState,
    Campaign,
    Measurement,
    Result,
    Trial,
    Verdict,
)
from boardcluster.store import Store

__all__ = [
    "Progress",
    "driver_of_trials",
    "left_seconds",
    "progress_document",
    "progress_of",
    "seconds_since",
    "typical_seconds",
]

_ENDED = (AttemptState.OK, AttemptState.FAILED, AttemptState.INVALID)

_RUNS_TRIALS = frozenset(
    {"run", "submit", "demo", "experiment", "tune", "watch-performance", "unknown"}
)
"""What a driver does that may bring results; unknown in the moment in which it takes the lock."""

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
        """How many of the runs that ended well have each verdict."""
        tally = Counter(
            verdict_of(row)
            for row in self.results
            if row.attempt is not None and row.attempt.state is AttemptState.OK
        )
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
    # Not the whole store is checked: this is read at each change, also while a run is measured.
    with Store.open(home, read_only=True, whole=False) as store:
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


def driver_of_trials(driver: str) -> str:
    """Return what the driver at work does if that may bring results; else empty, as for ``up``."""
    return driver if driver.partition(" ")[0] in _RUNS_TRIALS else ""


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
    share = _share_of_warm_ups(progress)
    running = progress.running
    seconds, unknown = 0.0, 0
    for row in progress.results:
        if row.attempt is not None and row.attempt.state in _ENDED:
            continue
        took = _expected_seconds(progress, row.trial, share)
        if took is None:
            unknown += 1
        elif running is not None and row.trial is running[0]:
            seconds += max(0.0, took + around - seconds_since(running[1].started_utc, now_utc))
        else:
            seconds += took + around
    return seconds, unknown


def typical_seconds(progress: Progress, trial: Trial) -> float | None:
    """Return what runs like a trial took before, on average; None if none was measured.

    Of a warm-up, the share of it that the warm-ups of this campaign took: on emulated boards it is
    small, since these run at this machine's full speed.
    """
    return _expected_seconds(progress, trial, _share_of_warm_ups(progress))


def _expected_seconds(progress: Progress, trial: Trial, share_of_warm_ups: float) -> float | None:
    key = (trial.workload, str(trial.engine), trial.size_bytes, trial.workers)
    usual = progress.typical_seconds.get(key)
    return usual * share_of_warm_ups if usual is not None and trial.warm_up else usual


def _share_of_warm_ups(progress: Progress) -> float:
    """Time of this campaign's warm-ups over that of runs like them; 1 while none is known."""
    pairs = [
        (_took_here(row.measurement), usual)
        for row in progress.results
        if row.trial.warm_up and row.measurement is not None
        for usual in [_expected_seconds(progress, row.trial, 1.0)]
        if usual
    ]
    expected = sum(usual for _, usual in pairs)
    return sum(took for took, _ in pairs) / expected if expected else 1.0


def _around_seconds(progress: Progress) -> float:
    """Mean time of an attempt besides what was measured; 0 while none has ended."""
    found = [
        max(0.0, seconds_since(row.attempt.started_utc, _moment(row.attempt.ended_utc)) - took)
        for row in progress.results
        if row.attempt is not None and row.attempt.ended_utc and row.measurement is not None
        for took in [_took_here(row.measurement)]
    ]
    return sum(found) / len(found) if found else 0.0


def _took_here(measurement: Measurement) -> float:
    """Seconds that a run took on this machine's clock, on emulated boards more than on theirs."""
    return measurement.duration_seconds * measurement.dilation


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
            "verdict": verdict_if_ok(last),
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
