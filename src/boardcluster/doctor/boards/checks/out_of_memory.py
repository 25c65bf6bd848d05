"""No kernel has killed a process for memory."""

from __future__ import annotations

from collections.abc import Iterator

from boardcluster.doctor.boards.view import BoardView, ClusterView, each, fault
from boardcluster.doctor.finding import Check, Finding, Severity

__all__ = ["CHECK"]


def look(view: ClusterView) -> Iterator[Finding]:
    """Look for kills in each kernel's log."""
    yield from each(CHECK, view, _judge, good="no process was killed for memory")


def _judge(board: BoardView) -> Finding | None:
    lines = [row for row in board.facts.kernel_faults or () if _KILLED in row]
    if not lines:
        return None
    return fault(
        CHECK,
        board,
        f"{len(lines)} since boot, the last: {lines[-1].strip()}",
        fix=f"declare less `memory` for {board.name} in cluster.toml, and end what else runs there",
    )


_KILLED = "Out of memory"

CHECK = Check(
    name="out_of_memory",
    looks_at="Lines on processes that were killed for memory in each kernel's log.",
    why="A killed container is started again and the job is slower; a killed daemon ends the job.",
    source="Linux, mm/oom_kill.c",
    severity=Severity.WARNING,
    look=look,
)
