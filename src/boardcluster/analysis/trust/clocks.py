"""Rules on the speed of CPUs and on wall clocks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from boardcluster.analysis.trust.rule import RunTelemetry, TrustRule
from boardcluster.analysis.trust.window import Flags, Series, Window, seconds_text
from boardcluster.records import Verdict

__all__ = ["CLOCK_RULES", "THROTTLE_BITS", "ghz", "throttle_flags"]

THROTTLE_BITS = (
    (0, "under-voltage", "its power supply or cable is too weak"),
    (1, "clock capped", "by the firmware"),
    (2, "throttled", "it is too hot or has too little power"),
    (3, "slowed at the soft temperature limit", "it is too hot"),
)
_SINCE_BOOT = 16
_BEST_QUANTILE = 0.95


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


def _throttled(run: RunTelemetry) -> Iterator[str]:
    for window in run.windows:
        found = window.track("throttle_bits")
        if found is None:
            continue
        for bit, words, cause in THROTTLE_BITS:
            flags = throttle_flags(found.values, bit)
            seconds = found.seconds(flags)
            if seconds > run.thresholds.throttled_share * window.span_seconds:
                yield (
                    f"{window.node}: {words} for {_of(window, seconds)} (bit {bit},"
                    f" {found.when(flags)}): {cause}"
                )


def _of(window: Window, part_seconds: float) -> str:
    return f"{seconds_text(part_seconds)} of {seconds_text(window.span_seconds)}"


def _slow_clock(run: RunTelemetry) -> Iterator[str]:
    limits = run.thresholds
    for window in run.windows:
        measured = window.column("clock_measured_hertz")
        if measured is None or window.node in run.expectations.mixed:
            continue
        busy = window.busy(limits.busy_share) & (measured > 0)
        for what, expected, ratio in _references(run, window, measured, busy):
            slow = busy & (measured < ratio * expected)
            seconds = window.moments.seconds(slow)
            if seconds > limits.clock_share * window.span_seconds:
                yield (
                    f"{window.node}: ran at {ghz(window.median(measured, slow))} for"
                    f" {_of(window, seconds)} ({window.moments.when(slow)}):"
                    f" {what} {ghz(window.median(expected, slow))}{_said(window, slow)}"
                )
                break


def _references(
    run: RunTelemetry, window: Window, measured: Series, busy: Flags
) -> Iterator[tuple[str, Series, float]]:
    """What the measured clock is held against: words, hertz for each sample, ratio."""
    limits, everywhere = run.thresholds, np.ones(len(measured))
    nominal_hertz = run.expectations.nominal_hertz.get(window.node)
    if nominal_hertz:
        yield "its nominal clock is", nominal_hertz * everywhere, limits.clock_nominal_ratio
        return
    reported = _reported(window)
    # A kernel that does not steer the clock (most virtual machines) reports a constant.
    if reported is not None and window.column("clock_nominal_hertz") is not None:
        yield "it said", reported, limits.clock_nominal_ratio
    seen = measured[busy]
    best = max(
        float(np.quantile(seen, _BEST_QUANTILE)) if len(seen) else 0.0,
        run.expectations.best_hertz.get(window.node, 0.0),
    )
    if best > 0:
        yield "its own best was", best * everywhere, limits.clock_best_ratio


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


def _clock_step(run: RunTelemetry) -> Iterator[str]:
    for window in run.windows:
        steps = window.track("clock_step_seconds")
        if steps is None:
            continue
        sizes = np.where(steps.shares > 0, np.abs(steps.values), 0.0)
        place = int(sizes.argmax())
        if sizes[place] > run.thresholds.clock_step_seconds:
            way = "forward" if steps.values[place] > 0 else "back"
            yield (
                f"{window.node}: its wall clock was set {way} by {seconds_text(sizes[place])}"
                f" at {steps.moment(place)}"
            )


def _clock_skew(run: RunTelemetry) -> Iterator[str]:
    rows = [node for node in run.samples if np.isfinite(node.clock_offset_seconds)]
    if len(rows) < 2:
        return
    last = min(rows, key=lambda node: node.clock_offset_seconds)
    first = max(rows, key=lambda node: node.clock_offset_seconds)
    apart = first.clock_offset_seconds - last.clock_offset_seconds
    errors = [error for node in (first, last) if (error := node.clock_error_seconds) > 0]
    if apart - sum(errors) > run.thresholds.clock_skew_seconds:
        yield f"{first.node}: its wall clock is {seconds_text(apart)} ahead of that of {last.node}"


CLOCK_RULES = (
    TrustRule("throttled", Verdict.TAINTED, _throttled),
    TrustRule("slow clock", Verdict.TAINTED, _slow_clock),
    TrustRule("clock step", Verdict.TAINTED, _clock_step),
    TrustRule("clock skew", Verdict.TAINTED, _clock_skew),
)
