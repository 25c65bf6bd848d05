"""Shows what each node did during a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from boardcluster.analysis.cells import verdict_if_ok
from boardcluster.analysis.phases import submissions
from boardcluster.analysis.telemetry import (
    WHOLE_RUN,
    ColumnSummary,
    NodeSummary,
    column_summaries,
    node_summaries,
)
from boardcluster.cli.console import print_table, say
from boardcluster.records import Attempt, Measurement, Result, Telemetry
from boardcluster.units import format_bytes

__all__ = ["print_telemetry", "telemetry_document"]

_Row = TypeVar("_Row")


def telemetry_document(
    result: Result,
    attempt: Attempt,
    telemetry: Telemetry,
    *,
    phase: str | None,
    columns: Sequence[str],
) -> dict[str, object]:
    """Return what ``--json`` prints."""
    found = result.measurement
    spans = _spans(telemetry, phase)
    return {
        "run": attempt.name,
        "workload": result.trial.workload,
        "engine": result.trial.engine.value,
        "state": attempt.state.value,
        "verdict": verdict_if_ok(result),
        "verdict_reasons": found.verdict_reasons if found else (),
        "remarks": found.remarks if found else (),
        "duration_seconds": telemetry.duration_seconds,
        "phases": {name: list(span) for name, span in telemetry.phases.items()},
        "nodes": [row for span in spans for row in node_summaries(telemetry, span)],
        "columns": column_summaries(telemetry, columns, spans[0]) if columns else [],
    }


def _spans(telemetry: Telemetry, phase: str | None) -> list[str]:
    """The run and its submissions, without one that is the whole run; or one phase.

    The engine's own phases are too many for a table each: they are shown when asked for.
    """
    if phase is not None:
        return [phase]
    whole = (0.0, telemetry.duration_seconds)
    found = submissions(telemetry.phases)
    return [WHOLE_RUN, *(name for name, span in found.items() if span != whole)]


def print_telemetry(
    result: Result,
    attempt: Attempt,
    telemetry: Telemetry,
    *,
    phase: str | None,
    columns: Sequence[str],
) -> None:
    """Print the verdict, and a table of nodes or columns for the run and each submission."""
    trial, found = result.trial, result.measurement
    say(f"run {attempt.name}: {trial.workload} on {trial.engine.value}")
    say(f"verdict: {verdict_if_ok(result) or f'none, {attempt.state.value}'}")
    for line in found.verdict_reasons if found else ():
        say(f"  {line}")
    if found and found.disturbances:
        say(f"  at most {_explained(found)}")
    for line in (attempt.reason, *(found.remarks if found else ())):
        if line:
            say(f"remark: {line}")
    for span in _spans(telemetry, phase):
        if columns:
            summaries = column_summaries(telemetry, columns, span)
            _table(_title(telemetry, span), _COLUMN_COLUMNS, summaries)
        else:
            _table(_title(telemetry, span), _NODE_COLUMNS, node_summaries(telemetry, span))
    if phase is None:
        _print_engine_phases(telemetry)


def _explained(found: Measurement) -> str:
    """What disturbed a run, with the share of its time that each explains at most."""
    parts = [
        f"{100 * row.share:.2f} % of the time by {row.cause}{f' on {row.node}' if row.node else ''}"
        for row in found.disturbances
    ]
    return f"{', '.join(parts)}; it tolerates {100 * found.tolerated_share:.2g} %"


_MOST_PHASES = 20


def _print_engine_phases(telemetry: Telemetry) -> None:
    """List what can be asked for with ``--phase``; nothing where the engine gave no phases."""
    outer = submissions(telemetry.phases)
    rows = [(name, *span) for name, span in telemetry.phases.items() if name not in outer]
    shown = rows[:_MOST_PHASES]
    if shown:
        more = f", the first {len(shown)} of {len(rows)}" if len(rows) > len(shown) else ""
        print_table(
            f"the engine's phases{more}; --phase shows what the nodes did in one",
            ["phase", "from", "to", "took"],
            [
                [name, f"{begin:.1f} s", f"{end:.1f} s", f"{end - begin:.1f} s"]
                for name, begin, end in shown
            ],
        )


def _title(telemetry: Telemetry, span: str) -> str:
    if not span:
        return f"whole run: {telemetry.duration_seconds:.1f} s"
    begin, end = telemetry.phases[span]
    return f"phase {span}: {begin:.1f} to {end:.1f} s"


def _table(title: str, columns: Mapping[str, Callable[[_Row], str]], rows: Sequence[_Row]) -> None:
    """Print a table without the columns that are empty."""
    kept = {name: cell for name, cell in columns.items() if not rows or any(map(cell, rows))}
    print_table(title, list(kept), [[cell(row) or "-" for cell in kept.values()] for row in rows])


def _unit(row: ColumnSummary) -> str:
    return row.unit if row.total is None else f"{row.unit}, and per second".lstrip(", ")


def _number(value: float | None, scale: float = 1.0, form: str = ".6g", unit: str = "") -> str:
    return "" if value is None else f"{value / scale:{form}}{unit}"


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f} %"


def _rate(bytes_per_second: float | None) -> str:
    return "" if bytes_per_second is None else f"{format_bytes(round(bytes_per_second))}/s"


def _size(size_bytes: float | None) -> str:
    return "" if size_bytes is None else format_bytes(round(size_bytes), binary=True)


def _seconds(seconds: float | None) -> str:
    """Seconds, where there were any."""
    return f"{seconds:.1f} s" if seconds else ""


_NODE_COLUMNS: Mapping[str, Callable[[NodeSummary], str]] = {
    "node": lambda row: row.node,
    "CPU busy": lambda row: _number(row.cpu_busy_mean_cores, form=".2f", unit=f" of {row.cores}"),
    "at most": lambda row: _number(row.cpu_busy_most_cores, form=".2f"),
    "I/O wait": lambda row: _percent(row.cpu_iowait_mean_share),
    "steal": lambda row: _percent(row.cpu_steal_mean_share or None),
    "disk read": lambda row: _rate(row.disk_read_bytes_per_second),
    "written": lambda row: _rate(row.disk_written_bytes_per_second),
    "received": lambda row: _rate(row.net_received_bytes_per_second),
    "sent": lambda row: _rate(row.net_sent_bytes_per_second),
    "lowest clock": lambda row: _number(row.clock_least_hertz, 1e9, ".2f", " GHz"),
    "hottest": lambda row: _number(row.temperature_most_celsius, form=".1f", unit=" °C"),
    "least free memory": lambda row: _size(row.memory_available_least_bytes),
    "own memory, at most": lambda row: _size(row.memory_own_most_bytes),
    "swap": lambda row: _size(row.swap_used_most_bytes or None),
    "throttled": lambda row: _seconds(row.throttled_seconds),
    "held by quota": lambda row: _seconds(row.quota_throttled_seconds),
    "foreign CPU": lambda row: _seconds(row.foreign_cpu_seconds),
}
_COLUMN_COLUMNS: Mapping[str, Callable[[ColumnSummary], str]] = {
    "node": lambda row: row.node,
    "column": lambda row: row.column,
    "total": lambda row: _number(row.total),
    "mean": lambda row: _number(row.mean),
    "lowest": lambda row: _number(row.least),
    "highest": lambda row: _number(row.most),
    "unit": _unit,
}
