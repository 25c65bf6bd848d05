"""``boardcluster compare``: campaigns, profiles, clusters, engines, papers, two at a time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from boardcluster.cli.console import print_json, print_table, say
from boardcluster.cli.options import ChosenCluster, JsonOption
from boardcluster.errors import UsageError
from boardcluster.queries.names import SIDES

if TYPE_CHECKING:
    from boardcluster.api import Comparison
    from boardcluster.report.compared import Compared

__all__ = ["EPILOG", "command"]


EPILOG = (
    "Examples: boardcluster compare profile:default profile:upstream\n\n"
    "boardcluster compare engine:mapreduce 'published:lee-oh-park-2021-table-14?storage=UFS'"
)


def command(
    first: Annotated[str, typer.Argument(metavar="A", help=f"One side: {SIDES}.")],
    second: Annotated[str, typer.Argument(metavar="B", help="The other side.")],
    at: ChosenCluster,
    tainted: Annotated[
        bool, typer.Option("--tainted", help="Include tainted runs, labelled as such.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write it to this .html, .md or .csv file, which is replaced if it exists.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare two sides: each mean with its interval, and their ratios.

    A cell of A is compared with the cell of B that differs only in what distinguishes the sides.
    """
    if output is not None and as_json:
        raise UsageError("--output cannot be used with --json", hint="leave one of them out")
    from boardcluster.api import compare, require_ending  # noqa: PLC0415  slow to load

    if output is not None:
        require_ending(output)
    comparison = compare(first, second, name=at.cluster, home=at.home, tainted=tainted)
    if as_json:
        print_json(_document(comparison))
    elif output is not None:
        comparison.write(output)
        say(f"comparison: {output}")
    else:
        _print(comparison.words)


# Showing


def _print(compared: Compared) -> None:
    say(compared.headline)
    for line in compared.sides:
        say(line)
    for line in compared.apart:
        say(f"apart by {line}")
    for table in compared.tables:
        print_table(
            table.caption,
            [column.title for column in table.columns],
            [list(row) for row in table.rows],
        )
        if table.note:
            say(table.note)
    if compared.machines:
        say("what differs between the machines and settings:")
        for line in compared.machines:
            say(f"  {line}")
    for line in compared.notes:
        say(f"note: {line}")


def _document(comparison: Comparison) -> dict[str, object]:
    """What ``--json`` prints: numbers as they are, and the sentences about them."""
    compared, sides = comparison.words, comparison.sides
    return {
        "headline": compared.headline,
        "sides": [
            {
                "name": side.name,
                "title": side.title,
                "published": side.is_published,
                "emulated": side.emulated,
                "twins": side.twins,
                "runs": len(side.results),
            }
            for side in (sides.first, sides.second)
        ],
        "apart": sides.apart,
        "rows": comparison.rows(),
        "machines": sides.machines,
        "notes": compared.notes,
        "method": compared.method,
    }
