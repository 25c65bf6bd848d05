"""What a ``cluster.toml`` may say of boards and media, from the catalog."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from boardcluster.catalog.lookup import PartEntry, entry_names, find_board, find_part, nearest
from boardcluster.errors import SpecError
from boardcluster.spec.checks import refusal, shown
from boardcluster.spec.twin import BoardFacts, MediumFacts, TwinParts

__all__ = ["catalog_parts"]

_WHAT = {
    "boards": "a board",
    "media": "a medium",
    "supplies": "a power supply",
    "cooling": "a cooling",
}


Entry = TypeVar("Entry")


def catalog_parts() -> TwinParts:
    """Return the catalog, for ``load_cluster``."""
    return TwinParts(board=_board, medium=_medium, check=_check)


def _found(kind: str, name: str, find: Callable[[str], Entry]) -> Entry:
    """Return an entry of the catalog, or a user's own file.

    Raises:
        ValueError: the catalog has no such name, or the file cannot be read.
    """
    names = entry_names(kind)
    if not name.endswith(".toml") and name not in names:
        raise refusal(
            f"{shown(name)} is not {_WHAT[kind]} of the catalog",
            allowed=f"a name that `boardcluster catalog {kind}` shows, or the path of a .toml file",
            nearest=nearest(name, names),
        )
    try:
        return find(name)
    except SpecError as error:
        raise ValueError(error.message.replace("\n", "; ")) from error


def _part(kind: str, name: str) -> PartEntry:
    return _found(kind, name, partial(find_part, kind))


def _board(name: str) -> BoardFacts:
    entry = _found("boards", name, find_board)
    return BoardFacts(cores=entry.cores, memory_bytes=entry.memory_bytes)


def _medium(name: str) -> MediumFacts:
    figures = [row.figure for row in _part("media", name).figures]
    versions = {row.conditions["pcie"] for row in figures if "pcie" in row.conditions}
    capacities = [int(row.value) for row in figures if row.name == "capacity_bytes"]
    return MediumFacts(
        pcie=tuple(sorted(versions)), capacity_bytes=capacities[0] if capacities else None
    )


def _check(kind: str, name: str) -> None:
    _part(kind, name)
