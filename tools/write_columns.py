"""Write docs/reference/columns.md from the lists of exported columns.

    .venv/bin/python tools/write_columns.py

A test fails while the page is not what this writes.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from boardcluster.report.compared import COMPARISON
from boardcluster.report.export.cells import CELLS
from boardcluster.report.export.frames import FieldGetter
from boardcluster.report.export.runs import POWER, RUNS
from boardcluster.report.export.samples import PROBES, SAMPLES
from boardcluster.report.export.writers import SCHEMA

PAGE = Path(__file__).resolve().parents[1] / "docs/reference/columns.md"
HEAD = f"""# Columns of the exported tables

<!-- This page is written by tools/write_columns.py. -->

These are the tables of [`export`](../how-to/compare-and-export.md#export) and of
[the Python interface](../how-to/use-from-python.md#read-results), schema {SCHEMA}. A column keeps
its name, unit and meaning; new columns may be added. Units are last in the names.
`text` is never missing but may be empty; `object` is a mapping or a list, which CSV and Parquet
hold as JSON text; every other value may be missing. `NAME` stands for the name of a figure or of a
phase: each has a column of its own.
"""
TABLES: dict[str, tuple[str, Iterable[FieldGetter]]] = {
    "runs": ("One row for each attempt of each trial, and for each trial without one.", RUNS),
    "cells": ("One row for each configuration on each engine.", CELLS),
    "samples": ("One row for each known value of each column of each node.", SAMPLES),
    "probes": ("One row for each figure of each probe, and for each run that failed.", PROBES),
    "power": ("One row for each meter of each run.", POWER),
    "comparison": (
        "One row for each pair of cells that `compare` compares, and for each without a match.",
        COMPARISON,
    ),
}


def written() -> str:
    """Return the page as the columns are now."""
    parts = [HEAD]
    for name, (rows, columns) in TABLES.items():
        parts.append(f"\n## {name}\n\n{rows}\n\n| Column | Holds | Meaning |\n|---|---|---|\n")
        fields = (column.field for column in columns)
        parts += [f"| `{row.name}` | {row.kind} | {row.meaning} |\n" for row in fields]
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(written(), encoding="utf-8")
