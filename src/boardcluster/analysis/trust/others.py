"""Rules on what others took: CPU time, memory, quota, network."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from boardcluster.analysis.trust.rule import Rule, Run
from boardcluster.analysis.trust.window import Flags, Series, Window, seconds_text
from boardcluster.records import Verdict
from boardcluster.units import format_bytes, format_rate

__all__ = ["OTHER_RULES", "foreign_words", "rates", "steal_words"]

_NOTES = 3
_PACKET_BYTES = 1500  # the largest of Ethernet; smaller ones are more packets, so a smaller share
_SAME_QUOTA = 0.01


def rates(window: Window, name: str) -> Series | None:
    """A column of CPU seconds as a share of the node's cores, for each sample."""
    values = window.column(name)
    if values is None:
        return None
    shares: Series = np.nan_to_num(values) / (window.cores * (window.ends - window.begins))
    return shares


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.0995 else f"{100 * share:.1f} %"


def steal_words(window: Window, allowed: float) -> Iterator[str]:
    """Say how much CPU time a hypervisor kept, where it is more than allowed."""
    stolen, when = window.total("cpu_steal_seconds"), rates(window, "cpu_steal_seconds")
    if stolen is not None and when is not None and stolen > allowed * window.cpu_seconds:
        yield (
            f"{window.node}: the hypervisor kept {_percent(stolen / window.cpu_seconds)} of the"
            f" CPU time, {seconds_text(stolen)} ({window.when(when > allowed)})"
        )


def foreign_words(window: Window, allowed: float) -> Iterator[str]:
    """Say how much CPU time programs took that are not the run's, where it is more than allowed."""
    taken, when = window.total("foreign_cpu_seconds"), rates(window, "foreign_cpu_seconds")
    if taken is not None and when is not None and taken > allowed * window.cpu_seconds:
        named = f": {'; '.join(window.notes[:_NOTES])}" if window.notes else ""
        yield (
            f"{window.node}: other programs used {_percent(taken / window.cpu_seconds)} of the"
            f" machine ({window.when(when > allowed)}){named}"
        )


def _steal(run: Run) -> Iterator[str]:
    for window in run.windows:
        yield from steal_words(window, run.thresholds.steal_share)


def _foreign(run: Run) -> Iterator[str]:
    for window in run.windows:
        yield from foreign_words(window, run.thresholds.foreign_share)


def _swap(run: Run) -> Iterator[str]:
    for window in run.windows:
        into = window.total("swap_in_bytes") or 0.0
        out = window.total("swap_out_bytes") or 0.0
        if into + out > run.thresholds.swap_bytes:
            flags = np.zeros(len(window.ends), dtype=np.bool_)
            for name in ("swap_in_bytes", "swap_out_bytes"):
                values = window.column(name)
                flags |= False if values is None else values > 0
            yield (
                f"{window.node}: swapped {format_bytes(round(out), binary=True)} out and"
                f" {format_bytes(round(into), binary=True)} in ({window.when(flags)}): its memory"
                " is too small"
            )


def _quota(run: Run) -> Iterator[str]:
    for window in run.windows:
        quota = window.column("quota_cores")
        if quota is not None:
            yield from _quota_changes(window, quota)
        held = window.total("quota_throttled_seconds")
        meant = window.node in run.expectations.quota_cores
        if held is None or meant or held <= run.thresholds.quota_share * window.span_seconds:
            continue
        when = window.when(np.nan_to_num(window.columns["quota_throttled_seconds"]) > 0)
        yield (
            f"{window.node}: held back by its CPU quota for {seconds_text(held)}, summed over"
            f" its CPUs, of {seconds_text(window.span_seconds)} ({when})"
        )


def _quota_changes(window: Window, quota: Series) -> Iterator[str]:
    """NaN is no quota, as long as the column says anything at all."""
    cores = np.where(np.isnan(quota), np.inf, quota)
    places = _changes(window, cores)
    if not places:
        return
    first = places[0]
    before, after = float(cores[first - 1]), float(cores[first])
    verb = "cut" if after < before else "raised"
    rest = _and_more(len(places))
    moment = min(float(window.ends[first]), window.end_seconds)
    yield (
        f"{window.node}: CPU quota {verb} from {_cores(before)} to {_cores(after)} cores at"
        f" {seconds_text(moment)} of {seconds_text(window.span_seconds)}{rest}"
    )


def _and_more(changes: int) -> str:
    """How many changes there were beyond the first that is named."""
    return f", and {changes - 1} more change{'s' if changes > 2 else ''}" if changes > 1 else ""


def _cores(cores: float) -> str:
    return f"{cores:.3g}" if np.isfinite(cores) else "all"


def _changes(window: Window, values: Series) -> list[int]:
    """Samples within the run whose value differs from that of the sample before."""
    return [
        place
        for place in range(1, len(values))
        if window.shares[place] > 0
        and not math.isclose(values[place], values[place - 1], rel_tol=_SAME_QUOTA)
    ]


def _link(run: Run) -> Iterator[str]:
    for window in run.windows:
        for name, values in window.family("link_bits_per_second").items():
            known = ~np.isnan(values)
            rated, ends, shares = values[known], window.ends[known], window.shares[known]
            places = np.flatnonzero((np.diff(rated, prepend=rated[:1]) != 0) & (shares > 0))
            if not len(places):
                continue
            first = int(places[0])
            rest = _and_more(len(places))
            moment = min(float(ends[first]), window.end_seconds)
            yield (
                f"{window.node}: link {name} renegotiated from"
                f" {format_rate(round(rated[first - 1]))} to {format_rate(round(rated[first]))}"
                f" at {seconds_text(moment)} of {seconds_text(window.span_seconds)}{rest}:"
                " look at cable and switch"
            )


def _drops(run: Run) -> Iterator[str]:
    limits = run.thresholds
    for window in run.windows:
        for name, values in window.family("net_dropped_packets").items():
            dropped = window.total(f"net_dropped_packets/{name}") or 0.0
            carried = sum(
                window.total(f"net_{way}_bytes/{name}") or 0.0 for way in ("received", "sent")
            )
            packets = carried / _PACKET_BYTES + dropped
            often = dropped > limits.drops_per_second * window.span_seconds
            if often and dropped > limits.drop_share * packets:
                flags: Flags = np.nan_to_num(values) > 0
                yield (
                    f"{window.node}: interface {name} dropped {dropped:.0f} packets,"
                    f" {_percent(dropped / packets)} of all ({window.when(flags)})"
                )


OTHER_RULES = (
    Rule(
        name="steal",
        verdict=Verdict.TAINTED,
        columns=("cpu_steal_seconds",),
        thresholds=("steal_share",),
        why="A virtual machine waits while its hypervisor runs others; the work takes longer "
        "and the guest cannot see why.",
        source="proc(5), /proc/stat, steal; the share is our choice",
        find=_steal,
    ),
    Rule(
        name="foreign load",
        verdict=Verdict.TAINTED,
        columns=("foreign_cpu_seconds",),
        thresholds=("foreign_share",),
        why="CPU time that went to other programs was not there for the run.",
        source="proc(5), /proc/PID/stat; the share is our choice",
        find=_foreign,
    ),
    Rule(
        name="swap",
        verdict=Verdict.TAINTED,
        columns=("swap_in_bytes", "swap_out_bytes"),
        thresholds=("swap_bytes",),
        why="A page from swap takes thousands of times as long as one from memory, and it "
        "shares the disk with the run.",
        source="proc(5), /proc/vmstat, pswpin and pswpout; the size is our choice",
        find=_swap,
    ),
    Rule(
        name="quota",
        verdict=Verdict.TAINTED,
        columns=("quota_cores", "quota_throttled_seconds"),
        thresholds=("quota_share",),
        why="Below its quota a node is a smaller machine than the one that is written down; a "
        "quota that changes makes it two machines in one run.",
        source="Linux kernel, Control Group v2, cpu.max and cpu.stat; the share is our choice",
        find=_quota,
    ),
    Rule(
        name="link",
        verdict=Verdict.TAINTED,
        columns=("link_bits_per_second/IF",),
        thresholds=(),
        why="A bad cable makes a link fall from 1 Gbit/s to 100 Mbit/s; every shuffle and "
        "replica then takes ten times as long.",
        source="Linux kernel, sysfs-class-net, speed",
        find=_link,
    ),
    Rule(
        name="drops",
        verdict=Verdict.TAINTED,
        columns=("net_dropped_packets/IF", "net_received_bytes/IF", "net_sent_bytes/IF"),
        thresholds=("drop_share", "drops_per_second"),
        why="TCP slows down with each lost packet, in proportion to one over the root of the "
        "share that is lost.",
        source="Mathis, Semke, Mahdavi and Ott 1997: at 0.1 % and 0.2 ms about 1.8 Gbit/s are "
        "possible, at 1 % less than 1 Gbit/s",
        find=_drops,
    ),
)
