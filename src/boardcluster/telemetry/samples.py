"""What an agent wrote down, as columns on the driver's clock. Pure: text in, samples out."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from boardcluster.errors import ProbeOutputError
from boardcluster.records import NodeSamples

__all__ = ["SAME_CLOCKS", "Alignment", "parse_samples"]

_WRAPS = (1 << 32, 1 << 64)
"""Where counters of 32-bit and 64-bit kernels begin again."""
_WRAPPED_SHARE = 0.5
"""A counter that fell wrapped if it was in the upper half before; else it was set back."""
_NANO = 1e-9
_NEVER_NS = 1 << 63
"""Clocks end before, as they count in 64 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alignment:
    """A node's clocks against the driver's monotonic clock."""

    monotonic_offset_seconds: float
    """The node's monotonic clock minus the driver's."""
    wall_offset_seconds: float
    """How far the node's wall clock is ahead of the driver's."""
    error_seconds: float
    """How wrong both may be: half of the round trip that found them."""


SAME_CLOCKS = Alignment(monotonic_offset_seconds=0.0, wall_offset_seconds=0.0, error_seconds=0.0)


@dataclass(slots=True)
class _SampleColumn:
    counter: bool
    scale: float
    values: list[float]


def parse_samples(
    text: str,
    *,
    node: str,
    scope: str,
    cores: int,
    alignment: Alignment,
    started_seconds: float,
) -> NodeSamples:
    """Read an agent's file.

    Counters become what was added since the last known value; one that wrapped is mended, one that
    was set back gives NaN. A last line that was cut is left out.

    Args:
        text: the file.
        node: the node's name.
        scope: what its counters mean: ``machine`` or ``node``.
        cores: CPUs that the node may use.
        alignment: its clocks.
        started_seconds: start of the run by the driver's monotonic clock.

    Raises:
        ProbeOutputError: a line is not what the agent writes, or there is no sample.
    """
    columns, clocks, notes, interval_seconds = _read(text, node)
    times = np.array(clocks, dtype=np.float64) * _NANO
    found = {
        name: (_added(column.values) if column.counter else np.array(column.values)) * column.scale
        for name, column in columns.items()
    }
    # In whole nanoseconds first: a double holds the time since 1970 to a quarter of a microsecond.
    drift = np.diff(np.array([wall - monotonic for monotonic, wall in clocks], dtype=np.int64))
    found["clock_step_seconds"] = np.concatenate([[math.nan], drift * _NANO])
    return NodeSamples(
        node=node,
        scope=scope,
        interval_seconds=interval_seconds,
        cores=cores,
        seconds=times[:, 0] - (alignment.monotonic_offset_seconds + started_seconds),
        columns=found,
        clock_offset_seconds=alignment.wall_offset_seconds,
        clock_error_seconds=alignment.error_seconds,
        notes=tuple(notes),
    )


def _read(
    text: str, node: str
) -> tuple[dict[str, _SampleColumn], list[tuple[int, int]], list[str], float]:
    """Return raw columns, both clocks of each sample, notes, and the interval in seconds."""
    columns: dict[str, _SampleColumn] = {}
    order: list[str] = []
    clocks: list[tuple[int, int]] = []
    notes: list[str] = []
    interval_seconds = 0.0
    whole, _, _ = text.rpartition("\n")
    for index, line in enumerate(whole.split("\n"), start=1):
        try:
            if line.startswith("#"):
                used, name = line.removeprefix("# ").split(" ", 1)
                notes.append(f"{name} {float(used):.1f} s")
            elif line.startswith("{"):
                head = json.loads(line)
                interval_seconds = interval_seconds or float(head["interval_seconds"])
                order = _begin(columns, head["columns"], len(clocks))
            elif line:
                clocks.append(_take(line, columns, order))
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            raise ProbeOutputError(
                f"{node}: line {index} of its telemetry is not a sample: {line[:80]!r}",
                hint="check the node's medium; the file is in the attempt's folder",
            ) from error
    if not clocks:
        raise ProbeOutputError(f"{node}: its telemetry holds no sample")
    return columns, clocks, notes, interval_seconds


def _begin(
    columns: dict[str, _SampleColumn], head: Sequence[Sequence[Any]], samples: int
) -> list[str]:
    """Take note of the columns of the lines that follow; return their order."""
    for name, kind, scale in head:
        if kind not in ("c", "g"):
            raise ValueError(kind)
        if name not in columns:
            columns[name] = _SampleColumn(kind == "c", float(scale), [math.nan] * samples)
    return [name for name, _, _ in head]


def _take(line: str, columns: dict[str, _SampleColumn], order: Sequence[str]) -> tuple[int, int]:
    """Append a sample's values; columns that it lacks get NaN."""
    monotonic, wall, *words = line.split(" ")
    values = dict(zip(order, words, strict=True))
    for name, column in columns.items():
        word = values.get(name, "-")
        column.values.append(math.nan if word == "-" else float(int(word)))
    clocks = int(monotonic), int(wall)
    if not all(0 <= clock < _NEVER_NS for clock in clocks):
        raise ValueError(clocks)
    return clocks


def _added(values: Sequence[float]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return, for each known value, what was added since the known value before; else NaN."""
    raw = np.array(values, dtype=np.float64)
    added = np.full(raw.shape, math.nan)
    known = np.flatnonzero(~np.isnan(raw))
    if known.size < 2:
        return added
    gained = np.diff(raw[known])
    for place in np.flatnonzero(gained < 0):
        gained[place] = _mended(raw[known[place]], raw[known[place + 1]])
    added[known[1:]] = gained
    return added


def _mended(before: float, after: float) -> float:
    for wrap in _WRAPS:
        if wrap * _WRAPPED_SHARE <= before < wrap and after < wrap * _WRAPPED_SHARE:
            return after + (wrap - before)
    return math.nan
