"""A board as an entry of the catalog: a TOML file to read, keep and compare with.

A board that was measured and one from the papers have the same form and are read by the same code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import Field

from boardcluster.catalog.shown import is_curve_point, unit_of
from boardcluster.errors import UsageError
from boardcluster.records import ProbeFigure, ProbeRun, in_cell
from boardcluster.spec.problems import Problem, StrictTable, Text, read_model
from boardcluster.spec.toml import toml_key, toml_text

__all__ = [
    "BoardEntry",
    "FigureRow",
    "SourcedFigure",
    "entry_of",
    "read_board",
    "render_board",
    "sourced",
    "unit_problems",
]

_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_ID_LENGTH_MAX = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcedFigure:
    """One figure of a board."""

    figure: ProbeFigure
    """Name, value and conditions."""
    source: str
    """Where it is from: ``probe <id> <date>``, or a paper with its table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardEntry:
    """A board of the catalog."""

    id: str
    """Short name: ``raspberry-pi-5-model-b-8gib``."""
    name: str
    """As its maker calls it."""
    cores: int
    """CPUs."""
    clock_hertz: float | None
    """Highest clock; None where it is not known."""
    memory_bytes: int
    """Memory that the kernel manages."""
    emulated: bool
    """Whether it is not a board but a namespace with limits."""
    hardware: str
    """One line on the machine that was measured."""
    versions: tuple[str, ...]
    """The tools that measured."""
    figures: tuple[SourcedFigure, ...]
    """What was measured."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Where ``cores``, ``clock_hertz`` and ``memory_bytes`` are from; empty for a board that told
    them itself."""


def _identity(name: str) -> str:
    """Return a name as an id."""
    words = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return words[:_ID_LENGTH_MAX].strip("-") or "board"


def entry_of(
    runs: Sequence[ProbeRun],
    *,
    name: str,
    cores: int,
    clock_hertz: float | None,
    memory_bytes: int,
) -> BoardEntry:
    """Return the entry of a board that was measured.

    Runs that failed and points of curves are left out. The source of a figure says if its run was
    disturbed so much that statistics would leave it out.

    Args:
        runs: on one node, in the order in which they ran. Of figures with the same name and
            conditions the last counts.
        name: what the board is called.
        cores: its CPUs.
        clock_hertz: its highest clock; None where it is not known.
        memory_bytes: its memory.

    Raises:
        UsageError: nothing was measured, or on several nodes.
    """
    good = [run for run in runs if not run.reason]
    nodes = sorted({run.node for run in good})
    if len(nodes) != 1:
        what = f"figures of {len(nodes)} nodes: {', '.join(nodes)}" if nodes else "no figures"
        raise UsageError(
            f"a board's entry needs figures of one node; there are {what}",
            hint="name one with --node",
        )
    kept: dict[tuple[object, ...], SourcedFigure] = {}
    for run in good:
        for figure in run.figures:
            if is_curve_point(figure):
                continue
            conditions = dict(figure.conditions) | ({"peer": run.peer} if run.peer else {})
            own = ProbeFigure(name=figure.name, value=figure.value, conditions=conditions)
            source = f"probe {run.id} {run.started_utc[:10]}"
            source += "" if in_cell(run) else f", {run.verdict}"
            kept[(figure.name, *sorted(conditions.items()))] = SourcedFigure(
                figure=own, source=source
            )
    return BoardEntry(
        id=_identity(name),
        name=name,
        cores=cores,
        clock_hertz=clock_hertz,
        memory_bytes=memory_bytes,
        emulated=any(run.emulated for run in good),
        hardware=good[-1].hardware,
        versions=tuple(sorted({version for run in good for version in run.versions})),
        figures=tuple(kept.values()),
    )


def _inline(table: Mapping[str, str]) -> str:
    pairs = ", ".join(f"{toml_key(key)} = {toml_text(value)}" for key, value in table.items())
    return f"{{ {pairs} }}" if pairs else "{}"


def render_board(entry: BoardEntry) -> str:
    """Write an entry as TOML; ``read_board`` reads it back."""
    head = [
        "# A board as it was measured. Values are in the unit that their names end with.",
        f"id = {toml_text(entry.id)}",
        f"name = {toml_text(entry.name)}",
        f"cores = {entry.cores}",
        *([] if entry.clock_hertz is None else [f"clock_hertz = {entry.clock_hertz!r}"]),
        f"memory_bytes = {entry.memory_bytes}",
        f"emulated = {str(entry.emulated).lower()}",
        f"hardware = {toml_text(entry.hardware)}",
        f"versions = [{', '.join(toml_text(version) for version in entry.versions)}]",
        *([f"sources = {_inline(entry.sources)}"] if entry.sources else []),
    ]
    tables = [
        "\n".join(
            [
                "",
                "[[figure]]",
                f"name = {toml_text(row.figure.name)}",
                f"value = {row.figure.value!r}",
                f"unit = {toml_text(unit_of(row.figure.name))}",
                f"conditions = {_inline(row.figure.conditions)}",
                f"source = {toml_text(row.source)}",
            ]
        )
        for row in entry.figures
    ]
    return "\n".join([*head, *tables, ""])


class FigureRow(StrictTable):
    """One ``[[figure]]`` of a file."""

    name: str = Field(
        pattern=r"^[a-z0-9]+(_[a-z0-9]+)+$",
        description="lower-case letters, digits and underscores, the unit last",
    )
    value: float = Field(allow_inf_nan=False, description="a number")
    unit: Text = Field(description="what the name ends with, in words")
    conditions: dict[str, str] = Field(default_factory=dict, description="a table of texts")
    source: Text


class _Board(StrictTable):
    id: str = Field(
        pattern=rf"^{_ID.pattern}$", max_length=_ID_LENGTH_MAX, description="a-z, 0-9 and hyphens"
    )
    name: Text
    cores: int = Field(ge=1, le=4096, description="a number from 1")
    clock_hertz: float | None = Field(
        default=None, gt=0, allow_inf_nan=False, description="a number above 0"
    )
    memory_bytes: int = Field(ge=1, description="a number of bytes above 0")
    emulated: bool = Field(default=False, description="true or false")
    hardware: str = Field(default="", description="text")
    versions: list[str] = Field(default_factory=list, description="a list of texts")
    sources: dict[Literal["cores", "clock_hertz", "memory_bytes"], Text] = Field(
        default_factory=dict, description="texts for cores, clock_hertz and memory_bytes"
    )
    figure: list[FigureRow] = Field(min_length=1, description="at least one [[figure]]")


def unit_problems(rows: Sequence[FigureRow]) -> list[Problem]:
    """Return what is wrong where a unit is not that which the figure's name ends with."""
    return [
        Problem(
            path=("figure", place, "unit"),
            text=f"the unit of {row.name} is {unit_of(row.name)!r}, not {row.unit!r}",
        )
        for place, row in enumerate(rows)
        if row.unit != unit_of(row.name)
    ]


def sourced(rows: Iterable[FigureRow]) -> tuple[SourcedFigure, ...]:
    """Return the figures of a file."""
    return tuple(
        SourcedFigure(
            figure=ProbeFigure(name=row.name, value=row.value, conditions=row.conditions),
            source=row.source,
        )
        for row in rows
    )


def read_board(path: Path) -> BoardEntry:
    """Read an entry of the catalog.

    Raises:
        SpecError: it is missing, not TOML, or wrong; with line, key and what is allowed.
    """
    board, _ = read_model(
        path,
        _Board,
        create_hint="make one with `boardcluster probe --save-board FILE`",
        check=lambda found: unit_problems(found.figure),
    )
    plain = board.model_dump(exclude={"figure", "versions"})
    return BoardEntry(**plain, versions=tuple(board.versions), figures=sourced(board.figure))
