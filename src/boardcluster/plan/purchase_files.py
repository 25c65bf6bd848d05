"""The files of a plan: the cluster as boards, its twin, the shopping list. Pure."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from ipaddress import IPv4Network
from pathlib import Path

from boardcluster.capabilities import capabilities_of
from boardcluster.catalog.lookup import find_board, find_part
from boardcluster.errors import BoardclusterError, UsageError
from boardcluster.foreign import visible, write_csv
from boardcluster.plan.offers import boards_alike
from boardcluster.plan.purchase import PlannedPart, PurchasePlan
from boardcluster.records import (
    ClusterSpec,
    NetworkSpec,
    NodeSpec,
    NodeTwin,
    Prices,
    Role,
    Security,
    TwinSpec,
)
from boardcluster.spec.cluster import DEFAULT_FOLDER, DEFAULT_SUBNET
from boardcluster.spec.twin import DEFAULT_DISK_BYTES, part_name
from boardcluster.twin.setpoints import set_points

__all__ = ["boards_spec", "purchase_files", "shopping_csv", "shopping_list", "twin_spec"]

_SMALL_SUBNET, _LARGE_SUBNET = "192.168.1.0/24", "10.0.0.0/16"
_FIRST_ADDRESS = 11
_SMALL_NODES = 200
_NAME = "planned"

_PLACEHOLDERS = """\
# Planned by `boardcluster plan`. Hosts, addresses and the subnet below are placeholders: when the
# boards are there, replace them, or let `boardcluster init --hosts` write this file.
"""
_TWIN_WORDS = """\
# A twin of the planned cluster, to try on this machine: boardcluster up --twin FILE (as root).
"""


def _boards(plan: PurchasePlan) -> list[tuple[str, str]]:
    """Return board and medium of each worker, those to buy first."""
    best = plan.best
    found = [(best.board, best.medium)] * best.workers
    for row in plan.there.rows:
        found += [(row.board.name, row.medium.name)] * row.count
    return found


def _nodes(kinds: Sequence[tuple[str, str]]) -> tuple[NodeSpec, ...]:
    """Return a master like the first worker, and the workers."""
    nodes = []
    for place, (board, medium) in enumerate([kinds[0], *kinds]):
        entry = find_board(board)
        versions = {
            row.figure.conditions["pcie"]
            for row in find_part("media", medium).figures
            if "pcie" in row.figure.conditions
        }
        nodes.append(
            NodeSpec(
                name=f"worker{place}" if place else "master",
                roles=frozenset({Role.WORKER if place else Role.MASTER}),
                cores=entry.cores,
                memory_bytes=entry.memory_bytes,
                twin=NodeTwin(
                    board=_anywhere(board),
                    medium=_anywhere(medium),
                    pcie=max(versions, default=""),
                    supply="",
                    cooling="",
                    disk_bytes=DEFAULT_DISK_BYTES,
                ),
            )
        )
    return tuple(nodes)


def _anywhere(name: str) -> str:
    """Return a name; if it is a path, the whole one: those in a file begin at the file's folder."""
    return part_name(name, Path())


def boards_spec(plan: PurchasePlan, *, engines: str) -> ClusterSpec:
    """Return the cluster as boards, with placeholders for hosts and addresses.

    Args:
        plan: the plan.
        engines: id of the engine pair.
    """
    nodes = _nodes(_boards(plan))
    subnet = _SMALL_SUBNET if len(nodes) <= _SMALL_NODES else _LARGE_SUBNET
    first = IPv4Network(subnet)[_FIRST_ADDRESS]
    return ClusterSpec(
        name=_NAME,
        kind="boards",
        engines=engines,
        profile=_anywhere(plan.best.profile),
        network=NetworkSpec(subnet=subnet, link_bits_per_second=_link(plan)),
        nodes=tuple(
            replace(
                node,
                twin=None,
                host=f"{node.name}.local",
                address=str(first + place),
                folder=DEFAULT_FOLDER,
            )
            for place, node in enumerate(nodes)
        ),
        security=Security.CLOSED,
        prices=None if plan.there.rows else _prices(plan),
    )


def _link(plan: PurchasePlan) -> int:
    return int(min(plan.best.link_bits_per_second, plan.there.slowest_link))


def _prices(plan: PurchasePlan) -> Prices | None:
    each = {
        part.kind: part.each * (part.count if part.kind == "switch" else 1)
        for part in plan.best.parts
        if part.each is not None
    }
    if not each:
        return None
    return Prices(
        currency=plan.currency,
        board=each.get("board"),
        medium=each.get("medium"),
        supply=each.get("supply"),
        cooling=each.get("cooling"),
        switch=each.get("switch"),
        other=each.get("other"),
    )


def twin_spec(plan: PurchasePlan, *, engines: str) -> tuple[ClusterSpec | None, tuple[str, ...]]:
    """Return a twin of the cluster, and what is to be said of it, a sentence each.

    It has at most as many workers as one machine can emulate. A board whose CPU nobody measured is
    emulated by one with its chip and clock, with its own memory. There is no twin where the catalog
    lacks a figure all the same; then the words say which.
    """
    most = capabilities_of("emulated").nodes_max - 1
    kinds = _boards(plan)
    link = _link(plan)
    nodes, words = [], []
    stands_in: dict[NodeTwin, NodeTwin] = {}
    for node in _nodes(kinds[:most]):
        if node.twin is None:
            raise RuntimeError(f"{node.name} has no board")
        if node.twin not in stands_in:
            try:
                stands_in[node.twin] = _emulated(node, link)
            except BoardclusterError as error:
                return None, (f"no twin: {error.message}",)
            if (other := stands_in[node.twin].board) != node.twin.board:
                words.append(
                    f"in the twin {other} with less memory stands for {node.twin.board}, which"
                    " nobody measured"
                )
        nodes.append(replace(node, twin=stands_in[node.twin]))
    if len(kinds) > most:
        words.append(f"the twin has the first {most} of {len(kinds)} workers")
    spec = ClusterSpec(
        name=f"{_NAME}-twin",
        kind="emulated",
        engines=engines,
        profile=_anywhere(plan.best.profile),
        network=NetworkSpec(subnet=DEFAULT_SUBNET, link_bits_per_second=link),
        nodes=tuple(nodes),
        twin=TwinSpec(dilation=None),
    )
    return spec, tuple(words)


def _emulated(node: NodeSpec, link: int) -> NodeTwin:
    """Return what a node emulates: its board, or one of the same chip and clock that was measured.

    Raises:
        UsageError: neither can be emulated; says what is missing of its own.
    """
    twin = node.twin
    if twin is None:
        raise RuntimeError(f"{node.name} has no board")
    try:
        set_points(node, link)
    except UsageError:
        for name in boards_alike(twin.board):
            other = replace(twin, board=name)
            if find_board(name).memory_bytes < node.memory_bytes:
                continue
            with contextlib.suppress(UsageError):
                set_points(replace(node, twin=other), link)
                return other
        raise
    return twin


def shopping_list(plan: PurchasePlan) -> str:
    """Return what to buy as a table of Markdown."""
    lines = [
        f"# What to buy for {plan.task.workload}",
        "",
        f"{_plain(plan.best.words)}.",
        "",
        "| Part | Name | Count | Each | Together | Price by |",
        "|---|---|--:|--:|--:|---|",
    ]
    lines += [f"| {' | '.join(map(_plain, _cells(part)))} |" for part in plan.best.parts]
    lines += ["", f"Together: {plan.currency} {plan.best.price:,.2f}.", ""]
    if plan.unpriced:
        lines += [f"Not counted, because no price is known: {', '.join(plan.unpriced)}.", ""]
    return "\n".join(lines)


def _plain(text: str) -> str:
    """Return text of others, such as the path of a file of one's own, without any markup."""
    return re.sub(r"([\\`*<>|\[\]])", r"\\\1", " ".join(visible(text).split()))


def _cells(part: PlannedPart) -> tuple[str, ...]:
    each = "" if part.each is None else f"{part.each:.2f}"
    together = "" if part.each is None else f"{part.each * part.count:.2f}"
    return (part.kind, part.name or "any", str(part.count), each, together, part.source)


def shopping_csv(plan: PurchasePlan) -> str:
    """Return the same as CSV."""
    buffer = io.StringIO()
    head = ("part", "name", "count", "each", "together", "price_by")
    write_csv(buffer, [head, *(_cells(part) for part in plan.best.parts)])
    return buffer.getvalue()


def purchase_files(
    plan: PurchasePlan, *, engines: str, render: Callable[[ClusterSpec], str]
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the files of a plan by name, and what is to be said of them.

    Args:
        plan: the plan.
        engines: id of the engine pair.
        render: writes a ``cluster.toml``.
    """
    twin, words = twin_spec(plan, engines=engines)
    files = {
        "cluster.toml": _PLACEHOLDERS + render(boards_spec(plan, engines=engines)),
        "shopping-list.md": shopping_list(plan),
        "shopping-list.csv": shopping_csv(plan),
    }
    if twin is not None:
        files["twin.toml"] = _TWIN_WORDS + render(twin)
    return files, words
