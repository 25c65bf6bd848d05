"""Programs are 64-bit ones, for x86-64 or arm64."""

from __future__ import annotations

from collections.abc import Iterator

from boardcluster.cluster.discovery import refuse_processor
from boardcluster.doctor.boards.view import BoardView, ClusterView, each, fault
from boardcluster.doctor.finding import Check, Finding, Severity

__all__ = ["CHECK"]


def look(view: ClusterView) -> Iterator[Finding]:
    """Look at the pointers of the installed python3, not at the kernel."""
    yield from each(CHECK, view, _judge, good="64-bit programs on x86-64 or arm64")


def _judge(board: BoardView) -> Finding | None:
    refusal = refuse_processor(board.facts)
    return fault(CHECK, board, refusal.reason, fix=refusal.fix) if refusal else None


CHECK = Check(
    name="userland",
    looks_at="The processor, and whether the installed programs are 64-bit ones. A 64-bit kernel "
    "under 32-bit programs is common on a Raspberry Pi that was upgraded.",
    why="Java for the engines and their native libraries exist for 64-bit x86-64 and arm64 only.",
    source='Raspberry Pi documentation, config.txt, `arm_64bit`; Apache Spark 4.1, "Downloading"',
    severity=Severity.ERROR,
    look=look,
)
