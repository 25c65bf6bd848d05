"""How many tasks each node had in every step of a run, and what their engine says of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from boardcluster.analysis.bottleneck.model import Array
from boardcluster.records import TaskRecord

__all__ = ["TaskLoad", "covered", "task_load"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TaskLoad:
    """Tasks of one node in every step; each row is a mean number of tasks."""

    in_flight: Array
    """Tasks that had begun and not ended."""
    overhead: Array
    """Of those, tasks that were being scheduled, deserialised or handed in."""
    own_cpu: Array
    """CPU time of the tasks themselves, garbage collection included, in cores."""
    fetching: Array
    """Of those, tasks that waited for shuffle data."""


def task_load(tasks: Sequence[TaskRecord], edges: Array) -> TaskLoad:
    """Spread what is known of each task evenly over the time from its begin to its end.

    Args:
        tasks: of one node; of a task that took no time nothing is left.
        edges: of the steps, in seconds from the start of the run.
    """
    kept = [task for task in tasks if task.end_seconds > task.begin_seconds]
    begins = np.array([task.begin_seconds for task in kept])
    ends = np.array([task.end_seconds for task in kept])
    lengths = ends - begins

    def spread(seconds: Iterable[float]) -> Array:
        parts = np.clip(np.fromiter(seconds, float, len(kept)) / lengths, 0.0, 1.0)
        return _spread(begins, ends, parts, edges)

    return TaskLoad(
        in_flight=_spread(begins, ends, np.ones(len(kept)), edges),
        overhead=spread(task.overhead_seconds for task in kept),
        own_cpu=spread(task.cpu_seconds + task.collection_seconds for task in kept),
        fetching=spread(task.fetch_wait_seconds for task in kept),
    )


def covered(tasks: Sequence[TaskRecord], edges: Array) -> Array:
    """For how much of each step at least one task was there, 0 to 1."""
    spans = sorted((task.begin_seconds, task.end_seconds) for task in tasks)
    begins: list[float] = []
    ends: list[float] = []
    for begin, end in spans:
        if ends and begin <= ends[-1]:
            ends[-1] = max(ends[-1], end)
        elif end > begin:
            begins.append(begin)
            ends.append(end)
    both = np.array(begins), np.array(ends)
    return np.clip(_spread(*both, np.ones(len(begins)), edges), 0.0, 1.0)


def _spread(begins: Array, ends: Array, weights: Array, edges: Array) -> Array:
    """The mean over each step of the sum of weights that lie between their begin and end."""
    times = np.concatenate((begins, ends))
    order = np.argsort(times, kind="stable")
    times = times[order]
    levels = np.cumsum(np.concatenate((weights, -weights))[order])
    if not len(times):
        return np.zeros(len(edges) - 1)
    sums = np.concatenate(([0.0], np.cumsum(levels[:-1] * np.diff(times))))
    found = np.diff(np.interp(edges, times, sums)) / np.diff(edges)
    return np.maximum(found, 0.0)
