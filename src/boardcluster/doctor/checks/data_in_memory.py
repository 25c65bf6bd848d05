"""The data of each board is on a medium, not in memory.

- It is in memory. Fix: `folder` in cluster.toml; it suggests one.
"""

from boardcluster.cluster.discovery import suggest_folder
from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where
from boardcluster.doctor.checks.tmpfs import IN_MEMORY

__all__ = ["CHECK"]


def _look(facts: Facts) -> Faults:
    for board in facts.boards:
        if board.mount is not None and board.mount.file_system in IN_MEMORY:
            folder = suggest_folder(board.facts)
            yield Fault(
                f"{board.facts.folder} is on {board.mount.file_system}",
                node=board.name,
                fix=f'set `folder = "{folder}"` for {board.name} in cluster.toml',
            )


CHECK = Check(
    where=Where.BOARDS,
    looks_at="Whether each board's folder (HDFS, `hadoop.tmp.dir`, intermediate data) is on tmpfs.",
    why="HDFS would be gone after a reboot and uses the memory that containers count on, and disk "
    "figures are meaningless. Debian 13 keeps /tmp in memory, where Hadoop's defaults put data.",
    source='core-default.xml, hadoop.tmp.dir; Debian 13 release notes, "The temporary-files '
    'directory /tmp is now stored in a tmpfs"',
    severity=Severity.ERROR,
    look=_look,
    good="no board keeps its data in memory",
)
