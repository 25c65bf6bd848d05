"""``boardcluster results``: what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from boardcluster.analysis import Cell, summarise
from boardcluster.cli.console import Reporter, print_json, print_table
from boardcluster.cli.options import ClusterOption, HomeOption, JsonOption, home_folder
from boardcluster.cluster.lock import driver_lock
from boardcluster.errors import EmptySelectionError
from boardcluster.records import Result
from boardcluster.store import Store, rebuild
from boardcluster.units import format_bytes, format_seconds

__all__ = ["print_results", "register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="results", epilog="Example: boardcluster results --json | jq .results")(
        _results
    )


def _results(
    home: HomeOption = None,
    cluster: ClusterOption = "default",
    campaign: Annotated[str | None, typer.Option(help="Only this campaign, by its id.")] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Every attempt, not only the latest of each trial.")
    ] = False,
    from_files: Annotated[
        bool,
        typer.Option(
            "--rebuild", help="Rebuild a damaged store from the files of each attempt, first."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show stored results: each run, and mean with 95 % interval per engine."""
    folder = home_folder(home, cluster)
    if from_files:
        with driver_lock(folder, doing="results --rebuild"):
            count = rebuild(folder)
        Reporter().line(f"rebuilt from {count} attempts; the damaged file is kept beside it")
    with Store.open(folder, read_only=True) as store:
        results = store.results(campaign, all_attempts=every)
        campaigns = store.campaigns()
    if campaign is not None:
        campaigns = tuple(row for row in campaigns if row.id == campaign)
    if not results:
        raise EmptySelectionError(
            f"no results in {folder}", hint="run something first: `boardcluster run wordcount`"
        )
    if as_json:
        print_json({"campaigns": campaigns, "results": results, "cells": summarise(results)})
    else:
        print_results(results)


def print_results(results: Sequence[Result]) -> None:
    """Print one row per run, then one per cell."""
    print_table("runs", _RUN_COLUMNS, [_run_row(result) for result in results])
    rows = [
        [
            cell.workload,
            str(cell.engine),
            cell.profile,
            format_bytes(cell.size_bytes),
            str(cell.workers),
            str(cell.count),
            format_seconds(cell.mean_seconds),
            _interval(cell),
        ]
        for cell in summarise(results)
    ]
    if rows:
        print_table("verified runs per engine", _CELL_COLUMNS, rows)


def _interval(cell: Cell) -> str:
    interval = cell.interval_seconds
    return f"± {format_seconds(interval.half_width)}" if interval else "one run: no interval"


_RUN_COLUMNS = [
    *("campaign", "order", "workload", "engine", "input", "repetition", "state", "time"),
    "reason",
]
_CELL_COLUMNS = [
    *("workload", "engine", "profile", "input", "workers", "runs", "mean", "95 % interval"),
]


def _run_row(result: Result) -> list[str]:
    trial, attempt = result.trial, result.attempt
    timed = result.measurement.duration_seconds if result.measurement else None
    return [
        trial.campaign_id,
        str(trial.position + 1),
        trial.workload,
        str(trial.engine),
        format_bytes(trial.size_bytes) if trial.size_bytes else "-",
        str(trial.repetition),
        str(attempt.state) if attempt else "pending",
        format_seconds(timed) if timed is not None else "-",
        attempt.reason if attempt else "",
    ]
