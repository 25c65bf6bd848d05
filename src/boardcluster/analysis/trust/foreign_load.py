"""Rules on what others took: CPU time, memory, quota, network."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from boardcluster.analysis.trust.effects import TimeLost, amount_within, delay, job_cpu
from boardcluster.analysis.trust.rule import FoundDisturbance, RunTelemetry, TrustRule
from boardcluster.analysis.trust.window import Series, Track, Window, seconds_text
from boardcluster.records import Verdict
from boardcluster.units import format_bytes, format_count, format_rate

__all__ = [
    "OTHER_RULES",
    "cores_text",
    "foreign_words",
    "percent_text",
    "quota_track",
    "steal_words",
]

_NOTES = 3
_PACKET_BYTES = 1500  # the largest of Ethernet; smaller ones are more packets, so a smaller share
_SAME_QUOTA = 0.01
_RETRANSMISSION_SECONDS = 0.2
"""Shortest time after which Linux sends a lost packet again (TCP_RTO_MIN, include/net/tcp.h)."""


def percent_text(share: float) -> str:
    """A share in per cent, with one decimal below ten."""
    return f"{100 * share:.0f} %" if share >= 0.0995 else f"{100 * share:.1f} %"


def steal_words(window: Window, allowed: float) -> Iterator[str]:
    """Say how much CPU time a hypervisor kept, where it is more than allowed."""
    found = window.track("cpu_steal_seconds")
    if found is not None and found.total() > allowed * window.cpu_seconds:
        yield _stolen(window, found, allowed)


def _stolen(window: Window, found: Track, allowed: float) -> str:
    stolen = found.total()
    return (
        f"{window.node}: the hypervisor took {percent_text(stolen / window.cpu_seconds)} of the"
        f" CPU time, {seconds_text(stolen)} ({_when_above(window, found, allowed)})"
    )


def foreign_words(window: Window, allowed: float) -> Iterator[str]:
    """Say how much CPU time programs took that are not the run's, where it is more than allowed."""
    found = window.track("foreign_cpu_seconds")
    if found is not None and found.total() > allowed * window.cpu_seconds:
        yield _taken(window, found, allowed)


def _taken(window: Window, found: Track, allowed: float) -> str:
    named = f": {'; '.join(window.notes[:_NOTES])}" if window.notes else ""
    return (
        f"{window.node}: other programs used {percent_text(found.total() / window.cpu_seconds)} of"
        f" the machine ({_when_above(window, found, allowed)}){named}"
    )


def _when_above(window: Window, found: Track, allowed: float) -> str:
    return found.when(np.asarray(found.rates() > allowed * window.cores))


def _pieces(found: Track) -> tuple[Series, Series, Series]:
    """Return begins and ends of a track's readings within the span, and the amounts in them."""
    begins = np.maximum(found.begins, found.start_seconds)
    ends = np.maximum(np.minimum(found.ends, found.end_seconds), begins)
    return begins, ends, found.shares * np.maximum(found.values, 0.0)


def _steal(run: RunTelemetry) -> Iterator[FoundDisturbance]:
    for window in run.windows:
        found = window.track("cpu_steal_seconds")
        if found is None or not found.total():
            continue
        begins, ends, stolen = _pieces(found)
        lost = delay(stolen, job_cpu(window, begins, ends), ends - begins)
        words = _stolen(window, found, run.thresholds.steal_share)
        yield FoundDisturbance(window.node, words, TimeLost(begins, ends, lost))


def _foreign(run: RunTelemetry) -> Iterator[FoundDisturbance]:
    """Count foreign CPU time only where no core was left for the run.

    A core that was idle for a whole sample, in sum, could have been had. Where the kernel says for
    how long some program waited for a CPU (pressure), the run did not wait for longer.
    """
    for window in run.windows:
        found = window.track("foreign_cpu_seconds")
        if found is None or not found.total():
            continue
        begins, ends, taken = _pieces(found)
        lengths = ends - begins
        lost = delay(taken, job_cpu(window, begins, ends), lengths)
        if window.column("cpu_idle_seconds") is not None:
            idle = amount_within(window, "cpu_idle_seconds", begins, ends)
            idle += amount_within(window, "cpu_iowait_seconds", begins, ends)
            lost = np.where(idle >= lengths, 0.0, lost)
        lost = _no_more_than(window, "pressure_cpu_seconds", begins, ends, lost)
        words = _taken(window, found, run.thresholds.foreign_share)
        yield FoundDisturbance(window.node, words, TimeLost(begins, ends, lost))


def _no_more_than(window: Window, name: str, begins: Series, ends: Series, lost: Series) -> Series:
    """Bound time lost by the time in which the kernel saw something wait, where it says that."""
    if window.column(name) is None:
        return lost
    bounded: Series = np.minimum(lost, amount_within(window, name, begins, ends))
    return bounded


def _swap(run: RunTelemetry) -> Iterator[FoundDisturbance]:
    for window in run.windows:
        into, out = window.total("swap_in_bytes"), window.total("swap_out_bytes")
        if into + out > run.thresholds.swap_bytes:
            flags = np.zeros(len(window.ends), dtype=np.bool_)
            for name in ("swap_in_bytes", "swap_out_bytes"):
                flags |= np.nan_to_num(window.columns.get(name, np.zeros(len(flags)))) > 0
            begins, ends, _ = _pieces(window.moments)
            lost = np.where(flags, ends - begins, 0.0)
            lost = _no_more_than(window, "pressure_memory_seconds", begins, ends, lost)
            words = (
                f"{window.node}: swapped {format_bytes(round(out), binary=True)} out and"
                f" {format_bytes(round(into), binary=True)} in ({window.moments.when(flags)}): its"
                " memory is too small"
            )
            yield FoundDisturbance(window.node, words, TimeLost(begins, ends, lost))


def _quota(run: RunTelemetry) -> Iterator[FoundDisturbance]:
    for window in run.windows:
        if window.node in run.expectations.quota_cores:
            continue  # what it must be is another rule's
        held = window.track("quota_throttled_seconds")
        changed = _quota_change(window)
        if held is not None:
            begins, ends, held_seconds = _pieces(held)
            words = changed or (
                f"{window.node}: held back by its CPU quota for {seconds_text(held.total())},"
                f" summed over its CPUs, of {seconds_text(window.span_seconds)}"
                f" ({held.when(held.values > 0)})"
            )
            yield FoundDisturbance(window.node, words, TimeLost(begins, ends, held_seconds))
        elif changed:  # how long it held anything back is not known: perhaps all the time
            whole = np.array([window.start_seconds]), np.array([window.end_seconds])
            yield FoundDisturbance(
                window.node, changed, TimeLost(*whole, np.array([window.span_seconds]))
            )


def _quota_change(window: Window) -> str:
    """Say when a quota changed without intention; empty if it did not."""
    found = quota_track(window)
    places = found.changes(tolerance=_SAME_QUOTA) if found else []
    if found is None or not places:
        return ""
    before, after = (float(found.values[place]) for place in (places[0] - 1, places[0]))
    return (
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
    return f", and {format_count(changes - 1, 'more change')}" if changes > 1 else ""


def cores_text(cores: float) -> str:
    """A number of cores; an infinite one is all of them."""
    return f"{cores:.3g}" if np.isfinite(cores) else "all"


def _link(run: RunTelemetry) -> Iterator[FoundDisturbance]:
    for window in run.windows:
        for name, found in window.family("link_bits_per_second").items():
            places = found.changes()
            if not places:
                continue
            before, after = (round(found.values[place]) for place in (places[0] - 1, places[0]))
            words = (
                f"{window.node}: link {name} renegotiated from {format_rate(before)} to"
                f" {format_rate(after)} at {found.moment(places[0])}{_and_more(len(places))}: check"
                " the cable and the switch"
            )
            yield FoundDisturbance(window.node, words, _lost_by_link(window, name, found, places))


def _lost_by_link(window: Window, name: str, found: Track, places: list[int]) -> TimeLost:
    """Return the time that a slower link cost at most.

    What it carried while it was slower took longer by the ratio of the rates; while it changed,
    nothing may have been carried at all.
    """
    best = float(found.values.max())
    begins, ends, _ = _pieces(found)
    lengths = ends - begins
    carried = [
        amount_within(window, f"net_{way}_bytes/{name}", begins, ends)
        for way in ("received", "sent")
    ]
    rates = np.maximum(found.values, 1.0)
    sending = np.where(np.any(carried, axis=0), 8 * np.sum(carried, axis=0) / rates, 0.0)
    if not any(
        window.column(f"net_{way}_bytes/{name}") is not None for way in ("received", "sent")
    ):
        sending = lengths
    lost = np.minimum(sending, lengths) * (1 - rates / best)
    lost[places] = lengths[places]
    return TimeLost(begins, ends, lost)


def _drops(run: RunTelemetry) -> Iterator[FoundDisturbance]:
    limits = run.thresholds
    for window in run.windows:
        for name, found in window.family("net_dropped_packets").items():
            dropped = found.total()
            carried = sum(window.total(f"net_{way}_bytes/{name}") for way in ("received", "sent"))
            packets = carried / _PACKET_BYTES + dropped
            often = dropped > limits.drops_per_second * window.span_seconds
            if often and dropped > limits.drop_share * packets:
                begins, ends, lost_packets = _pieces(found)
                words = (
                    f"{window.node}: interface {name} dropped {dropped:.0f} packets,"
                    f" {percent_text(dropped / packets)} of all ({found.when(found.values > 0)})"
                )
                lost = TimeLost(begins, ends, lost_packets * _RETRANSMISSION_SECONDS)
                yield FoundDisturbance(window.node, words, lost)


OTHER_RULES = (
    TrustRule("steal", Verdict.TAINTED, _steal, adjustable=True),
    TrustRule("foreign load", Verdict.TAINTED, _foreign, adjustable=True),
    TrustRule("swap", Verdict.TAINTED, _swap),
    TrustRule("quota", Verdict.TAINTED, _quota),
    TrustRule("link", Verdict.TAINTED, _link),
    TrustRule("drops", Verdict.TAINTED, _drops),
)
