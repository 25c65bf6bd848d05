"""The disk of each board has room."""

from __future__ import annotations

from collections.abc import Iterator

from boardcluster.doctor.boards.view import BoardView, ClusterView, each, fault
from boardcluster.doctor.finding import Check, Finding, Severity
from boardcluster.services.room import FULL_PERCENT, used_percent
from boardcluster.units import format_bytes

__all__ = ["CHECK"]


def look(view: ClusterView) -> Iterator[Finding]:
    """Look at the file system that holds each board's folder."""
    yield from each(CHECK, view, _judge, good=f"no disk is more than {_NEARLY_PERCENT:.0f} % full")


def _judge(board: BoardView) -> Finding | None:
    mount = board.mount
    if mount is None or mount.size_bytes is None or mount.available_bytes is None:
        return None
    percent = used_percent(total_bytes=mount.size_bytes, available_bytes=mount.available_bytes)
    if percent < _NEARLY_PERCENT:
        return None
    large = board.there(f"sudo du -xh --max-depth=2 {mount.folder} | sort -h | tail")
    wanted = mount.size_bytes * (1 - _NEARLY_PERCENT / 100) - mount.available_bytes
    return fault(
        CHECK,
        board,
        f"{mount.folder}, which holds {board.facts.folder}, is {percent:.0f} % full",
        severity=Severity.ERROR if percent >= FULL_PERCENT else Severity.WARNING,
        fix=f"free {format_bytes(wanted)} there; what is large: {large}",
    )


_NEARLY_PERCENT = 80.0

CHECK = Check(
    name="board_disk",
    looks_at="How full the file system is that holds each board's folder, as YARN counts: what "
    "only root may still write counts as used.",
    why="From 90 % on YARN gives the board up, and its jobs wait without a message. From 80 % on "
    "one large job may get it there.",
    source='Apache Hadoop, "NodeManager", Disk Checker',
    severity=Severity.ERROR,
    look=look,
)
