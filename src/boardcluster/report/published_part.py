"""Our times and those of papers, where board and medium, conditions and work are the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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
from boardcluster.catalog.stated import read_conditions
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
    " the same as ours, and so are the board and the kind of medium, as far as the paper names"
    " them. Copies of a block are the same where the paper and our run both state them; where ours"
    " are the profile's, compare them with the paper's. Software versions and engine settings may"
    " differ. Papers print one number without an interval, so none is given for it."
)
_OUTCOMES = {
    MatchOutcome.INSIDE: "inside our interval",
    MatchOutcome.OUTSIDE: "outside our interval",
    MatchOutcome.NO_INTERVAL: "not judged: our one run has no interval",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _PublishedRow:
    """One of our cells beside a published number."""

    cell: Cell
    """Ours."""
    match: Match
    """The ratio of both."""
    copies: int
    """Copies of a block that the paper's table is of; 0 where it does not say it."""


def published_section(material: Material) -> Iterator[Part]:
    """The section, where there is anything to compare with."""
    part = published_part(material.source)
    if part is not None:
        yield part


def published_part(source: Source) -> Part | None:
    """Times of papers for the same work under the same conditions; None where there are none.

    A published number is shown with ours only where the board and the medium that its table is of
    are ours, or what emulated boards stand for, where our run does not ask for another number of
    copies of a block, and where we know every other condition that the table states.
    """
    cells = [cell for cell in source.cells if machine_of(cell.fingerprints[0])]
    found = list(_matches(cells)) if cells else []
    more = len(found) - _MOST
    getters: Getters[_PublishedRow] = (
        Getter("Workload", lambda row: words.workload_name(row.cell.workload)),
        Getter("Engine", lambda row: words.engine_name(row.cell.engine), Display.ENGINE),
        Getter("Configuration", lambda row: configuration(row.cell, cells)),
        Getter("Our mean (s)", lambda row: words.seconds(row.cell.mean_seconds), Display.NUMBER),
        Getter(
            "95 % interval (s)",
            lambda row: words.interval(row.cell.interval_seconds),
            Display.NUMBER,
        ),
        Getter("Published (s)", lambda row: words.number(row.match.second.mean), Display.NUMBER),
        Getter("Ours / published", lambda row: _ratio(row.match), Display.NUMBER),
        Getter(
            "Paper's copies of a block", lambda row: str(row.copies or words.NONE), Display.NUMBER
        ),
        Getter("Our copies", _our_copies),
        Getter("The published number is", lambda row: _OUTCOMES.get(row.match.outcome, "")),
        Getter("Source", lambda row: row.match.second.source),
        Getter("Doubtful, as", lambda row: row.match.second.doubt),
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


def _our_copies(row: _PublishedRow) -> str:
    """Ours in words; a dash where the paper does not say its own."""
    if not row.copies:
        return words.NONE
    return str(row.cell.trial.replication or f"as profile {row.cell.profile}")


def _doubts(found: Sequence[_PublishedRow]) -> tuple[str, ...]:
    """What is doubtful of the papers' tables whose numbers are shown, one line each."""
    index = read_index()
    shown = {row.match.second.source.partition(": ")[0] for row in found}
    return tuple(
        f"Doubtful in {table.paper}, {table.table}: {doubt}."
        for table in index.tables.values()
        if f"{table.paper}, {table.table}" in shown
        for doubt in table.doubts
    )


def _matches(cells: Sequence[Cell]) -> Iterator[_PublishedRow]:
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
        known = read_conditions().get(name)
        copies = known.replication if known else 0
        for match in compare_result_sets(own, side).matches:
            cell = match.first.cell
            if cell is not None and _is_like(match) and _has_copies(cell, copies):
                yield _PublishedRow(cell=cell, match=match, copies=copies)


def _is_like(match: Match) -> bool:
    """Whether board or medium of the paper are known, and it states nothing that ours is not."""
    ours, theirs = match.first, match.second
    return (
        match.quantity == DURATION
        and bool(theirs.machine)
        and all(ours.machine.get(name) == value for name, value in theirs.machine.items())
        and set(theirs.conditions) <= set(ours.conditions)
    )


def _has_copies(cell: Cell, copies: int) -> bool:
    """Whether our run keeps as many copies of a block, or as many as its profile says.

    There are never more than there are workers.
    """
    ours, workers = cell.trial.replication, cell.workers
    return not ours or not copies or min(ours, workers) == min(copies, workers)
