"""``[twin]`` and the keys of a ``[[node]]`` that make it behave like a catalogued board. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from boardcluster.capabilities import kinds_with
from boardcluster.spec.checks import (
    Allowed,
    check_choice,
    check_dilation,
    choices_text,
    complaint,
    shown,
)
from boardcluster.spec.problems import Problem, StrictTable, key_text
from boardcluster.spec.toml import KeyPath, TomlDocument
from boardcluster.units import GIB, format_bytes_exact, parse_size

__all__ = [
    "BOARD_ALLOWED",
    "COOLING_ALLOWED",
    "DEFAULT_DISK_BYTES",
    "MEDIUM_ALLOWED",
    "PCIE_ALLOWED",
    "SUPPLY_ALLOWED",
    "TWIN_TABLE",
    "BoardFacts",
    "MediumFacts",
    "TwinParts",
    "TwinTable",
    "part_name",
    "twin_problems",
]

DEFAULT_DISK_BYTES = 8 * GIB
"""Size of the disk of a node with a medium; that of the medium itself would fit few machines."""


def _name_allowed(kind: str) -> str:
    return f"a name that `boardcluster catalog {kind}` shows, or the path of a .toml file"


BOARD_ALLOWED = _name_allowed("boards")
MEDIUM_ALLOWED = _name_allowed("media")
SUPPLY_ALLOWED = _name_allowed("supplies")
COOLING_ALLOWED = _name_allowed("cooling")
PCIE_ALLOWED = 'a version of PCI Express in quotes, e.g. "3.0"'
TWIN_TABLE = "one [twin] table with dilation"

_NEEDS = {
    "medium": "board",
    "supply": "board",
    "cooling": "board",
    "pcie": "medium",
    "disk": "medium",
}
"""Keys that have no effect without another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardFacts:
    """What a node has from its board: its CPUs and its memory."""

    cores: int
    memory_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MediumFacts:
    """What a medium lets a file say."""

    pcie: tuple[str, ...]
    """Versions of PCI Express by which its figures differ; empty if by none."""
    capacity_bytes: int | None
    """What it holds; None if that is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TwinParts:
    """What the catalog has, for rooms that may not know it.

    Each raises ValueError for a name that does not exist and for a file that is wrong; its text
    says what is allowed and offers the nearest name.
    """

    board: Callable[[str], BoardFacts]
    """A board by its name or path."""
    medium: Callable[[str], MediumFacts]
    """A storage medium by its name or path."""
    check: Callable[[str, str], None]
    """Whether a part exists; takes its kind, ``supplies`` or ``cooling``, and its name or path."""


class TwinTable(StrictTable):
    """The ``[twin]`` table."""

    dilation: Annotated[float | None, BeforeValidator(check_dilation)] = Field(
        default=None, description=Allowed.DILATION
    )


def part_name(name: str, folder: Path) -> str:
    """Return the name of a part; if it is a path, the whole path, which begins at a folder."""
    return str((folder / name).resolve()) if name.endswith(".toml") else name


def twin_problems(
    document: TomlDocument,
    wrong: Collection[KeyPath],
    parts: TwinParts | None,
    *,
    limited: bool,
) -> list[Problem]:
    """Find what is wrong with boards that nodes are to behave like, beyond the form of values.

    Args:
        document: the file.
        wrong: keys that are already known to be wrong.
        parts: the catalog; None leaves names unchecked.
        limited: whether the kernel can hold nodes of this kind to what boards can do.
    """
    value = document.data.get("node")
    nodes = [
        (("node", index), node)
        for index, node in enumerate(value if isinstance(value, list) else [])
        if isinstance(node, dict)
    ]
    if not limited:
        return _refused(document, nodes)
    problems = _board_missing(document, nodes)
    any_board = any("board" in node for _, node in nodes)
    for path, node in nodes:
        problems += _need_problems(node, path, any_board=any_board)
        if parts is not None:
            problems += _NodeProblems(node, path, wrong, document.path.parent, parts).find()
    return problems


_Nodes = list[tuple[tuple[str, int], dict[str, Any]]]


def _refused(document: TomlDocument, nodes: _Nodes) -> list[Problem]:
    paths: list[KeyPath] = [
        (*path, key) for path, node in nodes for key in ("board", *_NEEDS) if key in node
    ]
    if "twin" in document.data:
        paths.append(("twin",))
    text = f"only for {kinds_with('limited')}; allowed: leave it out"
    return [Problem(path=path, text=text) for path in paths]


def _board_missing(document: TomlDocument, nodes: _Nodes) -> list[Problem]:
    """Find nodes without a board beside nodes with one, and a [twin] of nothing."""
    first = next((path for path, node in nodes if "board" in node), None)
    if first is None:
        if "twin" not in document.data:
            return []
        text = complaint("no node has a board", allowed="a [twin] table only with boards")
        return [Problem(path=("twin",), text=text)]
    what = f"missing, but {key_text(first)} in line {document.line_of(first)} has one"
    text = complaint(what, allowed="a board for every node, or for none")
    return [
        Problem(path=(*path, "board"), text=text) for path, node in nodes if "board" not in node
    ]


def _need_problems(node: Mapping[str, Any], path: KeyPath, *, any_board: bool) -> list[Problem]:
    """Find keys without the key that they belong to; a missing board is said once."""
    return [
        Problem(
            path=(*path, key),
            text=complaint(f"it has no effect without `{needed}`", allowed=f"with a {needed} only"),
        )
        for key, needed in _NEEDS.items()
        if key in node and needed not in node and not (needed == "board" and any_board)
    ]


@dataclass(frozen=True, slots=True)
class _NodeProblems:
    """Compares one node with the catalog."""

    node: Mapping[str, Any]
    path: KeyPath
    wrong: Collection[KeyPath]
    folder: Path
    parts: TwinParts

    def find(self) -> list[Problem]:
        problems = []
        for key, look in (
            ("board", self._board),
            ("medium", self._medium),
            ("supply", lambda name: self._part("supplies", name)),
            ("cooling", lambda name: self._part("cooling", name)),
        ):
            if not self._has(key):
                continue
            try:
                problems += look(part_name(self.node[key], self.folder))
            except ValueError as error:
                problems.append(self._problem(key, str(error)))
        return problems

    def _has(self, key: str) -> bool:
        """Whether the node has a key whose own form is right."""
        here: KeyPath = (*self.path, key)
        return key in self.node and not any(path[: len(here)] == here for path in self.wrong)

    def _problem(self, key: str, text: str) -> Problem:
        return Problem(path=(*self.path, key), text=text)

    def _part(self, kind: str, name: str) -> list[Problem]:
        self.parts.check(kind, name)
        return []

    def _board(self, name: str) -> list[Problem]:
        facts = self.parts.board(name)
        whose = f"but the board {shown(self.node['board'])} has"
        problems = []
        if self._has("cores") and self.node["cores"] != facts.cores:
            what = f"{self.node['cores']}, {whose} {facts.cores}"
            text = complaint(what, allowed=f"{facts.cores}, or leave it out")
            problems.append(self._problem("cores", text))
        if self._has("memory") and parse_size(self.node["memory"]) > facts.memory_bytes:
            has = format_bytes_exact(facts.memory_bytes)
            what = f"{shown(self.node['memory'])}, {whose} {has}"
            text = complaint(what, allowed=f"at most that; leave it out for {has}")
            problems.append(self._problem("memory", text))
        return problems

    def _medium(self, name: str) -> list[Problem]:
        facts = self.parts.medium(name)
        medium = shown(self.node["medium"])
        problems = []
        if facts.pcie and "pcie" not in self.node:
            what = f"missing; figures of {medium} differ by it"
            problems.append(self._problem("pcie", complaint(what, allowed=_quoted(facts.pcie))))
        if self._has("pcie"):
            try:
                _check_pcie(self.node["pcie"], facts.pcie, medium)
            except ValueError as error:
                problems.append(self._problem("pcie", str(error)))
        size_bytes = parse_size(self.node["disk"]) if self._has("disk") else DEFAULT_DISK_BYTES
        if facts.capacity_bytes is not None and size_bytes > facts.capacity_bytes:
            has = format_bytes_exact(facts.capacity_bytes)
            what = f"{format_bytes_exact(size_bytes)}, but {medium} holds {has}"
            problems.append(self._problem("disk", complaint(what, allowed=f"at most {has}")))
        return problems


def _quoted(versions: Collection[str]) -> str:
    return choices_text([shown(version) for version in versions])


def _check_pcie(value: str, versions: Collection[str], medium: str) -> None:
    if not versions:
        allowed = f"leave it out; figures of {medium} do not differ by it"
        raise ValueError(complaint(shown(value), allowed=allowed))
    check_choice(value, versions, what=f"a version with which {medium} was measured")
