"""What each kind of node can do, as the kinds declare it themselves.

A kind of node is one folder of ``cluster/kinds/``. Its ``kind.toml`` declares what the other rooms
need to know; they ask for that and never for the kind's name, so a further kind touches none of
them. Being data, it can be read by every room, also by those that may not import ``cluster``.
"""

from __future__ import annotations

import dataclasses
import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib import resources

from boardcluster.errors import UsageError

__all__ = ["Capabilities", "Network", "capabilities_of", "every_kind", "kinds_with"]


class Network(StrEnum):
    """What connects the nodes.

    OWN: a network that exists for the cluster only, inside this machine. LAN: the one that the
    nodes are in anyway. LOOPBACK: nothing but the loopback address of the one node.
    """

    OWN = "own"
    LAN = "lan"
    LOOPBACK = "loopback"


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What one kind of node can do, and how it is spoken of."""

    kind: str
    """Its name, as in ``cluster.toml``: the name of its folder."""
    rank: int
    """Its place wherever kinds are listed; the first one is proposed unless another is asked for.
    """
    meaning: str
    """What such a node is, for the comments of ``cluster.toml``."""
    noun: str
    """What the nodes are, after their number, in a report."""
    mark: str
    """What is said wherever their results appear; empty for boards."""
    short_mark: str
    """The same where there is little space, as on an axis."""
    nodes_max: int
    """The most nodes of a cluster."""
    securities: tuple[str, ...]
    """Who may reach such a cluster, as names of ``records.Security``; the first one holds unless
    ``cluster.toml`` chooses another."""
    network: Network
    """What connects the nodes."""
    emulated: bool
    """Whether the nodes stand for machines but share this one, with its cores, disks and power
    meters."""
    limited: bool
    """Whether the kernel can hold nodes to what boards of the catalog can do."""
    on_this_machine: bool
    """Whether the nodes take this machine's memory and disk, and end with it."""
    shares_files: bool
    """Whether the nodes see this machine's files under the same paths."""
    shares_processes: bool
    """Whether what runs on a node runs among this machine's other processes, from which only the
    mark in its environment tells it."""
    over_ssh: bool
    """Whether the nodes are machines of their own, reached by SSH."""
    provisioned: bool
    """Whether engines, users, services and firewall are installed on the nodes."""


@functools.cache
def every_kind() -> Mapping[str, Capabilities]:
    """Return the capabilities of every kind of node by its name, in the order of their ranks.

    Raises:
        TypeError: a ``kind.toml`` lacks a key or has one too many.
    """
    folder = resources.files("boardcluster").joinpath("cluster", "kinds")
    found = []
    for entry in folder.iterdir():
        if (declared := entry.joinpath("kind.toml")).is_file():
            table = tomllib.loads(declared.read_text(encoding="utf-8"))
            table["network"] = Network(table["network"])
            table["securities"] = tuple(table["securities"])
            found.append(Capabilities(kind=entry.name, **table))
    return {row.kind: row for row in sorted(found, key=lambda row: row.rank)}


def capabilities_of(kind: str) -> Capabilities:
    """Return what a kind of node can do.

    Raises:
        UsageError: there is no such kind.
    """
    try:
        return every_kind()[kind]
    except KeyError as error:
        raise UsageError(
            f'"{kind}" is not a kind of node',
            hint=f"choose one of {', '.join(every_kind())}, or use the version of boardcluster "
            "that knows it",
        ) from error


def kinds_with(capability: str) -> str:
    """Name the kinds that have a capability, for messages: ``the kind "emulated"``.

    Args:
        capability: the name of an attribute of ``Capabilities``.
    """
    if capability not in {item.name for item in dataclasses.fields(Capabilities)}:
        raise RuntimeError(f"{capability} is no capability")
    names = [f'"{name}"' for name, row in every_kind().items() if getattr(row, capability)]
    return f"the kind{'s' if len(names) > 1 else ''} {' and '.join(names)}"
