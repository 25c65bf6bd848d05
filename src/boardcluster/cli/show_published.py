"""Shows the papers' tables, and what can be recomputed from them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from boardcluster.catalog.consistency import CellDoubt, cell_doubts, doubt_of
from boardcluster.catalog.published import (
    Index,
    PublishedTable,
    TableCell,
    find_table,
    read_cells,
    read_index,
)
from boardcluster.catalog.ratios import Answer, RatioCheck
from boardcluster.cli.console import print_json, print_table, say

__all__ = ["show_checks", "show_published"]


def show_published(name: str | None, *, as_json: bool) -> None:
    """Show a published table, or the list of all."""
    index = read_index()
    if name is not None:
        _show_table(find_table(name, index=index), index, as_json=as_json)
        return
    tables = list(index.tables.values())
    if as_json:
        print_json([table.model_dump() for table in tables])
        return
    rows = [
        [table.id, table.table, str(table.cells) if table.file else "-", table.title]
        for table in tables
    ]
    print_table("", ["name", "table", "cells", "title"], rows)


def _show_table(table: PublishedTable, index: Index, *, as_json: bool) -> None:
    cells = read_cells(table, folder=index.folder)
    if as_json:
        print_json({**table.model_dump(), "rows": [_row(cell, table.id) for cell in cells]})
        return
    paper = index.papers[table.paper]
    say(f"{table.table} of {paper.authors}: {paper.title} ({paper.year}): {table.title}")
    for words in (table.conditions, *table.doubts):
        if words:
            say(f"  {words}")
    if not table.file:
        say(f"  no cells: {table.missing}")
        return
    columns = [*table.keys, "quantity", "value", "unit", "note"]
    print_table(
        "", columns, [[_row(cell, table.id)[column] for column in columns] for cell in cells]
    )


def _row(cell: TableCell, table: str) -> dict[str, str]:
    doubt = doubt_of(table, cell)
    notes = [cell.note, f"doubtful: {doubt}" if doubt else ""]
    return {
        **cell.keys,
        "quantity": cell.quantity,
        "value": cell.value,
        "unit": cell.unit,
        "note": "; ".join(filter(None, notes)),
    }


def show_checks(checks: Sequence[RatioCheck], *, as_json: bool) -> None:
    """Show which ratios of the papers follow from their tables, and which cells contradict."""
    if as_json:
        print_json(
            [
                {
                    **{
                        key: getattr(check.ratio, key)
                        for key in ("id", "paper", "section", "words", "says", "needs", "note")
                    },
                    "answer": check.answer.value,
                    "given": None if check.given is None else dataclasses.asdict(check.given),
                }
                for check in checks
            ]
        )
        return
    for title, answers in (
        ("These follow from the tables", {Answer.ROUNDED, Answer.CUT}),
        ("These do not follow from the tables", {Answer.NOT}),
        ("These cannot be recomputed from what we have", {Answer.UNKNOWN}),
    ):
        chosen = [check for check in checks if check.answer in answers]
        print_table(
            f"{title}: {len(chosen)}",
            ["paper", "section", "what", "said", "tables give", "remark"],
            [_check_row(check) for check in chosen],
        )
    doubts = cell_doubts(read_index())
    print_table(
        f"These cells contradict others: {len(doubts)}",
        ["table", "cell", "printed", "doubt"],
        [_doubt_row(doubt) for doubt in doubts],
    )


def _doubt_row(doubt: CellDoubt) -> list[str]:
    cell = doubt.cell
    keys = ", ".join(f"{key} {value}" for key, value in cell.keys.items() if value)
    printed = f"{cell.value} {cell.unit}"
    return [doubt.table, f"{cell.quantity}: {keys}", printed, doubt.words]


def _check_row(check: RatioCheck) -> list[str]:
    ratio, given = check.ratio, check.given
    remark = ratio.needs and f"needs {ratio.needs}"
    if check.answer is Answer.CUT:
        remark = "truncated, not rounded"
    text = "-"
    if given is not None:
        text = f"{given.value:,.2f}"
        if check.answer is Answer.NOT and given.pairs > 1:
            text += f" ({given.least:.2f} to {given.most:.2f}, mean {given.mean:.2f})"
    remarks = "; ".join(words for words in (remark, ratio.note) if words)
    return [ratio.paper, ratio.section, ratio.words, ratio.says, text, remarks]
