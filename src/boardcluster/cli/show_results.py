"""Shows runs and cells."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Sequence
from enum import Enum, auto

from boardcluster.analysis import (
    Cell,
    Interval,
    Untrusted,
    label_of,
    summarise,
    untrusted,
    verdict_of,
)
from boardcluster.cli.console import print_table, say
from boardcluster.records import Result, Verdict
from boardcluster.units import format_bytes, format_energy, format_seconds

__all__ = ["print_results"]


def print_results(results: Sequence[Result], *, tainted: bool = False) -> None:
    """Print one row per run, then one per cell, then what a reader must know of them.

    Tainted runs count in the cells only if asked for; those that do not are counted beside them.
    Workers, profile and other settings of a run are shown where some run differs in them.
    """
    _print("runs", _RUN_COLUMNS, [_run_row(result) for result in results])
    cells = summarise(results, tainted=tainted)
    rows = [_cell_row(cell) for cell in cells]
    rows += [_untrusted_row(row) for row in untrusted(results, tainted=tainted)]
    if rows:
        warm = any(result.trial.warm_up for result in results)
        title = f"verified runs per engine{', without warm-ups' if warm else ''}"
        _print(title, _CELL_COLUMNS, rows)
    for cell in cells:
        for line in cell.warnings:
            say(f"warning: {cell.workload} on {cell.engine}: {line}")


def _cell_row(cell: Cell) -> list[str]:
    counted = _verdicts(cell.results)
    return [
        cell.workload,
        str(cell.engine),
        cell.profile,
        format_bytes(cell.size_bytes) if cell.size_bytes else "-",
        str(cell.workers),
        cell.label,
        str(cell.count),
        f"{counted}; {len(cell.left_out)} left out" if cell.left_out else counted,
        format_seconds(cell.mean_seconds),
        _half_width(cell.interval_seconds),
        _limits(cell.bootstrap_seconds),
        "\n".join(_outlier(cell, place) for place in cell.outliers),
        _figures(cell),
    ]


def _untrusted_row(row: Untrusted) -> list[str]:
    """No mean is made of tainted runs; the row says what there is instead."""
    at = row.configuration
    return [
        at.workload,
        str(row.engine),
        at.profile,
        format_bytes(at.size_bytes) if at.size_bytes else "-",
        str(at.workers),
        row.label,
        "0",
        f"{_verdicts(row.results)}; all left out",
        "-",
        "no valid run: --tainted lets these count",
        "",
        "",
        "",
    ]


def _verdicts(results: Sequence[Result]) -> str:
    """How many runs have each verdict: ``4 valid, 1 tainted``."""
    tally = Tally(verdict_of(result) for result in results)
    return ", ".join(f"{tally[verdict]} {verdict}" for verdict in Verdict if tally[verdict])


def _outlier(cell: Cell, place: int) -> str:
    order = cell.results[place].trial.position + 1
    return f"{format_seconds(cell.durations_seconds[place])} (order {order})"


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


def _half_width(interval: Interval | None) -> str:
    return f"± {format_seconds(interval.half_width)}" if interval else "one run: no interval"


def _limits(interval: Interval | None) -> str:
    if interval is None:
        return ""
    return f"{format_seconds(max(0.0, interval.low))} to {format_seconds(interval.high)}"


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
    ("verdict", _Shown.ALWAYS),
    ("energy", _Shown.FILLED),
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
    ("verdicts", _Shown.ALWAYS),
    ("mean", _Shown.ALWAYS),
    ("95 % interval", _Shown.ALWAYS),
    ("by bootstrap", _Shown.FILLED),
    ("outliers", _Shown.FILLED),
    ("figures", _Shown.FILLED),
]


def _run_row(result: Result) -> list[str]:
    trial, attempt = result.trial, result.attempt
    found = result.measurement
    timed = found.duration_seconds if found else None
    remarks = (*found.verdict_reasons, *found.remarks) if found else ()
    return [
        trial.campaign_id,
        str(trial.position + 1),
        trial.workload,
        str(trial.engine),
        trial.profile,
        format_bytes(trial.size_bytes) if trial.size_bytes else "-",
        str(trial.workers),
        label_of([result]),
        f"warm-up {trial.repetition}" if trial.warm_up else str(trial.repetition),
        str(attempt.state) if attempt else "pending",
        format_seconds(timed) if timed is not None else "-",
        str(verdict_of(result)) if found else "-",
        format_energy(found.energy) if found and found.energy else "",
        "; ".join(part for part in (attempt.reason if attempt else "", *remarks) if part),
    ]
