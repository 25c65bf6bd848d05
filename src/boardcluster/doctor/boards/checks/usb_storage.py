"""No USB disk was reset."""

from __future__ import annotations

import re
from collections.abc import Iterator

from boardcluster.doctor.boards.view import BoardView, ClusterView, each, fault
from boardcluster.doctor.finding import Check, Finding, Severity

__all__ = ["CHECK"]


def look(view: ClusterView) -> Iterator[Finding]:
    """Look for resets in each kernel's log."""
    yield from each(CHECK, view, _judge, good="no USB disk was reset")


def _judge(board: BoardView) -> Finding | None:
    lines = [row for row in board.facts.kernel_faults or () if _RESET.search(row)]
    if not lines:
        return None
    return fault(
        CHECK,
        board,
        f"{len(lines)} resets since boot, the last: {lines[-1].strip()}",
        fix="use a powered hub or a better adapter, or switch UAS off: take ID from "
        f"{board.there('lsusb')} and add `usb-storage.quirks=ID:u` to /boot/firmware/cmdline.txt",
    )


_RESET = re.compile(r"uas_eh_|reset (high-speed|SuperSpeed)")

CHECK = Check(
    name="usb_storage",
    looks_at="Lines such as `uas_eh_abort_handler` and resets of USB devices in each kernel's log.",
    why="Each reset stops all reads and writes for up to 30 seconds. The usual causes are adapters "
    "that do UAS badly, and too little power on a Raspberry Pi's USB ports.",
    source='Raspberry Pi forum, "If you have a Raspberry Pi 4 and are getting bad speeds '
    'transferring data to and from USB3.0 SSDs"; Linux, drivers/usb/storage/uas.c',
    severity=Severity.WARNING,
    look=look,
)
