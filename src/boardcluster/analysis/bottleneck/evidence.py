"""The numbers behind a bound, in one sentence each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np

from boardcluster.analysis.bottleneck.bounds import Bound
from boardcluster.analysis.bottleneck.model import Array
from boardcluster.analysis.bottleneck.usage import NodeShares, Usage
from boardcluster.analysis.trust.foreign_load import cores_text
from boardcluster.analysis.trust.window import Flags, seconds_text
from boardcluster.units import format_bytes, format_rate

__all__ = ["evidence"]

_HALF = 0.5
_WORTH_A_WORD = 0.02  # of the cores

_Mean: TypeAlias = Callable[[Array], float]


_TASKS_DID = {
    Bound.CPU: "computing or waiting for a core",
    Bound.STORAGE: "waiting for disks",
    Bound.NETWORK: "waiting for links",
    Bound.MEMORY: "waiting for memory",
    Bound.START_UP: "waiting for none of CPU, disk, link and memory",
}


def evidence(bound: Bound, usage: Usage, seconds: Array, of_tasks: float | None = None) -> str:
    """Say in a sentence what the samples show of a bound, in so many seconds of each step.

    Of the node that shows most of it, when and how much; of START_UP, for how long no node was
    busy. Where the engine accounts for its tasks, ``of_tasks`` is the share of their time that the
    bound had.
    """
    shown = _shown(bound, usage, seconds)
    if of_tasks is None or bound not in _TASKS_DID:
        return shown
    return f"{shown}; tasks spent {100 * of_tasks:.0f} % of their time {_TASKS_DID[bound]}"


def _shown(bound: Bound, usage: Usage, seconds: Array) -> str:
    if bound is Bound.START_UP:
        return _idle(usage, seconds)
    share, words = _SHOWN[bound]
    node = max(usage.nodes, key=lambda row: float(share(row) @ seconds))
    parts = share(node)
    # When it was there for most of the time; if it never was, all the time.
    most = parts >= min(_HALF, _HALF * float(parts[seconds > 0].max()))
    inside = most & node.known & (seconds > 0)
    took = f"{_seconds(inside, seconds)} of {seconds_text(float(seconds.sum()))}"
    return f"{node.node} {words(node, _mean(inside, seconds))} for {took}"


def _seconds(inside: Flags, seconds: Array) -> str:
    return seconds_text(float(seconds[inside].sum()))


def _mean(inside: Flags, seconds: Array) -> _Mean:
    """Return the mean over some of the steps that are looked at; 0 without any."""
    weights = np.where(inside, seconds, 0.0)
    total = float(weights.sum())
    return lambda row: float(row @ weights) / total if total > 0 else 0.0


def _storage_words(node: NodeShares, mean: _Mean) -> str:
    read, written = mean(node.read_bytes_per_second), mean(node.written_bytes_per_second)
    waited = f"waited for its disk {100 * mean(node.storage):.0f} % of the time"
    return f"{waited}, reading {format_bytes(read)}/s and writing {format_bytes(written)}/s,"


def _cores(number: float) -> str:
    return f"{number:.0f}" if number >= 9.5 else f"{number:.2g}"


def _cpu_words(node: NodeShares, mean: _Mean) -> str:
    used = f"used {_cores(mean(node.busy_cores))} of {cores_text(node.capacity_cores)} cores"
    taken = [
        f"{what} {_cores(mean(row))}"
        for what, row in (("other programs", node.foreign_cores), ("steal", node.stolen_cores))
        if mean(row) >= _WORTH_A_WORD * node.capacity_cores
    ]
    return f"{used} ({', '.join(taken)})" if taken else used


def _network_words(node: NodeShares, mean: _Mean) -> str:
    carried = format_rate(mean(node.net_bits_per_second))
    return f"had {carried} on its link of {format_rate(node.link_bits_per_second)}"


_SHOWN: Mapping[Bound, tuple[Callable[[NodeShares], Array], Callable[[NodeShares, _Mean], str]]] = {
    Bound.CPU: (
        lambda node: node.cpu + node.own_cpu,
        _cpu_words,
    ),
    Bound.HEAT: (
        lambda node: node.cpu * node.heat,
        lambda node, mean: f"ran at {100 * mean(node.clock):.0f} % of its clock",
    ),
    Bound.STORAGE: (lambda node: node.storage, _storage_words),
    Bound.NETWORK: (lambda node: node.network, _network_words),
    Bound.MEMORY: (
        lambda node: node.memory,
        lambda node, mean: f"waited for memory {100 * mean(node.memory):.0f} % of the time",
    ),
}


def _idle(usage: Usage, seconds: Array) -> str:
    """For how long no node used its CPU, disk or link for most of a step."""
    uses = usage.work.uses.sum(axis=0)
    busiest = uses.max(axis=0)
    idle = busiest < _HALF
    rest = f"of {seconds_text(float(seconds.sum()))}"
    mean = _mean(idle, seconds)
    least = f"the busiest node was busy {100 * mean(np.minimum(busiest, 1.0)):.0f} % of that time"
    if not (idle & (seconds > 0)).any():
        mean = _mean(np.ones_like(idle), seconds)
        part = 100 * (1 - mean(np.minimum(busiest, 1.0)))
        return f"for {part:.0f} % {rest} no node was busy"
    return f"no node was busy for most of {_seconds(idle, seconds)} {rest}; {least}"
