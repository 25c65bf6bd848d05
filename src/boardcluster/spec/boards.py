"""Propose a cluster of boards from what was found on them. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Interface, IPv4Network

from boardcluster.errors import AddressError, UsageError
from boardcluster.records import ClusterSpec, NetworkSpec, NodeFacts, NodeSpec, Role, Security
from boardcluster.spec.checks import (
    LINK_BITS_PER_SECOND_MIN,
    NODE_NAME_LENGTH_MAX,
    check_cluster_name,
)
from boardcluster.spec.cluster import BOARDS_MAX, DEFAULT_LINK_BITS_PER_SECOND
from boardcluster.units import MIB

__all__ = ["FoundBoard", "propose_boards"]

_MEMORY_STEP_BYTES = 64 * MIB
_ALONE_MOST = 3
"""Up to so many boards the master works, too: one of three idle would waste a third."""

_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundBoard:
    """A board that answered."""

    host: str
    """How OpenSSH reaches it."""
    facts: NodeFacts
    """What was found."""
    folder: str
    """Where its data should go."""


def propose_boards(
    name: str,
    boards: Sequence[FoundBoard],
    *,
    engines: str,
    profile: str,
    security: Security,
    master: str = "",
    workers_only: bool = False,
    subnet: str = "",
) -> ClusterSpec:
    """Propose a cluster: the first board is the master, up to three boards work all.

    The subnet is the one in which every board has an address, unless given the fastest of several.
    Memory is what the kernel manages, rounded down to 64 MiB.

    Args:
        name: the cluster's name.
        boards: the boards, in the order given.
        engines: id of the engine pair.
        profile: name of the engine configuration.
        security: who may reach the cluster.
        master: host or name of the master; the first board if empty.
        workers_only: whether the master works on no jobs even among three boards or fewer.
        subnet: the network by which boards reach each other, as ``check_board_subnet`` returns it;
            empty for the fastest.

    Raises:
        UsageError: the name is not allowed, there are too many boards, or no such master.
        AddressError: no network, or not the given one, holds an address of its own for every board.
    """
    try:
        check_cluster_name(name)
    except ValueError as error:
        raise UsageError(f"name: {error}", hint="choose another name with --cluster") from error
    if not 1 <= len(boards) <= BOARDS_MAX:
        raise UsageError(
            f"{len(boards)} boards; allowed: 1 to {BOARDS_MAX}", hint="name the boards with --hosts"
        )
    names = _names(boards)
    first = _master(boards, names, master)
    network, addresses, rate = _network(boards, subnet)
    combined = len(boards) == 1 or (len(boards) <= _ALONE_MOST and not workers_only)

    def roles(index: int) -> frozenset[Role]:
        if index != first:
            return frozenset({Role.WORKER})
        return frozenset({Role.MASTER, Role.WORKER}) if combined else frozenset({Role.MASTER})

    nodes = [
        NodeSpec(
            name=names[index],
            roles=roles(index),
            cores=board.facts.cores,
            memory_bytes=board.facts.memory_bytes // _MEMORY_STEP_BYTES * _MEMORY_STEP_BYTES,
            host=board.host,
            address=addresses[index],
            folder=board.folder,
        )
        for index, board in enumerate(boards)
    ]
    return ClusterSpec(
        name=name,
        kind="boards",
        engines=engines,
        profile=profile,
        network=NetworkSpec(subnet=str(network), link_bits_per_second=rate),
        security=security,
        nodes=tuple(sorted(nodes, key=lambda node: Role.MASTER not in node.roles)),
    )


def _names(boards: Sequence[FoundBoard]) -> list[str]:
    """Return a name for each board, after its own host name; clones of one card get a number."""
    wanted = [_clean(board.facts.name) or f"node{n}" for n, board in enumerate(boards)]
    names: list[str] = []
    for name in wanted:
        alone = wanted.count(name) == 1
        number = 1
        candidate = name if alone else f"{name}-{number}"
        while candidate in names:
            number += 1
            candidate = f"{name}-{number}"
        names.append(candidate)
    return names


def _clean(host_name: str) -> str:
    short = _NOT_IN_NAMES.sub("-", host_name.partition(".")[0].lower())
    short = short.lstrip("-0123456789")[: NODE_NAME_LENGTH_MAX - 4].rstrip("-")
    return "" if short in ("localhost", "switch") else short


def _master(boards: Sequence[FoundBoard], names: Sequence[str], master: str) -> int:
    if not master:
        return 0
    for index, board in enumerate(boards):
        if master in (names[index], board.host, board.host.rpartition("@")[2]):
            return index
    raise UsageError(
        f"no board {master!r} among {', '.join(board.host for board in boards)}",
        hint="name one of --hosts with --master",
    )


def _interfaces(facts: NodeFacts) -> Mapping[IPv4Interface, int | None]:
    """Return the node's IPv4 addresses with the rate of their link."""
    rows = {
        IPv4Interface(address): link.speed_bits_per_second
        for link in facts.links
        for address in link.addresses
        if ":" not in address and link.up
    }
    return {at: row for at, row in rows.items() if not (at.ip.is_loopback or at.ip.is_link_local)}


def _network(boards: Sequence[FoundBoard], wanted: str) -> tuple[IPv4Network, list[str], int]:
    """Return the network that holds all boards, their addresses in it, and its slowest link.

    One in which boards have the same address is inside each of them, as a bridge of containers.
    """
    seen = [_interfaces(board.facts) for board in boards]
    held = {
        network: [next((at.ip for at in rows if at.ip in network), None) for rows in seen]
        for network in {at.network for at in seen[0] if 8 <= at.network.prefixlen <= 30}
    }
    shared = {
        network: [str(ip) for ip in ips]
        for network, ips in held.items()
        if None not in ips and len(set(ips)) == len(boards)
    }
    if not shared:
        lines = [
            f"  {board.host}: {', '.join(map(str, rows)) or 'no IPv4 address'}"
            for board, rows in zip(boards, seen, strict=True)
        ]
        raise AddressError(
            "no IPv4 network holds an address of every board that no other board has:\n"
            + "\n".join(lines),
            hint="connect all boards to the same switch or router, then run `boardcluster init` "
            "again",
        )
    if wanted and IPv4Network(wanted) not in shared:
        raise AddressError(
            f"{wanted} is not a network that all boards are in; these are: "
            f"{', '.join(map(str, sorted(shared)))}",
            hint="name one of them with --subnet, or leave it out",
        )

    def slowest(network: IPv4Network) -> int:
        rates = [
            rate
            for rows in seen
            for interface, rate in rows.items()
            if interface.ip in network and rate is not None
        ]
        return min(rates, default=0)

    best = IPv4Network(wanted) if wanted else max(sorted(shared), key=slowest)
    rate = slowest(best)
    usable = rate if rate >= LINK_BITS_PER_SECOND_MIN else DEFAULT_LINK_BITS_PER_SECOND
    return best, shared[best], usable
