"""No Java is for another processor."""

from __future__ import annotations

from collections.abc import Iterator

from boardcluster.doctor.boards.view import BoardView, ClusterView, each, fault
from boardcluster.doctor.finding import Check, Finding, Severity

__all__ = ["CHECK"]


def look(view: ClusterView) -> Iterator[Finding]:
    """Compare the head of each `java` program with the processor."""
    yield from each(CHECK, view, _judge, good="every Java is for its board's processor")


def _judge(board: BoardView) -> Finding | None:
    facts = board.facts
    wrong = [java for java in facts.javas if java.architecture not in ("", facts.architecture)]
    if not wrong:
        return None
    named = ", ".join(f"{java.home} is for {java.architecture}" for java in wrong)
    used = board.inside.java in {java.home for java in wrong}
    return fault(
        CHECK,
        board,
        f"{named}, but the processor is {facts.architecture}",
        severity=Severity.ERROR if used else Severity.WARNING,
        fix=board.there("sudo apt-get install default-jre-headless") + "   (and remove the other)",
    )


CHECK = Check(
    name="java_architecture",
    looks_at="The processor that each `java` was built for, in the head of its program file.",
    why='It does not start ("Exec format error"), or only through an emulator, many times slower.',
    source="elf(5), e_machine",
    severity=Severity.ERROR,
    look=look,
)
