"""Cells compared: engines with each other, and jobs at once with jobs one after the other."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from boardcluster.analysis.cells import Cell, Configuration
from boardcluster.analysis.fingerprints import differences_among
from boardcluster.analysis.statistics import Interval, difference_interval
from boardcluster.records import Engine

__all__ = ["ConcurrencyComparison", "EngineComparison", "compare_concurrency", "compare_engines"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compared:
    """Two cells."""

    ratio: float
    """Mean of one over mean of the other."""
    difference_interval_seconds: Interval | None
    """95 % interval (Welch) of one minus the other mean; None if either ran once."""
    differences: tuple[str, ...]
    """What differs among the fingerprints of their runs, one line each; a comparison across it must
    say so."""

    @property
    def is_shown(self) -> bool:
        """Whether the runs show a difference: its interval exists and leaves out zero."""
        interval = self.difference_interval_seconds
        return interval is not None and not interval.low <= 0 <= interval.high


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineComparison(_Compared):
    """Two engines at the same configuration."""

    faster: Cell
    """The cell with the smaller mean."""
    slower: Cell
    """The other one; ratio and difference are of it to the faster, so at least 1 and 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcurrencyComparison(_Compared):
    """The jobs of a mix one after the other, and several at once; all else is equal.

    Source: Lee and Park 2026, the last experiment: four jobs took 254 s one after the other and
    134 s at once, which is 1.9 times as fast.
    """

    sequential: Cell
    """The cell with one job at a time; ratio and difference are of it to the other."""
    concurrent: Cell
    """The cell with several at once."""


def compare_engines(cells: Iterable[Cell]) -> tuple[EngineComparison, ...]:
    """Compare every two engines that ran the same configuration, in the order of the cells."""
    groups: dict[Configuration, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.configuration, []).append(cell)
    return tuple(
        _comparison(first, second)
        for group in groups.values()
        for index, first in enumerate(group)
        for second in group[index + 1 :]
    )


def _comparison(first: Cell, second: Cell) -> EngineComparison:
    faster, slower = sorted((first, second), key=lambda cell: cell.mean_seconds)
    return EngineComparison(
        faster=faster,
        slower=slower,
        differences=differences_among((*faster.fingerprints, *slower.fingerprints)),
        **_compared(slower, faster),
    )


def _compared(over: Cell, under: Cell) -> dict[str, Any]:
    return {
        "ratio": over.mean_seconds / under.mean_seconds,
        "difference_interval_seconds": difference_interval(
            over.durations_seconds, under.durations_seconds
        ),
    }


def compare_concurrency(cells: Iterable[Cell]) -> tuple[ConcurrencyComparison, ...]:
    """Compare the jobs of each mix one after the other with several at once, all else equal."""
    groups: dict[tuple[Configuration, Engine], list[Cell]] = {}
    for cell in cells:
        if cell.is_mix:
            rest = dataclasses.replace(cell.configuration, concurrency=0)
            groups.setdefault((rest, cell.engine), []).append(cell)
    return tuple(
        ConcurrencyComparison(
            sequential=one,
            concurrent=several,
            differences=differences_among((*one.fingerprints, *several.fingerprints)),
            **_compared(one, several),
        )
        for group in groups.values()
        for one in group
        for several in group
        if one.concurrency == 1 and several.concurrency > 1
    )
