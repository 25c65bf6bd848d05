"""Bytes that an engine writes to local storage besides the output, counted from its merges.

MapReduce: with 128 MiB splits each map spills twice and merges, which writes its output twice. Each
reducer writes what it fetches once more, in runs of about
``mapreduce.reduce.shuffle.merge.percent`` of its buffer, and merges the ten smallest whenever there
are nineteen (``MergeManagerImpl`` of Hadoop 3.4), so that large inputs are written several times.
Of small inputs a part is deleted before the page cache writes it, which ``fstrim`` does not see.
Spark: a constant, for what a job uploads, and a power of the input.

Constant, and the sizes between which the page cache stops helping, are averaged over a grid,
weighted by how well each fits (Hoeting and others, "Bayesian Model Averaging", *Statistical
Science* 14(4), 1999).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from boardcluster.catalog.published import read_cells, read_index
from boardcluster.catalog.stated import read_conditions
from boardcluster.plan.observations import GIGABYTE
from boardcluster.plan.terms import nonnegative_fit
from boardcluster.records import Engine
from boardcluster.units import MIB, parse_size

__all__ = [
    "IntermediateCurve",
    "counted_gigabytes",
    "fit_intermediate",
    "published_intermediate",
]

_SPLIT_BYTES = 128 * MIB
_REDUCERS = 2
"""``mapreduce.job.reduces``: lee-park-2026 Table 9."""
_HEAP_BYTES = 0.8 * 1024 * MIB
_MERGE_SHARE = 0.7 * 0.66
_FACTOR = 10
"""``mapreduce.task.io.sort.factor``."""
_RUNS_MAX = 2_000
"""Runs that are counted one by one; beyond, the count grows with the logarithm."""

_UPLOADS_GB = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
_WINDOWS_GB = tuple((low, high) for low in (1.5, 2.0, 2.5, 3.0) for high in (4.0, 6.0, 8.0, 10.0))
_MISFIT = 0.04
"""How far a curve may be from its cells and still be the right one."""

_Curve = Callable[[NDArray[np.float64]], NDArray[np.float64]]


@dataclass(frozen=True, slots=True, kw_only=True)
class IntermediateCurve:
    """Intermediate gigabytes over gigabytes of input."""

    curves: tuple[_Curve, ...]
    """One for each point of the grid."""
    weights: tuple[float, ...]
    """Of each; they add up to 1."""
    log_spread: float
    """Standard deviation of a cell about it, as a logarithm."""
    largest: float
    """Largest input it was learned from, in gigabytes."""
    source: str
    """From what, in words."""

    def at(self, amount: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the intermediate gigabytes."""
        logs = [
            weight * np.log(np.maximum(curve(amount), 1e-9))
            for curve, weight in zip(self.curves, self.weights, strict=True)
        ]
        return np.asarray(np.exp(np.sum(logs, axis=0)))


@cache
def _counted(gigabytes: float) -> float:
    """Count what MapReduce writes for an input whose map output is as large."""
    segment = _SPLIT_BYTES / _REDUCERS
    run = math.ceil(_HEAP_BYTES * _MERGE_SHARE / segment) * segment
    left = gigabytes * GIGABYTE / _REDUCERS
    scale = max(1.0, left / run / _RUNS_MAX)
    run *= scale
    files: list[float] = []
    again = 0.0
    while left > 0:
        files.append(min(run, left))
        left -= files[-1]
        if len(files) >= 2 * _FACTOR - 1:
            files.sort()
            merged = sum(files[:_FACTOR])
            files = [*files[_FACTOR:], merged]
            again += merged
    while len(files) > _FACTOR:
        files.sort()
        width = (len(files) - 1) % (_FACTOR - 1) + 1
        width = _FACTOR if width == 1 else width
        merged = sum(files[:width])
        files = [*files[width:], merged]
        again += merged
    if scale > 1:  # coarser runs hide the merges of fine ones, each of which writes all once more
        again += gigabytes * GIGABYTE / _REDUCERS * math.log(scale, _FACTOR)
    return 3 * gigabytes + again * _REDUCERS / GIGABYTE


def counted_gigabytes(amount: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what MapReduce's spills and merges write in gigabytes, none of it saved by a cache."""
    distinct, places = np.unique(amount, return_inverse=True)
    return np.array([_counted(float(value)) for value in distinct])[places].reshape(amount.shape)


def _windowed(window: tuple[float, float], amount: NDArray[np.float64]) -> NDArray[np.float64]:
    low, high = np.log(window)
    cached = np.clip((high - np.log(np.maximum(amount, 1e-6))) / (high - low), 0, 1)
    counted = counted_gigabytes(amount)
    return np.stack([counted, counted * (1 - cached)], axis=1)


def _merge_curve(
    window: tuple[float, float], amount: NDArray[np.float64], found: NDArray[np.float64]
) -> _Curve:
    shares = nonnegative_fit(_windowed(window, amount) / found[:, None], np.ones(len(found)))
    return lambda at: _windowed(window, at) @ shares


def _upload_curve(upload: float, amount: NDArray[np.float64], found: NDArray[np.float64]) -> _Curve:
    power, level = np.polyfit(np.log(amount), np.log(np.maximum(found - upload, 1e-6)), 1)
    return lambda at: upload + np.exp(level) * np.maximum(at, 1e-9) ** power


def fit_intermediate(
    engine: Engine,
    amount: NDArray[np.float64],
    gigabytes: NDArray[np.float64],
    *,
    source: str,
    kin: Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]] = (),
) -> IntermediateCurve:
    """Fit what a workload writes.

    Args:
        engine: the engine.
        amount: gigabytes of input, three or more.
        gigabytes: what was written for each.
        source: from what, in words.
        kin: the same of other workloads of the engine, which say how likely each curve is.
    """
    grid: Sequence[tuple[float, float] | float] = (
        _WINDOWS_GB if engine is Engine.MAPREDUCE else _UPLOADS_GB
    )

    def made(
        point: tuple[float, float] | float, at: NDArray[np.float64], found: NDArray[np.float64]
    ) -> _Curve:
        if isinstance(point, tuple):
            return _merge_curve(point, at, found)
        return _upload_curve(point, at, found)

    curves, misfits = [], []
    for point in grid:
        each = [made(point, at, found) for at, found in ((amount, gigabytes), *kin)]
        curves.append(each[0])
        squares = [
            np.sum(np.log(np.maximum(curve(at), 1e-9) / found) ** 2)
            for curve, (at, found) in zip(each, ((amount, gigabytes), *kin), strict=True)
        ]
        misfits.append(float(np.sum(squares)))
    chances = np.exp(-(np.array(misfits) - min(misfits)) / (2 * _MISFIT**2))
    weights = chances / chances.sum()
    made_curve = IntermediateCurve(
        curves=tuple(curves),
        weights=tuple(map(float, weights)),
        log_spread=0.0,
        largest=float(amount.max()),
        source=source,
    )
    left = np.log(made_curve.at(amount) / gigabytes)
    spread = math.sqrt(float(np.sum(left**2)) / max(1, len(amount) - 3) + _MISFIT**2)
    return IntermediateCurve(
        curves=made_curve.curves,
        weights=made_curve.weights,
        log_spread=spread,
        largest=made_curve.largest,
        source=source,
    )


@cache
def published_intermediate() -> dict[
    tuple[str, Engine], tuple[NDArray[np.float64], NDArray[np.float64], str]
]:
    """Return inputs and intermediate gigabytes by workload and engine, with their source.

    Raises:
        SpecError: a file of the catalog is missing or wrong.
    """
    index = read_index()
    engines = {"Hadoop": Engine.MAPREDUCE, "Spark": Engine.SPARK}
    found: dict[tuple[str, Engine], list[tuple[float, float]]] = {}
    sources: dict[tuple[str, Engine], str] = {}
    for known in read_conditions().values():
        if "intermediate_data" not in known.quantities:
            continue
        table = index.tables[known.id]
        for cell in read_cells(table, folder=index.folder):
            if "data_size" not in cell.keys:
                continue
            key = known.workload, engines[cell.keys["platform"]]
            value = float(cell.value) * (1.0 if cell.unit == "GB" else 1e-3)
            found.setdefault(key, []).append((parse_size(cell.keys["data_size"]) / GIGABYTE, value))
            sources[key] = f"{table.paper} {table.table}"
    return {
        key: (np.array([row[0] for row in rows]), np.array([row[1] for row in rows]), sources[key])
        for key, rows in found.items()
    }
