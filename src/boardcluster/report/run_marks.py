"""When something disturbed a node in a run: the signs that verdicts are made of, with times."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from boardcluster.analysis.telemetry import throttled, window_of
from boardcluster.analysis.trust.window import Flags, Track, Window
from boardcluster.records import Telemetry

__all__ = ["DisturbedTimes", "disturbances"]

_SHARE = 0.05  # of its cores, or of the time: what a reader would look for in the curves
_STOLEN_SHARE = 0.02
_QUOTA = "held back by a CPU quota"
_SWAP = ("swap_in_bytes", "swap_out_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class DisturbedTimes:
    """One kind of disturbance of one node."""

    node: str
    """Its name."""
    what: str
    """The kind, in words."""
    spans: tuple[tuple[float, float], ...]
    """Begin and end of each time, in seconds from the start of the run."""
    seconds: float
    """How long it lasted in all."""


def disturbances(telemetry: Telemetry, *, limited: bool = False) -> tuple[DisturbedTimes, ...]:
    """Find what disturbed the nodes, node by node.

    Args:
        telemetry: of the run.
        limited: whether nodes stand for boards, so that their CPU quota is meant to hold them back.
    """
    windows = [window_of(node, telemetry) for node in telemetry.nodes]
    return tuple(
        found
        for window in windows
        for found in _of(window)
        if not (limited and found.what == _QUOTA)
    )


def _of(window: Window) -> Iterator[DisturbedTimes]:
    held = throttled(window)
    if held is not None:
        yield from _one(window, "clock held back by the firmware", *held)
    for column, what, share in (
        ("quota_throttled_seconds", _QUOTA, _SHARE),
        ("foreign_cpu_seconds", "CPU used by other programs", _SHARE * window.cores),
        ("cpu_steal_seconds", "CPU taken by the hypervisor", _STOLEN_SHARE * window.cores),
    ):
        track = window.track(column)
        if track is not None:
            yield from _one(window, what, track, np.asarray(track.rates() > share))
    swaps = [row for name in _SWAP if (row := window.column(name)) is not None]
    if swaps:
        known = np.asarray(~np.isnan(swaps).all(axis=0))
        track = window.track_where(known, np.nansum(swaps, axis=0))
        if track is not None:
            yield from _one(window, "swapping", track, np.asarray(track.rates() > 0))


def _one(window: Window, what: str, track: Track, flags: Flags) -> Iterator[DisturbedTimes]:
    spans: list[tuple[float, float]] = []
    for place in np.flatnonzero(flags & (track.shares > 0)):
        begin = max(float(track.begins[place]), window.start_seconds)
        end = min(float(track.ends[place]), window.end_seconds)
        if spans and begin <= spans[-1][1]:
            begin = spans.pop()[0]
        spans.append((begin, end))
    if spans:
        yield DisturbedTimes(
            node=window.node,
            what=what,
            spans=tuple(spans),
            seconds=sum(end - begin for begin, end in spans),
        )
