"""Ansible inventories, INI and YAML: the hosts in them, and how ssh reaches each.

Of the variables only the few that say where a host is are understood. All others are ignored, each
with a remark, because ignoring them could matter; what cannot be ignored without meaning something
else is an error. Not read are executable inventories, plugins, and folders of several files.

Source: Ansible Core 2.18, "How to build your inventory", and its ini and yaml inventory plugins.
"""

from __future__ import annotations

import ast
import difflib
import re
import shlex
from dataclasses import dataclass, field
from itertools import islice, product
from pathlib import Path

import yaml

from boardcluster.errors import SpecError
from boardcluster.records import ClusterSpec, NodeSpec, Role
from boardcluster.spec.checks import check_host, complaint, shown

__all__ = [
    "MASTER_GROUP",
    "WORKERS_GROUP",
    "Inventory",
    "InventoryHost",
    "read_inventory",
    "render_inventory",
]

MASTER_GROUP = "boardcluster_master"
WORKERS_GROUP = "boardcluster_workers"

_ALL, _UNGROUPED = "all", "ungrouped"
_SIZE_BYTES_MAX = 1 << 20
_HOSTS_MAX = 1024
_DEPTH_MAX = 32
_GROUP_KEYS = ("hosts", "vars", "children")

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
_SECTION = re.compile(r"\[([^\s:\]]+)(?::(\w+))?\]\s*(?:#.*)?")
_RANGE = re.compile(r"\[([0-9]+|[A-Za-z]):([0-9]+|[A-Za-z])(?::([0-9]+))?\]")
_RANGE_ALLOWED = "[0:3], [01:10], [a:c] or [0:10:2], the end not before the start"
_HOST_AND_PORT = re.compile(r"((?:[^:\[\]]|\[[^\]]*\])+):([0-9]{1,5})")
_PORT_MAX = 65535
_SSH_ARGUMENTS = re.compile(r"ansible_(ssh|scp|sftp)_(common_|extra_)?args|ansible_ssh_")
_DESTINATION = re.compile(r"(?:ssh://)?(?:([^@]+)@)?(\[[^\]]+\]|[^:]+)(?::([0-9]+))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryHost:
    """A host of an inventory.

    Attributes:
        name: its name in the inventory.
        destination: how ssh reaches it: ``[USER@]HOST``, or ``ssh://[USER@]HOST:PORT`` if the
            inventory gives a port.
        groups: the groups it is in, parents included, except ``all``.
        identity: path of a private key file, as written; empty if the inventory gives none.
    """

    name: str
    destination: str
    groups: frozenset[str]
    identity: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """What was read.

    Attributes:
        hosts: at least one, in the order of the file.
        remarks: what was ignored, and where it has to go instead.
    """

    hosts: tuple[InventoryHost, ...]
    remarks: tuple[str, ...]


@dataclass(slots=True)
class _Group:
    """A group while the file is read: variables with the line each stands in."""

    variables: dict[str, tuple[str, int]] = field(default_factory=dict)
    hosts: dict[str, None] = field(default_factory=dict)
    parents: dict[str, None] = field(default_factory=dict)


@dataclass(slots=True)
class _Reader:
    """Collects groups, hosts and variables from either form of file."""

    path: Path
    groups: dict[str, _Group] = field(default_factory=lambda: {_ALL: _Group()})
    hosts: dict[str, dict[str, tuple[str, int]]] = field(default_factory=dict)
    remarks: dict[str, str] = field(default_factory=dict)

    def error(self, line: int, what: str, *, allowed: str = "", nearest: str = "") -> SpecError:
        """Build the error for a line."""
        text = complaint(what, allowed=allowed, nearest=nearest) if allowed else what
        return SpecError(
            f"{self.path}:{line}: {text}", hint="correct this line and run the command again"
        )

    def group(self, name: str, *, parent: str = "") -> _Group:
        """Return a group, made if it is new."""
        group = self.groups.setdefault(name, _Group())
        if parent not in ("", name):
            group.parents[parent] = None
        return group

    def add_hosts(self, group: str, pattern: str, line: int) -> list[str]:
        """Add the hosts of a pattern to a group and return their names."""
        names = self._expanded(pattern, line)
        for name in names:
            self.group(group).hosts[name] = None
            self.hosts.setdefault(name, {})
        if len(self.hosts) > _HOSTS_MAX:
            raise self.error(line, "too many hosts", allowed=f"at most {_HOSTS_MAX}")
        return names

    def _expanded(self, pattern: str, line: int) -> list[str]:
        """Write out the ranges of a host pattern."""
        parts: list[list[str]] = []
        rest = pattern
        while found := _RANGE.search(rest):
            parts += [[rest[: found.start()]], self._range(found, line)]
            rest = rest[found.end() :]
        parts.append([rest])
        if any(re.search(r"[\[\]]", words[0]) for words in parts[::2]):
            raise self.error(line, f"range in {shown(pattern)}", allowed=_RANGE_ALLOWED)
        return ["".join(words) for words in islice(product(*parts), _HOSTS_MAX + 1)]

    def _range(self, found: re.Match[str], line: int) -> list[str]:
        first, last, step = found[1], found[2], int(found[3] or 1)
        digits = first.isdigit()
        wrong = self.error(line, f"range {found[0]}", allowed=_RANGE_ALLOWED)
        if digits != last.isdigit() or step < 1:
            raise wrong
        padded = digits and len(first) > 1 and first.startswith("0")
        if padded and len(first) != len(last):
            raise wrong
        start, end = (int(first), int(last)) if digits else (ord(first), ord(last))
        if not 0 <= end - start < _HOSTS_MAX * step:
            raise wrong
        numbers = range(start, end + 1, step)
        if not digits:
            return [chr(number) for number in numbers]
        return [str(number).zfill(len(first) if padded else 0) for number in numbers]

    def note(self, variables: dict[str, tuple[str, int]], name: str, value: str, line: int) -> None:
        """Note a variable, or remark that it is ignored."""
        if name in _UNDERSTOOD:
            if "{{" in value:
                what = f"{name}: {shown(value)} is a template"
                raise self.error(line, what, allowed="plain text; templates are not evaluated")
            variables[_UNDERSTOOD[name]] = (value, line)
        elif name not in self.remarks:
            place = ": put such options into ~/.ssh/config" if _SSH_ARGUMENTS.match(name) else ""
            self.remarks[name] = f"line {line}: {name} is ignored{place}"

    def result(self) -> Inventory:
        """Put together, for each host, what its groups and itself say."""
        if not self.hosts:
            raise SpecError(f"{self.path}: no host", hint="name at least one host in it")
        depths = {name: self._depth(name) for name in self.groups}
        hosts = tuple(self._host(name, depths) for name in self.hosts)
        keys = [
            f"{host.name}: cluster.toml has no place for its private key file: write "
            f"IdentityFile {host.identity} under its Host in ~/.ssh/config"
            for host in hosts
            if host.identity
        ]
        return Inventory(hosts=hosts, remarks=(*self.remarks.values(), *keys))

    def _depth(self, name: str, below: tuple[str, ...] = ()) -> int:
        """Return how far a group is from ``all``: a deeper group's variables win."""
        if name == _ALL:
            return 0
        if name in below or len(below) > _DEPTH_MAX:
            ring = " in ".join((*below, name))
            raise SpecError(f"{self.path}: groups in a ring: {ring}", hint="undo the ring")
        parents = self.groups[name].parents
        return 1 + max((self._depth(parent, (*below, name)) for parent in parents), default=0)

    def _above(self, name: str) -> set[str]:
        """Return the groups that a host is in, directly or through others."""
        found = {group for group, members in self.groups.items() if name in members.hosts}
        pending = list(found)
        while pending:
            for parent in self.groups[pending.pop()].parents:
                if parent not in found:
                    found.add(parent)
                    pending.append(parent)
        return found | {_ALL}

    def _host(self, name: str, depths: dict[str, int]) -> InventoryHost:
        groups = self._above(name)
        variables: dict[str, tuple[str, int]] = {}
        for group in sorted(groups, key=lambda one: (depths[one], one)):
            variables |= self.groups[group].variables
        variables |= self.hosts[name]
        connection, line = variables.get(_CONNECTION, ("ssh", 0))
        if connection not in _BY_SSH:
            what = f"{name} is not reached by ssh but by {shown(connection)}"
            raise self.error(line, what, allowed=", ".join(_BY_SSH))
        return InventoryHost(
            name=name,
            destination=self._destination(name, variables),
            groups=frozenset(groups - {_ALL, _UNGROUPED}),
            identity=variables.get(_KEY, ("", 0))[0],
        )

    def _destination(self, name: str, variables: dict[str, tuple[str, int]]) -> str:
        host, line = variables.get(_HOST, (name, 0))
        user, user_line = variables.get(_USER, ("", 0))
        port, port_line = variables.get(_PORT, ("", 0))
        if port and not (port.isdecimal() and 0 < int(port) <= _PORT_MAX):
            raise self.error(port_line, f"port {shown(port)}", allowed=f"1 to {_PORT_MAX}")
        if bare_ipv6 := ":" in host and not host.startswith("["):
            host = f"[{host}]"
        login = f"{user}@{host}" if user else host
        destination = login
        if port or bare_ipv6:
            destination = f"ssh://{login}:{port}" if port else f"ssh://{login}"
        try:
            return check_host(destination)
        except ValueError as error:
            place = max(line, user_line)
            where = f"{self.path}:{place}" if place else f"{self.path}: {name}"
            raise SpecError(
                f"{where}: {error}", hint="correct it and run the command again"
            ) from error


def read_inventory(path: Path) -> Inventory:
    """Read an Ansible inventory of one file, INI or YAML.

    It is YAML if its name ends in .yml, .yaml or .json, or if it looks like it.

    Raises:
        SpecError: it cannot be read, or something in it is wrong or not understood; with the line
            and what is allowed.
    """
    text = _text_of(path)
    reader = _Reader(path=path)
    lines = (line.strip() for line in text.splitlines())
    first = next((line for line in lines if line and line[0] not in "#;"), "")
    looks = first == "---" or first.endswith(":") or first.startswith("{")
    if path.suffix in (".yml", ".yaml", ".json") or looks:
        _read_yaml(reader, text)
    else:
        _read_ini(reader, text)
    return reader.result()


def _text_of(path: Path) -> str:
    try:
        data = path.read_bytes()
    except IsADirectoryError as error:
        raise SpecError(f"{path}: a folder", hint="name one file of it") from error
    except OSError as error:
        raise SpecError(
            f"{path}: cannot be read: {error.strerror}", hint="check the path and its permissions"
        ) from error
    if data.startswith(b"#!"):
        raise SpecError(
            f"{path}: a program, and none is run to get an inventory",
            hint=f"write what it says into a file: ansible-inventory -i {path} --list --yaml",
        )
    if len(data) > _SIZE_BYTES_MAX:
        raise SpecError(f"{path}: larger than 1 MiB", hint="name a file of hosts")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SpecError(f"{path}: not text in UTF-8", hint="name a text file") from error


def _read_ini(reader: _Reader, text: str) -> None:
    section, kind = _UNGROUPED, "hosts"
    declared = {_ALL, _UNGROUPED}
    used: dict[str, int] = {}
    for number, line in enumerate((line.strip() for line in text.splitlines()), start=1):
        if not line or line[0] in "#;":
            continue
        if found := _SECTION.fullmatch(line):
            section, kind = found[1], found[2] or "hosts"
            if kind not in _GROUP_KEYS:
                allowed = "[GROUP], [GROUP:children] or [GROUP:vars]"
                raise reader.error(number, f"section {shown(line)}", allowed=allowed)
            reader.group(section)
            if kind == "vars":
                used.setdefault(section, number)
            else:
                declared.add(section)
        elif kind == "hosts":
            _read_ini_host(reader, section, line, number)
        elif kind == "vars":
            name, equals, value = (part.strip() for part in line.partition("="))
            if not equals or not name:
                raise reader.error(number, shown(line), allowed="VARIABLE=VALUE")
            reader.note(reader.group(section).variables, name, _literal(value), number)
        else:
            used.setdefault(_read_ini_child(reader, section, line, number), number)
    for name, number in used.items():
        if name not in declared:
            near = difflib.get_close_matches(name, declared, n=1)
            raise reader.error(
                number,
                f"group {shown(name)} is nowhere declared",
                allowed=", ".join(sorted(declared)),
                nearest=near[0] if near else "",
            )


def _read_ini_host(reader: _Reader, group: str, line: str, number: int) -> None:
    try:
        pattern, *words = shlex.split(line, comments=True)
    except ValueError as error:
        raise reader.error(number, f"{shown(line)}: {error}") from error
    port = ""
    if found := _HOST_AND_PORT.fullmatch(pattern):
        pattern, port = found[1], found[2]
    names = reader.add_hosts(group, pattern, number)
    pairs = [(_PORT, "=", port)] if port else []
    pairs += [word.partition("=") for word in words]
    for name, equals, value in pairs:
        if not equals or not name:
            raise reader.error(number, shown(name), allowed="HOST VARIABLE=VALUE ...")
        for host in names:
            reader.note(reader.hosts[host], name, value, number)


def _read_ini_child(reader: _Reader, parent: str, line: str, number: int) -> str:
    child = line.partition("#")[0].strip()
    if not re.fullmatch(r"[^\s:\[\]]+", child):
        raise reader.error(number, shown(line), allowed="the name of a group")
    reader.group(child, parent=parent)
    return child


def _literal(value: str) -> str:
    """Return a value as Ansible's ini plugin does: quotes off, a comment after a number, too."""
    try:
        parsed = ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return value
    return str(parsed) if isinstance(parsed, str | int) else value


def _read_yaml(reader: _Reader, text: str) -> None:
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        groups = _items(reader, root, "groups") if root is not None else []
        for name, _, node in groups:
            _read_yaml_group(reader, name, node, parents=())
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise reader.error(line, f"not YAML: {error.problem}") from error
    except yaml.YAMLError as error:
        raise SpecError(f"{reader.path}: not YAML: {error}", hint="correct it") from error
    except RecursionError as error:
        raise SpecError(f"{reader.path}: nested too deeply", hint="name a file of hosts") from error


def _read_yaml_group(
    reader: _Reader, name: str, node: yaml.Node, *, parents: tuple[str, ...]
) -> None:
    line = node.start_mark.line + 1
    if len(parents) > _DEPTH_MAX or name in parents:
        raise reader.error(line, f"group {shown(name)} is inside itself, or too deep")
    group = reader.group(name, parent=parents[-1] if parents else "")
    for key, key_line, value in _items(reader, node, f"group {name}"):
        if key == "hosts":
            for pattern, host_line, own in _items(reader, value, "hosts"):
                for host in reader.add_hosts(name, pattern, host_line):
                    _read_yaml_variables(reader, reader.hosts[host], own)
        elif key == "vars":
            _read_yaml_variables(reader, group.variables, value)
        elif key == "children":
            for child, _, inner in _items(reader, value, "children"):
                _read_yaml_group(reader, child, inner, parents=(*parents, name))
        else:
            near = difflib.get_close_matches(key, _GROUP_KEYS, n=1)
            raise reader.error(
                key_line,
                f"{shown(key)} in group {shown(name)}",
                allowed=", ".join(_GROUP_KEYS),
                nearest=near[0] if near else "",
            )


def _read_yaml_variables(
    reader: _Reader, variables: dict[str, tuple[str, int]], node: yaml.Node
) -> None:
    for name, line, value in _items(reader, node, "variables"):
        if name in _UNDERSTOOD and (
            not isinstance(value, yaml.ScalarNode) or value.tag.startswith("!")
        ):
            raise reader.error(line, f"{name} is not plain text", allowed="a text or a number")
        reader.note(variables, name, value.value if name in _UNDERSTOOD else "", line)


def _items(reader: _Reader, node: yaml.Node, what: str) -> list[tuple[str, int, yaml.Node]]:
    """Return the keys of a mapping, each with its line and value; nothing is an empty mapping."""
    line = node.start_mark.line + 1
    if isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null":
        return []
    if not isinstance(node, yaml.MappingNode):
        raise reader.error(line, f"{what}: not a mapping", allowed="names, each with a colon")
    own: dict[str, tuple[str, int, yaml.Node]] = {}
    merged: dict[str, tuple[str, int, yaml.Node]] = {}
    for key, value in node.value:
        key_line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            raise reader.error(key_line, f"{what}: a key is not a name", allowed="names")
        if key.tag == "tag:yaml.org,2002:merge":
            sources = value.value if isinstance(value, yaml.SequenceNode) else [value]
            for source in reversed(sources):
                merged |= {row[0]: row for row in _items(reader, source, what)}
            continue
        if key.value in own:
            raise reader.error(key_line, f"{what}: {shown(key.value)} stands there twice")
        own[key.value] = (key.value, key_line, value)
    return list({**merged, **own}.values())


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
        MASTER_GROUP: [node.name for node in spec.nodes if Role.MASTER in node.roles],
        WORKERS_GROUP: [node.name for node in spec.nodes if Role.WORKER in node.roles],
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
