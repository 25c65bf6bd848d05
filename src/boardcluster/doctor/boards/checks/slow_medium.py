"""Data is on the fastest medium of each board."""

from __future__ import annotations

from collections.abc import Iterator

from boardcluster.cluster.discovery import faster_folder
from boardcluster.doctor.boards.view import BoardView, ClusterView, each, fault
from boardcluster.doctor.finding import Check, Finding, Severity

__all__ = ["CHECK"]


def look(view: ClusterView) -> Iterator[Finding]:
    """Compare the medium in use with the others that are mounted."""
    yield from each(CHECK, view, _judge, good="every board uses its fastest mounted medium")


def _judge(board: BoardView) -> Finding | None:
    faster = faster_folder(board.facts)
    if not faster:
        return None
    mount = board.mount
    return fault(
        CHECK,
        board,
        f"its data is on {mount.source if mount else 'an unknown medium'}, but a faster medium is "
        "mounted",
        fix=f'set `folder = "{faster}"` for {board.name} in cluster.toml   (before there is data)',
    )


CHECK = Check(
    name="slow_medium",
    looks_at="The medium below each board's folder, and every other that is mounted, writable and "
    "has 8 GiB free.",
    why="HDFS and shuffles wait for storage. A card of class A1 promises 500 small writes and "
    "10 MB per second; an SSD does a hundred times as much, an NVMe one more.",
    source="SD Association, Application Performance Class; boardcluster, cluster/discovery.py",
    severity=Severity.WARNING,
    look=look,
)
