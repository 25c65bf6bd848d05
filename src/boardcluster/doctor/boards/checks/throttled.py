"""No board is or was slowed by heat or weak power."""

from __future__ import annotations

import re
from collections.abc import Iterator

from boardcluster.doctor.boards.view import BoardView, ClusterView, each, fault
from boardcluster.doctor.finding import Check, Finding, Severity

__all__ = ["CHECK"]


def look(view: ClusterView) -> Iterator[Finding]:
    """Read the bits of the firmware, and the kernel's lines where it only says so there."""
    yield from each(CHECK, view, _judge, good="no throttling and no under-voltage")


def _judge(board: BoardView) -> Finding | None:
    bits = board.facts.throttled or 0
    now = [words for bit, words in _BITS.items() if bits >> bit & 1]
    before = [words for bit, words in _BITS.items() if bits >> (bit + _SINCE_BOOT) & 1]
    lines = [row for row in board.facts.kernel_faults or () if _VOLTAGE.search(row)]
    if not (now or before or lines):
        return None
    parts = [f"now: {', '.join(now)}"] if now else []
    parts += [f"since boot: {', '.join(before)}"] if before else []
    if lines and not bits:
        parts.append(f"the kernel's log: {lines[-1].strip()}")
    return fault(
        CHECK,
        board,
        "; ".join(parts),
        fix="use the board's own power supply and a short, thick cable for under-voltage, a "
        f"heat sink and fan for heat; then {board.there('sudo reboot')} clears what was",
    )


_SINCE_BOOT = 16
_BITS = {
    0: "under-voltage",
    1: "frequency capped",
    2: "throttled",
    3: "soft temperature limit",
}
_VOLTAGE = re.compile(r"under-?voltage", re.IGNORECASE)

CHECK = Check(
    name="throttled",
    looks_at="`vcgencmd get_throttled` (bits 0 to 3 are now, 16 to 19 since boot) and lines on "
    "under-voltage in the kernel's log.",
    why="The firmware lowers the clock. Runs are slower and not comparable; with "
    "too little power USB disks and cards fail as well.",
    source="Raspberry Pi documentation, `vcgencmd`, get_throttled",
    severity=Severity.WARNING,
    look=look,
)
