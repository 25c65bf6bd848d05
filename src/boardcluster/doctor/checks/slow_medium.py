"""Data is on the fastest medium of each board.

- A faster medium is not used. Fix: `folder` in cluster.toml; it suggests one.
"""

from boardcluster.cluster.discovery import faster_folder
from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where

__all__ = ["CHECK"]


def _look(facts: Facts) -> Faults:
    for board in facts.boards:
        if faster := faster_folder(board.facts):
            source = board.mount.source if board.mount else "an unknown medium"
            yield Fault(
                f"its data is on {source}, but a faster medium is mounted",
                node=board.name,
                fix=f'set `folder = "{faster}"` for {board.name} in cluster.toml   (before there '
                "is data)",
            )


CHECK = Check(
    where=Where.BOARDS,
    looks_at="The medium of each board's folder, and every other one that is mounted, writable and "
    "has 8 GiB free.",
    why="HDFS and shuffles wait for storage. A card of class A1 promises 500 small writes and "
    "10 MB per second; an SSD manages a hundred times as much, an NVMe SSD even more.",
    source="SD Association, Application Performance Class; boardcluster, cluster/discovery.py",
    severity=Severity.WARNING,
    look=_look,
    good="every board uses its fastest mounted medium",
)
