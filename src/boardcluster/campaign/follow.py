"""How a caller follows long work: lines, progress, and what each run came to."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Protocol

from boardcluster.campaign.driver import Watch
from boardcluster.factors import settings_words
from boardcluster.records import Attempt, Campaign, Measurement, PlannedFault, Trial, Verdict
from boardcluster.services.lifecycle import Health
from boardcluster.units import format_bytes, format_count, format_energy

__all__ = ["Follower", "LineProgress", "each_health_once", "each_run"]


class Follower(Protocol):
    """Follows long work: the command line's progress bars, or ``LineProgress``."""

    def line(self, text: str) -> None:
        """Take one line about what happened."""

    def progress(self, what: str, done: int, total: int) -> None:
        """Take how much is done of a piece of work; a total of 0 makes it a message."""

    def following(self) -> contextlib.AbstractContextManager[object]:
        """Show progress while the block runs."""


class LineProgress:
    """Hands each line, and the beginning of each piece of work, to a function.

    Args:
        tell: takes one line; None for silence.
    """

    def __init__(self, tell: Callable[[str], object] | None = None) -> None:
        self._tell = tell
        self._said: set[str] = set()

    def line(self, text: str) -> None:
        """Hand over a line."""
        if self._tell is not None:
            self._tell(text)

    def progress(self, what: str, done: int, total: int) -> None:
        """Hand over what is being done, once."""
        del done, total
        if what not in self._said:
            self._said.add(what)
            self.line(what)

    def following(self) -> contextlib.AbstractContextManager[object]:
        """Lines need no preparation."""
        return contextlib.nullcontext()


def each_health_once(follow: Follower) -> Callable[[Health], None]:
    """Return what is told of a starting cluster's health, and says each change once."""
    before: list[tuple[int, int]] = []

    def seen(health: Health) -> None:
        now = (health.live_datanodes, health.live_nodemanagers)
        if now != (0, 0) and now not in before:
            before.append(now)
            nodes = format_count(now[0], "DataNode")
            follow.line(f"{nodes} and {format_count(now[1], 'NodeManager')} are live")

    return seen


def each_run(campaign: Campaign, trials: Sequence[Trial], follow: Follower) -> Watch:
    """Return what is told of each run of a campaign, and says what runs and what it came to."""
    total = len(trials)
    places = {trial.id: place for place, trial in enumerate(trials, start=1)}

    def named(trial: Trial) -> str:
        # A warm-up that an earlier command made runs again for daemons that were started since.
        return f"run {places[trial.id]} of {total}" if trial.id in places else "once more"

    follow.line(f"campaign {campaign.id}: {format_count(total, 'run')}, seed {campaign.seed}")

    def began(trial: Trial) -> None:
        if trial.id in places:
            follow.progress(f"runs of campaign {campaign.id}", places[trial.id] - 1, total)
        follow.line(f"{named(trial)}: {_trial_words(trial)}")

    def ended(trial: Trial, attempt: Attempt, measurement: Measurement | None) -> None:
        follow.line(f"{named(trial)}: {_end_words(attempt, measurement)}")
        if trial.id in places:
            follow.progress(f"runs of campaign {campaign.id}", places[trial.id], total)

    return Watch(began=began, ended=ended)


def _trial_words(trial: Trial) -> str:
    """Name a trial by what it runs and by what is not as usual."""
    words = f"{trial.workload} on {trial.engine}"
    if trial.size_bytes:
        words += f", {format_bytes(trial.size_bytes)}"
    if "+" in trial.workload:
        words += f", {trial.concurrency} at once" if trial.concurrency > 1 else ", in turn"
    words += "".join(f", {key} {value}" for key, value in sorted(trial.parameters.items()))
    words += f", {settings_words(trial.settings)}" if trial.settings else ""
    words += f", fault {trial.fault}" if trial.fault is not PlannedFault.NONE else ""
    return words + (", warm-up" if trial.warm_up else "")


def _end_words(attempt: Attempt, measurement: Measurement | None) -> str:
    words = f"{attempt.state}"
    if measurement is not None:
        words += f", {measurement.duration_seconds:.1f} s"
        if measurement.verification is not None:
            words += f", {format_count(measurement.verification.records, 'record')} verified"
        if measurement.verdict is not Verdict.UNJUDGED:
            words += f", {measurement.verdict}"
        if measurement.energy is not None:
            words += f", energy {format_energy(measurement.energy)}"
        remarks = dict.fromkeys((*measurement.verdict_reasons, *measurement.remarks))
        words += "".join(f"; {remark}" for remark in remarks)
    return words + (f": {attempt.reason}" if attempt.reason else "")
