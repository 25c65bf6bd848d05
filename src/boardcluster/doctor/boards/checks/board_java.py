"""Each board has, or will get, a Java that runs the engines."""

from __future__ import annotations

from collections.abc import Iterator

from boardcluster.doctor.boards.view import BoardView, ClusterView, each, fault
from boardcluster.doctor.finding import Check, Finding, Severity
from boardcluster.records import JavaHome
from boardcluster.services.pair import EnginePair

__all__ = ["CHECK"]


def look(view: ClusterView) -> Iterator[Finding]:
    """Compare versions with what the engine pair runs on."""
    pair = view.pair

    def judge(board: BoardView) -> Finding | None:
        facts, installed = board.facts, board.inside.java
        fitting = [java for java in facts.javas if _fits(java, pair)]
        others = ", ".join(f"{java.version or 'unknown'} ({java.home})" for java in facts.javas)
        wanted = f"{pair.id} needs Java {pair.java_oldest} to {pair.java_newest}"
        if board.inside.provisioned and installed not in {java.home for java in fitting}:
            return fault(
                CHECK,
                board,
                f"/opt/boardcluster/java leads to {installed or 'nothing'}; {wanted}; "
                f"found: {others or 'none'}",
                fix=view.command("up"),
            )
        if not fitting and not board.inside.provisioned:
            return fault(
                CHECK,
                board,
                f"{wanted}; found: {others or 'none'}",
                severity=Severity.WARNING,
                fix=f"{view.command('up')}   (installs one)",
            )
        return None

    yield from each(CHECK, view, judge, good=f"every board has a Java for {pair.id}")


def _fits(java: JavaHome, pair: EnginePair) -> bool:
    return java.feature is not None and pair.java_oldest <= java.feature <= pair.java_newest


CHECK = Check(
    name="board_java",
    looks_at="Every Java on each board, and where /opt/boardcluster/java leads.",
    why="Hadoop up to 3.4.2 fails on Java 24 and newer, and Spark 4 needs Java 17.",
    source='HADOOP-19212 and JEP 486; Apache Spark 4.1, "Downloading"; the lock files in pairs/',
    severity=Severity.ERROR,
    look=look,
)
