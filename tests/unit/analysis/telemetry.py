"""Synthetic telemetry: quiet nodes, into which a test plants one fault."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from tests.builders import make_samples

from boardcluster.records import NodeSamples, Telemetry

__all__ = ["DURATION_SECONDS", "NAN", "Column", "node", "times", "when", "with_columns", "world"]

Column: TypeAlias = "float | Sequence[float] | NDArray[np.float64]"

DURATION_SECONDS = 60.0
NAN = float("nan")
CORES = 2

# A 2-core virtual machine whose cluster keeps it busy: what a clean run looks like.
QUIET: dict[str, float] = {
    "cpu_user_seconds": 1.70,
    "cpu_system_seconds": 0.22,
    "cpu_idle_seconds": 0.05,
    "cpu_iowait_seconds": 0.01,
    "cpu_irq_seconds": 0.01,
    "cpu_steal_seconds": 0.002,
    "clock_measured_hertz": 2.4e9,
    "clock_nominal_hertz": NAN,
    "temperature_celsius": NAN,
    "throttle_bits": NAN,
    "memory_available_bytes": 8e9,
    "swap_used_bytes": 0.0,
    "swap_in_bytes": 0.0,
    "swap_out_bytes": 0.0,
    "pressure_cpu_seconds": 0.6,
    "pressure_io_seconds": 0.1,
    "net_received_bytes/eth0": 40e6,
    "net_sent_bytes/eth0": 40e6,
    "net_dropped_packets/eth0": 0.5,  # frames of protocols that nobody here speaks
    "link_bits_per_second/eth0": 1e9,
    "group_cpu_seconds/jobs": 1.5,
    "quota_cores": NAN,
    "quota_throttled_seconds": 0.0,
    "foreign_cpu_seconds": 0.02,
    "clock_step_seconds": 0.0001,
    "agent_cpu_seconds": 0.003,
}


def times(
    *,
    end_seconds: float = DURATION_SECONDS + 1,
    interval_seconds: float = 1.0,
    without: Iterable[tuple[float, float]] = (),
) -> NDArray[np.float64]:
    """Ends of intervals from before the run to after it, without those inside the given spans."""
    ticks = np.arange(-2.0, end_seconds + interval_seconds / 2, interval_seconds) + 0.4
    for first, last in without:
        ticks = ticks[(ticks <= first) | (ticks >= last)]
    return ticks


def when(
    seconds: NDArray[np.float64],
    inside: float,
    *,
    outside: float,
    start_seconds: float,
    end_seconds: float = np.inf,
) -> NDArray[np.float64]:
    """A column that has one value from a moment on, or until another, and else another value."""
    there = (seconds > start_seconds) & (seconds <= end_seconds)
    return np.where(there, inside, outside)


def node(
    name: str = "host",
    *,
    seconds: NDArray[np.float64] | None = None,
    scope: str = "machine",
    columns: Mapping[str, Column] | None = None,
    offset_seconds: float = 0.0,
    error_seconds: float = 0.001,
    notes: tuple[str, ...] = (),
    interval_seconds: float = 1.0,
    cores: int = CORES,
) -> NodeSamples:
    """A node that is quiet but for these columns; a number stands for all of a column's samples."""
    at = times() if seconds is None else seconds
    wanted: dict[str, Column] = {**QUIET, **(columns or {})}
    return make_samples(
        name,
        seconds=at,
        columns=wanted,
        scope=scope,
        interval_seconds=interval_seconds,
        cores=cores,
        clock_offset_seconds=offset_seconds,
        clock_error_seconds=error_seconds,
        notes=notes,
    )


def with_columns(samples: NodeSamples, **columns: NDArray[np.float64]) -> NodeSamples:
    """The same node with only these columns."""
    return replace(samples, columns=columns)


def world(*nodes: NodeSamples, duration_seconds: float = DURATION_SECONDS) -> Telemetry:
    """Telemetry of a run."""
    return Telemetry(duration_seconds=duration_seconds, nodes=nodes)
