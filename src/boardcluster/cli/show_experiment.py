"""Shows what an experiment found, compared with what the papers have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from boardcluster.analysis.experiments import (
    FAR_PERCENT,
    ExperimentEntry,
    ExperimentRow,
    ExperimentTable,
    LeftOut,
    column_words,
)
from boardcluster.analysis.twins import dilation_words, twin_words
from boardcluster.cli.console import print_columns, print_json, print_table, say
from boardcluster.records import Result
from boardcluster.units import format_bytes, format_count, format_seconds

if TYPE_CHECKING:
    from boardcluster.spec.experiment import ExperimentSpec

__all__ = ["print_experiment"]


def print_experiment(
    experiment: ExperimentSpec,
    table: ExperimentTable,
    results: Mapping[str, Sequence[Result]],
    *,
    as_json: bool,
) -> None:
    """Print the table of an experiment; with ``as_json`` as a document."""
    words = twin_words(row for rows in results.values() for row in rows) or "emulated boards"
    if as_json:
        head = {"name": experiment.name, "question": experiment.question, "of": words}
        print_json({**head, "table": table})
        return
    say(f"{experiment.name}: {experiment.question}")
    say(f"{words}; times are those of the boards, divided by the dilation")
    first = column_words(table.vary, table.columns[0])
    columns = [
        *("cell", str(table.vary), "time", "runs", "95 % interval", "dilation", f"against {first}"),
        *("published", "published ratio", "difference"),
    ]
    rows = [
        [_cell_words(row) if place == 0 else "", *_entry_row(table, entry)]
        for row in table.rows
        for place, entry in enumerate(row.entries)
    ]
    if rows:
        print_table("emulated boards", columns, rows)
        say(f'"against {first}": how many times as fast; !: off by more than {FAR_PERCENT:.0f} %')
    sources = dict.fromkeys(
        entry.published_source
        for row in table.rows
        for entry in row.entries
        if entry.published_source
    )
    for source in sources:
        say(f"published: {source}")
    if table.left_out:
        _print_left_out(table.left_out)


def _cell_words(row: ExperimentRow) -> str:
    size = format_bytes(row.size_bytes) if row.size_bytes else ""
    workers = format_count(row.workers, "worker") if row.workers else ""
    parts = (row.twin, f"{row.workload} on {row.engine}", size, workers, row.profile, row.settings)
    return ", ".join(part for part in parts if part)


def _entry_row(table: ExperimentTable, entry: ExperimentEntry) -> list[str]:
    interval = entry.interval_seconds
    difference = ""
    if entry.difference_percent is not None:
        difference = f"{entry.difference_percent:+.1f} %{' !' if entry.is_far else ''}"
    return [
        column_words(table.vary, entry.column),
        _seconds(entry.mean_seconds),
        f"{entry.count} ({entry.tainted} tainted)" if entry.tainted else str(entry.count),
        f"± {format_seconds(interval.half_width)}" if interval else "",
        dilation_words(*entry.dilations).removeprefix("dilation ") if entry.dilations else "-",
        _ratio(entry.ratio),
        _seconds(entry.published_seconds),
        _ratio(entry.published_ratio),
        difference,
    ]


def _seconds(value: float | None) -> str:
    return "-" if value is None else format_seconds(value)


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}x"


def _print_left_out(rows: Sequence[LeftOut]) -> None:
    columns: Mapping[str, Callable[[LeftOut], str]] = {
        "twin": lambda row: row.twin,
        "workload": lambda row: row.trial.workload,
        "engine": lambda row: str(row.trial.engine),
        "workers": lambda row: str(row.trial.workers),
        "repetition": lambda row: (
            ("warm-up " if row.trial.warm_up else "") + str(row.trial.repetition)
        ),
        "state": lambda row: row.state,
        "reason": lambda row: row.reason,
    }
    print_columns("not in any mean", columns, rows)
