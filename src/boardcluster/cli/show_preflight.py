"""Shows what a campaign will need."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from boardcluster.campaign.preflight import Preflight, PreflightRow
from boardcluster.cli.console import Reporter, print_columns, say
from boardcluster.units import format_bytes, format_seconds

__all__ = ["print_preflight"]

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
    time = f"about {format_seconds(preflight.known_seconds)} for the jobs, from earlier runs"
    if preflight.unknown_runs == preflight.runs:
        time = "unknown, because nothing similar was measured on this cluster yet"
    elif preflight.unknown_runs:
        time += f", and {preflight.unknown_runs} runs of unknown time"
    forms = f"{preflight.forms} variants of the cluster, one after the other"
    if preflight.forms == 1:
        forms = "1 variant of the cluster"
    lines = [
        f"{preflight.runs} runs of {preflight.cells} cells on {forms}",
        f"time: {time}",
        f"space on the nodes: {format_bytes(preflight.space_bytes)} (inputs, and the largest run)",
        *sorted(preflight.notes)[:_NOTES_SHOWN],
    ]
    if len(preflight.notes) > _NOTES_SHOWN:
        lines.append(f"and {len(preflight.notes) - _NOTES_SHOWN} more notes: see --json")
    for line in lines:
        if reporter is None:
            say(line)
        else:
            reporter.line(line)
