"""No board declares, or promises YARN, more memory than it has.

- Less than the smallest worker needs. Fix: another board.
- More declared than there is. Fix: the `memory` that it names.
- The profile promises YARN more than there is (warning). Fix: `profile = "default"`.
"""

from boardcluster.cluster.discovery import refuse_memory
from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where
from boardcluster.doctor.facts import Board
from boardcluster.records import Role
from boardcluster.units import MIB, format_bytes

__all__ = ["CHECK"]


def _look(facts: Facts) -> Faults:
    for board in facts.boards:
        has, declared = board.facts.memory_bytes, board.spec.memory_bytes
        own = format_bytes(has, binary=True)
        promised = _promised_mib(facts, board)
        if refusal := refuse_memory(board.facts):
            yield Fault(refusal.reason, node=board.name, fix=refusal.fix)
        elif declared > has:
            fitting = has // (64 * MIB) * 64
            yield Fault(
                f"declares {format_bytes(declared, binary=True)}, but its kernel has {own}",
                node=board.name,
                fix=f'set `memory = "{fitting} MiB"` for {board.name} in cluster.toml',
            )
        elif promised * MIB > has:
            yield Fault(
                f"profile {facts.declared.profile} promises YARN {promised} MiB of its {own}",
                node=board.name,
                severity=Severity.WARNING,
                fix=facts.default_profile,
            )


def _promised_mib(facts: Facts, board: Board) -> int:
    """Return what YARN may hand out there; nothing on a board that is no worker."""
    if Role.WORKER not in board.spec.roles:
        return 0
    name = "yarn.nodemanager.resource.memory-mb"
    text = facts.setting("yarn-site", name, "8192", node=board.name)
    return int(text) if text.isdecimal() else 0


CHECK = Check(
    where=Where.BOARDS,
    looks_at="The memory that cluster.toml and the profile count on, against MemTotal of each "
    "board. Compressed memory (zram) and swap do not count.",
    why="Containers are started until that sum is reached; then the kernel swaps, or kills one. A "
    "board has less than its label says: the kernel and the GPU use a part.",
    source="proc(5), MemTotal; yarn-default.xml, yarn.nodemanager.resource.memory-mb (8,192)",
    severity=Severity.ERROR,
    look=_look,
    good="every board has the memory it declares",
)
