"""Rules on the samples themselves: are there any, and do they cover the run."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from boardcluster.analysis.trust.effects import TimeLost
from boardcluster.analysis.trust.rule import FoundDisturbance, RunTelemetry, TrustRule
from boardcluster.analysis.trust.window import Window, seconds_text
from boardcluster.records import Verdict

__all__ = ["COVERAGE_RULES"]

_SHORT_RUN_INTERVALS = 2
_JITTER_INTERVALS = 2


@dataclass(frozen=True, slots=True)
class _Pause:
    """A time without samples: from the last one before it to the first one after it."""

    start_seconds: float
    end_seconds: float
    pace_seconds: float
    missing_seconds: float

    @property
    def intervals(self) -> float:
        return (self.end_seconds - self.start_seconds) / self.pace_seconds


def _pauses(window: Window) -> list[_Pause]:
    """Times that no sample covers; each sample covers one interval, and jitter is forgiven."""
    start, end = window.start_seconds, window.end_seconds
    ends = [float(moment) for moment in window.ends]
    paces = [float(pace_seconds) for pace_seconds in window.paces]
    pauses = []
    if (missing_seconds := ends[0] - paces[0] - start) > 0:
        pauses.append(_Pause(start, ends[0], paces[0], missing_seconds))
    for (before, after), pace_seconds in zip(itertools.pairwise(ends), paces[1:], strict=True):
        missing_seconds = min(after - pace_seconds, end) - max(before, start)
        if after - before > _JITTER_INTERVALS * pace_seconds and missing_seconds > 0:
            pauses.append(
                _Pause(max(before, start), min(after, end), pace_seconds, missing_seconds)
            )
    if (missing_seconds := end - ends[-1] - paces[-1]) > 0:
        pauses.append(_Pause(max(ends[-1], start), end, paces[-1], missing_seconds))
    return pauses


def _is_short(window: Window) -> bool:
    return bool(window.span_seconds < _SHORT_RUN_INTERVALS * window.paces[0])


def _cover(window: Window) -> float:
    """Share of the run that samples cover."""
    if not len(window.ends) or not _touches(window):
        return 0.0
    if _is_short(window):
        return 1.0
    missing_seconds = sum(pause.missing_seconds for pause in _pauses(window))
    return max(0.0, 1 - missing_seconds / window.span_seconds)


def _touches(window: Window) -> bool:
    """Whether a sample's interval overlaps the run; of a run without length, holds its moment."""
    if window.span_seconds > 0:
        return bool((window.moments.shares > 0).any())
    moment, found = window.start_seconds, window.moments
    return bool(((found.begins <= moment) & (found.ends >= moment)).any())


def _missing(run: RunTelemetry) -> Iterator[FoundDisturbance]:
    given = {window.node for window in run.windows}
    if not given and not run.expectations.nodes:
        yield FoundDisturbance("", "there is no telemetry at all")
    for name in run.expectations.nodes:
        if name not in given:
            yield FoundDisturbance(name, f"{name}: gave no samples")


def _uncovered(run: RunTelemetry) -> Iterator[FoundDisturbance]:
    for window in run.windows:
        cover = _cover(window)
        if cover >= run.thresholds.cover_share:
            continue
        length = seconds_text(run.duration_seconds)
        if cover == 0:
            yield FoundDisturbance(
                window.node, f"{window.node}: gave no sample in the run of {length}"
            )
            continue
        # Rounded down, so that 79.9 does not read as the 80 that would have been enough.
        words = f"{_where(window)}; samples cover {int(100 * cover)} % of the run"
        yield FoundDisturbance(window.node, words)


def _gaps(run: RunTelemetry) -> Iterator[FoundDisturbance]:
    for window in run.windows:
        if _cover(window) < run.thresholds.cover_share or _is_short(window):
            continue
        gaps = [
            pause
            for pause in _pauses(window)
            if pause.intervals > run.thresholds.gap_intervals
            and pause.end_seconds - pause.start_seconds > run.thresholds.gap_seconds
        ]
        if gaps:
            lost = TimeLost(
                np.array([pause.start_seconds for pause in gaps]),
                np.array([pause.end_seconds for pause in gaps]),
                np.array([pause.missing_seconds for pause in gaps]),
            )
            yield FoundDisturbance(window.node, _where(window), lost)


def _where(window: Window) -> str:
    """The end of the samples if they end before the run, else the longest pause in them."""
    pauses = _pauses(window)
    longest = max(pauses, key=lambda pause: pause.intervals)
    if longest.end_seconds >= window.end_seconds and longest is pauses[-1]:
        moment, whole = seconds_text(longest.start_seconds), seconds_text(window.span_seconds)
        return f"{window.node}: its agent stopped at {moment} of {whole}"
    rest = f", one of {len(pauses)} gaps" if len(pauses) > 1 else ""
    return (
        f"{window.node}: no samples from {seconds_text(longest.start_seconds)} to"
        f" {seconds_text(longest.end_seconds)}"
        f" ({longest.intervals:.0f} intervals{rest})"
    )


COVERAGE_RULES = (
    TrustRule("missing node", Verdict.INVALID, _missing),
    TrustRule("cover", Verdict.INVALID, _uncovered),
    TrustRule("gaps", Verdict.TAINTED, _gaps),
)
