"""Rules on emulated boards: the machine below them had time to spare, and their limits held."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from boardcluster.analysis.trust.foreign_load import cores_text, quota_track
from boardcluster.analysis.trust.rule import FoundDisturbance, RunTelemetry, TrustRule
from boardcluster.analysis.trust.window import Window, seconds_text
from boardcluster.records import Verdict

__all__ = ["LIMITED_RULES"]

_MACHINE = "machine"
_READING_CORES = 0.002  # agents read a quota in thousandths of a core, rounded down
_ROUNDING = 1e-9  # of sums


def _busy_host(run: RunTelemetry) -> Iterator[FoundDisturbance]:
    asked = run.expectations.host_idle_share
    if asked is None:
        return
    for window in run.windows:
        found = _least_idle(window, run.thresholds.idle_window_seconds)
        if window.scope != _MACHINE or found is None:
            continue
        share, begin_seconds, length_seconds = found
        if share < asked - _ROUNDING:
            yield FoundDisturbance(
                window.node,
                f"{window.node}: only {_percent_below(share)} % idle for"
                f" {seconds_text(length_seconds)} at {seconds_text(begin_seconds)} of"
                f" {seconds_text(window.span_seconds)}, where {100 * asked:.3g} % is needed: this"
                " machine was too slow for its nodes; raise the dilation",
            )


def _percent_below(share: float) -> str:
    """Rounded down, so that 9.99 does not read as the 10 that would have been enough."""
    return f"{np.floor(1000 * (share + _ROUNDING)) / 10:.1f}"


def _least_idle(window: Window, length_seconds: float) -> tuple[float, float, float] | None:
    """Return the least idle share in any time of a length, when that began, and how long it is.

    Idle time between two readings is spread evenly, so the sum of it is a line with a corner at
    each reading, and the least is where a time begins or ends at one. A run that is shorter than
    the length is looked at as a whole. None if idle time is not known.
    """
    idle, waiting = window.track("cpu_idle_seconds"), window.track("cpu_iowait_seconds")
    if idle is None:
        return None
    first = max(window.start_seconds, float(idle.begins[0]))
    last = min(window.end_seconds, float(idle.ends[-1]))
    length = min(length_seconds, last - first)
    if length <= 0:
        return None
    corners = np.concatenate([[first], idle.ends, idle.ends - length])
    begins = np.unique(np.clip(corners, first, last - length))
    spent = np.zeros(len(begins))
    for track in (idle, waiting):
        if track is not None:
            times, sums = track.sums()
            spent += np.interp(begins + length, times, sums) - np.interp(begins, times, sums)
    shares = spent / (length * window.cores)
    place = int(shares.argmin())
    return float(shares[place]), float(begins[place]), length


def _other_quota(run: RunTelemetry) -> Iterator[FoundDisturbance]:
    known = run.expectations
    for window in run.windows:
        meant = known.quota_cores.get(window.node)
        found = quota_track(window)
        if meant is None or found is None:
            continue
        allowed = run.thresholds.quota_ratio * meant + _READING_CORES
        above = found.values > meant + allowed
        below = found.values < meant - allowed
        wrong = above if window.node in known.steered else above | below
        # Limits are lifted before a run and after it, so only what was read within it counts.
        within = (found.ends >= found.start_seconds) & (found.ends <= found.end_seconds)
        places = np.flatnonzero(wrong & within)
        if len(places):
            place = int(places[0])
            yield FoundDisturbance(
                window.node,
                f"{window.node}: its CPU quota was {cores_text(float(found.values[place]))} cores"
                f" at {found.moment(place)} instead of {cores_text(meant)}: its limits were"
                " changed from outside",
            )


LIMITED_RULES = (
    TrustRule("busy host", Verdict.INVALID, _busy_host),
    TrustRule("limits", Verdict.INVALID, _other_quota),
)
