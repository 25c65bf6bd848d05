"""Shows runs and cells."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Generic, TypeAlias, TypeVar

from boardcluster.analysis.cells import (
    Cell,
    Untrusted,
    label_of,
    summarise,
    untrusted,
    verdict_if_ok,
    verdict_of,
)
from boardcluster.analysis.inference import find_drift, observe
from boardcluster.cli.console import print_table, say
from boardcluster.records import Result, Trial, Verdict
from boardcluster.report.ratio_words import drift_words
from boardcluster.report.words import program
from boardcluster.units import format_bytes, format_energy, format_seconds

__all__ = ["print_results"]

_Summary: TypeAlias = Cell | Untrusted
_Row = TypeVar("_Row")


def print_results(
    results: Sequence[Result],
    counted: Sequence[Result] | None = None,
    *,
    tainted: bool = False,
) -> None:
    """Print one row per run, then one per cell, then what a reader must know of them.

    Cells are of those that are ``counted``: every try of each trial, without searches of ``tune``.

    Tainted runs count in the cells only if asked for; how many do not is shown as well.
    Workers, profile and other settings of a run are shown where some run differs in them.
    """
    _print("runs", _RUN_COLUMNS, results)
    counted = results if counted is None else counted
    cells = summarise(counted, tainted=tainted)
    rows: list[_Summary] = [*cells, *untrusted(counted, tainted=tainted)]
    if rows:
        warm = any(result.trial.warm_up for result in results)
        title = f"verified runs per engine{', without warm-ups' if warm else ''}"
        _print(title, _CELL_COLUMNS, rows)
    for found in find_drift([observe(cell.results) for cell in cells]):
        if found.is_shown:
            say(f"warning: {drift_words(found)}")


def _verdicts(results: Sequence[Result]) -> str:
    """How many runs have each verdict: ``4 valid, 1 tainted``."""
    tally = Tally(verdict_of(result) for result in results)
    return ", ".join(f"{tally[verdict]} {verdict}" for verdict in Verdict if tally[verdict])


def _outlier(cell: Cell, place: int) -> str:
    order = cell.results[place].trial.position + 1
    return f"{format_seconds(cell.durations_seconds[place])} (order {order})"


def _outliers(cell: Cell) -> str:
    return "\n".join(_outlier(cell, place) for place in cell.outliers)


def _print(title: str, columns: Sequence[_Column[_Row]], rows: Sequence[_Row]) -> None:
    """Print a table without the columns that are empty, or that are equal where that is enough."""
    cells = [[column.cell(row) for row in rows] for column in columns]
    kept = [
        (column.title, values)
        for column, values in zip(columns, cells, strict=True)
        if column.shown is _Shown.ALWAYS
        or (column.shown is _Shown.VARYING and len(set(values)) > 1)
        or (column.shown is _Shown.FILLED and any(values))
    ]
    print_table(
        title,
        [name for name, _ in kept],
        [list(row) for row in zip(*(values for _, values in kept), strict=True)],
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
    found = cell.interval_seconds
    return f"± {format_seconds(found.half_width)}" if found else "one run: no interval"


def _reason(result: Result) -> str:
    found, attempt = result.measurement, result.attempt
    remarks = (*found.verdict_reasons, *found.remarks) if found else ()
    return "; ".join(part for part in (attempt.reason if attempt else "", *remarks) if part)


def _time(result: Result) -> str:
    found = result.measurement
    return format_seconds(found.duration_seconds) if found else "-"


def _energy(result: Result) -> str:
    found = result.measurement
    return format_energy(found.energy) if found and found.energy else ""


def _repetition(trial: Trial) -> str:
    return f"warm-up {trial.repetition}" if trial.warm_up else str(trial.repetition)


def _input(size_bytes: int) -> str:
    return format_bytes(size_bytes) if size_bytes else "-"


def _counted(row: _Summary) -> str:
    words = _verdicts(row.results)
    if isinstance(row, Untrusted):
        return f"{words}; all left out"
    return f"{words}; {len(row.left_out)} left out" if row.left_out else words


def _trial(row: _Summary) -> Trial:
    return row.results[0].trial


def _of_cell(shown: Callable[[Cell], str], otherwise: str = "") -> Callable[[_Summary], str]:
    """Show something of a cell; of untrusted runs, of which no mean is made, something else."""
    return lambda row: shown(row) if isinstance(row, Cell) else otherwise


class _Shown(Enum):
    """When a column is shown: always, where its rows differ, or where a row has a value."""

    ALWAYS = auto()
    VARYING = auto()
    FILLED = auto()


@dataclass(frozen=True, slots=True)
class _Column(Generic[_Row]):
    title: str
    cell: Callable[[_Row], str]
    shown: _Shown = _Shown.ALWAYS


_FIGURES = 3
_RUN_COLUMNS: list[_Column[Result]] = [
    _Column("campaign", lambda row: row.trial.campaign_id),
    _Column("order", lambda row: str(row.trial.position + 1)),
    _Column("workload", lambda row: row.trial.workload),
    _Column("program", lambda row: program(row.trial.arguments), _Shown.FILLED),
    _Column("engine", lambda row: str(row.trial.engine)),
    _Column("profile", lambda row: row.trial.profile, _Shown.VARYING),
    _Column("input", lambda row: _input(row.trial.size_bytes)),
    _Column("workers", lambda row: str(row.trial.workers), _Shown.VARYING),
    _Column("settings", lambda row: label_of([row]), _Shown.FILLED),
    _Column("repetition", lambda row: _repetition(row.trial)),
    _Column("state", lambda row: str(row.attempt.state) if row.attempt else "pending"),
    _Column("time", _time),
    _Column("verdict", lambda row: str(verdict_if_ok(row) or "-")),
    _Column("energy", _energy, _Shown.FILLED),
    _Column("reason", _reason),
]
_CELL_COLUMNS: list[_Column[_Summary]] = [
    _Column("workload", lambda row: _trial(row).workload),
    _Column("engine", lambda row: str(row.engine)),
    _Column("profile", lambda row: _trial(row).profile),
    _Column("input", lambda row: _input(_trial(row).size_bytes)),
    _Column("workers", lambda row: str(_trial(row).workers)),
    _Column("settings", lambda row: row.label, _Shown.FILLED),
    _Column("runs", _of_cell(lambda cell: str(cell.count), "0")),
    _Column("verdicts", _counted),
    _Column("mean", _of_cell(lambda cell: format_seconds(cell.mean_seconds), "-")),
    _Column("95 % interval", _of_cell(_interval, "no valid run; --tainted counts these")),
    _Column("outliers", _of_cell(_outliers), _Shown.FILLED),
    _Column("figures", _of_cell(_figures), _Shown.FILLED),
]
