"""The disk of each board can be written.

- One of them is read-only. Fix: a new card after an error, or raspi-config.
"""

from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where

__all__ = ["CHECK"]


def _look(facts: Facts) -> Faults:
    for board in facts.boards:
        mounts = {row.folder: row for row in (board.facts.mount("/"), board.mount) if row}
        if stuck := [row for row in mounts.values() if row.read_only]:
            log = board.there("sudo dmesg | grep -iE 'error|read-only' | tail")
            yield Fault(
                " and ".join(f"{row.folder} ({row.source}) is read-only" for row in stuck),
                node=board.name,
                fix=f"{log}   says why; after an error copy the card to a new one, or switch off "
                "the overlay file system in raspi-config",
            )


CHECK = Check(
    where=Where.BOARDS,
    looks_at="Whether the file systems of / and of each board's folder are mounted read-only.",
    why="ext4 stops writing when it meets an error (errors=remount-ro), which is how worn cards "
    "fail. The overlay mode of raspi-config keeps every change in memory only.",
    source='ext4(5), errors; Raspberry Pi documentation, raspi-config, "Overlay File System"',
    severity=Severity.ERROR,
    look=_look,
    good="every board can write its disks",
)
