"""From which size data leaves the sort memory, counted from the engines' settings.

A MapReduce map sorts its output in a buffer of ``mapreduce.task.io.sort.mb`` and spills when
``mapreduce.map.sort.spill.percent`` of it is full; each record needs 16 bytes beside its own
(``MapTask.METASIZE``). A map that spills twice merges: it reads and writes everything again. A
reducer keeps ``mapreduce.reduce.shuffle.input.buffer.percent`` of its heap for map outputs and
merges them to disk when ``mapreduce.reduce.shuffle.merge.percent`` of that is full. Spark's
executors share ``spark.memory.fraction`` of their heap less 300 MiB. Sources:
``mapred-default.xml`` of Hadoop 3.4, "Tuning Spark: Memory Management Overview" of Spark 4.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from boardcluster.plan.observations import GIGABYTE
from boardcluster.records import Engine
from boardcluster.units import MIB, parse_engine_size

__all__ = ["SpillRule", "map_spill_bytes", "own_spill_rule", "spill_rule"]

_SORT_MIB = 100.0
_SPILL_SHARE = 0.8
_RECORD_BYTES = 100.0
"""Of TeraSort; Hadoop adds 16 for its place in the buffer."""
_META_BYTES = 16.0
_REDUCE_MIB = 1024.0
_HEAP_SHARE = 0.8
_BUFFER_SHARE = 0.7
_MERGE_SHARE = 0.66
_EXECUTOR_MIB = 1024.0
_RESERVED_MIB = 300.0
_MEMORY_FRACTION = 0.6
_EXECUTORS = 2.0
"""``spark.executor.instances`` where nothing is set."""
_OUTPUT_PER_INPUT = 1.8
"""WordCount's map output for a byte of flights: lee-park-2026 Table 11, 1 GB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpillRule:
    """How much of an input passes the disks once more."""

    threshold: float
    """Gigabytes of input from which it does."""
    whole: bool
    """Whether it is then all of it, as maps that merge do, or only what is beyond."""

    def spilled(self, amount: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the gigabytes that do."""
        if self.whole:
            return np.where(amount > self.threshold, amount, 0.0)
        return np.maximum(0.0, amount - self.threshold)


def _number(settings: Mapping[str, str], name: str, default: float) -> float:
    try:
        return float(settings[name])
    except (KeyError, ValueError):
        return default


def _mib(settings: Mapping[str, str], name: str, default: float) -> float:
    """Return a size of Spark such as ``2g`` in MiB; a number alone is one of MiB."""
    try:
        return parse_engine_size(settings[name]) / MIB
    except (KeyError, ValueError):
        return default


def map_spill_bytes(settings: Mapping[str, str]) -> float:
    """Return how many bytes of TeraSort's records a map holds before it spills."""
    buffer = _number(settings, "mapreduce.task.io.sort.mb", _SORT_MIB) * MIB
    share = _number(settings, "mapreduce.map.sort.spill.percent", _SPILL_SHARE)
    return buffer * share * _RECORD_BYTES / (_RECORD_BYTES + _META_BYTES)


def spill_rule(workload: str, engine: Engine, settings: Mapping[str, str]) -> SpillRule:
    """Return from which size a workload spills; infinite for one that never does."""
    if workload not in {"wordcount", "terasort"}:
        return SpillRule(threshold=math.inf, whole=False)
    if engine is Engine.SPARK:
        heap = _mib(settings, "spark.executor.memory", _EXECUTOR_MIB) - _RESERVED_MIB
        executors = _number(settings, "spark.executor.instances", _EXECUTORS)
        share = _number(settings, "spark.memory.fraction", _MEMORY_FRACTION)
        held = heap * MIB * share * executors
        return SpillRule(threshold=held / GIGABYTE, whole=False)
    maps = _number(settings, "mapreduce.job.maps", 0.0)
    if workload == "terasort" and maps:
        return SpillRule(threshold=maps * map_spill_bytes(settings) / GIGABYTE, whole=True)
    heap = _number(settings, "mapreduce.reduce.memory.mb", _REDUCE_MIB) * _HEAP_SHARE
    buffer = _number(settings, "mapreduce.reduce.shuffle.input.buffer.percent", _BUFFER_SHARE)
    merge = _number(settings, "mapreduce.reduce.shuffle.merge.percent", _MERGE_SHARE)
    held = heap * MIB * buffer * merge
    reducers = _number(settings, "mapreduce.job.reduces", 1.0)
    grown = _OUTPUT_PER_INPUT if workload == "wordcount" else 1.0
    return SpillRule(threshold=held * reducers / grown / GIGABYTE, whole=False)


def own_spill_rule(workload: str, engine: Engine, settings: Mapping[str, str]) -> SpillRule:
    """Return from which size own runs spill; infinite where their settings do not say it.

    Only what was set on top of their profile is known of them, and a profile may size each job by
    itself. The spill is then part of the work, and runs of larger inputs show it.
    """
    if engine is Engine.SPARK:
        deciding = {"spark.executor.memory", "spark.executor.instances"}
    elif workload == "terasort" and "mapreduce.job.maps" in settings:
        deciding = {"mapreduce.task.io.sort.mb"}
    else:
        deciding = {"mapreduce.reduce.memory.mb", "mapreduce.job.reduces"}
    if deciding <= settings.keys():
        return spill_rule(workload, engine, settings)
    return SpillRule(threshold=math.inf, whole=False)
