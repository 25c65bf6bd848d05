"""Ansible inventories: the hosts in the JSON of ``ansible-inventory --list``, and one to write.

Ansible itself has read the files, applied ranges and merged the variables of groups. Of these only
the few that say where a host is are understood. All others are ignored, each with a remark, because
ignoring them could matter; what cannot be ignored without meaning something else is an error.

Source: Ansible Core 2.18, ansible-inventory(1); "Developing dynamic inventory", its JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import yaml

from boardcluster.errors import SpecError
from boardcluster.records import ClusterSpec, NodeSpec, Role
from boardcluster.spec.checks import check_host, complaint, refusal, shown

__all__ = [
    "Inventory",
    "InventoryHost",
    "parse_inventory",
    "render_inventory",
]

_ALL, _UNGROUPED, _META = "all", "ungrouped", "_meta"
_HOSTS_MAX = 1024
_HOST, _USER, _PORT = "ansible_host", "ansible_user", "ansible_port"
_KEY = "ansible_ssh_private_key_file"
_CONNECTION = "ansible_connection"
_UNDERSTOOD = {
    _HOST: _HOST,
    "ansible_ssh_host": _HOST,
    _USER: _USER,
    "ansible_ssh_user": _USER,
    _PORT: _PORT,
    "ansible_ssh_port": _PORT,
    _KEY: _KEY,
    "ansible_private_key_file": _KEY,
    _CONNECTION: _CONNECTION,
}
"""Variables that are understood, by the names they have or had."""

_BY_SSH = ("ssh", "smart", "paramiko", "paramiko_ssh", "ansible.builtin.ssh")
_PORT_MAX = 65535
_SSH_ARGUMENTS = re.compile(r"ansible_(ssh|scp|sftp)_(common_|extra_)?args|ansible_ssh_")
_DESTINATION = re.compile(r"(?:ssh://)?(?:([^@]+)@)?(\[[^\]]+\]|[^:]+)(?::([0-9]+))?")
_OTHER = "not the JSON of `ansible-inventory --list`"
_HINT = "write it with `ansible-inventory -i FILE --list > inventory.json`"


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryHost:
    """A host of an inventory."""

    name: str
    """Its name in the inventory."""
    destination: str
    """How ssh reaches it: ``[USER@]HOST``, or ``ssh://[USER@]HOST:PORT`` if the inventory gives a
    port."""
    groups: frozenset[str]
    """The groups it is in, parents included, except ``all``."""
    identity: str
    """Path of a private key file, as written; empty if the inventory gives none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """What was read."""

    hosts: tuple[InventoryHost, ...]
    """At least one, group by group."""
    remarks: tuple[str, ...]
    """What was ignored, and where it has to go instead."""


def parse_inventory(text: str, *, path: Path) -> Inventory:
    """Read what ``ansible-inventory --list`` prints.

    Args:
        text: JSON.
        path: the file it is from, for errors.

    Raises:
        SpecError: it is something else, or a host in it cannot be reached by ssh.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SpecError(f"{path}: not JSON: {error}", hint=_HINT) from error
    if not isinstance(document, dict) or not isinstance(document.get(_META), dict):
        raise SpecError(f"{path}: {_OTHER}", hint=_HINT)
    try:
        known = _table(document.pop(_META).get("hostvars", {}), "hostvars")
        rows = {name: _table(row, f"group {shown(name)}") for name, row in document.items()}
        memberships, parents = _members(rows)
        variables = {
            name: _table(known.get(name, {}), f"variables of {shown(name)}") for name in memberships
        }
    except ValueError as error:
        raise SpecError(f"{path}: {_OTHER}: {error}", hint=_HINT) from error
    if any(row.get("vars") for row in rows.values()):
        what = f"{path}: variables of groups are not merged into their hosts"
        raise SpecError(what, hint=f"{_HINT}, without --export")
    if not memberships:
        raise SpecError(f"{path}: no host", hint="name at least one host in the inventory")
    if len(memberships) > _HOSTS_MAX:
        what = complaint(f"{path}: {len(memberships)} hosts", allowed=f"at most {_HOSTS_MAX}")
        raise SpecError(what, hint="name a smaller inventory")
    hosts = tuple(
        _host(name, _with_ancestors(groups, parents), variables[name], path=path)
        for name, groups in memberships.items()
    )
    ignored = dict.fromkeys(
        key for own in variables.values() for key in own if key not in _UNDERSTOOD
    )
    return Inventory(hosts=hosts, remarks=(*map(_ignored, ignored), *_keys(hosts)))


def _table(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise refusal(f"{what}: {shown(value)}", allowed="a table")
    return value


def _names(row: Mapping[str, Any], key: str, group: str) -> list[str]:
    names = row.get(key, [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise refusal(f"{key} of group {shown(group)}", allowed="a list of names")
    return names


def _members(
    rows: Mapping[str, Mapping[str, Any]],
) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return the groups that name each host, and those that name each group; both below ``all``."""
    memberships: dict[str, list[str]] = {}
    parents: dict[str, list[str]] = {}
    visited: set[str] = set()
    waiting = [_ALL]
    while waiting:
        group = waiting.pop()
        if group in visited:
            continue
        visited.add(group)
        row = rows.get(group, {})
        for host in _names(row, "hosts", group):
            memberships.setdefault(host, []).append(group)
        children = _names(row, "children", group)
        for child in children:
            parents.setdefault(child, []).append(group)
        waiting += reversed(children)
    try:
        TopologicalSorter(parents).prepare()
    except CycleError as error:
        raise ValueError(f"the group {shown(error.args[1][0])} is inside itself") from error
    return memberships, parents


def _with_ancestors(groups: Iterable[str], parents: Mapping[str, list[str]]) -> frozenset[str]:
    found: set[str] = set()
    waiting = [*groups]
    while waiting:
        group = waiting.pop()
        if group not in found:
            found.add(group)
            waiting += parents.get(group, ())
    return frozenset(found - {_ALL, _UNGROUPED})


def _ignored(variable: str) -> str:
    advice = ": put such options into ~/.ssh/config" if _SSH_ARGUMENTS.match(variable) else ""
    return f"{shown(variable)} is ignored{advice}"


def _keys(hosts: tuple[InventoryHost, ...]) -> Iterator[str]:
    for host in hosts:
        if host.identity:
            yield (
                f"{shown(host.name)}: its private key file cannot be given in cluster.toml: write "
                f"IdentityFile {shown(host.identity)} under its Host in ~/.ssh/config"
            )


def _host(
    name: str, groups: frozenset[str], variables: Mapping[str, Any], *, path: Path
) -> InventoryHost:
    own: dict[str, str] = {}
    for key, value in variables.items():
        if key in _UNDERSTOOD:
            if not isinstance(value, str | int) or "{{" in str(value):
                what = f"{path}: {shown(name)}: {key}: {shown(str(value))}"
                text = complaint(what, allowed="plain text; templates and vaults are not evaluated")
                raise SpecError(text, hint="correct the inventory and write it again")
            own[_UNDERSTOOD[key]] = str(value)
    problem = ""
    connection, port = own.get(_CONNECTION, "ssh"), own.get(_PORT, "")
    if connection not in _BY_SSH:
        what = f"reached not by ssh but by {shown(connection)}"
        problem = complaint(what, allowed=", ".join(_BY_SSH))
    elif port and not _is_port(port):
        problem = complaint(f"port {shown(port)}", allowed=f"1 to {_PORT_MAX}")
    else:
        try:
            destination = check_host(_destination(own.get(_HOST, name), own.get(_USER, ""), port))
        except ValueError as error:
            problem = str(error)
    if problem:
        hint = "correct the inventory and write it again"
        raise SpecError(f"{path}: {shown(name)}: {problem}", hint=hint)
    return InventoryHost(
        name=name, destination=destination, groups=groups, identity=own.get(_KEY, "")
    )


def _is_port(text: str) -> bool:
    # Its length first: Python refuses to read a number of more than 4,300 digits.
    digits = text.lstrip("0")
    if not digits.isdecimal() or len(digits) > len(str(_PORT_MAX)):
        return False
    return 0 < int(digits) <= _PORT_MAX


def _destination(host: str, user: str, port: str) -> str:
    bare_ipv6 = ":" in host and not host.startswith("[")
    login = f"{user}@" * bool(user) + (f"[{host}]" if bare_ipv6 else host)
    if port:
        return f"ssh://{login}:{port}"
    return f"ssh://{login}" if bare_ipv6 else login


def render_inventory(spec: ClusterSpec) -> str:
    """Write a cluster of boards as an Ansible inventory in YAML.

    Raises:
        SpecError: no ssh reaches its nodes.
    """
    if not all(node.host for node in spec.nodes):
        raise SpecError(
            f"the nodes of {spec.name} are of the kind {spec.kind}, so no ssh reaches them",
            hint="write an inventory of a cluster of boards",
        )
    groups = {
        "boardcluster_master": [node.name for node in spec.nodes if Role.MASTER in node.roles],
        "boardcluster_workers": [node.name for node in spec.nodes if Role.WORKER in node.roles],
    }
    tree = {
        _ALL: {
            "hosts": {node.name: _variables_of(node) for node in spec.nodes},
            "children": {group: {"hosts": dict.fromkeys(names)} for group, names in groups.items()},
        }
    }
    head = f"# The boards of {spec.name}, written by boardcluster.\n"
    return head + str(yaml.safe_dump(tree, sort_keys=False, allow_unicode=True))


def _variables_of(node: NodeSpec) -> dict[str, str | int]:
    found = _DESTINATION.fullmatch(node.host)
    if found is None:
        raise SpecError(f"{node.name}: {shown(node.host)} is not a host", hint="correct its host")
    variables: dict[str, str | int] = {_HOST: found[2].strip("[]")}
    if found[1]:
        variables[_USER] = found[1]
    if found[3]:
        variables[_PORT] = int(found[3])
    return variables
