"""Our times beside those of papers, where board or medium, conditions and work are the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from boardcluster.analysis import Cell
from boardcluster.analysis.sides import DURATION, Match, Outcome, compare_sides, own_side
from boardcluster.catalog.conditions import machine_of, published_side
from boardcluster.catalog.published import read_index
from boardcluster.errors import BoardclusterError
from boardcluster.report import words
from boardcluster.report.parts import Part
from boardcluster.report.source import Source, configuration
from boardcluster.report.tables import Column, Kind, Table

__all__ = ["published_part"]

_MOST = 60
_OUTCOMES = {
    Outcome.INSIDE: "inside our interval",
    Outcome.OUTSIDE: "outside our interval",
    Outcome.NO_INTERVAL: "one run, no interval",
}


def published_part(source: Source) -> Part | None:
    """Times of papers for the same work under the same conditions; None where there are none.

    A published number stands beside ours only where the board or the medium that its table names is
    ours, or what emulated boards stand for, and where we know every other condition that it states.
    """
    cells = [cell for cell in source.cells if machine_of(cell.fingerprints[0])]
    if not cells:
        return None
    found = list(_matches(cells))
    if not found:
        return None
    rows = tuple(_row(cell, match, cells) for cell, match in found[:_MOST])
    table = Table(
        caption="Our times beside published ones",
        columns=(
            Column("Workload"),
            Column("Engine", Kind.ENGINE),
            Column("Configuration"),
            Column("Our mean (s)", Kind.NUMBER),
            Column("95 % interval (s)", Kind.NUMBER),
            Column("Published (s)", Kind.NUMBER),
            Column("Ours over it", Kind.NUMBER),
            Column("The published number is"),
            Column("Source"),
        ),
        rows=rows,
        emulated=source.is_emulated([item for cell in cells for item in cell.results]),
        note=f"{words.count(len(found) - _MOST, 'more row')} left out."
        if len(found) > _MOST
        else "",
    )
    return Part(
        title="Beside published numbers",
        name="published",
        text=(
            (
                "Workload, engine, size, number of workers and every setting that a paper's table"
                " states are ours; so is the board or the medium that it names. Versions are not."
                " Papers print one number without an interval, so none is made up for it."
            ),
        ),
        tables=(table.without_empty(),),
    )


def _matches(cells: Sequence[Cell]) -> Iterator[tuple[Cell, Match]]:
    own = own_side("ours", "our results", cells, machine_of=machine_of)
    try:
        index = read_index()
        names = [name for name, table in index.tables.items() if not table.missing]
    except BoardclusterError:  # the catalog is damaged, which must not cost the report
        return
    for name in names:
        try:
            side = published_side(name, {}, index=index, asked=f"published:{name}")
        except BoardclusterError:  # nothing of this table can be compared
            continue
        for match in compare_sides(own, side).matches:
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


def _row(cell: Cell, match: Match, cells: Sequence[Cell]) -> tuple[str, ...]:
    return (
        words.workload_name(cell.workload),
        words.engine_name(cell.engine),
        configuration(cell, cells),
        words.seconds(cell.mean_seconds),
        words.interval(cell.interval_seconds),
        words.number(match.second.mean),
        words.NONE if match.ratio is None else f"{match.ratio.value:.2f}",
        _OUTCOMES.get(match.outcome, ""),
        match.second.source,
    )
