"""What a person sees: progress bars on a terminal, plain lines elsewhere, JSON on demand."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table
from rich.text import Text

from boardcluster.errors import BoardclusterError
from boardcluster.foreign import json_text, visible
from boardcluster.store import to_json

__all__ = [
    "Reporter",
    "make_console",
    "plain",
    "print_columns",
    "print_json",
    "print_table",
    "say",
    "say_last",
    "show_error",
]

_Row = TypeVar("_Row")

_STEP_PERCENT = 25
_SIZE_FROM = 10_000
"""Totals from here on are bytes; smaller ones count things."""


def make_console(*, stderr: bool = False, width: int | None = None) -> Console:
    """Return a console that takes every text for text: no markup, no names of emoji, no links."""
    return Console(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)


def plain(text: str, style: str = "") -> Text:
    """Return text for a console, as it is; what a terminal would obey is written out."""
    return Text(visible(text), style=style)


def show_error(error: BoardclusterError) -> None:
    """Print an error and the next thing to do."""
    out = make_console(stderr=True)
    out.print(plain("error:", "bold red"), plain(error.message), soft_wrap=True)
    if error.hint:
        out.print(plain("  ->", "bold"), plain(error.hint), soft_wrap=True)


def say(text: str) -> None:
    """Print one line to standard output."""
    make_console().print(plain(text), soft_wrap=True)


def say_last(text: str) -> None:
    """Write a line to standard error, whatever state the terminal is in.

    One that was closed takes nothing any more, which must not end the cleaning up.
    """
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{visible(text)}\n")


def print_json(value: object) -> None:
    """Print records as JSON."""
    sys.stdout.write(json_text(to_json(value), indent=2) + "\n")


def print_table(
    title: str, columns: list[str], rows: list[list[str]], *, to_stderr: bool = False
) -> None:
    """Print a table; without a terminal it is as wide as it needs to be."""
    stream = sys.stderr if to_stderr else sys.stdout
    wide = None if stream.isatty() else 200
    out = make_console(width=wide, stderr=to_stderr)
    table = Table(title=plain(title) if title else None, title_justify="left", header_style="bold")
    for index, column in enumerate(columns):
        number = bool(rows) and all(row[index][:1].isdigit() or row[index] == "-" for row in rows)
        table.add_column(plain(column), justify="right" if number else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(plain, row))
    out.print(table)


def print_columns(
    title: str,
    columns: Mapping[str, Callable[[_Row], str]],
    rows: Iterable[_Row],
    *,
    to_stderr: bool = False,
) -> None:
    """Print a table whose columns are given by their titles, each with what it shows of a row."""
    cells = [[shown(row) for shown in columns.values()] for row in rows]
    print_table(title, list(columns), cells, to_stderr=to_stderr)


class _AmountColumn(ProgressColumn):
    """How much of how much: bytes where it is bytes, a count where things are counted."""

    def render(self, task: Task) -> Text:
        if task.total is None:
            return Text("")
        if task.total < _SIZE_FROM:
            return Text(f"{int(task.completed)} of {int(task.total)}")
        return Text(f"{task.completed / 1e6:.0f} of {task.total / 1e6:.0f} MB")


class Reporter:
    """Follows long work on standard error.

    ``progress`` has the shape that fetching, installing and preparing call: what is being done,
    how much is done, how much there is (0 while unknown).
    """

    def __init__(self) -> None:
        self._console = make_console(stderr=True)
        self._live: Progress | None = None
        self._tasks: dict[str, Any] = {}
        self._said: dict[str, int] = {}
        self._began = time.monotonic()

    @contextlib.contextmanager
    def following(self) -> Iterator[Reporter]:
        """Show progress bars while the block runs, if standard error is a terminal."""
        if self._live is not None or not self._console.is_terminal:
            yield self
            return
        with Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            _AmountColumn(),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
        ) as live:
            self._live = live
            try:
                yield self
            finally:
                self._live = None
                self._tasks.clear()

    def line(self, text: str) -> None:
        """Print a line with the seconds since the command began."""
        stamp = f"[{time.monotonic() - self._began:6.1f} s]"
        out = self._live.console if self._live else self._console
        out.print(plain(f"{stamp} {text}"), soft_wrap=True)

    def progress(self, what: str, done: int, total: int) -> None:
        """Follow one piece of work; without a total it is a message, said once."""
        if not total:
            if what not in self._said:
                self._said[what] = 0
                self.line(what)
            return
        if self._live is not None:
            if what not in self._tasks:
                self._tasks[what] = self._live.add_task(visible(what), total=total)
            self._live.update(self._tasks[what], completed=done, total=total)
            if done >= total:
                self._live.remove_task(self._tasks.pop(what))
                self._finish(what, total)
            return
        percent = 100 * done // total
        before = self._said.get(what)
        if before is None or percent >= before + _STEP_PERCENT:
            self._said[what] = percent
            if total >= _SIZE_FROM:
                self.line(f"{what}: {percent} % of {total / 1e6:.0f} MB")
            elif before is None:
                self.line(what)

    def _finish(self, what: str, total: int) -> None:
        if what not in self._said:
            self._said[what] = 100
            self.line(f"{what}: done" + (f" ({total / 1e6:.0f} MB)" if total >= _SIZE_FROM else ""))
