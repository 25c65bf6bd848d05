"""Published numbers beside own ones: the same work on the same board or medium."""

from __future__ import annotations

from functools import cache
from typing import Any

from boardcluster.analysis.result_sets import DURATION, ResultPoint
from boardcluster.catalog.conditions import published_result_set
from boardcluster.catalog.published import read_index
from boardcluster.errors import BoardclusterError
from boardcluster.records import Trial
from boardcluster.workloads import parameter_defaults, workload_names

__all__ = ["published_beside"]

_MOST = 40


def published_beside(trial: Trial) -> list[dict[str, Any]]:
    """Return every published time of the same workload, engine and size, nearest workers first.

    What a paper states of the workload's parameters, such as the samples of Pi, is the same, too.
    Unlike the report's section, the machine may be another one: each row says of which it is. A
    number of a paper stands for what the paper ran, and is no proof of a difference.
    """
    if trial.workload not in workload_names():  # a program of one's own, or a mix
        return []
    own = {**parameter_defaults(trial.workload), **trial.parameters}
    found = []
    for table, point in _points():
        conditions = dict(point.conditions)
        if conditions.get("workload") != trial.workload:
            continue
        if str(conditions.get("engine", trial.engine.value)) != trial.engine.value:
            continue
        if _number(conditions.get("size_bytes", trial.size_bytes)) != trial.size_bytes:
            continue
        if any(own[key] != str(value) for key, value in conditions.items() if key in own):
            continue
        workers = _number(conditions.get("workers"))
        found.append((abs((workers or trial.workers) - trial.workers), table, workers, point))
    found.sort(key=lambda row: row[0])
    return [
        {
            "seconds": point.mean,
            "workers": workers,
            "machine": ", ".join(str(value) for value in point.machine.values()),
            "source": point.source,
            "doubt": point.doubt,
        }
        for _, _, workers, point in found[:_MOST]
    ]


def _number(value: object) -> int | None:
    try:
        return int(str(value))
    except ValueError:
        return None


@cache
def _points() -> tuple[tuple[str, ResultPoint], ...]:
    """Every published time; the tables never change while we run."""
    found: list[tuple[str, ResultPoint]] = []
    try:
        index = read_index()
    except BoardclusterError:  # a damaged catalog must not cost the page
        return ()
    for name, table in index.tables.items():
        if table.missing:
            continue
        try:
            side = published_result_set(name, {}, index=index, asked=f"published:{name}")
        except BoardclusterError:  # nothing of this table can be compared
            continue
        found += [(name, point) for point in side.points if point.quantity == DURATION]
    return tuple(found)
