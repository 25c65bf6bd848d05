"""Times: what the figures draw, and the table and the CSV of every run."""

from __future__ import annotations

import io
import json
from collections import Counter as Tally
from collections.abc import Callable, Sequence
from dataclasses import replace

from boardcluster.analysis.cells import Cell, verdict_of
from boardcluster.analysis.twins import node_words
from boardcluster.factors import FACTORS, Factor
from boardcluster.foreign import write_csv
from boardcluster.records import Measurement, Result
from boardcluster.report import words
from boardcluster.report.export.frames import at
from boardcluster.report.measured import figures_table, node_bytes_table, phases_table
from boardcluster.report.parts import DataFile, Part, present
from boardcluster.report.plots import durations
from boardcluster.report.source import (
    Source,
    configuration,
    groups_of,
    state_of,
    workload_anchor,
)
from boardcluster.report.tables import Display, Getter, Getters, ReportTable, tabulate

__all__ = ["times_part"]

_WHISKER = "; the whisker is the 95 % interval of the mean (Student's t)"
_ONE_RUN = (
    "Where an engine ran only once, no interval is given: one run cannot show how much times vary."
)


def times_part(source: Source, cells: Sequence[Cell], over: str) -> Part:
    """Times of one workload: figures, one row per cell, and what else the workload yields.

    Args:
        source: the records.
        cells: those of the workload.
        over: the configuration where there is one, as the title has it; else empty.
    """
    workload = cells[0].workload
    groups = groups_of(cells)
    titles = [configuration(group[0], cells) or "default settings" for group in groups]
    if len(groups) == 1:
        titles = [""]
    name, anchor = words.workload_name(workload), workload_anchor(workload)
    whisker = _WHISKER if any(cell.interval_seconds for cell in cells) else ""
    details = present(
        figures_table(source, cells), phases_table(source, cells), node_bytes_table(source, cells)
    )
    left_out = _left_out(source, workload)
    return Part(
        title="Time per engine",
        name=f"{anchor}-times",
        figures=durations(
            list(zip(titles, groups, strict=True)),
            name=f"{anchor}-times",
            title=f"Time of {name}{over}",
            caption=(
                f"Time of {name}{over}. Points are runs in run order, from top to bottom; the bar"
                f" ends at their mean{whisker}."
            ),
            emulated=source.are_emulated(cells),
            twins=node_words(item for cell in cells for item in cell.results),
        ),
        tables=(
            *present(_cell_table(source, cells, name)),
            *(
                replace(table, stem=f"{anchor}-details-{place}")
                for place, table in enumerate(details, start=1)
            ),
        ),
        paper=True,
        notes=(
            *([left_out] if left_out else []),
            *([_ONE_RUN] if any(cell.count == 1 for cell in cells) else []),
        ),
        files=(
            DataFile(f"{anchor}-runs.csv", _csv_text(source, workload), f"Every run of {name}"),
        ),
    )


def _left_out(source: Source, workload: str) -> str:
    """A sentence about the attempts that are not in the numbers; empty if all are."""
    results = [item for item in source.of_workloads() if item.trial.workload == workload]
    counted = {id(run) for cell in source.of_workload(workload) for run in cell.results}
    ends = Tally(_end_of(result) for result in results if id(result) not in counted)
    kinds = ("failed", "invalid", "warm-up", "tainted")
    out = [f"{ends[kind]} {kind}" for kind in kinds if ends[kind]]
    if not out:
        return ""
    total = sum(ends[kind] for kind in kinds)
    verb, noun = ("is", "attempt") if total == 1 else ("are", "attempts")
    return f"{words.listed(out)} {noun} {verb} not in these numbers; see every run below."


def _end_of(result: Result) -> str:
    """How an attempt ended, as far as numbers go."""
    if state_of(result) != "ok":
        return state_of(result)
    return "warm-up" if result.trial.warm_up else verdict_of(result).value


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


def _starts(cell: Cell) -> str:
    """Of how many starts of the cluster its runs are; empty for one."""
    return str(cell.starts) if cell.starts > 1 else ""


def _within(cell: Cell) -> float | None:
    """Variation within a start, where it is not all that there is."""
    return cell.within_share if cell.starts > 1 else None


def _cell_table(source: Source, cells: Sequence[Cell], name: str) -> ReportTable | None:
    several = len(source.fingerprints) > 1
    profiles = words.short_profiles(cell.profile for cell in cells)

    def setups(cell: Cell) -> str:
        return ", ".join(source.setup_letter(item) for item in cell.fingerprints) if several else ""

    getters: Getters[Cell] = (
        Getter("Engine", lambda cell: words.engine_name(cell.engine), Display.ENGINE),
        Getter("Input", lambda cell: words.size(cell.size_bytes), Display.NUMBER),
        Getter("Workers", lambda cell: str(cell.workers), Display.NUMBER),
        Getter("Profile", lambda cell: profiles[cell.profile]),
        Getter("Settings", lambda cell: cell.label or "default"),
        Getter("Runs", lambda cell: str(cell.count), Display.NUMBER),
        Getter("Verdicts", _verdicts),
        Getter("Mean (s)", lambda cell: words.seconds(cell.mean_seconds), Display.NUMBER),
        Getter(
            "95 % interval (s)", lambda cell: words.interval(cell.interval_seconds), Display.NUMBER
        ),
        Getter("Starts", _starts, Display.NUMBER),
        Getter("CV within", lambda cell: words.percent(_within(cell)), Display.NUMBER),
        Getter("CV between starts", lambda cell: words.percent(cell.between_share), Display.NUMBER),
        Getter("Median (s)", lambda cell: words.seconds(cell.median_seconds), Display.NUMBER),
        Getter("Min (s)", lambda cell: words.seconds(cell.minimum_seconds), Display.NUMBER),
        Getter("Max (s)", lambda cell: words.seconds(cell.maximum_seconds), Display.NUMBER),
        Getter("CV", lambda cell: words.percent(cell.variation), Display.NUMBER),
        Getter("Outliers", _outliers),
        Getter(
            "MB/s", lambda cell: words.megabytes(cell.throughput_bytes_per_second), Display.NUMBER
        ),
        Getter("Setup", setups),
    )
    return tabulate(
        cells,
        getters,
        caption=f"{name}{_shared(cells)}: results by engine",
        emulated=source.are_emulated(cells),
        hide=("Input", "Workers", "Profile", "Settings"),
    )


def _shared(cells: Sequence[Cell]) -> str:
    """What all cells have in common, which their table need not repeat in every row."""
    said: tuple[Callable[[Cell], str], ...] = (
        lambda cell: words.size(cell.size_bytes) if cell.size_bytes else "",
        lambda cell: words.count(cell.workers, "worker"),
        lambda cell: f"profile {cell.profile}",
        lambda cell: cell.label,
    )
    texts = [set(map(say, cells)) for say in said]
    parts = [text for found in texts if len(found) == 1 for text in found if text]
    return f" ({', '.join(parts)})" if parts else ""


def _yes(*, is_so: bool) -> str:
    return "yes" if is_so else "no"


def _level(factor: Factor) -> Callable[[Result], str]:
    def text(run: Result) -> str:
        level = factor.level(run.trial)
        return json.dumps(level) if isinstance(level, dict) else str(level)

    return text


def _found(get: Callable[[Measurement], str]) -> Callable[[Result], str]:
    return lambda run: get(run.measurement) if run.measurement else ""


_CSV: tuple[tuple[str, Callable[[Result], object]], ...] = (
    ("campaign", at("trial.campaign_id")),
    ("order", lambda run: run.trial.position + 1),
    *((factor.name, _level(factor)) for factor in FACTORS),
    ("repetition", at("trial.repetition")),
    ("warm_up", lambda run: _yes(is_so=run.trial.warm_up)),
    ("attempt", at("attempt.number")),
    ("state", at("attempt.state")),
    ("verdict", at("measurement.verdict")),
    ("verdict_reasons", _found(lambda found: "; ".join(found.verdict_reasons))),
    ("duration_seconds", at("measurement.duration_seconds")),
    ("output_bytes", at("measurement.output_bytes")),
    ("intermediate_bytes", at("measurement.intermediate_bytes")),
    ("figures", _found(lambda found: json.dumps(found.figures))),
    ("application_id", at("measurement.application_id")),
    ("emulated", lambda run: _yes(is_so=at("attempt.fingerprint.emulated")(run))),
    ("dilation", at("measurement.dilation")),
    ("kind", at("attempt.fingerprint.kind")),
)
"""The columns of the CSV of every run."""


def _csv_text(source: Source, workload: str) -> str:
    """Every run of a workload, so that a figure's numbers can be taken away."""
    buffer = io.StringIO()
    write_csv(buffer, [[name for name, _ in _CSV]])
    of_workload = (result for result in source.of_workloads() if result.trial.workload == workload)
    write_csv(buffer, ([get(row) for _, get in _CSV] for row in of_workload if row.attempt))
    return buffer.getvalue()
