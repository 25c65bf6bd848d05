"""Times: what the figures draw, and the table and the CSV beside them."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter as Tally
from collections.abc import Sequence
from dataclasses import dataclass

from boardcluster.analysis import Cell, differences_among, node_words, verdict_of
from boardcluster.factors import FACTORS
from boardcluster.records import Result, Verdict
from boardcluster.report import words
from boardcluster.report.measured import figures_table, node_bytes_table, phases_table
from boardcluster.report.plots import Figure, durations
from boardcluster.report.source import (
    Source,
    configuration,
    groups_of,
    state_of,
    workload_anchor,
)
from boardcluster.report.tables import Column, Kind, Table
from boardcluster.units import format_bytes

__all__ = ["TimeSection", "time_sections"]

_WHISKER = "; the whisker is the 95 % interval of the mean (Student's t)"
_CSV_COLUMNS = (
    "campaign",
    "order",
    *(factor.name for factor in FACTORS),
    "repetition",
    "warm_up",
    "attempt",
    "state",
    "verdict",
    "verdict_reasons",
    "duration_seconds",
    "output_bytes",
    "intermediate_bytes",
    "figures",
    "application_id",
    "emulated",
    "dilation",
    "kind",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSection:
    """Times of one workload.

    Attributes:
        workload: name of the workload.
        anchor: where it is on the page; also in the names of files.
        name: the workload's name for people.
        title: the same, with the configuration where there is one.
        groups: a title and the cells of each configuration, for the figure.
        caption: what the figure shows.
        figures: time per engine, one drawing or several.
        table: one row per cell.
        details: figures of the workload, phases, and bytes by node, where there are any.
        left_out: a sentence about attempts that are not in the numbers; may be empty.
        csv_text: every run of the workload as CSV.
        csv_name: file name for it.
    """

    workload: str
    anchor: str
    name: str
    title: str
    groups: tuple[tuple[str, tuple[Cell, ...]], ...]
    caption: str
    figures: tuple[Figure, ...]
    table: Table
    details: tuple[Table, ...]
    left_out: str
    csv_text: str
    csv_name: str


def time_sections(source: Source) -> tuple[TimeSection, ...]:
    """One section per workload that has a verified run; what took most time first."""
    spent: dict[str, float] = {}
    for cell in source.cells:
        spent[cell.workload] = spent.get(cell.workload, 0.0) + sum(cell.durations_seconds)
    ordered = sorted(spent, key=lambda workload: -spent[workload])
    return tuple(_time_section(source, workload) for workload in ordered)


def _time_section(source: Source, workload: str) -> TimeSection:
    cells = [cell for cell in source.cells if cell.workload == workload]
    groups = groups_of(cells)
    titles = [configuration(group[0], cells) or "default settings" for group in groups]
    single = len(groups) == 1
    shown = configuration(groups[0][0], cells) if single else ""
    over = f" over {shown}" if shown else ""
    name, anchor = words.workload_name(workload), workload_anchor(workload)
    results = [item for cell in cells for item in cell.results]
    whisker = _WHISKER if any(cell.interval_seconds for cell in cells) else ""
    caption = (
        f"Time of {name}{over}. Points are runs in run order, from top to bottom; the bar ends at"
        f" their mean{whisker}."
    )
    named = tuple(
        ("" if single else title, group) for title, group in zip(titles, groups, strict=True)
    )
    return TimeSection(
        workload=workload,
        anchor=anchor,
        name=name,
        title=f"{name}{over}",
        groups=named,
        caption=caption,
        figures=durations(
            named,
            name=f"{anchor}-times",
            title=f"Time of {name}{over}",
            caption=caption,
            emulated=source.is_emulated(results),
            twins=node_words(results),
        ),
        table=_cell_table(source, cells, name),
        details=tuple(
            found
            for found in (
                figures_table(source, cells),
                phases_table(source, cells),
                node_bytes_table(source, cells),
            )
            if found is not None
        ),
        left_out=_left_out(source, workload),
        csv_text=_csv_text(source, workload),
        csv_name=f"{anchor}-runs.csv",
    )


def _left_out(source: Source, workload: str) -> str:
    """A sentence about the attempts that are not in the numbers; empty if all are."""
    results = [
        result
        for result in source.results
        if result.trial.workload == workload and not source.is_own_program(result)
    ]
    ends = Tally(_end_of(result) for result in results)
    kinds = ("failed", "invalid", "warm-up") + (() if source.tainted else ("tainted",))
    out = [f"{ends[kind]} {kind}" for kind in kinds if ends[kind]]
    if not out:
        return ""
    total = sum(ends[kind] for kind in kinds)
    verb, noun = ("is", "attempt") if total == 1 else ("are", "attempts")
    listed = " and ".join(part for part in (", ".join(out[:-1]), out[-1]) if part)
    return f"{listed} {noun} {verb} not in these numbers; see every run below."


def _end_of(result: Result) -> str:
    """How an attempt ended, as far as numbers go."""
    if state_of(result) != "ok":
        return state_of(result)
    if result.trial.warm_up:
        return "warm-up"
    verdict = verdict_of(result)
    return verdict.value if verdict in (Verdict.TAINTED, Verdict.INVALID) else "ok"


def _verdicts(cell: Cell) -> str:
    """The verdicts of the runs that count, and how many tainted ones do not."""
    counted = words.verdicts(verdict_of(result) for result in cell.results)
    return f"{counted}; {len(cell.left_out)} left out" if cell.left_out else counted


def _outliers(cell: Cell) -> str:
    """Runs beyond Tukey's fences, by their time and their place in the campaign."""
    return ", ".join(
        f"{words.seconds(cell.durations_seconds[place])}"
        f" (order {cell.results[place].trial.position + 1})"
        for place in cell.outliers
    )


def _warnings(cells: Sequence[Cell]) -> str:
    """Every warning of every cell in sentences, with the cell's name before it."""
    lines = []
    for cell in cells:
        which = configuration(cell, cells)
        name = words.engine_name(cell.engine) + (f" over {which}" if which else "")
        lines += [f"{name}: {line}." for line in cell.warnings]
    return " ".join(lines)


def _cell_table(source: Source, cells: Sequence[Cell], name: str) -> Table:
    several = len(source.fingerprints) > 1
    rows = tuple(
        (
            words.engine_name(cell.engine),
            format_bytes(cell.size_bytes) if cell.size_bytes else words.NONE,
            str(cell.workers),
            cell.profile,
            cell.label or "default",
            str(cell.count),
            _verdicts(cell),
            words.seconds(cell.mean_seconds),
            words.interval(cell.interval_seconds),
            words.interval(cell.bootstrap_seconds),
            words.seconds(cell.median_seconds),
            words.seconds(cell.minimum_seconds),
            words.seconds(cell.maximum_seconds),
            words.percent(cell.variation),
            _outliers(cell),
            words.NONE
            if cell.throughput_bytes_per_second is None
            else f"{cell.throughput_bytes_per_second / 1e6:.2f}",
            ", ".join(source.setup_letter(item) for item in cell.fingerprints) if several else "",
        )
        for cell in cells
    )
    mixed = any(differences_among(cell.fingerprints) for cell in cells)
    pooled = (
        "A row that names several setups pools runs of different machines or settings:"
        " compare with care."
    )
    table = Table(
        caption=f"{name}{_shared(cells)}: results by engine",
        columns=(
            Column("Engine", Kind.ENGINE),
            Column("Input", Kind.NUMBER),
            Column("Workers", Kind.NUMBER),
            Column("Profile"),
            Column("Settings"),
            Column("Runs", Kind.NUMBER),
            Column("Verdicts"),
            Column("Mean (s)", Kind.NUMBER),
            Column("95 % interval (s)", Kind.NUMBER),
            Column("by bootstrap (s)", Kind.NUMBER),
            Column("Median (s)", Kind.NUMBER),
            Column("Min (s)", Kind.NUMBER),
            Column("Max (s)", Kind.NUMBER),
            Column("CV", Kind.NUMBER),
            Column("Outliers"),
            Column("MB/s", Kind.NUMBER),
            Column("Setup"),
        ),
        rows=rows,
        emulated=source.is_emulated([item for cell in cells for item in cell.results]),
        note=" ".join(part for part in (pooled if mixed else "", _warnings(cells)) if part),
    )
    return table.without_constant("Input", "Workers", "Profile", "Settings").without_empty()


def _shared(cells: Sequence[Cell]) -> str:
    """What all cells have in common, which their table need not repeat in every row."""
    sizes = {cell.size_bytes for cell in cells}
    workers = {cell.workers for cell in cells}
    profiles = {cell.profile for cell in cells}
    parts = [format_bytes(size) for size in sizes if size and len(sizes) == 1]
    parts += [words.count(number, "worker") for number in workers if len(workers) == 1]
    parts += [f"profile {profile}" for profile in profiles if len(profiles) == 1]
    labels = {cell.label for cell in cells}
    parts += [label for label in labels if label and len(labels) == 1]
    return f" ({', '.join(parts)})" if parts else ""


def _csv_text(source: Source, workload: str) -> str:
    """Every run of a workload, so that a figure's numbers can be taken away."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(_CSV_COLUMNS)
    for result in source.results:
        trial, attempt, found = result.trial, result.attempt, result.measurement
        if trial.workload != workload or attempt is None or source.is_own_program(result):
            continue
        writer.writerow(
            (
                trial.campaign_id,
                trial.position + 1,
                *(
                    json.dumps(level) if isinstance(level, dict) else str(level)
                    for level in (factor.level(trial) for factor in FACTORS)
                ),
                trial.repetition,
                "yes" if trial.warm_up else "no",
                attempt.number,
                attempt.state.value,
                found.verdict.value if found else "",
                "; ".join(found.verdict_reasons) if found else "",
                found.duration_seconds if found else "",
                found.output_bytes if found else "",
                found.intermediate_bytes if found else None,
                json.dumps(found.figures) if found else "",
                found.application_id if found else "",
                "yes" if attempt.fingerprint.emulated else "no",
                found.dilation if found else "",
                attempt.fingerprint.kind,
            )
        )
    return buffer.getvalue()
