"""``boardcluster catalog``: boards, media, supplies, networks, cooling, and the papers' tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

import typer

from boardcluster.catalog.entry import BoardEntry, SourcedFigure
from boardcluster.catalog.lookup import (
    KINDS,
    PartEntry,
    entry_names,
    find_board,
    find_part,
    nearest,
)
from boardcluster.catalog.published import read_index
from boardcluster.catalog.ratios import check_ratios
from boardcluster.catalog.shown import conditions_text, show_figure
from boardcluster.cli.console import print_columns, print_json, print_table, say
from boardcluster.cli.options import JsonOption
from boardcluster.cli.show_published import show_checks, show_published
from boardcluster.errors import UsageError

__all__ = ["EPILOG", "command"]

_BOARDS = "boards"
_PUBLISHED = "published"
_ALL = (*KINDS, _PUBLISHED)


EPILOG = "Example: boardcluster catalog boards rpi-5b-8gb-2400mhz"


def command(
    kind: Annotated[
        str | None,
        typer.Argument(
            help="boards, media, supplies, networks, cooling or published. "
            "Default: list the catalog's contents."
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Argument(help="An entry, a .toml file or a published table. Default: list all."),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="With published: recompute the papers' ratios from their tables."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show the figures of boards, media, supplies, networks and cooling, and the papers' tables."""
    if kind is not None and kind not in _ALL:
        near = nearest(kind, _ALL)
        raise UsageError(
            f"the catalog has no {kind!r}" + (f'; did you mean "{near}"?' if near else ""),
            hint=f"choose one of {', '.join(_ALL)}",
        )
    if check and (kind != _PUBLISHED or name is not None):
        raise UsageError(
            "--check can only be used with published",
            hint="run: boardcluster catalog published --check",
        )
    if kind is None:
        _show_kinds(as_json=as_json)
    elif check:
        show_checks(check_ratios(), as_json=as_json)
    elif kind == _PUBLISHED:
        show_published(name, as_json=as_json)
    elif kind == _BOARDS:
        _show_boards(name, as_json=as_json)
    else:
        _show_parts(kind, name, as_json=as_json)


def _show_kinds(*, as_json: bool) -> None:
    tables = read_index().tables.values()
    counts = {kind: len(entry_names(kind)) for kind in KINDS}
    counts[_PUBLISHED] = sum(1 for table in tables if table.file)
    if as_json:
        print_json(counts)
        return
    print_table("", ["kind", "entries"], [[kind, str(count)] for kind, count in counts.items()])


def _show_boards(name: str | None, *, as_json: bool) -> None:
    if name is not None:
        board = find_board(name)
        if as_json:
            print_json(_plain(board))
            return
        clock = "unknown" if board.clock_hertz is None else f"{board.clock_hertz / 1e9:g} GHz"
        say(f"{board.name}: {board.hardware}")
        for what, value, key in (
            ("cores", str(board.cores), "cores"),
            ("clock", clock, "clock_hertz"),
            ("memory", f"{board.memory_bytes / (1 << 20):,.0f} MiB", "memory_bytes"),
        ):
            say(f"  {what}: {value} ({board.sources.get(key, 'as the board says')})")
        _show_figures(board.figures)
        return
    boards = [find_board(each) for each in entry_names(_BOARDS)]
    if as_json:
        print_json(list(map(_plain, boards)))
        return
    columns: Mapping[str, Callable[[BoardEntry], str]] = {
        "name": lambda row: row.id,
        "board": lambda row: row.name,
        "cores": lambda row: str(row.cores),
        "MHz": lambda row: "-" if row.clock_hertz is None else f"{row.clock_hertz / 1e6:.0f}",
        "MiB": lambda row: f"{row.memory_bytes / (1 << 20):.0f}",
        "figures": lambda row: str(len(row.figures)),
    }
    print_columns("", columns, boards)


def _show_parts(kind: str, name: str | None, *, as_json: bool) -> None:
    if name is not None:
        part = find_part(kind, name)
        if as_json:
            print_json(_plain(part))
            return
        say(": ".join(text for text in (part.name, part.kind, part.summary) if text))
        _show_figures(part.figures)
        return
    parts = [find_part(kind, each) for each in entry_names(kind)]
    if as_json:
        print_json([_plain(part) for part in parts])
        return
    rows = [[part.id, part.name, part.kind, part.model, str(len(part.figures))] for part in parts]
    print_table("", ["name", "what", "kind", "model", "figures"], rows)


def _plain(entry: BoardEntry | PartEntry) -> dict[str, object]:
    """Return an entry for JSON, each figure on one level."""
    plain: dict[str, object] = {
        field.name: getattr(entry, field.name) for field in dataclasses.fields(entry)
    }
    if isinstance(entry, BoardEntry):
        plain["sources"] = dict(entry.sources)
    plain["figures"] = [
        {**dataclasses.asdict(row.figure), "source": row.source} for row in entry.figures
    ]
    return plain


def _show_figures(figures: Sequence[SourcedFigure]) -> None:
    rows = []
    for row in figures:
        plain, value, unit = show_figure(row.figure)
        rows.append([plain, value, unit, conditions_text(row.figure.conditions), row.source])
    print_table("", ["figure", "value", "unit", "conditions", "source"], rows)
