"""No USB disk was reset.

- Lines about resets since boot; the last is shown. Fix: a powered hub, another adapter, or UAS off
  for that adapter.
"""

import re

from boardcluster.doctor.check import Check, Facts, Faults, Severity, Where, faults_in_logs

__all__ = ["CHECK"]

_RESET = re.compile(r"uas_eh_|reset (high-speed|SuperSpeed)")


def _look(facts: Facts) -> Faults:
    return faults_in_logs(
        facts,
        _RESET,
        lambda board: (
            "use a powered hub or a better adapter, or switch UAS off: take ID from "
            f"{board.there('lsusb')} and add `usb-storage.quirks=ID:u` to "
            "/boot/firmware/cmdline.txt"
        ),
    )


CHECK = Check(
    where=Where.BOARDS,
    looks_at="Lines such as `uas_eh_abort_handler` and resets of USB devices in each kernel's log.",
    why="Each reset stops all reads and writes for up to 30 seconds. The usual causes are adapters "
    "with poor UAS support, and too little power on a Raspberry Pi's USB ports.",
    source='Raspberry Pi forum, "If you have a Raspberry Pi 4 and are getting bad speeds '
    'transferring data to and from USB3.0 SSDs"; Linux, drivers/usb/storage/uas.c',
    severity=Severity.WARNING,
    look=_look,
    good="no USB disk was reset",
)
