"""No board is or was slowed by heat or weak power.

- Under-voltage, a capped frequency, throttling or the soft temperature limit, now or since boot.
  Fix: the board's own power supply; heat sink and fan.
"""

import re

from boardcluster.doctor.check import UNREAD_LOG, Check, Facts, Fault, Faults, Severity, Where

__all__ = ["CHECK"]

_SINCE_BOOT = 16
_BITS = {
    0: "under-voltage",
    1: "frequency capped",
    2: "throttled",
    3: "soft temperature limit",
}
_VOLTAGE = re.compile(r"under-?voltage", re.IGNORECASE)


def _look(facts: Facts) -> Faults:
    for board in facts.boards:
        bits = board.facts.throttled or 0
        now = [words for bit, words in _BITS.items() if bits >> bit & 1]
        before = [words for bit, words in _BITS.items() if bits >> (bit + _SINCE_BOOT) & 1]
        lines = [row for row in board.facts.kernel_faults or () if _VOLTAGE.search(row)]
        parts = [f"now: {', '.join(now)}"] if now else []
        parts += [f"since boot: {', '.join(before)}"] if before else []
        if lines and not bits:
            parts.append(f"the kernel's log: {lines[-1].strip()}")
        if parts:
            yield Fault(
                "; ".join(parts),
                node=board.name,
                fix="for under-voltage use the board's own power supply and a short, thick cable, "
                f"for heat a heat sink and a fan; then {board.there('sudo reboot')} clears the "
                "bits",
            )
        elif board.facts.throttled is None and board.facts.kernel_faults is None:
            yield f"{board.name}: {UNREAD_LOG}"


CHECK = Check(
    where=Where.BOARDS,
    looks_at="`vcgencmd get_throttled` (bits 0 to 3 are now, 16 to 19 since boot) and lines about "
    "under-voltage in the kernel's log.",
    why="The firmware lowers the clock. Runs are slower and not comparable; with "
    "too little power USB disks and cards fail as well.",
    source="Raspberry Pi documentation, `vcgencmd`, get_throttled",
    severity=Severity.WARNING,
    look=_look,
    good="no throttling and no under-voltage",
)
