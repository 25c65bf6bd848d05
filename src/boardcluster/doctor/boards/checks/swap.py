"""No board swaps to a card, or counts compressed memory."""

from __future__ import annotations

from collections.abc import Iterator

from boardcluster.doctor.boards.view import BoardView, ClusterView, each, fault
from boardcluster.doctor.finding import Check, Finding, Severity
from boardcluster.units import format_bytes

__all__ = ["CHECK"]


def look(view: ClusterView) -> Iterator[Finding]:
    """Look at what each swap area is on."""
    yield from each(CHECK, view, _judge, good="no swap on slow media")


def _judge(board: BoardView) -> Finding | None:
    facts = board.facts
    slow = [row for row in facts.swaps if row.kind in _SLOW]
    zram_bytes = sum(row.size_bytes for row in facts.swaps if row.kind == "zram")
    if zram_bytes and board.spec.memory_bytes > facts.memory_bytes:
        return fault(
            CHECK,
            board,
            f"declares {format_bytes(board.spec.memory_bytes, binary=True)}, of which zram would "
            f"have to find {_rest(board)} in {format_bytes(facts.memory_bytes, binary=True)}",
            severity=Severity.ERROR,
            fix=f"declare what `MemTotal` says for {board.name} in cluster.toml, not more",
        )
    if not slow:
        return None
    named = ", ".join(
        f"{format_bytes(row.size_bytes, binary=True)} on {_SLOW[row.kind]} ({row.place})"
        for row in slow
    )
    return fault(
        CHECK,
        board,
        named,
        fix=board.there(f"sudo swapoff {' '.join(row.place for row in slow)}")
        + "   (until the next boot; for good: disable dphys-swapfile, or Mechanism=none for "
        "rpi-swap)",
    )


def _rest(board: BoardView) -> str:
    return format_bytes(board.spec.memory_bytes - board.facts.memory_bytes, binary=True)


_SLOW = {"sd": "an SD card", "emmc": "eMMC", "usb": "a USB stick or disk", "hdd": "a hard disk"}

CHECK = Check(
    name="swap",
    looks_at="Swap areas and what they are on, and whether declared memory counts on zram.",
    why="A JVM that collects garbage touches its whole heap: in swap on a card each collection "
    "takes minutes, heartbeats are missed and the node is lost. It wears the card out, too. zram "
    "is memory already.",
    source='Apache Hadoop, "Cluster Setup"; proc_swaps(5); Linux, admin-guide/blockdev/zram',
    severity=Severity.WARNING,
    look=look,
)
