"""Shows what a campaign will need."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from boardcluster.analysis.stopping import Forecast
from boardcluster.campaign.life import Preview
from boardcluster.campaign.preflight import Preflight, PreflightRow
from boardcluster.cli.console import Reporter, print_columns, say
from boardcluster.units import format_bytes, format_count, format_seconds

__all__ = ["print_precision", "print_preflight"]

_NOTES_SHOWN = 8


def print_preflight(preflight: Preflight, *, reporter: Reporter | None) -> None:
    """Print what a campaign will need."""
    columns: Mapping[str, Callable[[PreflightRow], str]] = {
        "workload": lambda row: row.workload,
        "engine": lambda row: row.engine,
        "sizes": lambda row: ", ".join(map(format_bytes, filter(None, row.sizes_bytes))) or "-",
        "workers": lambda row: ", ".join(map(str, row.workers)),
        "cells": lambda row: str(row.cells),
        "runs": lambda row: str(row.runs),
        "time, as measured": lambda row: (
            format_seconds(row.known_seconds) if row.known_runs == row.runs else "unknown"
        ),
    }
    print_columns("what will run", columns, preflight.rows, to_stderr=reporter is not None)
    forms = f"{preflight.forms} variants of the cluster, one after the other"
    if preflight.forms == 1:
        forms = "1 variant of the cluster"
    starts = f", in {preflight.starts} starts" if preflight.starts > 1 else ""
    runs, cells = format_count(preflight.runs, "run"), format_count(preflight.cells, "cell")
    lines = [
        f"{runs} of {cells} on {forms}{starts}",
        f"time: {_time_words(preflight)}",
        f"space on the nodes: {format_bytes(preflight.space_bytes)} (inputs, and the largest run)",
        *preflight.notes[:_NOTES_SHOWN],
    ]
    if len(preflight.notes) > _NOTES_SHOWN:
        lines.append(f"and {len(preflight.notes) - _NOTES_SHOWN} more notes: see --json")
    if preflight.forms > 1 and preflight.starts == 1:
        lines.append(
            "each variant is measured in only one start of its daemons, so differences between "
            "starts look like differences between variants: `starts = 3` tells them apart"
        )
    for line in lines:
        if reporter is None:
            say(line)
        else:
            reporter.line(line)


def _time_words(preflight: Preflight) -> str:
    if preflight.unknown_runs == preflight.runs:
        return "unknown, because nothing similar was measured on this cluster yet"
    words = f"about {format_seconds(preflight.known_seconds)} for the jobs, from earlier runs"
    if preflight.unknown_runs:
        words += f", and {format_count(preflight.unknown_runs, 'run')} of unknown time"
    return words


def print_precision(preview: Preview) -> None:
    """Print what the precision of a campaign will take, if it has one."""
    outlook, preflight = preview.outlook, preview.all_preflight
    if outlook is None or preflight is None:
        return
    by_start = preview.work.spec.starts > 1
    columns: Mapping[str, Callable[[Forecast], str]] = {
        "until it is narrow": lambda row: row.aim.label,
        "variation": lambda row: (
            "unknown" if row.deviation is None else f"{row.deviation * 100:.2g} %"
        ),
        "starts" if by_start else "blocks": _needed_words,
    }
    title = f"what 95 % intervals within ±{outlook.precision * 100:.3g} % need"
    print_columns(title, columns, outlook.forecasts)
    most = preview.work.spec.repetitions_max
    if outlook.runs_of_each_cell is None:
        say(
            "how many runs that takes is unknown until each of these has been measured twice here; "
            f"at most {most} of each cell"
        )
        return
    least = "" if outlook.suffices else ", the most allowed, which is not enough"
    each = format_count(outlook.runs_of_each_cell, "run")
    say(f"about {each} of each cell{least}, from how earlier runs varied")
    say(f"time for these {format_count(preflight.runs, 'run')}: {_time_words(preflight)}")
    if by_start and not all(row.from_starts for row in outlook.forecasts):
        say(
            "that is a minimum: how starts differ is unknown, because no earlier campaign had "
            "several"
        )


def _needed_words(row: Forecast) -> str:
    if row.deviation is None:
        return "unknown"
    return f"about {row.needed}" if row.needed else "more than 100,000"
