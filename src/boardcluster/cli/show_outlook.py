"""Shows what a campaign will take."""

from __future__ import annotations

from boardcluster.campaign.outlook import Outlook
from boardcluster.cli.console import Reporter, print_table, say
from boardcluster.units import format_bytes, format_seconds

__all__ = ["print_outlook"]

_NOTES_SHOWN = 8


def print_outlook(outlook: Outlook, *, reporter: Reporter | None) -> None:
    """Print what a campaign will take.

    Args:
        outlook: what it will take.
        reporter: where lines go while it runs; None prints to standard output.
    """
    rows = [
        [
            row.workload,
            row.engine,
            ", ".join(format_bytes(size) for size in row.sizes_bytes if size) or "-",
            ", ".join(map(str, row.workers)),
            str(row.cells),
            str(row.runs),
            format_seconds(row.known_seconds) if row.known_runs == row.runs else "unknown",
        ]
        for row in outlook.rows
    ]
    columns = ["workload", "engine", "sizes", "workers", "cells", "runs", "time, as measured"]
    print_table("what will run", columns, rows, to_stderr=reporter is not None)
    time = f"about {format_seconds(outlook.known_seconds)} for the jobs, from earlier runs"
    if outlook.unknown_runs == outlook.runs:
        time = "unknown, because nothing like it was measured on this cluster yet"
    elif outlook.unknown_runs:
        time += f", and {outlook.unknown_runs} runs of unknown time"
    forms = "1 form" if outlook.forms == 1 else f"{outlook.forms} forms, one after the other"
    lines = [
        f"{outlook.runs} runs of {outlook.cells} cells; the cluster takes {forms}",
        f"time: {time}",
        f"space on the nodes: {format_bytes(outlook.space_bytes)} (inputs, and the largest run)",
        *sorted(outlook.notes)[:_NOTES_SHOWN],
    ]
    if len(outlook.notes) > _NOTES_SHOWN:
        lines.append(f"and {len(outlook.notes) - _NOTES_SHOWN} more remarks on cases: see --json")
    for line in lines:
        if reporter is None:
            say(line)
        else:
            reporter.line(line)
