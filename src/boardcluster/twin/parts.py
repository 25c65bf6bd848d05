"""What a ``cluster.toml`` may say of boards and media, from the catalog."""

from __future__ import annotations

from boardcluster.catalog.entry import BoardEntry
from boardcluster.catalog.room import Part, entry_names, find_board, find_part, nearest
from boardcluster.errors import SpecError
from boardcluster.spec import BoardFacts, MediumFacts, TwinParts
from boardcluster.spec.checks import refusal, shown

__all__ = ["catalog_parts"]

_WHAT = {
    "boards": "a board",
    "media": "a medium",
    "supplies": "a power supply",
    "cooling": "a cooling",
}


def catalog_parts() -> TwinParts:
    """Return the catalog, for ``load_cluster``."""
    return TwinParts(board=_board, medium=_medium, check=_check)


def _known(kind: str, name: str) -> None:
    """Refuse a name that the catalog does not have.

    Raises:
        ValueError: it has none such.
    """
    names = entry_names(kind)
    if not name.endswith(".toml") and name not in names:
        raise refusal(
            f"{shown(name)} is not {_WHAT[kind]} of the catalog",
            allowed=f"a name that `boardcluster catalog {kind}` shows, or the path of a .toml file",
            nearest=nearest(name, names),
        )


def _unreadable(error: SpecError) -> ValueError:
    return ValueError(error.message.replace("\n", "; "))


def _read_board(name: str) -> BoardEntry:
    _known("boards", name)
    try:
        return find_board(name)
    except SpecError as error:
        raise _unreadable(error) from error


def _read_part(kind: str, name: str) -> Part:
    _known(kind, name)
    try:
        return find_part(kind, name)
    except SpecError as error:
        raise _unreadable(error) from error


def _board(name: str) -> BoardFacts:
    entry = _read_board(name)
    return BoardFacts(cores=entry.cores, memory_bytes=entry.memory_bytes)


def _medium(name: str) -> MediumFacts:
    figures = [row.figure for row in _read_part("media", name).figures]
    versions = {row.conditions["pcie"] for row in figures if "pcie" in row.conditions}
    capacities = [int(row.value) for row in figures if row.name == "capacity_bytes"]
    return MediumFacts(
        pcie=tuple(sorted(versions)), capacity_bytes=capacities[0] if capacities else None
    )


def _check(kind: str, name: str) -> None:
    _read_part(kind, name)
