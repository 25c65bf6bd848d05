"""The catalog's entries by kind and name. A name that does not exist gets the nearest offered."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic import Field

from boardcluster.catalog.entry import (
    BoardEntry,
    FigureRow,
    SourcedFigure,
    read_board,
    sourced,
    unit_problems,
)
from boardcluster.errors import UsageError
from boardcluster.spec.problems import StrictTable, Text, read_model

__all__ = [
    "KINDS",
    "PartEntry",
    "entry_names",
    "entry_path",
    "find_board",
    "find_part",
    "nearest",
    "read_part",
    "suggestion",
]

_FOLDER = Path(__file__).parent

KINDS = ("boards", "media", "supplies", "networks", "cooling")
"""Kinds of entries; each is a folder of TOML files."""

_NEAR = 0.5
"""How alike names must be that have no word in common; 1 is the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartEntry:
    """A medium, a power supply, a network or a way of cooling."""

    id: str
    """Short name."""
    name: str
    """As its maker calls it."""
    kind: str
    """In words: ``microSD``, ``NVMe SSD``, ``USB power supply``, ``Gigabit Ethernet``, ``fan``."""
    model: str
    """Its maker's code; empty if no source gives it."""
    summary: str
    """One line on it, with what is doubtful."""
    figures: tuple[SourcedFigure, ...]
    """What is known of it, each with its source."""


class _Part(StrictTable):
    id: str = Field(
        pattern=r"^[a-z0-9]+(?:-[a-z0-9]+)*$",
        max_length=60,
        description="a-z, 0-9 and hyphens",
    )
    name: Text
    kind: Text
    model: str = Field(default="", description="text")
    summary: str = Field(default="", description="text")
    figure: list[FigureRow] = Field(min_length=1, description="at least one [[figure]]")


def read_part(path: Path) -> PartEntry:
    """Read a medium, a power supply, a network or a way of cooling.

    Raises:
        SpecError: it is missing, not TOML, or wrong; with line, key and what is allowed.
    """
    part, _ = read_model(
        path,
        _Part,
        create_hint="see docs/reference/catalog.md for the format of the file",
        check=lambda found: unit_problems(found.figure),
    )
    return PartEntry(**part.model_dump(exclude={"figure"}), figures=sourced(part.figure))


@cache
def entry_names(kind: str) -> tuple[str, ...]:
    """Return the names of the entries of one of ``KINDS``, sorted."""
    return tuple(sorted(path.stem for path in (_FOLDER / kind).glob("*.toml")))


def entry_path(kind: str, name: str) -> Path:
    """Return the file of an entry of the catalog, by its kind and name."""
    return _FOLDER / kind / f"{name}.toml"


def _words(name: str) -> set[str]:
    """Return the runs of letters and of digits, the same of ``Raspberry Pi 5B`` and ``rpi-5b``."""
    short = re.sub(r"\b(raspberry[ _-]*)?pi(?![a-z])", "rpi", name.lower())
    return set(re.findall(r"[a-z]+|[0-9]+", short))


def nearest(name: str, names: Sequence[str]) -> str:
    """Return the name that is most like another; empty if none is.

    Words in common count first, so that ``rpi5b-8gb`` finds ``rpi-5b-8gb-2400mhz`` and not the
    shorter ``rpi-b``.
    """

    def likeness(other: str) -> tuple[int, float]:
        alike = difflib.SequenceMatcher(a=name.lower(), b=other).ratio()
        return len(_words(name) & _words(other)), alike

    best = max(names, key=likeness, default="")
    shared, alike = likeness(best)
    return best if shared or alike >= _NEAR else ""


def suggestion(near: str) -> str:
    """Return the end of a message that offers the nearest name; nothing if there is none."""
    return f'; did you mean "{near}"?' if near else ""


def _path(kind: str, name: str) -> Path:
    if name.endswith(".toml"):
        return Path(name)
    names = entry_names(kind)
    if name not in names:
        raise UsageError(
            f"the catalog has no {name!r} among its {kind}{suggestion(nearest(name, names))}",
            hint=f"see the names with: boardcluster catalog {kind}",
        )
    return entry_path(kind, name)


def find_board(name: str) -> BoardEntry:
    """Return a board by its name, or from a file of one's own.

    Args:
        name: its id, or the path of a file that ends with ``.toml``.

    Raises:
        UsageError: there is none; the nearest name is offered.
        SpecError: the file is missing or wrong.
    """
    return read_board(_path("boards", name))


def find_part(kind: str, name: str) -> PartEntry:
    """Return a part other than a board by its name, or from a file of one's own.

    Args:
        kind: ``media``, ``supplies``, ``networks`` or ``cooling``.
        name: its id, or the path of a file that ends with ``.toml``.

    Raises:
        UsageError: there is none; the nearest name is offered.
        SpecError: the file is missing or wrong.
    """
    return read_part(_path(kind, name))
