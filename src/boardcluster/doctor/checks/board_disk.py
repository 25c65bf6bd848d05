"""The disk of each board has free space.

- 90 % full or more (error), 80 % or more (warning). Fix: free as much as is named; it says how to
  see what is large.
"""

from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where
from boardcluster.services.disk_space import FULL_PERCENT, used_percent
from boardcluster.units import format_bytes

__all__ = ["CHECK"]

_NEARLY_PERCENT = 80.0


def _look(facts: Facts) -> Faults:
    for board in facts.boards:
        mount = board.mount
        if mount is None or mount.size_bytes is None or mount.available_bytes is None:
            continue
        percent = used_percent(total_bytes=mount.size_bytes, available_bytes=mount.available_bytes)
        if percent < _NEARLY_PERCENT:
            continue
        large = board.there(f"sudo du -xh --max-depth=2 {mount.folder} | sort -h | tail")
        wanted = mount.size_bytes * (1 - _NEARLY_PERCENT / 100) - mount.available_bytes
        yield Fault(
            f"{mount.folder}, which holds {board.facts.folder}, is {percent:.0f} % full",
            node=board.name,
            severity=Severity.ERROR if percent >= FULL_PERCENT else Severity.WARNING,
            fix=f"free {format_bytes(wanted)} there; what is large: {large}",
        )


CHECK = Check(
    where=Where.BOARDS,
    looks_at="How full the file system of each board's folder is, as YARN counts: space that only "
    "root may still use counts as used.",
    why="From 90 % on YARN stops using the board, and its jobs wait without a message. From 80 % "
    "on one large job may fill it that far.",
    source='Apache Hadoop, "NodeManager", Disk Checker',
    severity=Severity.ERROR,
    look=_look,
    good="no disk is more than 80 % full",
)
