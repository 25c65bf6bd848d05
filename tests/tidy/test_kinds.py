"""A kind of node is one folder: nobody outside asks which kind it is, or takes from its folder."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from boardcluster.capabilities import every_kind
from tests.tidy.test_source import MODULES, PACKAGE, place, tree

KINDS = PACKAGE / "cluster" / "kinds"
OUTSIDE = [path for path in MODULES if KINDS not in path.parents]
NAMES = frozenset(every_kind())

OTHER_KINDS = {"catalog/lookup.py", "catalog/prices.py", "catalog/entry.py", "cli/catalog.py"}
"""Rooms whose ``kind`` is a kind of entry of the catalog, among them also "boards"."""

FOLDERS_ARE_FOR = {
    "services/boards.py": "boards",  # what is done on nodes that are provisioned
    "services/provision/desired.py": "boards",
    "cli/boards.py": "boards",
    "cli/doctor.py": "boards",
    "campaign/upkeep.py": "boards",
    "doctor/checks/namespaces.py": "emulated",  # a check that matters to one kind alone
    "doctor/checks/subnet.py": "emulated",
    "doctor/checks/local_node.py": "local",
}


def _is_kind(node: ast.expr) -> bool:
    """Whether an expression is a kind, by the last of its words: ``spec.kind``, ``kind``."""
    if isinstance(node, ast.Attribute):
        return node.attr == "kind" or (node.attr == "name" and _is_kind(node.value))
    return isinstance(node, ast.Name) and node.id == "kind"


def _names_kind(node: ast.expr) -> bool:
    """Whether an expression is the name of a kind of node, or holds one."""
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return any(_names_kind(item) for item in node.elts)
    return isinstance(node, ast.Constant) and node.value in NAMES


def comparisons_of_kind(module: ast.Module) -> Iterator[int]:
    """Yield the lines in which a kind of node is compared with a name, or used to choose."""
    for node in ast.walk(module):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(map(_is_kind, sides)) and any(map(_names_kind, sides)):
                yield node.lineno
        elif (isinstance(node, ast.Match) and _is_kind(node.subject)) or (
            isinstance(node, ast.Subscript)
            and isinstance(node.value, ast.Dict)
            and any(key is not None and _names_kind(key) for key in node.value.keys)
        ):
            yield node.lineno


@pytest.mark.parametrize(
    "text",
    [
        'spec.kind == "emulated"',
        'if live.spec.kind != "boards": pass',
        'state.kind in ("emulated", "local")',
        '"local" == kind',
        'spec.kind.name == "local"',
        'match spec.kind:\n  case "boards": pass',
        '{"boards": 1, "local": 2}[spec.kind]',
    ],
)
def test_a_test_of_kind_is_found(text: str) -> None:
    assert list(comparisons_of_kind(ast.parse(text))) == [1]


@pytest.mark.parametrize("text", ["spec.kind == other.kind", 'meter.kind == "rapl"', 'kind = "x"'])
def test_other_comparisons_are_none(text: str) -> None:
    assert list(comparisons_of_kind(ast.parse(text))) == []


def test_nobody_outside_the_folders_asks_for_the_kind() -> None:
    assert len(OUTSIDE) > 300
    found = [
        f"{place(path)}:{line}"
        for path in OUTSIDE
        if place(path) not in OTHER_KINDS
        for line in comparisons_of_kind(tree(path))
    ]
    assert not found, "ask for a capability, see boardcluster/capabilities.py"


def test_a_kinds_folder_is_taken_from_only_where_it_must_be() -> None:
    taken: dict[str, str] = {}
    for path in OUTSIDE:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ImportFrom) and node.module:
                parts = node.module.split(".")
                if parts[:3] == ["boardcluster", "cluster", "kinds"] and len(parts) > 3:
                    taken[place(path)] = parts[3]
    assert taken == FOLDERS_ARE_FOR


def test_every_folder_is_a_kind() -> None:
    folders = {path.name for path in KINDS.iterdir() if (path / "__init__.py").exists()}
    assert folders == NAMES
    assert all(Path(KINDS, name, "kind.toml").exists() for name in folders)
