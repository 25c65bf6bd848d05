"""Boards on the command line: which they are, whether they are who they say, what they are."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from boardcluster.cli.asking import ask_yes, confirmed
from boardcluster.cli.console import Reporter, print_table, say_last
from boardcluster.cluster.discovery import (
    discover,
    facts_table,
    require_nodes,
    skews,
    suggest_folder,
    vague_clocks,
)
from boardcluster.cluster.each_node import each_node, raise_first
from boardcluster.cluster.kinds.boards.nodes import BoardNodes, known_hosts_of
from boardcluster.errors import CapacityError, HostKeyError, RemoteError, UsageError
from boardcluster.fetch.cache import make_folder
from boardcluster.records import ClusterSpec, NodeSpec, Security
from boardcluster.remote.hostkeys import HostKey, known, learn, trust
from boardcluster.services.boards import board_owners
from boardcluster.services.inventory import read_inventory
from boardcluster.services.profile import build_profile
from boardcluster.spec.boards import FoundBoard, propose_boards
from boardcluster.spec.checks import check_board_subnet
from boardcluster.units import format_count

__all__ = ["accept_host_keys", "boards_of", "confirm_take_over", "look_at_boards"]


def boards_of(hosts: str, inventory: Path | None, reporter: Reporter) -> list[str]:
    """Return the destinations named by --hosts or an inventory; none if neither is given.

    Raises:
        UsageError: both are given, or a host is named twice.
        SpecError: the inventory is wrong.
    """
    if hosts and inventory is not None:
        raise UsageError("--hosts cannot be used with --inventory", hint="give one of them")
    named = [host.strip() for host in hosts.split(",") if host.strip()]
    if hosts and not named:
        raise UsageError("--hosts names no host", hint="for example --hosts pi@pi0,pi@pi1")
    if inventory is not None:
        read = read_inventory(inventory)
        for remark in read.remarks:
            reporter.line(f"{inventory}: {remark}")
        named = [host.destination for host in read.hosts]
    if twice := sorted({host for host in named if named.count(host) > 1}):
        raise UsageError(f"named twice: {', '.join(twice)}", hint="name each board once")
    return named


def accept_host_keys(hosts: Sequence[str], *, home: Path, accept: bool) -> None:
    """Show the keys of hosts that are not known yet, and store them if they are accepted.

    Raises:
        UnreachableError: a host does not answer.
        HostKeyError: they were not accepted, or nobody can be asked.
    """
    file = known_hosts_of(home)
    names, errors = each_node(hosts, lambda host: known(file, host))
    raise_first(errors)
    new = [host for host in hosts if not names[host]]
    if not new:
        return
    learned = learn(new)
    raise_first({host: key for host, key in learned.items() if isinstance(key, RemoteError)})
    keys = [key for key in learned.values() if isinstance(key, HostKey)]
    rows = [[key.host, key.kind, key.fingerprint] for key in keys]
    columns = ["host", "type", "fingerprint"]
    print_table("host keys not seen before", columns, rows, to_stderr=True)
    say_last(
        "Compare them, on each board's own screen: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub"
    )
    if not accept:
        if not sys.stdin.isatty():
            raise HostKeyError(
                "these host keys must be accepted, but there is no terminal to ask on",
                hint="compare them, then run the command again with --yes",
            )
        if not ask_yes("Are these your boards?"):
            raise HostKeyError(
                "the host keys were not accepted", hint="find out which machine answers there"
            )
    make_folder(home)
    trust(file, keys)


def look_at_boards(
    hosts: Sequence[str],
    *,
    home: Path,
    name: str,
    engines: str,
    profile: str,
    security: Security,
    master: str,
    subnet: str,
    accept: bool,
    reporter: Reporter,
) -> ClusterSpec:
    """Look at each board, show what was found, and propose a cluster of them; changes nothing.

    Raises:
        UsageError: the subnet is not allowed.
        RemoteError: a board cannot be reached, or refuses us.
        HostError: a board cannot be a node; says why of each.
    """
    try:
        subnet = check_board_subnet(subnet) if subnet else ""
    except ValueError as error:
        raise UsageError(f"--subnet: {error}", hint="leave it out, or name another") from error
    accept_host_keys(hosts, home=home, accept=accept)
    nodes = BoardNodes(home)
    try:
        reporter.line(f"inspecting {format_count(len(hosts), 'board')}")
        facts, errors = each_node(
            hosts, lambda host: discover(nodes.reach(host, host, user="", folder=""))
        )
    finally:
        nodes.close()
    raise_first(errors)
    columns, rows = facts_table(facts)
    print_table("", columns, rows)
    require_nodes(facts, hint="fix that, then run the command again")
    for skew in (*vague_clocks(facts).values(), *skews(facts)):
        reporter.line(f"remark: {skew}; `boardcluster up` refuses to start until it is fixed")
    found = [
        FoundBoard(host=host, facts=facts[host], folder=suggest_folder(facts[host]))
        for host in hosts
    ]
    propose = partial(
        propose_boards,
        name,
        found,
        engines=engines,
        profile=profile,
        security=security,
        master=master,
        subnet=subnet,
    )
    spec = propose()
    try:
        built = build_profile(profile, spec)
    except CapacityError as error:
        if len(found) == 1:  # it may have been a worker of others, and only leaves its cluster
            reporter.line(f"remark: {error.message}; `boardcluster up` refuses to start")
            return spec
        # Small boards: a master that does not work leaves room for its own daemons.
        reporter.line(f"the master is not a worker: {error.message}")
        spec = propose(workers_only=True)
        built = build_profile(profile, spec)
    for remark in built.remarks:
        reporter.line(f"remark on profile {profile}: {remark}")
    return spec


def confirm_take_over(home: Path, boards: Sequence[NodeSpec], *, yes: bool) -> bool:
    """Say whose boards are to be taken over, and ask.

    Raises:
        UsageError: nobody is here to answer.
    """
    owners = board_owners(home, boards)
    for name, owner in owners.items():
        say_last(f"{name} belongs to {owner.words}")
    if not owners:
        say_last("no board belongs to another driver")
        return True
    return yes or confirmed("End what runs on these boards and take them over?")
