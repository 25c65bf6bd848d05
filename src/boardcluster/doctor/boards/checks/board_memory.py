"""No board declares, or promises YARN, more memory than it has."""

from __future__ import annotations

from collections.abc import Iterator

from boardcluster.cluster.discovery import refuse_memory
from boardcluster.doctor.boards.view import BoardView, ClusterView, each, fault
from boardcluster.doctor.finding import Check, Finding, Severity
from boardcluster.records import Role
from boardcluster.units import MIB, format_bytes

__all__ = ["CHECK"]


def look(view: ClusterView) -> Iterator[Finding]:
    """Compare declaration and profile with what the kernel manages."""

    def judge(board: BoardView) -> Finding | None:
        has, declared = board.facts.memory_bytes, board.spec.memory_bytes
        own = format_bytes(has, binary=True)
        if refusal := refuse_memory(board.facts):
            return fault(CHECK, board, refusal.reason, fix=refusal.fix)
        if declared > has:
            fitting = has // (64 * MIB) * 64
            return fault(
                CHECK,
                board,
                f"declares {format_bytes(declared, binary=True)}, but its kernel has {own}",
                fix=f'set `memory = "{fitting} MiB"` for {board.name} in cluster.toml',
            )
        promised = _promised_mib(view, board)
        if promised * MIB > has:
            return fault(
                CHECK,
                board,
                f"profile {view.spec.profile} promises YARN {promised} MiB of its {own}",
                severity=Severity.WARNING,
                fix='set `profile = "default"` in cluster.toml; keep this one only to repeat what '
                "it stands for",
            )
        return None

    yield from each(CHECK, view, judge, good="every board has the memory it declares")


def _promised_mib(view: ClusterView, board: BoardView) -> int:
    """Return what YARN may hand out there; nothing on a board that is no worker."""
    if Role.WORKER not in board.spec.roles:
        return 0
    name = "yarn.nodemanager.resource.memory-mb"
    text = view.setting("yarn-site", name, "8192", node=board.name)
    return int(text) if text.isdecimal() else 0


CHECK = Check(
    name="board_memory",
    looks_at="The memory that cluster.toml and the profile count on, against MemTotal of each "
    "board. Compressed memory (zram) and swap do not count.",
    why="Containers are started until the sum is reached; then the kernel swaps, or kills one. A "
    "board has less than its label says: the kernel and the GPU keep a part.",
    source="proc(5), MemTotal; yarn-default.xml, yarn.nodemanager.resource.memory-mb (8,192)",
    severity=Severity.ERROR,
    look=look,
)
