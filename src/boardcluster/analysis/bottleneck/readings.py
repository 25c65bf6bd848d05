"""Samples of one node as amounts per step, quickly: a report looks at a thousand runs.

The same arithmetic as ``boardcluster.analysis.telemetry.rate``, for many columns at once: amounts
are spread evenly over the time since the value before was known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from boardcluster.analysis.bottleneck.model import Array
from boardcluster.analysis.telemetry import (
    COLUMNS,
    GAP_INTERVALS,
    base_name,
    own_interfaces,
)
from boardcluster.analysis.trust.window import Flags, Window
from boardcluster.records import Telemetry

__all__ = ["NodeReading", "readings_of"]

_STEPS_MOST = 3600
_NEEDED = frozenset(
    (
        *("cpu_user_seconds", "cpu_system_seconds", "cpu_irq_seconds", "cpu_iowait_seconds"),
        *("cpu_steal_seconds", "foreign_cpu_seconds"),
        *("pressure_io_seconds", "pressure_io_full_seconds", "pressure_memory_seconds"),
        *("disk_busy_seconds", "disk_read_bytes", "disk_written_bytes", "disk_writes"),
        *("memory_dirty_bytes", "memory_available_bytes"),
        *("storage_read_bytes", "storage_written_bytes", "swap_in_bytes", "swap_out_bytes"),
        *("net_received_bytes", "net_sent_bytes", "link_bits_per_second"),
        *("quota_cores", "quota_throttled_seconds", "throttle_bits", "temperature_celsius"),
        *("clock_measured_hertz", "clock_nominal_hertz"),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NodeReading:
    """What one node did in each step."""

    window: Window
    """Its samples, of the columns that are needed."""
    edges: Array
    """Of the steps, in seconds."""
    rates: dict[str, Array]
    """Amounts per second in each step, by column; a column without a value is absent."""
    known: Flags
    """Whether samples are near."""

    def sum(self, *names: str) -> Array | None:
        """Amounts per second of columns, and of all behind their slashes; None if unknown."""
        found = self._rows(names)
        return np.sum(found, axis=0) if found else None

    def most(self, *names: str) -> Array | None:
        """The same of the largest of them, such as the busiest of several disks."""
        found = self._rows(names)
        return np.max(found, axis=0) if found else None

    def _rows(self, names: Sequence[str]) -> list[Array]:
        return [row for key, row in self.rates.items() if base_name(key) in names]

    def or_zeros(self, row: Array | None) -> Array:
        """The same, or no amount where it is unknown."""
        return np.zeros(len(self.known)) if row is None else row

    def held(self, name: str) -> Array | None:
        """A state in each step: the last known value before its end, or the first; None if none."""
        track = self.window.track(name)
        if track is None:
            return None
        return self.hold(track.ends, track.values)

    def hold(self, ends: Array, values: Array) -> Array:
        """Let each value stand until the next one is known; the first stands from the start."""
        places = np.searchsorted(ends, self.edges[1:], side="right") - 1
        held: Array = values[np.maximum(places, 0)]
        return held


def readings_of(telemetry: Telemetry) -> tuple[NodeReading, ...]:
    """Cut a run into steps about as long as samples are apart; one entry for each node with any.

    Returns:
        Nothing without samples or without a duration.
    """
    if not np.isfinite(telemetry.duration_seconds) or telemetry.duration_seconds <= 0:
        return ()
    windows = []
    for node in telemetry.nodes:
        needed = _needed(node.columns)
        windows.append(
            Window.of(
                replace(node, columns=needed),
                start_seconds=0.0,
                end_seconds=telemetry.duration_seconds,
            )
        )
    windows = [window for window in windows if len(window.ends)]
    if not windows:
        return ()
    pace_seconds = min(float(window.paces.min()) for window in windows)
    wanted = np.clip(round(telemetry.duration_seconds / pace_seconds), 1, _STEPS_MOST)
    edges: Array = np.linspace(0.0, telemetry.duration_seconds, int(wanted) + 1)
    return tuple(_reading(window, edges) for window in windows)


def _needed(columns: Mapping[str, Array]) -> dict[str, Array]:
    """Return the columns that are read; of a network those of its own interfaces."""
    parts = {name: name.partition("/") for name in columns}
    linked = {name for name, (base, _, _) in parts.items() if base.startswith(("net_", "link_"))}
    own = own_interfaces({parts[name][2] for name in linked})
    return {
        name: row
        for name, row in columns.items()
        if parts[name][0] in _NEEDED and (name not in linked or parts[name][2] in own)
    }


def _reading(window: Window, edges: Array) -> NodeReading:
    pace_seconds = float(window.paces.max())
    times = np.concatenate((window.ends[:1] - window.paces[:1], window.ends))
    places = np.clip(np.searchsorted(times, edges, side="left"), 1, len(times) - 1)
    begins, ends = times[places - 1], times[places]
    parts = np.clip((edges - begins) / (ends - begins), 0.0, 1.0)
    lengths = np.clip(np.minimum(edges[1:], times[-1]) - np.maximum(edges[:-1], times[0]), 0, None)
    known = lengths > 0.5 * np.diff(edges)
    # A step is known if its middle lies between samples that are no gap apart.
    middles = np.searchsorted(times, (edges[:-1] + edges[1:]) / 2, side="left")
    after = np.clip(middles, 1, len(times) - 1)
    known &= times[after] - times[after - 1] <= GAP_INTERVALS * pace_seconds
    seconds = np.where(known, lengths, 1.0)
    every, some = _by_density(window)
    rates: dict[str, Array] = {}
    if every:
        table = np.maximum(np.nan_to_num([window.columns[name] for name in every]), 0.0)
        sums = np.concatenate((np.zeros((len(every), 1)), np.cumsum(table, axis=1)), axis=1)
        at_edges = sums[:, places - 1] + parts * (sums[:, places] - sums[:, places - 1])
        rates = dict(zip(every, np.diff(at_edges, axis=1) / seconds * known, strict=True))
    for name in some:
        track = window.track(name)
        if track is not None:
            rates[name] = np.diff(np.interp(edges, *track.sums())) / seconds * known
    return NodeReading(window=window, edges=edges, rates=rates, known=known)


def _by_density(window: Window) -> tuple[list[str], list[str]]:
    """Columns of amounts that are known in every sample but the first, and those that are not."""
    every: list[str] = []
    some: list[str] = []
    for name, row in window.columns.items():
        if COLUMNS[base_name(name)].amount:
            unknown = np.isnan(row[1:])
            (some if unknown.any() or not len(unknown) else every).append(name)
    return every, some
