"""Write the parts of the reference that restate code, from the code.

    .venv/bin/python tools/write_reference.py            write them
    .venv/bin/python tools/write_reference.py --check    name the stale pages; exit code 1 if any

A part stands between `<!-- tools/write_reference.py: NAME -->` and `<!-- end -->` on a page of
docs/reference or docs/explanation. What is around it is written by hand. Besides it writes the
backtests of the published tables, which are a file of the package. A tidy test fails while one is
stale.
"""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import typer

from boardcluster import errors
from boardcluster.cli.app import app
from boardcluster.doctor import check_names, checks, load_check
from boardcluster.factors import FACTORS, Acts
from boardcluster.plan.calibration import IntervalCalibration, calibration_text
from boardcluster.plan.learning import BACKTESTS, held_out_cells
from boardcluster.plan.scoreboard import published_scoreboard
from boardcluster.report.compared import COMPARISON
from boardcluster.report.export.cells import CELLS
from boardcluster.report.export.frames import FieldGetter
from boardcluster.report.export.runs import POWER, RUNS
from boardcluster.report.export.samples import PROBES, SAMPLES
from boardcluster.report.export.writers import SCHEMA
from boardcluster.telemetry.meters.registry import kinds
from boardcluster.tuning.space import Tunable, level_words, read_space
from boardcluster.units import format_seconds

DOCS = Path(__file__).resolve().parents[1] / "docs"
_PART = re.compile(r"<!-- tools/write_reference\.py: (.+?) -->\n.*?<!-- end -->\n", re.DOTALL)
_CODE_OR_OPTION = re.compile(r"`[^`]*`|(?<![\w-])--?[a-z][\w-]*")
"""What is code already, or an option, which becomes code."""
_RESTARTS = {Acts.CLUSTER: "yes", Acts.JOB: "no", Acts.BY_KEY: "some"}
_TABLES: dict[str, tuple[str, Iterable[FieldGetter]]] = {
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
_PER = {
    "cores": "cores of all workers",
    "busy_workers": "workers, or cores if these are fewer",
    "node_cores": "cores of a node",
    "node_mib": "memory of a node",
}
_LAST_FACTORS = ("input", "parameters", "settings")


def table(head: str, rows: Iterable[Iterable[object]]) -> str:
    """Return a table of Markdown; an empty cell stays empty."""
    titles = [cell.strip() for cell in head.split("|")]
    rule = "|".join("--:" if title.endswith(":") else "---" for title in titles)
    lines = [f"| {' | '.join(title.rstrip(':') for title in titles)} |", f"|{rule}|"]
    for row in rows:
        cells = " | ".join(str(cell).replace("|", r"\|") for cell in row)
        lines.append(re.sub(r"  +", " ", f"| {cells} |"))
    return "\n".join(lines)


def _filled(text: str, *, indent: str = "") -> str:
    return textwrap.fill(
        " ".join(text.split()),
        width=100,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def factors() -> str:
    """The keys of ``[[matrix]]``, from the table of factors."""
    rows = {
        factor.name: (
            f"`{factor.file_key}`",
            factor.left_out,
            factor.allowed,
            _RESTARTS[factor.acts],
        )
        for factor in FACTORS
    }
    last = [rows.pop(name) for name in _LAST_FACTORS]
    runs = [
        ("`repetitions`", "the campaign's", "1 to 1000", "no"),
        ("`warm_ups`", "the campaign's", "0 to 100", "no"),
    ]
    return table("Key|Default|Allowed|Restarts the daemons", [*rows.values(), *runs, *last])


def doctor_checks() -> str:
    """A section for each check of the doctor, from its docstring and its ``CHECK``."""
    return "\n\n".join(_doctor_check(name) for name in check_names())


def _doctor_check(name: str) -> str:
    check = load_check(name)
    docstring = inspect.getdoc(import_module(f"{checks.__name__}.{name}")) or ""
    title, _, faults = docstring.partition("\n\n")
    renamed = check.name_on_boards
    ids = f" On boards its findings are named `{renamed}`." if renamed else ""
    last = f"Applies to: {check.where.value}. Worst case: {check.severity}. Source: {check.source}."
    parts = [
        f"### {name}{f' and {renamed}' if renamed else ''}",
        _filled(title),
        "\n".join(_filled(fault, indent="  ") for fault in re.split(r"\n(?=- )", faults) if fault),
        _filled(f"Looks at: {check.looks_at}"),
        _filled(f"Why: {check.why}"),
        _filled(f"{last}{ids}"),
    ]
    return "\n\n".join(parts)


def exported_columns() -> str:
    """The columns of each exported table, from the lists that make them."""
    sections = [f"This is schema {SCHEMA}."]
    for name, (rows, columns) in _TABLES.items():
        fields = [column.field for column in columns]
        listed = ((f"`{row.name}`", row.kind, row.meaning) for row in fields)
        sections.append(f"## {name}\n\n{rows}\n\n{table('Column|Holds|Meaning', listed)}")
    return "\n\n".join(sections)


def _error_classes() -> Iterator[type[errors.BoardclusterError]]:
    """Every error but the base, parents before children, by exit code."""

    def below(parent: type[errors.BoardclusterError]) -> Iterator[Any]:
        for child in parent.__subclasses__():
            if child.__module__ == errors.__name__:
                yield child
                yield from below(child)

    yield from below(errors.BoardclusterError)


def error_table() -> str:
    """Every error with its exit code, from the docstrings of the classes."""
    rows = []
    for error in _error_classes():
        when, _, rest = (inspect.getdoc(error) or "").partition("\n\nWhat to do: ")
        todo = rest.partition("\n\n")[0]
        words = (" ".join(text.split()).rstrip(".") for text in (when, todo))
        parent = error.__bases__[0]
        kind = "" if parent is errors.BoardclusterError else parent.__name__
        rows.append((error.__name__, error.exit_code, kind, *words))
    return table("Error|Code:|A kind of|When|What to do", rows)


def exit_codes() -> str:
    """Every exit code, its meaning and the errors that end with it."""
    named: dict[int, list[str]] = {}
    for error in _error_classes():
        named.setdefault(error.exit_code, []).append(error.__name__)
    rows = [
        (code, meaning, ", ".join(named.get(code, ())))
        for code, meaning in errors.EXIT_CODES.items()
    ]
    return table("Code:|Meaning|Errors", rows)


def commands() -> dict[str, Any]:
    """Every command by its words, the program itself as the empty word."""
    found: dict[str, Any] = {}

    def walk(command: Any, words: tuple[str, ...]) -> None:
        if hasattr(command, "commands"):
            if not words:
                found[""] = command
            for name in command.list_commands(None):
                walk(command.get_command(None, name), (*words, name))
        else:
            found[" ".join(words)] = command

    walk(typer.main.get_command(app), ())
    return found


def option_table(command: Any) -> str:
    """The arguments and options of a command, from what ``--help`` shows."""
    return table("Option|Default|Meaning", (_option(row) for row in command.params))


def _option(row: Any) -> tuple[str, str, str]:
    is_option = row.param_type_name == "option"
    names = row.opts if is_option else [row.name.upper()]
    empty = row.default in (None, False, "", [], ()) or not is_option
    words = (row.help or "").rstrip(".")
    meaning = _CODE_OR_OPTION.sub(lambda found: f"`{found[0].strip('`')}`", words)
    least, most = getattr(row, "min", None), getattr(row, "max", None)
    if least is not None and most is not None:
        meaning += f"; {least} to {most}"
    return ", ".join(f"`{name}`" for name in names), "" if empty else f"`{row.default}`", meaning


def meter(name: str) -> str:
    """What a kind of meter measures, how well, and its options."""
    kind = kinds()[name]
    stated = "none" if kind.accuracy_percent is None else f"{kind.accuracy_percent:g} %"
    sees = table(
        "Sees|Asked every:|Integrates energy|Read on the node|Accuracy|Stated:",
        [
            (
                f"`{kind.coverage}`",
                f"{kind.interval_seconds:g} s",
                "yes" if kind.integrates else "no",
                "yes" if kind.on_node else "no",
                kind.accuracy,
                stated,
            )
        ],
    )
    rows = [
        (
            f"`{row.name}`",
            "needed" if row.default is None else row.default and f"`{row.default}`",
            row.help,
        )
        for row in kind.options
    ]
    options = f"\n\n{table('Option|Default|Meaning', rows)}" if rows else ""
    return f"{kind.summary}\n\n{sees}{options}"


def space() -> str:
    """The settings that ``tune`` searches, from its space."""

    def values(row: Tunable) -> str:
        if row.kind == "choice":
            return ", ".join(f"`{level_words(value)}`" for value in row.values)
        per = f" x {_PER[row.high_per]}" if row.high_per else ""
        high = _PER[row.high_per] if row.high_per and row.high == 1 else f"{row.high:g}{per}"
        unit = f" {row.unit}" if row.unit else ""
        return f"{row.low:g} to {high}{unit}" + (", in ratios" if row.log else "")

    def of(row: Tunable) -> str:
        engines = ", ".join(row.engines)
        if row.only_for:
            return f"{engines}: your own programs"
        return f"{engines}, not {', '.join(row.not_for)}" if row.not_for else engines

    rows = [
        (row.name, ", ".join(f"`{key}`" for key in row.properties), values(row), of(row), row.why)
        for row in read_space()
    ]
    return table("Setting|Properties|Values|Jobs of|What it trades", rows)


def backtests() -> str:
    """How good predictions of the published tables are."""
    board = published_scoreboard()
    head = "Held out|Cells:|Mean error:|Median:|Within 10 %:|Within 20 %:|In the 90 % interval:"
    protocols = table(
        head,
        (
            (
                row.protocol,
                row.cells,
                *(
                    f"{100 * share:.1f} %"
                    for share in (
                        row.mean_error,
                        row.median_error,
                        row.within_10_percent,
                        row.within_20_percent,
                        row.coverage,
                    )
                ),
            )
            for row in board.protocols
        ),
    )
    series = list(board.protocols[0].by_series)
    by_series = table(
        "|".join(["Mean error of", *(f"{name}:" for name in series)]),
        (
            (row.protocol, *(f"{100 * row.by_series[name]:.1f} %" for name in series))
            for row in board.protocols
        ),
    )
    aside = table(
        "Kept aside|Predicted:|Measured:|Error:",
        (
            (
                row.source,
                format_seconds(row.predicted_seconds),
                format_seconds(row.measured_seconds),
                f"{100 * row.error:+.1f} %",
            )
            for row in board.aside
        ),
    )
    errors = board.linpack_errors
    other = table(
        "Other|Cells:|Mean error:|Most:",
        (
            (
                "HPL of Baun's Table 7 from its one-node rows, without 95 % of the memory",
                len(errors),
                f"{100 * sum(errors) / len(errors):.1f} %",
                f"{100 * max(errors):.1f} %",
            ),
            (
                "Hadoop Pi on the 5B from the 4B by 7-zip",
                board.board_cells,
                f"{100 * board.board_error:.1f} %",
                "",
            ),
            *(
                (f"Intermediate bytes, {name}, one cell left out", 6, f"{100 * error:.1f} %", "")
                for name, error in board.intermediate.items()
            ),
        ),
    )
    return "\n\n".join([protocols, by_series, aside, other])


def parts() -> Mapping[str, Callable[[], str]]:
    """Every part by its name, and what writes it."""
    return {
        "factors": factors,
        "checks of the doctor": doctor_checks,
        "errors": error_table,
        "exit codes": exit_codes,
        "exported columns": exported_columns,
        "space of tune": space,
        "backtests": backtests,
        **{
            f"options of boardcluster {name}".strip(): partial(option_table, command)
            for name, command in commands().items()
        },
        **{f"meter {name}": partial(meter, name) for name in kinds()},
    }


def written(page: str) -> str:
    """Return a page with every part as the code is now."""
    known = parts()

    def part(found: re.Match[str]) -> str:
        if found[1] not in known:
            sys.exit(f"nothing writes the part {found[1]!r}; remove it")
        head = found[0].partition("\n")[0]
        return f"{head}\n\n{known[found[1]]()}\n\n<!-- end -->\n"

    return _PART.sub(part, page)


def main() -> int:
    """Write the pages, or with ``--check`` say which are stale; missing parts are an error."""
    folders = (DOCS / "reference", DOCS / "explanation")
    pages = {path: path.read_text() for folder in folders for path in sorted(folder.glob("*.md"))}
    there = {name for text in pages.values() for name in _PART.findall(text)}
    stale = {path: new for path, text in pages.items() if (new := written(text)) != text}
    held_out = calibration_text(IntervalCalibration.of(held_out_cells()))
    if not BACKTESTS.exists() or BACKTESTS.read_text() != held_out:
        stale[BACKTESTS] = held_out
    for name in sorted(set(parts()) - there):
        print(f"no page has the part `<!-- tools/write_reference.py: {name} -->`")
    if "--check" in sys.argv[1:]:
        for path in stale:
            print(f"{path.name} is stale: run .venv/bin/python tools/write_reference.py")
        return 1 if stale or set(parts()) - there else 0
    for path, text in stale.items():
        path.write_text(text)
    return 1 if set(parts()) - there else 0


if __name__ == "__main__":
    sys.exit(main())
