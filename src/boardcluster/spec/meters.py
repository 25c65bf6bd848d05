"""``[[meter]]`` and ``[[power]]`` of a ``cluster.toml``: meters, and what nodes draw. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from boardcluster.records import ClusterSpec, MeterSpec, PowerModel
from boardcluster.spec.checks import (
    check_choice,
    check_name,
    closest,
    complaint,
    refusal,
    shown,
)
from boardcluster.spec.problems import Problem, StrictTable
from boardcluster.spec.toml import KeyPath, TomlDocument, toml_key, toml_text

__all__ = [
    "FILE_ENDINGS",
    "METER_TABLE",
    "POWER_TABLE",
    "MeterFacts",
    "MeterTable",
    "PowerTable",
    "meter_problems",
    "meter_specs",
    "power_models",
    "render_meters",
]

METER_TABLE = "one [[meter]] table per power meter, each with name, kind, nodes"
POWER_TABLE = "one [[power]] table per kind of node, each with nodes, idle_watts, stress_watts"

_ALL = "all"
_NAME_LENGTH_MAX = 63
_NAME_ALLOWED = (
    "lower-case letters, digits and hyphens, starting with a letter, not ending in a hyphen, at "
    f"most {_NAME_LENGTH_MAX} characters"
)
_NODES_ALLOWED = f'"{_ALL}", or an array of names of nodes'
_WATTS_MAX = 100_000.0
_WATTS_ALLOWED = f"a number above 0 and up to {_WATTS_MAX:.0f}"
_COMMON_KEYS = ("name", "kind", "nodes", "switch")
FILE_ENDINGS = ("_file", "path")
"""How names of options end that say where a secret, or what a logger writes, is."""

_OPTION_ALLOWED = "text in quotes, a number, true or false"
_USER_IN_URL = re.compile(r"://[^/@]*@")


@dataclass(frozen=True, slots=True, kw_only=True)
class MeterFacts:
    """What a kind of meter lets a file say."""

    options: Mapping[str, bool]
    """Names of its options, and whether each is needed."""
    on_node: bool
    """Whether it is read on the node that it measures, so that it measures one only."""


_check_meter_name = partial(check_name, length_max=_NAME_LENGTH_MAX, allowed=_NAME_ALLOWED)


def _check_nodes(value: Any) -> tuple[str, ...] | None:
    """Return names; None stands for all of them."""
    if value == _ALL:
        return None
    names = value if isinstance(value, list) else [None]
    if not all(isinstance(name, str) for name in names):
        raise refusal(f"{shown(value)} does not name nodes", allowed=_NODES_ALLOWED)
    if len(set(names)) < len(names):
        raise refusal(f"{shown(value)} names a node twice", allowed=_NODES_ALLOWED)
    return tuple(names)


def _check_watts(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _WATTS_MAX:
        raise refusal(f"{shown(value)} is not a power in watts", allowed=_WATTS_ALLOWED)
    return float(value)


_Nodes = Annotated[tuple[str, ...] | None, BeforeValidator(_check_nodes)]
_Watts = Annotated[float, BeforeValidator(_check_watts)]


class MeterTable(BaseModel):
    """A ``[[meter]]`` table; what it holds beyond these keys are options of its kind."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    name: Annotated[str, AfterValidator(_check_meter_name)] = Field(description=_NAME_ALLOWED)
    kind: str = Field(description="a kind of meter in quotes")
    nodes: _Nodes = Field(description=_NODES_ALLOWED)
    switch: bool = Field(default=False, description="true or false")


class PowerTable(StrictTable):
    """A ``[[power]]`` table."""

    nodes: _Nodes = Field(description=_NODES_ALLOWED)
    idle_watts: _Watts = Field(description=_WATTS_ALLOWED)
    stress_watts: _Watts = Field(description=_WATTS_ALLOWED)


def meter_problems(
    document: TomlDocument,
    wrong: Collection[KeyPath],
    kinds: Mapping[str, MeterFacts] | None,
    *,
    shared: bool,
) -> list[Problem]:
    """Find what is wrong with meters and models beyond the form of single values.

    Args:
        document: the file.
        wrong: keys that are already known to be wrong.
        kinds: the known kinds; None leaves kinds and options unchecked.
        shared: whether the nodes share one machine, and so its meters.
    """
    names = [row["name"] for row in _tables(document, "node") if isinstance(row.get("name"), str)]
    problems = _node_problems(document, wrong, names)
    first_with: dict[str, KeyPath] = {}
    for index, table in enumerate(_tables(document, "meter")):
        path: KeyPath = ("meter", index)
        if path in wrong or ("meter",) in wrong:
            continue
        problems += _option_problems(table, path)
        if (*path, "name") not in wrong:
            first = first_with.setdefault(table["name"], path)
            if first != path:
                text = (
                    f"{shown(table['name'])} is already the name of the meter in line "
                    f"{document.line_of(first)}; allowed: a name that no other meter has"
                )
                problems.append(Problem(path=(*path, "name"), text=text))
        if kinds is not None and (*path, "kind") not in wrong:
            problems += _kind_problems(table, path, kinds, shared=shared)
    return problems


def _tables(document: TomlDocument, name: str) -> list[Mapping[str, Any]]:
    value = document.data.get(name)
    rows = value if isinstance(value, list) else []
    return [row if isinstance(row, dict) else {} for row in rows]


def _node_problems(
    document: TomlDocument, wrong: Collection[KeyPath], names: Sequence[str]
) -> list[Problem]:
    """Find names of nodes that the cluster does not have, and nodes with two models."""
    problems, modelled = [], set[str]()
    for kind in ("meter", "power"):
        for index, table in enumerate(_tables(document, kind)):
            path: KeyPath = (kind, index, "nodes")
            if {path, path[:2], path[:1]} & set(wrong):
                continue
            chosen = names if table["nodes"] == _ALL else table["nodes"]
            if not chosen and not (kind == "meter" and table.get("switch") is True):
                allowed = f"{_NODES_ALLOWED}; none only for a meter with switch = true"
                problems.append(Problem(path=path, text=complaint("no nodes", allowed=allowed)))
            for place, name in enumerate(chosen):
                here = path if table["nodes"] == _ALL else (*path, place)
                try:
                    check_choice(name, names, what="a node of this cluster")
                except ValueError as error:
                    problems.append(Problem(path=here, text=str(error)))
            if kind == "power":
                twice = sorted(modelled & set(chosen))
                if twice:
                    text = f"{twice[0]} has a [[power]] table already; allowed: one for each node"
                    problems.append(Problem(path=path, text=text))
                modelled |= set(chosen)
                problems += _watts_problems(table, path[:2], wrong)
    return problems


def _watts_problems(
    table: Mapping[str, Any], path: KeyPath, wrong: Collection[KeyPath]
) -> list[Problem]:
    if {(*path, "idle_watts"), (*path, "stress_watts")} & set(wrong):
        return []
    if table["stress_watts"] >= table["idle_watts"]:
        return []
    text = (
        f"{table['stress_watts']} is below idle_watts, {table['idle_watts']}; allowed: what the "
        "node draws when every core is busy"
    )
    return [Problem(path=(*path, "stress_watts"), text=text)]


def _option_problems(table: Mapping[str, Any], path: KeyPath) -> list[Problem]:
    """Find options that are not single values, and secrets."""
    problems = []
    for key, value in table.items():
        if key in _COMMON_KEYS:
            continue
        if not isinstance(value, str | int | float):
            text = complaint(f"{shown(value)} is not an option", allowed=_OPTION_ALLOWED)
            problems.append(Problem(path=(*path, key), text=text))
        elif isinstance(value, str) and _USER_IN_URL.search(value):
            text = "it contains a user or a password; allowed: neither, use password_file"
            problems.append(Problem(path=(*path, key), text=text))
    return problems


def _kind_problems(
    table: Mapping[str, Any], path: KeyPath, kinds: Mapping[str, MeterFacts], *, shared: bool
) -> list[Problem]:
    """Find unknown kinds, unknown and missing options, and nodes that a kind cannot measure."""
    try:
        facts = kinds[check_choice(table["kind"], kinds, what="a kind of meter")]
    except ValueError as error:
        return [Problem(path=(*path, "kind"), text=str(error))]
    problems = []
    allowed = [*_COMMON_KEYS, *facts.options]
    for key in table:
        if key not in allowed:
            near = closest(key, allowed)
            text = complaint("unknown key", allowed=", ".join(allowed), nearest=near)
            problems.append(Problem(path=(*path, key), text=text))
    problems += [
        Problem(path=(*path, key), text=f"missing; a meter of the kind {table['kind']} needs it")
        for key, needed in facts.options.items()
        if needed and key not in table
    ]
    nodes = table.get("nodes")
    if (
        facts.on_node
        and not shared
        and (nodes == _ALL or (isinstance(nodes, list) and len(nodes) != 1))
    ):
        text = complaint(
            f"{shown(nodes)} for a meter that is read on the node it measures",
            allowed='one node, as in ["pi0"], and a [[meter]] table for each',
        )
        problems.append(Problem(path=(*path, "nodes"), text=text))
    if facts.on_node and shared and nodes != _ALL:
        text = complaint(
            f"{shown(nodes)}, but emulated nodes share one machine, and the meter sees all of it",
            allowed=f'"{_ALL}"',
        )
        problems.append(Problem(path=(*path, "nodes"), text=text))
    return problems


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def meter_specs(
    tables: Sequence[MeterTable], names: Sequence[str], folder: Path
) -> tuple[MeterSpec, ...]:
    """Return the declared meters.

    Args:
        tables: validated.
        names: of all nodes, in their order, which also becomes that of each meter's nodes.
        folder: of the file, where relative paths begin.
    """
    return tuple(
        MeterSpec(
            name=table.name,
            kind=table.kind,
            nodes=tuple(names if table.nodes is None else filter(table.nodes.__contains__, names)),
            switch=table.switch,
            options={
                key: _placed(key, _text(value), folder)
                for key, value in (table.model_extra or {}).items()
            },
        )
        for table in tables
    )


def _placed(key: str, value: str, folder: Path) -> str:
    """Return an option; the path of a file no longer depends on where a command runs."""
    if not key.endswith(FILE_ENDINGS) or not value or value.startswith("~"):
        return value
    return str(folder.absolute() / value)


def power_models(tables: Sequence[PowerTable], names: Sequence[str]) -> tuple[PowerModel, ...]:
    """Return the declared models, in the order of the nodes.

    Args:
        tables: validated.
        names: of all nodes, in their order.
    """
    by_node = {
        name: table for table in tables for name in (names if table.nodes is None else table.nodes)
    }
    return tuple(
        PowerModel(node=name, **by_node[name].model_dump(exclude={"nodes"}))
        for name in names
        if name in by_node
    )


def render_meters(spec: ClusterSpec) -> tuple[str, ...]:
    """Write the tables of meters and models; loading them gives back the same."""
    names = [node.name for node in spec.nodes]
    tables = [
        "[[meter]]\n"
        f"name = {toml_text(meter.name)}\n"
        f"kind = {toml_text(meter.kind)}\n"
        f"nodes = {_nodes(meter.nodes, names)}\n"
        + ("switch = true\n" if meter.switch else "")
        + "".join(f"{toml_key(key)} = {toml_text(value)}\n" for key, value in meter.options.items())
        for meter in spec.meters
    ]
    groups: dict[tuple[float, float], list[str]] = {}
    for model in spec.power_models:
        groups.setdefault((model.idle_watts, model.stress_watts), []).append(model.node)
    tables += [
        f"[[power]]\nnodes = {_nodes(nodes, names)}\n"
        f"idle_watts = {idle!r}\nstress_watts = {stress!r}\n"
        for (idle, stress), nodes in groups.items()
    ]
    return tuple(tables)


def _nodes(chosen: Sequence[str], names: Sequence[str]) -> str:
    if set(chosen) == set(names):
        return toml_text(_ALL)
    return f"[{', '.join(map(toml_text, chosen))}]"
