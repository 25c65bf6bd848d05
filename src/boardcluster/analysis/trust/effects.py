"""How much of a run's time a disturbance can explain, from the samples of the run itself.

Every rule turns what it found into time lost: at most so many seconds in each sample. What the
samples do not say is assumed to be as bad as it can be: that the run waited for the disturbed node
all the time, and could do nothing else meanwhile. Only two things are taken as given: that time
lost by one second's sample was lost by all busy cores alike, and that nodes that were held up in
the same second were held up together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from boardcluster.analysis.phases import submissions
from boardcluster.analysis.trust.window import Series, Window

__all__ = ["TimeLost", "amount_within", "delay", "job_cpu", "share_of_time"]

_JOB = ("cpu_user_seconds", "cpu_system_seconds", "cpu_irq_seconds")


@dataclass(frozen=True, slots=True, eq=False)
class TimeLost:
    """At most how much longer a run took because of one thing on one node, piece by piece."""

    begins: Series
    """Begin of each piece, in seconds from the start of the run, rising; pieces do not overlap."""
    ends: Series
    """Their ends."""
    seconds: Series
    """At most so much of each piece was lost; no more than its length counts."""

    def rates(self, moments: Series) -> Series:
        """Return which share of the time was being lost at some moments, 0 to 1."""
        usable = self.ends > self.begins
        begins, ends, seconds = self.begins[usable], self.ends[usable], self.seconds[usable]
        if not len(begins):
            return np.zeros(len(moments))
        lost = np.clip(seconds / (ends - begins), 0.0, 1.0)
        places = np.maximum(np.searchsorted(begins, moments, side="right") - 1, 0)
        inside = (moments >= begins[places]) & (moments < ends[places])
        return np.where(inside, lost[places], 0.0)


def share_of_time(
    losses: Iterable[TimeLost],
    *,
    duration_seconds: float,
    phases: Mapping[str, tuple[float, float]],
) -> float:
    """Return at most how much of a run's duration losses of one cause explain, 0 to 1.

    At each moment only the largest counts: what held nodes up in the same second did so together.
    Only time within submissions counts, as only they are timed.
    """
    known = tuple(losses)
    timed = list(submissions(phases).values()) or [(0.0, duration_seconds)]
    corners = [row for loss in known for row in (loss.begins, loss.ends)]
    edges = np.unique(np.concatenate([*corners, np.ravel(timed)]))
    if not known or len(edges) < 2:
        return 0.0
    middles = (edges[1:] + edges[:-1]) / 2
    rates = np.max([loss.rates(middles) for loss in known], axis=0)
    inside = np.zeros(len(rates), dtype=np.bool_)
    for begin, end in timed:
        inside |= (middles > begin) & (middles < end)
    lengths = np.diff(edges)
    whole = float(lengths[inside].sum())
    return min(1.0, float((rates * lengths)[inside].sum()) / whole) if whole > 0 else 0.0


def amount_within(window: Window, name: str, begins: Series, ends: Series) -> Series:
    """Return how much of an amount lies in each piece of time; 0 where it is not known."""
    track = window.track(name)
    if track is None:
        return np.zeros(len(begins))
    times, sums = track.sums()
    found: Series = np.interp(ends, times, sums) - np.interp(begins, times, sums)
    return found


def job_cpu(window: Window, begins: Series, ends: Series) -> Series:
    """Return the CPU seconds that the run itself used in each piece of time."""
    used: Series = np.sum([amount_within(window, name, begins, ends) for name in _JOB], axis=0)
    foreign = amount_within(window, "foreign_cpu_seconds", begins, ends)
    return np.maximum(used - foreign, 0.0)


def delay(lost_cpu: Series, used_cpu: Series, lengths: Series) -> Series:
    """Return by how many seconds CPU time that was taken away held a run up, at most.

    So many cores were wanted at once as the run used and lost together, and the loss is shared by
    them: of four busy cores each loses a quarter. One core is the least: a run that used half a
    core is one whose only busy core lost everything.
    """
    wanted = np.maximum(lengths, used_cpu + lost_cpu)
    return np.where(lengths > 0, lost_cpu * lengths / np.where(wanted > 0, wanted, 1.0), 0.0)
