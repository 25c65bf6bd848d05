"""When the engine's own phases and tasks were at work, on the driver's clock. Pure.

Engines date what they do by the wall clock of the node that leads a job. A submission's start is
known by three clocks: the driver's monotonic one, the driver's wall clock, and, through the
agents, how far each node's wall clock is ahead of that. So a phase is placed by its distance from
the start of its submission, and a clock that is wrong by minutes moves none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from boardcluster.records import TaskRecord

__all__ = [
    "MOST_PARTS",
    "EngineSpans",
    "Span",
    "engine_tasks",
    "printed_spans",
    "with_engine_phases",
]

MOST_PARTS = 100
"""Of a submission with more phases, so many of the longest are kept: loops make stages without
end."""

Span = tuple[float, float]
"""Begin and end in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSpans:
    """The engine's phases in one submission."""

    began_wall_seconds: float = 0.0
    """The driver's wall clock just before the submission, since 1970."""
    parts: Mapping[str, Mapping[str, Span]] = field(default_factory=dict)
    """By the node whose wall clock tells, name to begin and end in seconds since 1970."""
    tasks: Mapping[str, tuple[TaskRecord, ...]] = field(default_factory=dict)
    """By the same nodes, what the engine says of its tasks, in seconds since 1970 as well."""


_PRINTED = re.compile(r"^boardcluster phase (\w+) (\d+\.\d+) (\d+\.\d+)$", re.MULTILINE)


def printed_spans(text: str) -> dict[str, Span]:
    """Return the phases that a program dated in its output.

    Each is a line ``boardcluster phase NAME BEGIN END`` with seconds since 1970 by the wall clock
    of its node. Of a phase that came more than once the last one counts.
    """
    return {name: (float(begin), float(end)) for name, begin, end in _PRINTED.findall(text)}


def with_engine_phases(
    submissions: Mapping[str, Span],
    engine: Mapping[str, EngineSpans],
    *,
    ahead_seconds: Mapping[str, float],
) -> dict[str, Span]:
    """Return the submissions, each followed by the engine's phases in it as ``SUBMISSION/PHASE``.

    A phase is cut to its submission, because clocks are never quite right; one of which nothing is
    left, or that took no time, is left out.

    Args:
        submissions: name to begin and end by the driver's monotonic clock.
        engine: name of a submission to its phases.
        ahead_seconds: how far each node's wall clock is ahead of the driver's; 0 where unknown.

    Returns:
        Name to begin and end by the driver's monotonic clock, phases in the order of their begin.
    """
    spans: dict[str, Span] = {}
    for name, (begin, end) in submissions.items():
        spans[name] = (begin, end)
        found = engine.get(name, EngineSpans())
        inside: list[tuple[float, float, str]] = []
        for node, parts in found.parts.items():
            shift = _shift(begin, found, node, ahead_seconds)
            for part, (first, last) in parts.items():
                cut = (max(begin, first + shift), min(end, last + shift))
                if cut[0] < cut[1]:
                    inside.append((*cut, part))
        longest = sorted(inside, key=lambda row: row[0] - row[1])[:MOST_PARTS]
        spans |= {f"{name}/{part}": (first, last) for first, last, part in sorted(longest)}
    return spans


def engine_tasks(
    submissions: Mapping[str, Span],
    engine: Mapping[str, EngineSpans],
    *,
    ahead_seconds: Mapping[str, float],
) -> tuple[TaskRecord, ...]:
    """Return the engine's tasks on the driver's monotonic clock, in the order of their beginnings.

    Tasks are cut to their submission like phases; the arguments are the same.
    """
    placed = []
    for name, (begin, end) in submissions.items():
        found = engine.get(name, EngineSpans())
        for node, tasks in found.tasks.items():
            shift = _shift(begin, found, node, ahead_seconds)
            for task in tasks:
                first = max(begin, task.begin_seconds + shift)
                last = min(end, task.end_seconds + shift)
                if first < last:
                    placed.append(replace(task, begin_seconds=first, end_seconds=last))
    return tuple(sorted(placed, key=lambda task: (task.begin_seconds, task.end_seconds)))


def _shift(
    begin: float, found: EngineSpans, node: str, ahead_seconds: Mapping[str, float]
) -> float:
    """What to add to a node's wall clock for the driver's monotonic one."""
    return begin - found.began_wall_seconds - ahead_seconds.get(node, 0.0)
