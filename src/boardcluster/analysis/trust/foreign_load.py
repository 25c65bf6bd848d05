"""Rules on what others took: CPU time, memory, quota, network."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from boardcluster.analysis.trust.rule import RunTelemetry, TrustRule
from boardcluster.analysis.trust.window import Track, Window, seconds_text
from boardcluster.records import Verdict
from boardcluster.units import format_bytes, format_rate

__all__ = ["OTHER_RULES", "cores_text", "foreign_words", "quota_track", "steal_words"]

_NOTES = 3
_PACKET_BYTES = 1500  # the largest of Ethernet; smaller ones are more packets, so a smaller share
_SAME_QUOTA = 0.01


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.0995 else f"{100 * share:.1f} %"


def steal_words(window: Window, allowed: float) -> Iterator[str]:
    """Say how much CPU time a hypervisor kept, where it is more than allowed."""
    found = window.track("cpu_steal_seconds")
    if found is not None and (stolen := found.total()) > allowed * window.cpu_seconds:
        yield (
            f"{window.node}: the hypervisor took {_percent(stolen / window.cpu_seconds)} of the"
            f" CPU time, {seconds_text(stolen)} ({_when_above(window, found, allowed)})"
        )


def foreign_words(window: Window, allowed: float) -> Iterator[str]:
    """Say how much CPU time programs took that are not the run's, where it is more than allowed."""
    found = window.track("foreign_cpu_seconds")
    if found is not None and (taken := found.total()) > allowed * window.cpu_seconds:
        named = f": {'; '.join(window.notes[:_NOTES])}" if window.notes else ""
        yield (
            f"{window.node}: other programs used {_percent(taken / window.cpu_seconds)} of the"
            f" machine ({_when_above(window, found, allowed)}){named}"
        )


def _when_above(window: Window, found: Track, allowed: float) -> str:
    return found.when(np.asarray(found.rates() > allowed * window.cores))


def _steal(run: RunTelemetry) -> Iterator[str]:
    for window in run.windows:
        yield from steal_words(window, run.thresholds.steal_share)


def _foreign(run: RunTelemetry) -> Iterator[str]:
    for window in run.windows:
        yield from foreign_words(window, run.thresholds.foreign_share)


def _swap(run: RunTelemetry) -> Iterator[str]:
    for window in run.windows:
        into, out = window.total("swap_in_bytes"), window.total("swap_out_bytes")
        if into + out > run.thresholds.swap_bytes:
            flags = np.zeros(len(window.ends), dtype=np.bool_)
            for name in ("swap_in_bytes", "swap_out_bytes"):
                flags |= np.nan_to_num(window.columns.get(name, np.zeros(len(flags)))) > 0
            yield (
                f"{window.node}: swapped {format_bytes(round(out), binary=True)} out and"
                f" {format_bytes(round(into), binary=True)} in ({window.moments.when(flags)}): its"
                " memory is too small"
            )


def _quota(run: RunTelemetry) -> Iterator[str]:
    for window in run.windows:
        if window.node in run.expectations.quota_cores:
            continue  # what it must be is another rule's
        held = window.track("quota_throttled_seconds")
        yield from _quota_changes(window)
        if held is None:
            continue
        held_seconds = held.total()
        if held_seconds > run.thresholds.quota_share * window.span_seconds:
            yield (
                f"{window.node}: held back by its CPU quota for {seconds_text(held_seconds)},"
                f" summed over its CPUs, of {seconds_text(window.span_seconds)}"
                f" ({held.when(held.values > 0)})"
            )


def _quota_changes(window: Window) -> Iterator[str]:
    """Say when a quota changed without intention."""
    found = quota_track(window)
    places = found.changes(tolerance=_SAME_QUOTA) if found else []
    if found is None or not places:
        return
    before, after = (float(found.values[place]) for place in (places[0] - 1, places[0]))
    yield (
        f"{window.node}: CPU quota {'cut' if after < before else 'raised'} from"
        f" {cores_text(before)} to {cores_text(after)} cores at {found.moment(places[0])}"
        f"{_and_more(len(places))}"
    )


def quota_track(window: Window) -> Track | None:
    """The CPU quota in cores each time it was read, infinite for none; None if it is not known.

    NaN is no quota in a sample in which quotas were read, and else unknown. An agent reads them in
    its first sample and then rarely, together with the time for which they held processes back;
    that is an amount, so it is never known in the first.
    """
    quota = window.column("quota_cores")
    if quota is None:
        return None
    held = window.column("quota_throttled_seconds")
    read = ~np.isnan(quota)
    if held is not None:
        read |= ~np.isnan(held)
        read[:1] = True
    return window.track_where(read, np.where(np.isnan(quota), np.inf, quota))


def _and_more(changes: int) -> str:
    """How many changes there were beyond the first that is named."""
    return f", and {changes - 1} more change{'s' if changes > 2 else ''}" if changes > 1 else ""


def cores_text(cores: float) -> str:
    """A number of cores; an infinite one is all of them."""
    return f"{cores:.3g}" if np.isfinite(cores) else "all"


def _link(run: RunTelemetry) -> Iterator[str]:
    for window in run.windows:
        for name, found in window.family("link_bits_per_second").items():
            places = found.changes()
            if not places:
                continue
            before, after = (round(found.values[place]) for place in (places[0] - 1, places[0]))
            yield (
                f"{window.node}: link {name} renegotiated from {format_rate(before)} to"
                f" {format_rate(after)} at {found.moment(places[0])}{_and_more(len(places))}: check"
                " the cable and the switch"
            )


def _drops(run: RunTelemetry) -> Iterator[str]:
    limits = run.thresholds
    for window in run.windows:
        for name, found in window.family("net_dropped_packets").items():
            dropped = found.total()
            carried = sum(window.total(f"net_{way}_bytes/{name}") for way in ("received", "sent"))
            packets = carried / _PACKET_BYTES + dropped
            often = dropped > limits.drops_per_second * window.span_seconds
            if often and dropped > limits.drop_share * packets:
                yield (
                    f"{window.node}: interface {name} dropped {dropped:.0f} packets,"
                    f" {_percent(dropped / packets)} of all ({found.when(found.values > 0)})"
                )


OTHER_RULES = (
    TrustRule("steal", Verdict.TAINTED, _steal),
    TrustRule("foreign load", Verdict.TAINTED, _foreign),
    TrustRule("swap", Verdict.TAINTED, _swap),
    TrustRule("quota", Verdict.TAINTED, _quota),
    TrustRule("link", Verdict.TAINTED, _link),
    TrustRule("drops", Verdict.TAINTED, _drops),
)
