"""No kernel has met an error of its storage.

- Lines since boot; the last is shown. Fix: seat card and cables again, or use a new medium.
"""

import re

from boardcluster.doctor.check import Check, Facts, Faults, Severity, Where, faults_in_logs

__all__ = ["CHECK"]

_ERROR = re.compile(r"I/O error|EXT4-fs error|Remounting filesystem read-only|mmc\d+: error")


def _look(facts: Facts) -> Faults:
    return faults_in_logs(
        facts,
        _ERROR,
        lambda _: (
            "power the board off, reseat card and cables, and copy what matters to a new "
            "medium if errors return"
        ),
    )


CHECK = Check(
    where=Where.BOARDS,
    looks_at="Lines about I/O errors, ext4 errors and failing cards in each kernel's log.",
    why="Blocks are lost or read again and again: runs fail or are slow, at random.",
    source="Linux, block/blk-core.c, fs/ext4/super.c",
    severity=Severity.ERROR,
    look=_look,
    good="no kernel reports storage errors",
)
