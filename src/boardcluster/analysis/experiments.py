"""The table of an experiment: our times by column, how they relate, what the papers have. Pure.

Emulated boards are compared with real ones by their ratios: how many times as fast a column is as
the first. Times of the papers are shown with ours without any claim.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from boardcluster.analysis.cells import (
    Cell,
    Configuration,
    settings,
    summarise,
)
from boardcluster.analysis.fingerprints import boards_among, machines_among
from boardcluster.analysis.statistics import Interval
from boardcluster.analysis.twins import dilation_of
from boardcluster.records import AttemptState, Engine, Result, Trial, Verdict, in_cell

__all__ = [
    "FAR_PERCENT",
    "ExperimentEntry",
    "ExperimentRow",
    "ExperimentTable",
    "LeftOut",
    "PaperResult",
    "column_of",
    "column_words",
    "is_of",
    "tabulate",
]

_TWIN = "twin"

FAR_PERCENT = 15.0
"""A ratio further from the published one than this is marked; it is the project's own target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperResult:
    """What a paper says of one of our cells."""

    of: Mapping[str, str | int]
    """Which one: names of a trial's attributes, and ``twin``, with their values."""
    seconds: float | None
    """Its time; None where the paper states only a ratio."""
    ratio: float | None
    """How many times as fast as the first column it is, where the paper states it itself."""
    source: str
    """Paper and table, and which cell of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentEntry:
    """One column of a row."""

    column: str
    """The value that varies."""
    count: int
    """Runs that count: verified, no warm-ups, and valid or tainted so little that they may stay."""
    tainted: int
    """How many of them are tainted."""
    mean_seconds: float | None
    """Their mean, as on the boards; None without any."""
    interval_seconds: Interval | None
    """Its 95 % interval by Student's t; None for fewer than two runs."""
    dilations: tuple[float, ...]
    """The time dilations of these runs."""
    ratio: float | None
    """How many times as fast as the first column: its mean over this one; None where either is
    missing, and for the first column."""
    published_seconds: float | None
    """The papers' time."""
    published_ratio: float | None
    """The papers' ratio, of their times in the same way or as they state it."""
    published_source: str
    """Paper, table and cell; empty where nothing is published."""
    difference_percent: float | None
    """How far ``ratio`` is above the published one; below 0 it is less."""
    is_far: bool
    """Whether that is more than FAR_PERCENT either way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentRow:
    """Cells that differ in nothing but what varies."""

    twin: str
    """The twin; empty where twins are the columns."""
    workload: str
    """Name of the workload, or names joined by ``+``."""
    engine: Engine
    """The engine."""
    size_bytes: int
    """Input size; 0 where there is none."""
    workers: int | None
    """Number of workers; None where it varies."""
    profile: str
    """The engine configuration; empty where it varies."""
    settings: str
    """Short words for what else is not the default."""
    entries: tuple[ExperimentEntry, ...]
    """One for each column of the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A run that is in no mean."""

    twin: str
    """The twin it ran on."""
    trial: Trial
    """What was to run."""
    state: str
    """``pending``, the state of its attempt, or the verdict of a verified run."""
    reason: str
    """Why, in one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentTable:
    """What an experiment gave."""

    vary: str
    """What the columns are."""
    columns: tuple[str, ...]
    """Their values; ratios are to the first."""
    rows: tuple[ExperimentRow, ...]
    """In the order of twins, workloads, sizes and engines."""
    left_out: tuple[LeftOut, ...]
    """Runs that are in no mean, without warm-ups that went well."""


def column_of(vary: str, twin: str, row: Trial | Cell) -> str:
    """Return the column that a trial or a cell of a twin belongs to: see ``tabulate`` for vary."""
    return twin if vary == _TWIN else str(getattr(row, vary))


def is_of(of: Mapping[str, str | int], twin: str, row: Trial | Cell) -> bool:
    """Whether a trial or a cell of a twin is the one that ``PaperResult.of`` describes."""
    return all(
        value == (twin if name == _TWIN else getattr(row, name)) for name, value in of.items()
    )


def tabulate(
    results: Mapping[str, Sequence[Result]],
    *,
    vary: str,
    columns: Sequence[str],
    published: Sequence[PaperResult],
) -> ExperimentTable:
    """Put results side by side.

    Args:
        results: trials with their latest attempts, by twin.
        vary: ``twin``, or the name of an attribute that trials and cells have.
        columns: the values that it takes, the one to compare with first.
        published: what the papers say of the cells.
    """
    groups: dict[tuple[object, ...], dict[str, list[tuple[str, Cell]]]] = {}
    for twin, rows in results.items():
        for cell in summarise(rows):
            entries = groups.setdefault(_row_key(vary, twin, cell), {})
            entries.setdefault(column_of(vary, twin, cell), []).append((twin, cell))
    return ExperimentTable(
        vary=vary,
        columns=tuple(columns),
        rows=tuple(_row(vary, columns, group, published) for group in groups.values()),
        left_out=tuple(
            left
            for twin, rows in results.items()
            for result in rows
            if (left := _left_out(twin, result)) is not None
        ),
    )


def _row_key(vary: str, twin: str, cell: Cell) -> tuple[object, ...]:
    """Return everything of a cell but what varies, and but the setup that it was measured on.

    An experiment of days may go on after an update; what differs then is said in its row.
    """
    but = {vary, "setup"}
    names = [field.name for field in dataclasses.fields(Configuration) if field.name not in but]
    return ("" if vary == _TWIN else twin, *(getattr(cell, name) for name in names), cell.engine)


def column_words(vary: str, column: str) -> str:
    """Name a column for people: ``4 workers``, ``one after the other``, ``rpi5-nvme-4``."""
    if vary == "concurrency":
        return "one after the other" if column == "1" else f"{column} at once"
    if vary == "workers":
        return f"{column} workers" if column != "1" else "1 worker"
    return column if vary == _TWIN else f"{vary} {column}"


def _row(
    vary: str,
    columns: Sequence[str],
    cells_of: Mapping[str, Sequence[tuple[str, Cell]]],
    published: Sequence[PaperResult],
) -> ExperimentRow:
    group = {column: max(rows, key=_last_started) for column, rows in cells_of.items()}
    twin, cell = next(iter(group.values()))
    words = settings(cell.trial, security=cell.security)
    varying = column_words(vary, column_of(vary, twin, cell))
    cells = [group[column][1] if column in group else None for column in columns]
    said = [
        next((row for row in published if column in group and is_of(row.of, *group[column])), None)
        for column in columns
    ]
    return ExperimentRow(
        twin="" if vary == _TWIN else twin,
        workload=cell.workload,
        engine=cell.engine,
        size_bytes=cell.size_bytes,
        workers=None if vary == "workers" else cell.workers,
        profile="" if vary == "profile" else cell.profile,
        settings=", ".join(
            part
            for part in (*words.split(", "), *_setup_words(vary, cells_of, group))
            if part not in ("", varying)
        ),
        entries=tuple(
            _entry(column, cells[place], said[place], (cells[0], said[0]) if place else None)
            for place, column in enumerate(columns)
        ),
    )


def _last_started(entry: tuple[str, Cell]) -> str:
    """Return when the last run of a cell began."""
    return max(row.attempt.started_utc for row in entry[1].results if row.attempt is not None)


def _setup_words(
    vary: str,
    cells_of: Mapping[str, Sequence[tuple[str, Cell]]],
    chosen: Mapping[str, tuple[str, Cell]],
) -> Iterator[str]:
    """Say which runs are left out because they are of another setup, and how columns differ."""
    for column, rows in cells_of.items():
        if len(rows) > 1:
            yield f"{column_words(vary, column)}: the latest of {len(rows)} setups"
    cells = [cell for _, cell in chosen.values()]
    attempts = [cell.results[-1].attempt for cell in cells]
    fingerprints = [row.fingerprint for row in attempts if row is not None]
    names = list(machines_among(fingerprints))
    if vary != _TWIN and (nodes := boards_among(fingerprints)):
        names.append(f"what the boards of {', '.join(nodes)} have")
    if names:
        yield f"columns differ in {', '.join(names)}"


def _entry(
    column: str,
    cell: Cell | None,
    said: PaperResult | None,
    first: tuple[Cell | None, PaperResult | None] | None,
) -> ExperimentEntry:
    """Compare a column with the first, of which cell and paper are given; None for the first."""
    ratio = published_ratio = difference_percent = None
    if first is not None and cell is not None:
        if first[0] is not None:
            ratio = first[0].mean_seconds / cell.mean_seconds
        published_ratio = _published_ratio(said, first[1])
    if ratio is not None and published_ratio is not None:
        difference_percent = 100 * (ratio / published_ratio - 1)
    return ExperimentEntry(
        column=column,
        count=cell.count if cell else 0,
        tainted=cell.counted(Verdict.TAINTED) if cell else 0,
        mean_seconds=cell.mean_seconds if cell else None,
        interval_seconds=cell.interval_seconds if cell else None,
        dilations=tuple(sorted({dilation_of(row) for row in cell.results})) if cell else (),
        ratio=ratio,
        published_seconds=said.seconds if said else None,
        published_ratio=published_ratio,
        published_source=said.source if said else "",
        difference_percent=difference_percent,
        is_far=difference_percent is not None and abs(difference_percent) > FAR_PERCENT,
    )


def _published_ratio(said: PaperResult | None, first: PaperResult | None) -> float | None:
    """Return the papers' ratio to the first column, as stated or of their two times."""
    if said is None:
        return None
    if said.ratio is not None:
        return said.ratio
    if first is None or first.seconds is None or said.seconds is None:
        return None
    return first.seconds / said.seconds


def _left_out(twin: str, result: Result) -> LeftOut | None:
    """Return a run with the reason why it is in no mean; None for one that is, or a warm-up."""
    attempt, found = result.attempt, result.measurement
    state, reason = "pending", ""
    if attempt is not None and found is not None and attempt.state is AttemptState.OK:
        state, reason = str(found.verdict), "; ".join(found.verdict_reasons)
        if in_cell(found):
            return None
    elif attempt is not None:
        state, reason = str(attempt.state), attempt.reason
    return LeftOut(twin=twin, trial=result.trial, state=state, reason=reason)
