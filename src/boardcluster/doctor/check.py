"""What a check is, where it applies and what it finds; with ``Facts``, all that a check imports."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import TypeAlias

from boardcluster.capabilities import Capabilities, Network
from boardcluster.doctor.facts import MASTER_NOT_ASKED, Board, Facts
from boardcluster.remote import nodefacts
from boardcluster.units import format_count

__all__ = [
    "MASTER_NOT_ASKED",
    "UNREAD_LOG",
    "Check",
    "Facts",
    "Fault",
    "Faults",
    "Finding",
    "Severity",
    "Where",
    "faults_in_logs",
]


class Severity(StrEnum):
    """ERROR: something will not work. WARNING: it works, but worse, or its numbers mislead."""

    ERROR = "error"
    WARNING = "warning"


class Where(Enum):
    """Where a check applies; the values are the words of the reference."""

    ALWAYS = "this machine"
    HERE = "this machine, if the nodes are on it"
    NAMESPACES = "this machine, if the nodes are emulated"
    LOCAL = "this machine, if it is itself the node"
    BOARDS = "all boards"
    NODES = "this machine, if the nodes are on it; otherwise all boards"

    def applies(self, kind: Capabilities) -> bool:
        """Return whether such a check matters to a kind of node."""
        return {
            Where.ALWAYS: True,
            Where.HERE: kind.on_this_machine,
            Where.NAMESPACES: kind.network is Network.OWN,
            Where.LOCAL: kind.shares_processes,
            Where.BOARDS: kind.over_ssh,
            Where.NODES: kind.on_this_machine or kind.over_ssh,
        }[self]


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong."""

    seen: str
    """What was seen, one short sentence."""
    fix: str = field(kw_only=True)
    """The command that fixes it, or what to do in the imperative."""
    why: str = field(default="", kw_only=True)
    """Why this fault matters; the check's own reason if empty."""
    severity: Severity | None = field(default=None, kw_only=True)
    """How bad it is; the check's own severity if None."""
    node: str = field(default="", kw_only=True)
    """The board it is about; empty if it is about this machine or several boards."""
    repair: tuple[str, ...] = field(default=(), kw_only=True)
    """A command that fixes it and can do no harm, to be run as root on that board; empty if only a
    person should."""


Faults: TypeAlias = Iterator[Fault | str]
"""What a check yields: faults, and sentences on what is well or cannot be told."""

UNREAD_LOG = "not checked: its kernel's log cannot be read"
"""What to say of a board of which nobody may see what its kernel complains of."""


def faults_in_logs(facts: Facts, told_by: re.Pattern[str], fix: Callable[[Board], str]) -> Faults:
    """Yield a fault for each board of which lines of its kernel's log match; the last is shown.

    Args:
        facts: of the boards.
        told_by: what tells of the fault, anywhere in a line.
        fix: what to do on a board.
    """
    for board in facts.boards:
        rows = board.facts.kernel_faults
        if rows is None:
            yield f"{board.name}: {UNREAD_LOG}"
        elif lines := [row for row in rows if told_by.search(row)]:
            # A board passes on no more than so many of each kind.
            least = "at least " if len(lines) >= nodefacts.LOG_LINES_MOST else ""
            count = format_count(len(lines), "line")
            yield Fault(
                f"{least}{count} in the kernel's log, the last: {lines[-1].strip()}",
                node=board.name,
                fix=fix(board),
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one check has to say about one thing: a fault with all it leaves to the check, or none.

    Attributes:
        check: name of the check.
        severity: how bad it is; for a good finding, how bad it would be.
        ok: whether all is well, or could not be told; then ``fix`` is empty.
        source: where the claim comes from.
        seen, why, fix, node, repair: as of ``Fault``, ``seen`` after the name of the board.
    """

    check: str
    severity: Severity
    ok: bool
    seen: str
    why: str
    fix: str
    source: str
    node: str = ""
    repair: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check. Each is a file in ``checks/``, whose docstring lists the faults it finds."""

    where: Where
    """Where it applies."""
    looks_at: str
    """What it looks at, for the reference."""
    why: str
    """Why a fault matters."""
    source: str
    """Where the claim comes from."""
    severity: Severity
    """Of its worst fault."""
    look: Callable[[Facts], Faults]
    """Finds the faults; reads nothing but the facts it is given, and changes nothing."""
    good: str = ""
    """What to say if ``look`` yields nothing."""
    name: str = ""
    """Name of its findings: the name of its file, filled in when it is loaded."""
    name_on_boards: str = ""
    """Name of its findings where it looks at boards, if that is another one."""
