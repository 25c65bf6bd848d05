"""The disk of each board can be written."""

from __future__ import annotations

from collections.abc import Iterator

from boardcluster.doctor.boards.view import BoardView, ClusterView, each, fault
from boardcluster.doctor.finding import Check, Finding, Severity

__all__ = ["CHECK"]


def look(view: ClusterView) -> Iterator[Finding]:
    """Look at the file systems of the root and of the board's folder."""
    yield from each(CHECK, view, _judge, good="every board can write its disks")


def _judge(board: BoardView) -> Finding | None:
    mounts = {row.folder: row for row in (board.facts.mount("/"), board.mount) if row is not None}
    stuck = [row for row in mounts.values() if row.read_only]
    if not stuck:
        return None
    return fault(
        CHECK,
        board,
        " and ".join(f"{row.folder} ({row.source}) is read-only" for row in stuck),
        fix=board.there("sudo dmesg | grep -iE 'error|read-only' | tail")
        + "   says why; after an error copy the card to a new one, or switch off the overlay file "
        "system in raspi-config",
    )


CHECK = Check(
    name="read_only",
    looks_at="Whether the file systems of / and of each board's folder are mounted read-only.",
    why="ext4 stops writing when it meets an error (errors=remount-ro), which is how worn cards "
    "end. The overlay mode of raspi-config keeps every change in memory only.",
    source='ext4(5), errors; Raspberry Pi documentation, raspi-config, "Overlay File System"',
    severity=Severity.ERROR,
    look=look,
)
