"""Backtests of the published tables and of a cluster's own runs; starts no work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from boardcluster.plan.backtest import ProtocolScore, joined, scores
from boardcluster.plan.calibration import IntervalCalibration
from boardcluster.plan.learning import held_out_cells, own_held_out
from boardcluster.plan.own_runs import observation_of, own_groups
from boardcluster.plan.scoreboard import Scoreboard, published_scoreboard
from boardcluster.queries.predictions import reading_archive
from boardcluster.records import Engine

__all__ = ["Backtests", "run_backtests"]

_RUNS_MOST = 2_000
_WORKLOADS = ("wordcount", "terasort", "grep", "pi", "teragen", "teravalidate", "dfsio")
_PROGRAM = "submit"
"""The user's own program, which has no parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backtests:
    """How good predictions are."""

    published: Scoreboard
    """Of the papers' tables."""
    own: tuple[ProtocolScore, ...]
    """Of own runs; empty where fewer than three configurations were run."""


def run_backtests(home: Path | None, defaults_of: Callable[[str], Mapping[str, str]]) -> Backtests:
    """Hold out cells of the published tables, and configurations of own runs.

    Args:
        home: state folder of the cluster whose runs count; None for none.
        defaults_of: returns what a workload's parameters are where a run does not set them.

    Raises:
        StoreError: the store is damaged.
    """
    parts = []
    with reading_archive(home) as (archive, searches):
        for workload in (*_WORKLOADS, _PROGRAM) if archive else ():
            defaults = {} if workload == _PROGRAM else defaults_of(workload)
            for engine in (Engine.MAPREDUCE, Engine.SPARK):
                runs = (
                    archive.recent(workload, engine, most=_RUNS_MOST, without=searches)
                    if archive
                    else ()
                )
                found = [
                    row
                    for result in runs
                    if (row := observation_of(result, replication=3, defaults=defaults))
                ]
                for group in own_groups(found):
                    parts += own_held_out((workload, engine), group.runs)
    if not parts:
        return Backtests(published=published_scoreboard(), own=())
    own = joined(parts)
    inside = IntervalCalibration.of(joined([held_out_cells(), own])).inside
    return Backtests(published=published_scoreboard(), own=scores(own, inside[-len(own) :]))
