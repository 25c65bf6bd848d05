"""The cluster's links run at 1 Gbit/s or more, over cables."""

from __future__ import annotations

from collections.abc import Iterator

from boardcluster.doctor.boards.view import BoardView, ClusterView, each, fault
from boardcluster.doctor.finding import Check, Finding, Severity
from boardcluster.records import Link
from boardcluster.units import format_rate

__all__ = ["CHECK"]


def look(view: ClusterView) -> Iterator[Finding]:
    """Look at the link that holds each board's address."""
    yield from each(CHECK, view, _judge, good="no link is wireless, half duplex or slow")


def _judge(board: BoardView) -> Finding | None:
    own = [link for link in board.facts.links if _holds(link, board.spec.address)]
    if not own:
        return None
    link, rate = own[0], own[0].speed_bits_per_second
    if link.wireless:
        return fault(
            CHECK,
            board,
            f"{link.name}, which has its address, is wireless",
            fix="plug in a cable, and declare the address of eth0 in cluster.toml",
        )
    if link.duplex == "half" or (rate is not None and rate < _WANTED_BITS_PER_SECOND):
        half = ", half duplex" if link.duplex == "half" else ""
        return fault(
            CHECK,
            board,
            f"{link.name} runs at {format_rate(rate or 0)}{half}",
            fix="use a cable with all eight wires (Cat 5e) and a gigabit switch; a Raspberry Pi 3 "
            "or older has no faster port",
        )
    return None


def _holds(link: Link, address: str) -> bool:
    return any(one.partition("/")[0] == address for one in link.addresses)


_WANTED_BITS_PER_SECOND = 10**9

CHECK = Check(
    name="link_speed",
    looks_at="Rate, duplex and kind of the interface that holds each board's address.",
    why="One bad wire makes a link fall back to 100 Mbit/s, 12 MB/s: replication and shuffle of "
    "the whole cluster wait for that board. Radio is slower and changes from minute to minute.",
    source="IEEE 802.3, clauses 28 and 40 (1000BASE-T uses four pairs); Linux, "
    "Documentation/ABI/testing/sysfs-class-net",
    severity=Severity.WARNING,
    look=look,
)
