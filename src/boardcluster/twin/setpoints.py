"""What each emulated board must show, from the catalog's figures, each with its source. Pure.

Absent is better than likely: a figure that nobody measured is an error that says what to choose
instead. ``docs/reference/twin.md`` has the rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from statistics import fmean

from boardcluster.catalog.entry import BoardEntry, SourcedFigure
from boardcluster.catalog.lookup import PartEntry, entry_names, find_board, find_part, nearest
from boardcluster.errors import UsageError
from boardcluster.records import NodeSpec, NodeTwin
from boardcluster.units import format_bytes, format_rate

__all__ = ["PAYLOAD_SHARE", "DiskSetPoints", "NodeSetPoints", "SetPoint", "set_points"]

_PRIME_LIMIT = "2000"
PAYLOAD_SHARE = 1448 / 1538
"""TCP payload of a full Ethernet frame over what it takes of the line: 1,538 bytes with preamble
and gap; 52 of the 1,500 within are headers of IP and of TCP with time stamps."""

_RECORD_BYTES = 4096
"""Size of the requests that IOPS are counted in, as in the papers."""

_ANY_LINK = 2**63
"""A network that limits nothing."""

_SEQUENTIAL_TOOLS = ("iozone", "hdparm", "dd")
"""Best first: iozone says its record size; hdparm only reads and dd only copies."""

_GOODPUTS = ("iperf3_bits_per_second", "iperf_bits_per_second")
_LINKS = ("link_bits_per_second", "ethernet_most_bits_per_second")


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPoint:
    """One thing that a node must show."""

    quantity: str
    """What, its unit last."""
    value: float
    """In that unit, on the board; no dilation is in it."""
    source: str
    """Where it is from, a paper and its table."""
    note: str = ""
    """What is to be known about it; may be empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskSetPoints:
    """What the disk of a node must show: rates of large requests, and requests of 4 KiB."""

    read_bytes_per_second: SetPoint
    write_bytes_per_second: SetPoint
    read_iops: SetPoint
    write_iops: SetPoint


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSetPoints:
    """What one node must show."""

    cpu_events_per_second: SetPoint
    """Of ``sysbench cpu``, primes up to 2000, all cores busy."""
    memory_bytes: SetPoint
    """Page cache included."""
    link_bits_per_second: SetPoint
    """TCP payload in each direction."""
    disk: DiskSetPoints | None
    """None without a medium."""

    @property
    def all(self) -> tuple[SetPoint, ...]:
        """Every set point, those of the disk last."""
        points = (self.cpu_events_per_second, self.memory_bytes, self.link_bits_per_second)
        own = [getattr(self.disk, each.name) for each in fields(DiskSetPoints)] if self.disk else ()
        return (*points, *own)


def set_points(node: NodeSpec, network_link: int) -> NodeSetPoints:
    """Return what a node must show.

    Args:
        node: with a board.
        network_link: rate of the cluster's links in bits per second.

    Raises:
        UsageError: the node has no board, a name does not exist, or the catalog lacks a figure;
            says which, who has it, and the nearest combination that can be used.
        SpecError: a file of one's own is missing or wrong.
    """
    twin = node.twin
    if twin is None:
        raise UsageError(
            f"node {node.name} has no board to emulate",
            hint="give it a `board` in cluster.toml",
        )
    board = find_board(twin.board)
    medium = find_part("media", twin.medium) if twin.medium else None
    cpu, link = _cpu(board), _link(board, network_link)
    disk = None if medium is None else _disk(board, medium, twin.pcie)
    if cpu is None or link is None or (medium is not None and disk is None):
        raise _refusal(node, twin, board, medium)
    return NodeSetPoints(
        cpu_events_per_second=cpu,
        memory_bytes=_memory(node, board),
        link_bits_per_second=link,
        disk=disk,
    )


def _named(rows: Iterable[SourcedFigure], name: str, **conditions: str) -> list[SourcedFigure]:
    """Return the figures of a name that have all of some conditions; ``""`` stands for absent."""
    return [
        row
        for row in rows
        if row.figure.name == name
        and all(row.figure.conditions.get(key, "") == text for key, text in conditions.items())
    ]


def _cpu(board: BoardEntry) -> SetPoint | None:
    """Return the rate with all cores busy: with as many threads as cores, or the next more."""
    rows = _named(board.figures, "sysbench_cpu_events_per_second", prime_limit=_PRIME_LIMIT)
    threads = {_whole(row, "threads"): row for row in rows}
    enough = sorted(number for number in threads if number >= board.cores)
    if not enough:
        return None
    row = threads[enough[0]]
    return SetPoint(
        quantity="cpu_events_per_second",
        value=row.figure.value,
        source=row.source,
        note="" if enough[0] == board.cores else f"with {enough[0]} threads",
    )


def _whole(row: SourcedFigure, condition: str) -> int:
    """Return a condition that is a whole number; 0 where it is missing or says anything else."""
    text = row.figure.conditions.get(condition, "")
    return int(text) if re.fullmatch("[0-9]{1,15}", text) else 0


def _memory(node: NodeSpec, board: BoardEntry) -> SetPoint:
    if node.memory_bytes == board.memory_bytes:
        source = board.sources.get("memory_bytes", f"the board {board.id}")
        return SetPoint(quantity="memory_bytes", value=node.memory_bytes, source=source)
    smaller = format_bytes(node.memory_bytes, binary=True)
    return SetPoint(
        quantity="memory_bytes",
        value=node.memory_bytes,
        source="cluster.toml",
        note=f"{smaller} of memory, the board has {format_bytes(board.memory_bytes, binary=True)}",
    )


def _link(board: BoardEntry, network_link: int) -> SetPoint | None:
    point = _goodput(board) or _link_rate(board)
    if point is None or point.value <= network_link:
        return point
    return SetPoint(
        quantity=point.quantity,
        value=network_link * PAYLOAD_SHARE,
        source="cluster.toml",
        note=f"the network's link is slower than the board's {format_rate(point.value)}",
    )


def _goodput(board: BoardEntry) -> SetPoint | None:
    """Return the TCP payload that was measured over the cable, by the newer tool if by both.

    A board's own probe does not know what kind of link it measured: it is the cluster's.
    """
    for name in _GOODPUTS:
        rows = [*_named(board.figures, name, interface="Ethernet")]
        rows += _named(board.figures, name, interface="")
        if rows:
            sources = ", ".join(dict.fromkeys(row.source for row in rows))
            return SetPoint(
                quantity="link_bits_per_second",
                value=fmean(row.figure.value for row in rows),
                source=sources,
                note=f"link: mean of {len(rows)} figures" if len(rows) > 1 else "",
            )
    return None


def _link_rate(board: BoardEntry) -> SetPoint | None:
    rows = [
        row
        for name in _LINKS
        for row in _named(board.figures, name)
        if row.figure.conditions.get("interface", "Ethernet") == "Ethernet"
    ]
    if not _named(rows, "link_bits_per_second"):
        return None
    slowest = min(rows, key=lambda row: row.figure.value)
    return SetPoint(
        quantity="link_bits_per_second",
        value=slowest.figure.value * PAYLOAD_SHARE,
        source=slowest.source,
        note="link: 94 % of the nominal rate, as no payload rate was measured",
    )


def _disk(board: BoardEntry, medium: PartEntry, pcie: str) -> DiskSetPoints | None:
    """Return what a medium does in a board; None if a figure is missing."""
    points = {
        f"{way}_{unit}": find(board, medium, pcie, way)
        for unit, find in (("bytes_per_second", _rate), ("iops", _iops))
        for way in ("read", "write")
    }
    known = {name: point for name, point in points.items() if point is not None}
    return DiskSetPoints(**known) if len(known) == len(points) else None


def _rate(board: BoardEntry, medium: PartEntry, pcie: str, way: str) -> SetPoint | None:
    name = f"sequential_{way}_bytes_per_second"
    rows, note = _in_board(_named(medium.figures, name, pcie=pcie), board)
    for tool in _SEQUENTIAL_TOOLS:
        of_tool = [row for row in rows if row.figure.conditions.get("tool") == tool]
        if of_tool:
            best = max(of_tool, key=lambda row: _whole(row, "record_bytes"))
            return SetPoint(
                quantity=f"disk_{way}_bytes_per_second",
                value=best.figure.value,
                source=best.source,
                note=note,
            )
    return None


def _iops(board: BoardEntry, medium: PartEntry, pcie: str, way: str) -> SetPoint | None:
    """Return requests of 4 KiB per second: as the source has them, else from its bytes/s."""
    record = str(_RECORD_BYTES)
    for name, unit_bytes in (
        (f"random_{way}_iops", 1),
        (f"random_{way}_bytes_per_second", _RECORD_BYTES),
    ):
        named = _named(medium.figures, name, pcie=pcie, record_bytes=record)
        rows, note = _in_board(named, board)
        if rows:
            return SetPoint(
                quantity=f"disk_{way}_iops",
                value=rows[0].figure.value / unit_bytes,
                source=rows[0].source,
                note=note,
            )
    return None


def _in_board(rows: Sequence[SourcedFigure], board: BoardEntry) -> tuple[list[SourcedFigure], str]:
    """Return those measured in a board, else in one with the same chip at the same clock.

    Returns:
        The figures, and a note if they are another board's.
    """
    by_board: dict[str, list[SourcedFigure]] = {}
    for row in rows:
        by_board.setdefault(row.figure.conditions.get("board", ""), []).append(row)
    if board.id in by_board:
        return by_board[board.id], ""
    alike = [name for name in by_board if _is_alike(board, name)]
    if not alike:
        return [], ""
    other = _nearest_of(board.id, alike)
    note = f"disk: measured in {other}, which has the same chip and clock"
    return by_board[other], note


def _is_alike(board: BoardEntry, name: str) -> bool:
    """Whether a board of the catalog has a board's chip and clock, both known.

    A figure of another clock says nothing: small requests cost time of the CPU.
    """
    if name not in entry_names("boards") or not _chip(board) or board.clock_hertz is None:
        return False
    other = _of_catalog(name)
    return (_chip(other), other.clock_hertz) == (_chip(board), board.clock_hertz)


@cache
def _of_catalog(name: str) -> BoardEntry:
    """Return a board of the catalog, which does not change while we run."""
    return find_board(name)


def _nearest_of(name: str, names: Sequence[str]) -> str:
    """Return the name most like another; the first one if none is."""
    return nearest(name, names) or names[0]


def _chip(board: BoardEntry) -> str:
    """Return what ``hardware`` names first: ``Broadcom BCM2712``."""
    return re.split("[,;]", board.hardware)[0].strip()


def _refusal(
    node: NodeSpec, twin: NodeTwin, board: BoardEntry, medium: PartEntry | None
) -> UsageError:
    """Say everything that is missing, who has it, and what could be used instead."""
    usable = _usable_boards()
    lines = []
    if _cpu(board) is None:
        lines.append(
            f"no source gives `sysbench cpu` of the board {board.id} with primes up to "
            f"{_PRIME_LIMIT} and all cores busy ({board.cores})"
        )
    if _link(board, _ANY_LINK) is None:
        lines.append(f"no source gives the Ethernet rate of the board {board.id}")
    if lines:
        lines.append(f"boards that have what is needed: {', '.join(usable)}")
    if medium is not None and _disk(board, medium, twin.pcie) is None:
        by = f" by PCI Express {twin.pcie}" if twin.pcie else ""
        lines.append(
            f"no source gives both sequential and 4 KiB random reads and writes of the medium "
            f"{medium.id}{by} in the board {board.id}"
        )
        if uncounted := _uncounted(board, medium, twin.pcie):
            lines.append(f"figures that do not count: {'; '.join(uncounted)}")
        pairs = [
            f"{name} with pcie {pcie}" if pcie else name
            for name, _, pcie in _usable_pairs(usable.values(), [medium])
        ]
        lines.append(f"boards that {medium.id} can be used with: {', '.join(pairs) or 'none'}")
    rows = "\n  ".join(lines)
    return UsageError(
        f"node {node.name} cannot emulate its board:\n  {rows}",
        hint=_nearest_hint(twin, board, medium, usable),
    )


def _uncounted(board: BoardEntry, medium: PartEntry, pcie: str) -> list[str]:
    """Name the figures of a medium in a board that lack a condition, and which."""
    *others, last = (f'"{name}"' for name in _SEQUENTIAL_TOOLS)
    tool, record = f"tool = {', '.join(others)} or {last}", f'record_bytes = "{_RECORD_BYTES}"'
    found = []
    for way in ("read", "write"):
        for name, find, condition in (
            (f"sequential_{way}_bytes_per_second", _rate, tool),
            (f"random_{way}_iops", _iops, record),
            (f"random_{way}_bytes_per_second", _iops, record),
        ):
            there, _ = _in_board(_named(medium.figures, name, pcie=pcie), board)
            if there and find(board, medium, pcie, way) is None:
                found.append(f"{name} without {condition}")
    return found


_Pair = tuple[str, str, str]
"""A board, a medium and a version of PCI Express."""


def _usable_boards() -> Mapping[str, BoardEntry]:
    """Return the boards of the catalog whose CPU and link are known."""
    boards = ((name, _of_catalog(name)) for name in entry_names("boards"))
    return {name: board for name, board in boards if _cpu(board) and _link(board, _ANY_LINK)}


@cache
def _all_media() -> tuple[PartEntry, ...]:
    return tuple(find_part("media", name) for name in entry_names("media"))


def _usable_pairs(
    boards: Iterable[BoardEntry], media: Sequence[PartEntry] | None = None
) -> list[_Pair]:
    """Return every board with every medium whose figures are known in it; None: of the catalog."""
    return [
        (board.id, medium.id, pcie)
        for board in boards
        for medium in (_all_media() if media is None else media)
        for pcie in sorted({row.figure.conditions.get("pcie", "") for row in medium.figures})
        if _disk(board, medium, pcie)
    ]


def _nearest_hint(
    twin: NodeTwin, board: BoardEntry, medium: PartEntry | None, usable: Mapping[str, BoardEntry]
) -> str:
    """Offer the nearest board, with the nearest medium that was measured in it."""
    if medium is None:
        return f'use board = "{_nearest_of(board.id, list(usable))}"'
    is_usable = _cpu(board) is not None and _link(board, _ANY_LINK) is not None
    pairs = (_usable_pairs([board]) if is_usable else []) or _usable_pairs(usable.values())
    name = _nearest_of(board.id, list(dict.fromkeys(pair[0] for pair in pairs)))
    there = [pair for pair in pairs if pair[0] == name]
    kept = [pair for pair in there if pair[1] == medium.id]
    other = _nearest_of(medium.id, [pair[1] for pair in there])
    chosen = kept or [pair for pair in there if pair[1] == other]
    best = max(chosen, key=lambda pair: (pair[2] == twin.pcie, pair[2]))
    pcie = f', pcie = "{best[2]}"' if best[2] else ""
    without = "; or leave the medium out to use this machine's own disk" if is_usable else ""
    return f'use board = "{best[0]}" with medium = "{best[1]}"{pcie}{without}'
