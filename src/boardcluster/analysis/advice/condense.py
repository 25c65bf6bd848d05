"""What a node did over a run, condensed to what the rules of advice look at."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from boardcluster.analysis.advice.evidence import NodeUse
from boardcluster.analysis.telemetry import (
    base_name,
    capacity_cores,
    members,
    seen,
    window_of,
)
from boardcluster.analysis.trust.clocks import throttle_flags
from boardcluster.analysis.trust.window import Flags, Track, Window
from boardcluster.records import NodeSamples, Telemetry

__all__ = ["node_use"]

_BUSY = ("cpu_user_seconds", "cpu_system_seconds", "cpu_irq_seconds")
_JOBS = "group_cpu_seconds/jobs"
_MASTER = tuple(
    f"group_cpu_seconds/{name}"
    for name in ("namenode", "resourcemanager", "jobhistory", "sparkhistory")
)
_SWAP = ("swap_in_bytes", "swap_out_bytes")
_COLUMNS = frozenset(
    {
        *(*_BUSY, _JOBS, *_MASTER, *_SWAP),
        *("swap_used_bytes", "memory_available_bytes", "temperature_celsius"),
        *("throttle_bits", "clock_measured_hertz", "clock_nominal_hertz"),
        *("link_bits_per_second", "net_received_bytes"),
        *("quota_cores", "quota_throttled_seconds"),
    }
)
_UNDER_VOLTAGE_BIT = 0
_HELD_BACK_BITS = (1, 2, 3)
"""Of ``get_throttled``: clock capped, throttled, soft temperature limit."""


def node_use(samples: NodeSamples, telemetry: Telemetry) -> NodeUse:
    """Sum amounts over the run, and take the highest or lowest of states; see ``NodeUse``."""
    # Cutting a column costs more than all that is done with it, so the rest is left out first.
    needed = {key: row for key, row in samples.columns.items() if {key, base_name(key)} & _COLUMNS}
    window = window_of(replace(samples, columns=needed), telemetry)
    capacity = capacity_cores(window)
    busy = _mean_rate(window, _BUSY)
    heat_seconds, weak_seconds, ratio = _held_back(window)
    links = [name.partition("/")[2] for name in members(window, "net_received_bytes")]
    return NodeUse(
        node=window.node,
        scope=window.scope,
        capacity_cores=capacity,
        busy_share=None if busy is None else busy / capacity,
        jobs_cpu_seconds=_total(window, [_JOBS]),
        master_cpu_seconds=_total(window, _MASTER),
        swap_bytes=_total(window, _SWAP),
        swap_used_most_bytes=seen(window, ["swap_used_bytes"], most=True),
        memory_available_least_bytes=seen(window, ["memory_available_bytes"], most=False),
        temperature_most_celsius=seen(window, ["temperature_celsius"], most=True),
        heat_seconds=heat_seconds,
        weak_supply_seconds=weak_seconds,
        slowed_clock_ratio=ratio,
        link_bits_per_second=_link(window, links),
        received_bytes_per_second=_mean_rate(window, [f"net_received_bytes/{n}" for n in links]),
    )


def _sum(window: Window, names: Iterable[str]) -> Track | None:
    """The sum of amounts that are read at the same moments; None if none is known."""
    rows = [row for name in names if (row := window.column(name)) is not None]
    if not rows:
        return None
    if len(rows) == 1:
        return window.track_where(~np.isnan(rows[0]), rows[0])
    together = np.array(rows)
    known: Flags = np.asarray(~np.isnan(together).all(axis=0))
    return window.track_where(known, np.nansum(together, axis=0))


def _total(window: Window, names: Iterable[str]) -> float | None:
    track = _sum(window, names)
    return None if track is None else track.total()


def _mean_rate(window: Window, names: Iterable[str]) -> float | None:
    """Amount per second over that part of the run of which there are samples."""
    track = _sum(window, names)
    if track is None:
        return None
    shares = track.shares
    seconds = float(shares @ (track.ends - track.begins))
    return float(shares @ np.maximum(track.values, 0.0)) / seconds if seconds > 0 else None


def _link(window: Window, links: Iterable[str]) -> float | None:
    """Lowest rate of each interface; of several interfaces the fastest is the node's own."""
    rates = [
        float(np.nanmin(rate))
        for name in links
        if (rate := window.column(f"link_bits_per_second/{name}")) is not None
    ]
    return max((rate for rate in rates if rate > 0), default=None)


def _held_back(window: Window) -> tuple[float | None, float | None, float | None]:
    """Seconds held back by heat, seconds of under-voltage, and the clock in either as a ratio."""
    track = window.track("throttle_bits")
    if track is None:
        return None, None, None
    if not track.values.any():  # as good as always, and the rest takes a while
        return 0.0, 0.0, None
    weak = throttle_flags(track.values, _UNDER_VOLTAGE_BIT)
    held = np.zeros(len(weak), dtype=np.bool_)
    for bit in _HELD_BACK_BITS:
        held |= throttle_flags(track.values, bit)
    clock = window.columns.get("clock_measured_hertz", np.full(len(window.ends), np.nan))
    slowed = window.track_where(~np.isnan(window.columns["throttle_bits"]), clock)
    ratio = None
    if slowed is not None:
        seen = slowed.values[(weak | held) & ~np.isnan(slowed.values) & (slowed.shares > 0)]
        best = _best_clock(window)
        ratio = float(np.median(seen)) / best if len(seen) and best else None
    return track.seconds(held & ~weak), track.seconds(weak), ratio


def _best_clock(window: Window) -> float:
    """The nominal clock; the highest measured one where that is not known; 0 without any."""
    for name in ("clock_nominal_hertz", "clock_measured_hertz"):
        track = window.track(name)
        if track is not None:
            return float(track.values.max())
    return 0.0
