"""Rules on the speed of CPUs and on wall clocks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from boardcluster.analysis.trust.effects import TimeLost, job_cpu
from boardcluster.analysis.trust.rule import FoundDisturbance, RunTelemetry, TrustRule
from boardcluster.analysis.trust.window import Flags, Series, Track, Window, seconds_text
from boardcluster.records import Verdict

__all__ = ["CLOCK_RULES", "THROTTLE_BITS", "clock_under_load", "ghz", "throttle_flags"]

THROTTLE_BITS = (
    (0, "under-voltage", "its power supply or cable is too weak"),
    (1, "clock capped", "by the firmware"),
    (2, "throttled", "it is too hot or has too little power"),
    (3, "slowed at the soft temperature limit", "it is too hot"),
)
_SINCE_BOOT = 16
_BEST_QUANTILE = 0.95
_NOMINAL = ("clock_nominal_hertz", "clock_nominal_least_hertz")
_KINDS_RATIO = 0.9
"""Equal cores of one processor may differ by a few per cent, fast and slow ones by a fifth."""


def ghz(hertz: float) -> str:
    """A clock in GHz with two decimals."""
    return f"{hertz / 1e9:.2f} GHz"


def throttle_flags(values: Series, bit: int) -> Flags:
    """Where a bit of ``get_throttled`` is set, or its since-boot twin came up between readings."""
    bits = np.clip(values, 0, 1 << 32).astype(np.int64)
    now = (bits >> bit) & 1
    ever = (bits >> (bit + _SINCE_BOOT)) & 1
    risen = np.diff(ever, prepend=ever[:1]) > 0
    return np.asarray((now == 1) | risen)


def _throttled(run: RunTelemetry) -> Iterator[FoundDisturbance]:
    """Count flagged time as spent at the lowest clock there is: how far it fell is not recorded."""
    for window in run.windows:
        found = window.track("throttle_bits")
        if found is None:
            continue
        nominal_hertz = run.expectations.nominal_hertz.get(window.node, 0.0)
        least_hertz = run.expectations.least_hertz.get(window.node, 0.0)
        slower = 1 - least_hertz / nominal_hertz if nominal_hertz else 1.0
        begins, ends = _pieces(found)
        for bit, words, cause in THROTTLE_BITS:
            flags = throttle_flags(found.values, bit)
            if not (seconds := found.seconds(flags)):
                continue
            lost = np.where(flags, slower * _busy_seconds(window, begins, ends), 0.0)
            said = (
                f"{window.node}: {words} for {_of(window, seconds)} (bit {bit},"
                f" {found.when(flags)}): {cause}"
            )
            yield FoundDisturbance(window.node, said, TimeLost(begins, ends, lost))


def _pieces(found: Track) -> tuple[Series, Series]:
    """Return since when and until when each reading stands, within the span."""
    begins = np.maximum(found.stands_from, found.start_seconds)
    return begins, np.maximum(np.minimum(found.ends, found.end_seconds), begins)


def _busy_seconds(window: Window, begins: Series, ends: Series) -> Series:
    """For how long the run had a core at work: as long as the piece, or as its CPU time at most."""
    return np.minimum(ends - begins, job_cpu(window, begins, ends))


def _of(window: Window, part_seconds: float) -> str:
    return f"{seconds_text(part_seconds)} of {seconds_text(window.span_seconds)}"


def _slow_clock(run: RunTelemetry) -> Iterator[FoundDisturbance]:
    """Count the cycles that each busy core lacked; of two references the worse one counts."""
    for window in run.windows:
        measured = _measured(run, window)
        if measured is None:
            continue
        begins, ends = _pieces(window.moments)
        busy_seconds = _busy_seconds(window, begins, ends)
        found: list[tuple[float, FoundDisturbance]] = []
        for what, expected, ratio in _references(run, window, measured):
            slow = (measured < ratio * expected) & ~_flagged(window)
            if not (seconds := window.moments.seconds(slow)):
                continue
            lost = np.where(slow, 1 - measured / expected, 0.0) * busy_seconds
            words = (
                f"{window.node}: ran at {ghz(window.median(measured, slow))} for"
                f" {_of(window, seconds)} ({window.moments.when(slow)}):"
                f" {what} {ghz(window.median(expected, slow))}{_said(window, slow)}"
            )
            row = FoundDisturbance(window.node, words, TimeLost(begins, ends, lost))
            found.append((float(lost.sum()), row))
        if found:
            yield max(found, key=lambda pair: pair[0])[1]


def _fast_clock(run: RunTelemetry) -> Iterator[FoundDisturbance]:
    """Name a clock above the one that a board has: what was measured is not that board."""
    for window in run.windows:
        measured = _measured(run, window)
        promised_hertz = run.expectations.nominal_hertz.get(window.node)
        if measured is None or not promised_hertz:
            continue
        fast = measured * run.thresholds.clock_nominal_ratio > promised_hertz
        if not (seconds := window.moments.seconds(fast)):
            continue
        at = _pieces(window.moments)
        saved = np.where(fast, measured / promised_hertz - 1, 0.0) * _busy_seconds(window, *at)
        words = (
            f"{window.node}: ran at {ghz(window.median(measured, fast))} for"
            f" {_of(window, seconds)} ({window.moments.when(fast)}), faster than its nominal clock"
            f" of {ghz(promised_hertz)}"
        )
        yield FoundDisturbance(window.node, words, TimeLost(*at, saved))


def _measured(run: RunTelemetry, window: Window) -> Series | None:
    """The clock that the timed loop found; NaN where it is not known.

    None also where CPUs are of several kinds: the loop runs on whichever its program is on.
    """
    measured = window.column("clock_measured_hertz")
    if measured is None or window.node in run.expectations.mixed or _has_kinds(window):
        return None
    return np.where(measured > 0, measured, np.nan)


def _has_kinds(window: Window) -> bool:
    """Whether the highest clocks of its CPUs differ as those of fast and slow cores do."""
    most, least = (window.column(name) for name in _NOMINAL)
    if most is None or least is None:
        return False
    return bool(np.nanmin(least) < _KINDS_RATIO * np.nanmax(most))


def _flagged(window: Window) -> Flags:
    """The samples in which the firmware says that it throttles: another rule counts them."""
    found = window.track("throttle_bits")
    flags = np.zeros(len(window.ends), dtype=np.bool_)
    if found is None:
        return flags
    begins, ends = _pieces(found)
    at_begins, at_ends = _pieces(window.moments)
    for bit, _, _ in THROTTLE_BITS:
        for place in np.flatnonzero(throttle_flags(found.values, bit)):
            flags |= (at_begins < ends[place]) & (at_ends > begins[place])
    return flags


def _references(
    run: RunTelemetry, window: Window, measured: Series
) -> Iterator[tuple[str, Series, float]]:
    """What the measured clock is held against: words, hertz for each sample or NaN, ratio.

    A node that is not kept busy is only held against what its kernel reports at the same moment: a
    governor may lower the clock then, and says so.
    """
    limits, everywhere = run.thresholds, np.ones(len(measured))
    busy = window.busy(limits.busy_share)
    reported = _reported(window)
    promised_hertz = _promised(run, window)
    earlier_hertz = run.expectations.best_hertz.get(window.node, 0.0)
    if promised_hertz:
        idle = np.nan * everywhere if reported is None else np.fmin(reported, promised_hertz)
        what = "its own best was" if promised_hertz == earlier_hertz else "its nominal clock is"
        yield what, np.where(busy, promised_hertz, idle), limits.clock_nominal_ratio
        return
    # A kernel that does not steer the clock (most virtual machines) reports a constant.
    if reported is not None and window.column("clock_nominal_hertz") is not None:
        yield "it said", np.where(busy, reported, np.nan), limits.clock_nominal_ratio
    best_hertz = max(clock_under_load(window, limits.busy_share) or 0.0, earlier_hertz)
    if best_hertz > 0:
        yield "its own best was", np.where(busy, best_hertz, np.nan), limits.clock_best_ratio


def _promised(run: RunTelemetry, window: Window) -> float | None:
    """The clock that a board is to hold: the nominal one, or its own usual one if that is higher.

    None where there is no nominal clock.
    """
    nominal_hertz = run.expectations.nominal_hertz.get(window.node)
    if not nominal_hertz:
        return None
    return max(nominal_hertz, run.expectations.best_hertz.get(window.node, 0.0))


def clock_under_load(window: Window, busy_share: float) -> float | None:
    """Return the clock that a node reached while it was busy; None if it was not, or not known.

    The 95 % quantile, so that one bad reading says nothing.
    """
    measured = window.column("clock_measured_hertz")
    if measured is None:
        return None
    inside = (window.ends > window.start_seconds) & (window.ends <= window.end_seconds)
    seen = measured[window.busy(busy_share) & (measured > 0) & inside]
    return float(np.quantile(seen, _BEST_QUANTILE)) if len(seen) else None


def _reported(window: Window) -> Series | None:
    """The clock that the kernel reports: of the slowest CPU, so that no idle one is wronged."""
    rows = [window.columns[f"clock_hertz/{cpu}"] for cpu in window.family("clock_hertz")]
    if not rows:
        return None
    lowest: Series = np.fmin.reduce(rows)
    return lowest


def _said(window: Window, slow: Flags) -> str:
    reported = _reported(window)
    middle = float("nan") if reported is None else window.median(reported, slow)
    return f" (the kernel said {ghz(middle)})" if np.isfinite(middle) else ""


def _clock_step(run: RunTelemetry) -> Iterator[FoundDisturbance]:
    for window in run.windows:
        steps = window.track("clock_step_seconds")
        if steps is None:
            continue
        sizes = np.where(steps.shares > 0, np.abs(steps.values), 0.0)
        place = int(sizes.argmax())
        if sizes[place] > run.thresholds.clock_step_seconds:
            way = "forward" if steps.values[place] > 0 else "back"
            words = (
                f"{window.node}: its wall clock was set {way} by {seconds_text(sizes[place])}"
                f" at {steps.moment(place)}"
            )
            yield FoundDisturbance(window.node, words, _timers(run, float(sizes.sum())))


def _timers(run: RunTelemetry, seconds: float) -> TimeLost:
    """Time that a timer of the engines can be late by that follows a wall clock so far off."""
    return TimeLost(np.array([0.0]), np.array([run.duration_seconds]), np.array([seconds]))


_OURS = "this machine"


def _clock_skew(run: RunTelemetry) -> Iterator[FoundDisturbance]:
    """Hold wall clocks against each other and the driver's: boards may all be wrong alike."""
    rows = [
        (node.clock_offset_seconds, node.node, max(0.0, node.clock_error_seconds))
        for node in run.samples
        if np.isfinite(node.clock_offset_seconds)
    ]
    rows.append((0.0, _OURS, 0.0))
    behind, last, last_error = min(rows, key=lambda row: row[0])
    ahead, first, first_error = max(rows, key=lambda row: row[0])
    apart = ahead - behind
    if apart - last_error - first_error > run.thresholds.clock_skew_seconds:
        words = f"{first}: its wall clock is {seconds_text(apart)} ahead of that of {last}"
        yield FoundDisturbance(last if first == _OURS else first, words, _timers(run, apart))


CLOCK_RULES = (
    TrustRule("throttled", Verdict.TAINTED, _throttled),
    TrustRule("slow clock", Verdict.TAINTED, _slow_clock),
    TrustRule("fast clock", Verdict.TAINTED, _fast_clock),
    TrustRule("clock step", Verdict.TAINTED, _clock_step),
    TrustRule("clock skew", Verdict.TAINTED, _clock_skew),
)
