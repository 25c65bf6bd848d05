"""``boardcluster results``: what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import Annotated

import typer

from boardcluster.analysis import Cell, security_of, settings, summarise
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
    """Print one row per run, then one per cell.

    Workers, profile and other settings of a run are shown where some run differs in them.
    """
    _print("runs", _RUN_COLUMNS, [_run_row(result) for result in results])
    rows = [
        [
            cell.workload,
            str(cell.engine),
            cell.profile,
            format_bytes(cell.size_bytes) if cell.size_bytes else "-",
            str(cell.workers),
            cell.label,
            str(cell.count),
            format_seconds(cell.mean_seconds),
            _interval(cell),
            _figures(cell),
        ]
        for cell in summarise(results)
    ]
    if rows:
        warm = any(result.trial.warm_up for result in results)
        title = f"verified runs per engine{', without warm-ups' if warm else ''}"
        _print(title, _CELL_COLUMNS, rows)


def _print(title: str, columns: Sequence[tuple[str, _Shown]], rows: Sequence[list[str]]) -> None:
    """Print a table without the columns that have nothing to say."""
    kept = [
        index
        for index, (_, shown) in enumerate(columns)
        if shown is _Shown.ALWAYS
        or (shown is _Shown.VARYING and len({row[index] for row in rows}) > 1)
        or (shown is _Shown.FILLED and any(row[index] for row in rows))
    ]
    print_table(
        title,
        [columns[index][0] for index in kept],
        [[row[index] for index in kept] for row in rows],
    )


def _figures(cell: Cell) -> str:
    """The first figures of the workload, which come first because they matter most."""
    shown = list(cell.figures.items())[:_FIGURES]
    lines = [f"{name} {_number(figure.mean)}" for name, figure in shown]
    if more := len(cell.figures) - len(shown):
        lines.append(f"and {more} more: --json")
    return "\n".join(lines)


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _interval(cell: Cell) -> str:
    interval = cell.interval_seconds
    return f"± {format_seconds(interval.half_width)}" if interval else "one run: no interval"


class _Shown(Enum):
    """When a column is shown: always, where its rows differ, or where a row says anything."""

    ALWAYS = auto()
    VARYING = auto()
    FILLED = auto()


_FIGURES = 3
_RUN_COLUMNS = [
    ("campaign", _Shown.ALWAYS),
    ("order", _Shown.ALWAYS),
    ("workload", _Shown.ALWAYS),
    ("engine", _Shown.ALWAYS),
    ("profile", _Shown.VARYING),
    ("input", _Shown.ALWAYS),
    ("workers", _Shown.VARYING),
    ("settings", _Shown.FILLED),
    ("repetition", _Shown.ALWAYS),
    ("state", _Shown.ALWAYS),
    ("time", _Shown.ALWAYS),
    ("reason", _Shown.ALWAYS),
]
_CELL_COLUMNS = [
    ("workload", _Shown.ALWAYS),
    ("engine", _Shown.ALWAYS),
    ("profile", _Shown.ALWAYS),
    ("input", _Shown.ALWAYS),
    ("workers", _Shown.ALWAYS),
    ("settings", _Shown.FILLED),
    ("runs", _Shown.ALWAYS),
    ("mean", _Shown.ALWAYS),
    ("95 % interval", _Shown.ALWAYS),
    ("figures", _Shown.FILLED),
]


def _run_row(result: Result) -> list[str]:
    trial, attempt = result.trial, result.attempt
    timed = result.measurement.duration_seconds if result.measurement else None
    remarks = result.measurement.remarks if result.measurement else ()
    return [
        trial.campaign_id,
        str(trial.position + 1),
        trial.workload,
        str(trial.engine),
        trial.profile,
        format_bytes(trial.size_bytes) if trial.size_bytes else "-",
        str(trial.workers),
        settings(trial, security=security_of(result)),
        f"warm-up {trial.repetition}" if trial.warm_up else str(trial.repetition),
        str(attempt.state) if attempt else "pending",
        format_seconds(timed) if timed is not None else "-",
        "; ".join(part for part in (attempt.reason if attempt else "", *remarks) if part),
    ]
