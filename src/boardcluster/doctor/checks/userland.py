"""Programs are 64-bit ones, for x86-64 or arm64.

- 32-bit programs, or another processor. Fix: write a 64-bit system to the card.
"""

from boardcluster.cluster.discovery import refuse_processor
from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where
from boardcluster.doctor.checks.python import WHY_64_BIT

__all__ = ["CHECK"]


def _look(facts: Facts) -> Faults:
    for board in facts.boards:
        if refusal := refuse_processor(board.facts):
            yield Fault(refusal.reason, node=board.name, fix=refusal.fix)


CHECK = Check(
    where=Where.BOARDS,
    looks_at="The processor, and whether the installed programs are 64-bit ones. A 64-bit kernel "
    "under 32-bit programs is common on a Raspberry Pi that was upgraded.",
    why=WHY_64_BIT,
    source='Raspberry Pi documentation, config.txt, `arm_64bit`; Apache Spark 4.1, "Downloading"',
    severity=Severity.ERROR,
    look=_look,
    good="64-bit programs on x86-64 or arm64",
)
