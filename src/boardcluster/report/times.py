"""Times: what the figures draw, and the table and the CSV beside them."""

from __future__ import annotations

import csv
import io
from collections import Counter as Tally
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from boardcluster.analysis import Cell
from boardcluster.report import words
from boardcluster.report.source import Source, configuration, groups_of, state_of
from boardcluster.report.tables import Column, Kind, Table
from boardcluster.units import format_bytes

__all__ = ["TimeSection", "time_sections"]

_WHISKER = "; the whisker is the 95 % interval of the mean (Student's t)"
_CSV_COLUMNS = (
    "campaign",
    "order",
    "workload",
    "engine",
    "profile",
    "size_bytes",
    "workers",
    "repetition",
    "attempt",
    "state",
    "duration_seconds",
    "output_bytes",
    "application_id",
    "emulated",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSection:
    """Times of one workload.

    Attributes:
        title: the workload's name.
        groups: a title and the cells of each configuration, for the figure.
        caption: what the figure shows.
        table: one row per cell.
        left_out: a sentence about attempts that are not in the numbers; may be empty.
        csv_link: every run of the figure as a ``data:`` link.
        csv_name: file name for it.
    """

    title: str
    groups: tuple[tuple[str, tuple[Cell, ...]], ...]
    caption: str
    table: Table
    left_out: str
    csv_link: str
    csv_name: str


def time_sections(source: Source) -> tuple[TimeSection, ...]:
    """One section per workload that has a verified run."""
    workloads = dict.fromkeys(cell.workload for cell in source.cells)
    return tuple(_time_section(source, workload) for workload in workloads)


def _time_section(source: Source, workload: str) -> TimeSection:
    cells = [cell for cell in source.cells if cell.workload == workload]
    groups = groups_of(cells)
    titles = [configuration(group[0], cells) for group in groups]
    single = len(groups) == 1
    over = f" over {titles[0]}" if single and titles[0] else ""
    name = words.workload_name(workload)
    ends = Tally(
        state_of(result)
        for result in source.results
        if result.trial.workload == workload and not source.is_own_program(result)
    )
    out = [f"{ends[state]} {state}" for state in ("failed", "invalid") if ends[state]]
    left_out = ""
    if out:
        verb = "is" if ends["failed"] + ends["invalid"] == 1 else "are"
        noun = "attempt" if verb == "is" else "attempts"
        left_out = f"{' and '.join(out)} {noun} {verb} not in these numbers; see every run below."
    return TimeSection(
        title=f"{name}{over}",
        groups=tuple(
            ("" if single else title, group) for title, group in zip(titles, groups, strict=True)
        ),
        caption=f"Time of {name}{over}. Points are runs in run order, from top to bottom; the bar"
        f" ends at their mean{_WHISKER if any(cell.interval_seconds for cell in cells) else ''}.",
        table=_cell_table(source, cells, name),
        left_out=left_out,
        csv_link=_csv_link(source, workload),
        csv_name=f"{workload}-runs.csv",
    )


def _cell_table(source: Source, cells: Sequence[Cell], name: str) -> Table:
    several = len(source.fingerprints) > 1
    rows = tuple(
        (
            words.engine_name(cell.engine),
            format_bytes(cell.size_bytes) if cell.size_bytes else words.NONE,
            str(cell.workers),
            cell.profile,
            str(cell.count),
            words.seconds(cell.mean_seconds),
            words.interval(cell.interval_seconds),
            words.seconds(cell.median_seconds),
            words.seconds(cell.minimum_seconds),
            words.seconds(cell.maximum_seconds),
            words.percent(cell.variation),
            words.NONE
            if cell.throughput_bytes_per_second is None
            else f"{cell.throughput_bytes_per_second / 1e6:.2f}",
            ", ".join(source.setup_letter(item) for item in cell.fingerprints) if several else "",
        )
        for cell in cells
    )
    mixed = any(len(cell.fingerprints) > 1 for cell in cells)
    table = Table(
        caption=f"{name}{_shared(cells)}: results by engine",
        columns=(
            Column("Engine", Kind.ENGINE),
            Column("Input", Kind.NUMBER),
            Column("Workers", Kind.NUMBER),
            Column("Profile"),
            Column("Runs", Kind.NUMBER),
            Column("Mean (s)", Kind.NUMBER),
            Column("95 % interval (s)", Kind.NUMBER),
            Column("Median (s)", Kind.NUMBER),
            Column("Min (s)", Kind.NUMBER),
            Column("Max (s)", Kind.NUMBER),
            Column("CV", Kind.NUMBER),
            Column("MB/s", Kind.NUMBER),
            Column("Setup"),
        ),
        rows=rows,
        emulated=source.is_emulated([item for cell in cells for item in cell.results]),
        note="A row that names several setups pools runs of different machines or settings:"
        " compare with care."
        if mixed
        else "",
    )
    return table.without_constant("Input", "Workers", "Profile").without_empty()


def _shared(cells: Sequence[Cell]) -> str:
    """What all cells have in common, which their table need not repeat in every row."""
    sizes = {cell.size_bytes for cell in cells}
    workers = {cell.workers for cell in cells}
    profiles = {cell.profile for cell in cells}
    parts = [format_bytes(size) for size in sizes if size and len(sizes) == 1]
    parts += [words.count(number, "worker") for number in workers if len(workers) == 1]
    parts += [f"profile {profile}" for profile in profiles if len(profiles) == 1]
    return f" ({', '.join(parts)})" if parts else ""


def _csv_link(source: Source, workload: str) -> str:
    """Every run of a workload as a ``data:`` link, so that a figure's numbers can be taken away."""
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
                trial.workload,
                trial.engine.value,
                trial.profile,
                trial.size_bytes,
                trial.workers,
                trial.repetition,
                attempt.number,
                attempt.state.value,
                found.duration_seconds if found else "",
                found.output_bytes if found else "",
                found.application_id if found else "",
                "yes" if source.is_emulated([result]) else "no",
            )
        )
    return "data:text/csv;charset=utf-8," + quote(buffer.getvalue(), errors="replace")
