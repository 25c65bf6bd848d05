"""No board swaps to a card, or counts compressed memory.

- Swap on an SD card, eMMC, a USB stick or a hard disk (warning). Fix: `sudo swapoff`.
- More memory declared than there is, with zram to make up for it (error). Fix: declare what
  MemTotal says.
"""

from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where
from boardcluster.units import format_bytes

__all__ = ["CHECK"]

_SLOW = {"sd": "an SD card", "emmc": "eMMC", "usb": "a USB stick or disk", "hdd": "a hard disk"}


def _look(facts: Facts) -> Faults:
    for board in facts.boards:
        swaps, has = board.facts.swaps, board.facts.memory_bytes
        declared = board.spec.memory_bytes
        slow = [row for row in swaps if row.kind in _SLOW]
        if declared > has and any(row.kind == "zram" and row.size_bytes for row in swaps):
            yield Fault(
                f"declares {format_bytes(declared, binary=True)}, of which zram would have to find "
                f"{format_bytes(declared - has, binary=True)} in {format_bytes(has, binary=True)}",
                node=board.name,
                severity=Severity.ERROR,
                fix=f"declare what `MemTotal` says for {board.name} in cluster.toml, not more",
            )
        elif slow:
            off = board.there(f"sudo swapoff {' '.join(row.place for row in slow)}")
            yield Fault(
                ", ".join(
                    f"{format_bytes(row.size_bytes, binary=True)} on {_SLOW[row.kind]} "
                    f"({row.place})"
                    for row in slow
                ),
                node=board.name,
                fix=f"{off}   (until the next boot; permanently: disable dphys-swapfile, or "
                "Mechanism=none for rpi-swap)",
            )


CHECK = Check(
    where=Where.BOARDS,
    looks_at="Swap areas and what they are on, and whether declared memory counts on zram.",
    why="A JVM that collects garbage touches its whole heap: in swap on a card each collection "
    "takes minutes, heartbeats are missed and the node is lost. It also wears out the card. zram "
    "is already memory.",
    source='Apache Hadoop, "Cluster Setup"; proc_swaps(5); Linux, admin-guide/blockdev/zram',
    severity=Severity.WARNING,
    look=_look,
    good="no swap on slow media",
)
