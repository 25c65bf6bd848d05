"""The data of each board is on a medium, not in memory."""

from __future__ import annotations

from collections.abc import Iterator

from boardcluster.cluster.discovery import suggest_folder
from boardcluster.doctor.boards.view import BoardView, ClusterView, each, fault
from boardcluster.doctor.finding import Check, Finding, Severity

__all__ = ["CHECK"]


def look(view: ClusterView) -> Iterator[Finding]:
    """Ask for the kind of file system."""
    yield from each(CHECK, view, _judge, good="no board keeps its data in memory")


def _judge(board: BoardView) -> Finding | None:
    mount = board.mount
    if mount is None or mount.file_system not in _IN_MEMORY:
        return None
    return fault(
        CHECK,
        board,
        f"{board.facts.folder} is on {mount.file_system}",
        fix=f'set `folder = "{suggest_folder(board.facts)}"` for {board.name} in cluster.toml',
    )


_IN_MEMORY = ("tmpfs", "ramfs")

CHECK = Check(
    name="data_in_memory",
    looks_at="Whether each board's folder (HDFS, `hadoop.tmp.dir`, intermediate data) is on tmpfs.",
    why="HDFS would be gone after a reboot, takes the memory that containers count on, and figures "
    "of storage mean nothing. Debian 13 keeps /tmp in memory, where Hadoop's defaults put data.",
    source='core-default.xml, hadoop.tmp.dir; Debian 13 release notes, "The temporary-files '
    'directory /tmp is now stored in a tmpfs"',
    severity=Severity.ERROR,
    look=look,
)
