"""For how much of each step a node was bound by its CPU, and what heat added."""

from __future__ import annotations

import numpy as np

from boardcluster.analysis.bottleneck.model import Array
from boardcluster.analysis.bottleneck.readings import NodeReading
from boardcluster.analysis.telemetry import throttled
from boardcluster.analysis.trust.foreign_load import quota_track

__all__ = ["busy_cores", "clock_of", "foreign_cores", "held_back", "quota_of", "steered"]

_HOT_CELSIUS = 70.0  # below it no board of the catalog lowers its clock; our choice
_SLOW_CLOCK = 0.95  # of the nominal clock: a timed loop on a busy core sees some percent less
_HELD_BACK = 0.9  # a step that used so much of a limit met it, however rarely that is counted
_QUOTA_CHANGE = 0.01  # agents read quotas in thousandths of a core
_TINY = 1e-9


def busy_cores(reading: NodeReading) -> Array:
    """CPU time used per second; I/O wait, steal and what other programs used left out."""
    names = ("cpu_user_seconds", "cpu_system_seconds", "cpu_irq_seconds")
    used = reading.or_zeros(reading.sum(*names))
    return np.maximum(used - foreign_cores(reading), 0.0)


def foreign_cores(reading: NodeReading) -> Array:
    """CPU time per second that programs used which are not the cluster's; 0 where not known."""
    return reading.or_zeros(reading.sum("foreign_cpu_seconds"))


def quota_of(reading: NodeReading, declared_cores: float | None) -> Array | None:
    """The CPU limit in each step, in cores; None without one.

    Emulated boards have none before and after a run, and the kernel is asked rarely, so what is
    known within the run stands for all of it.
    """
    found = quota_track(reading.window)
    if found is not None:
        within = (found.ends >= found.start_seconds) & (found.ends <= found.end_seconds)
        within &= np.isfinite(found.values) & (found.values > 0)
        if within.any():
            return reading.hold(found.ends[within], found.values[within])
    return None if declared_cores is None else np.full(len(reading.known), declared_cores)


def held_back(
    reading: NodeReading, cores: Array, limit: Array | None, board_cores: int = 1
) -> tuple[Array, Array, float]:
    """Split CPU time into what a faster CPU shortens and what it does not.

    Without a limit a program is on some core for at least ``min(1, cores)`` of a step, which a
    CPU twice as fast halves. A limit hands out CPU time ten times a second: until it is used up
    programs run at the machine's own speed, then they are held back. Held back were ``f`` of the
    step if the limit gave ``f * limit`` of the CPU time that was used, or if programs on ``p``
    cores stood still for ``f * (p - limit)``; the smaller is right. ``p`` is taken as the fewest
    cores that can use up the limit.

    Where the limit is divided into cores of a board, a thread has one of them at most, so what
    holds without a limit holds for these cores.

    Returns:
        Both shares of each step, and the cores that the node can have.
    """
    if limit is None:
        return np.minimum(cores, 1.0), np.zeros_like(cores), float(reading.window.cores)
    if board_cores > 1:
        own_cores = cores / limit * board_cores
        return np.minimum(own_cores, 1.0), np.zeros_like(cores), float(limit.max())
    used = np.minimum(cores / limit, 1.0)
    held = used * _throttled_part(reading, used, limit)
    held = np.where(used >= _HELD_BACK, used, held)
    free = np.clip(cores - held * limit, 0.0, None)
    return held, np.minimum(free, 1 - held), float(limit.max())


def _throttled_part(reading: NodeReading, used: Array, limit: Array) -> Array:
    """How much of what was used met the limit, 0 to 1, by the time that the limit held back.

    It is read every few seconds, so it is compared with the use of all the time between.
    """
    track = reading.window.track("quota_throttled_seconds")
    if track is None:
        return np.ones_like(used)
    standing = np.floor(limit) + 1 - limit
    times, sums = track.sums()
    shares = np.diff(np.interp(reading.edges, times, sums)) / np.diff(reading.edges) / standing
    spans = np.searchsorted(track.ends, reading.edges[1:], side="left")
    met = np.bincount(spans, weights=shares)
    seen = np.bincount(spans, weights=used)
    parts = np.divide(met, seen, out=np.ones_like(met), where=seen > _TINY)
    return np.asarray(np.clip(parts, 0.0, 1.0)[spans])


def steered(limit: Array | None) -> Array | None:
    """The CPU limit by its highest, where heat lowered that of an emulated board."""
    if limit is None or limit.min() > (1 - _QUOTA_CHANGE) * limit.max():
        return None
    return np.asarray(limit / limit.max())


def clock_of(reading: NodeReading, cores: Array) -> Array:
    """The clock by the nominal one, where heat or a weak supply lowered it; else 1.

    The firmware's bits say so; where there are none, a slow clock on a hot busy board does.
    """
    measured, nominal = (
        reading.held(name) for name in ("clock_measured_hertz", "clock_nominal_hertz")
    )
    even = np.ones_like(cores)
    if measured is None:
        return even
    if nominal is None:
        nominal = np.full_like(cores, np.quantile(measured, _SLOW_CLOCK))
    flags = throttled(reading.window)
    if flags is not None:
        lowered = reading.hold(flags[0].ends, flags[1].astype(np.float64)) > 0
    else:
        celsius = reading.held("temperature_celsius")
        if celsius is None:
            return even
        lowered = (celsius >= _HOT_CELSIUS) & (cores >= 1) & (measured < _SLOW_CLOCK * nominal)
    ratio = np.divide(measured, nominal, out=even.copy(), where=nominal > 0)
    return np.where(lowered, np.clip(ratio, 0.0, 1.0), 1.0)
