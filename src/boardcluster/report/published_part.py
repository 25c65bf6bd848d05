"""Our times and those of papers, where board or medium, conditions and work are the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from boardcluster.analysis.cells import Cell
from boardcluster.analysis.result_sets import (
    DURATION,
    Match,
    MatchOutcome,
    compare_result_sets,
    own_result_set,
)
from boardcluster.catalog.conditions import machine_of, published_result_set
from boardcluster.catalog.published import read_index
from boardcluster.errors import BoardclusterError
from boardcluster.report import words
from boardcluster.report.material import Material
from boardcluster.report.parts import Part
from boardcluster.report.source import Source, configuration
from boardcluster.report.tables import Display, Getter, Getters, tabulate

__all__ = ["published_part", "published_section"]

_MOST = 60
_CONDITIONS = (
    "Workload, engine, size, number of workers and every setting that a paper's table states are"
    " the same as ours, and so is the board or the medium that it names. Software versions may"
    " differ. Papers print one number without an interval, so none is given for it."
)
_OUTCOMES = {
    MatchOutcome.INSIDE: "inside our interval",
    MatchOutcome.OUTSIDE: "outside our interval",
    MatchOutcome.NO_INTERVAL: "not judged: our one run has no interval",
}


def published_section(material: Material) -> Iterator[Part]:
    """The section, where there is anything to compare with."""
    part = published_part(material.source)
    if part is not None:
        yield part


def published_part(source: Source) -> Part | None:
    """Times of papers for the same work under the same conditions; None where there are none.

    A published number is shown with ours only where the board or the medium that its table names is
    ours, or what emulated boards stand for, and where we know every other condition that it states.
    """
    cells = [cell for cell in source.cells if machine_of(cell.fingerprints[0])]
    found = list(_matches(cells)) if cells else []
    more = len(found) - _MOST
    getters: Getters[tuple[Cell, Match]] = (
        Getter("Workload", lambda row: words.workload_name(row[0].workload)),
        Getter("Engine", lambda row: words.engine_name(row[0].engine), Display.ENGINE),
        Getter("Configuration", lambda row: configuration(row[0], cells)),
        Getter("Our mean (s)", lambda row: words.seconds(row[0].mean_seconds), Display.NUMBER),
        Getter(
            "95 % interval (s)", lambda row: words.interval(row[0].interval_seconds), Display.NUMBER
        ),
        Getter("Published (s)", lambda row: words.number(row[1].second.mean), Display.NUMBER),
        Getter("Ours / published", lambda row: _ratio(row[1]), Display.NUMBER),
        Getter("The published number is", lambda row: _OUTCOMES.get(row[1].outcome, "")),
        Getter("Source", lambda row: row[1].second.source),
        Getter("Doubtful, as", lambda row: row[1].second.doubt),
    )
    table = tabulate(
        found[:_MOST],
        getters,
        caption="Our times and published ones",
        emulated=source.are_emulated(cells),
        note=f"{words.count(more, 'more row')} left out." if more > 0 else "",
    )
    if table is None:
        return None
    return Part(
        title="Comparison with published numbers",
        name="published",
        contents="Published",
        text=(_CONDITIONS, *_doubts(found[:_MOST])),
        tables=(table,),
        paper=True,
    )


def _ratio(match: Match) -> str:
    return words.NONE if match.ratio is None else f"{match.ratio.value:.2f}"


def _doubts(found: Sequence[tuple[Cell, Match]]) -> tuple[str, ...]:
    """What is doubtful of the papers' tables whose numbers are shown, one line each."""
    index = read_index()
    shown = {row.second.source.partition(": ")[0] for _, row in found}
    return tuple(
        f"Doubtful in {table.paper}, {table.table}: {doubt}."
        for table in index.tables.values()
        if f"{table.paper}, {table.table}" in shown
        for doubt in table.doubts
    )


def _matches(cells: Sequence[Cell]) -> Iterator[tuple[Cell, Match]]:
    own = own_result_set("ours", "our results", cells, machine_of=machine_of)
    try:
        index = read_index()
        names = [name for name, table in index.tables.items() if not table.missing]
    except BoardclusterError:  # the catalog is damaged, which must not cost the report
        return
    for name in names:
        try:
            side = published_result_set(name, {}, index=index, asked=f"published:{name}")
        except BoardclusterError:  # nothing of this table can be compared
            continue
        for match in compare_result_sets(own, side).matches:
            if match.first.cell is not None and _is_like(match):
                yield match.first.cell, match


def _is_like(match: Match) -> bool:
    """Whether the paper names a board or a medium, and states nothing that is not so of ours."""
    ours, theirs = match.first, match.second
    return (
        match.quantity == DURATION
        and bool(theirs.machine)
        and all(ours.machine.get(name) == value for name, value in theirs.machine.items())
        and set(theirs.conditions) <= set(ours.conditions)
    )
