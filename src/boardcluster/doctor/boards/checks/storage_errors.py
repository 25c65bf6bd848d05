"""No kernel has met an error of its storage."""

from __future__ import annotations

import re
from collections.abc import Iterator

from boardcluster.doctor.boards.view import BoardView, ClusterView, each, fault
from boardcluster.doctor.finding import Check, Finding, Severity

__all__ = ["CHECK"]


def look(view: ClusterView) -> Iterator[Finding]:
    """Look through the lines of the kernel's log that tell of failing storage."""
    yield from each(CHECK, view, _judge, good="no kernel tells of storage errors")


def _judge(board: BoardView) -> Finding | None:
    lines = [
        row
        for row in board.facts.kernel_faults or ()
        if _ERROR.search(row) and not _IMAGE.search(row)
    ]
    if not lines:
        return None
    return fault(
        CHECK,
        board,
        f"{len(lines)} lines in the kernel's log, the last: {lines[-1].strip()}",
        fix="power the board off, seat card and cables again, and copy what matters to a new "
        "medium if it comes back",
    )


_ERROR = re.compile(r"I/O error|EXT4-fs error|Remounting filesystem read-only|mmc\d+: error")
# A file mounted as a disk: the medium below it speaks for itself.
_IMAGE = re.compile(r"\bloop\d+\b")

CHECK = Check(
    name="storage_errors",
    looks_at="Lines on I/O errors, ext4 errors and failing cards in each kernel's log.",
    why="Blocks are lost or read again and again: runs fail or are slow, and which one is chance.",
    source="Linux, block/blk-core.c, fs/ext4/super.c",
    severity=Severity.ERROR,
    look=look,
)
