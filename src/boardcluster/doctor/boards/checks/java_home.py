"""A JAVA_HOME that is set leads somewhere."""

from __future__ import annotations

from collections.abc import Iterator

from boardcluster.doctor.boards.view import BoardView, ClusterView, each, fault
from boardcluster.doctor.finding import Check, Finding, Severity

__all__ = ["CHECK"]


def look(view: ClusterView) -> Iterator[Finding]:
    """Compare the variable, as a program started over SSH sees it, with what was found."""
    yield from each(
        CHECK, view, _judge, good="JAVA_HOME is not needed: every daemon is given its own"
    )


def _judge(board: BoardView) -> Finding | None:
    named = board.facts.java_home
    if not named or named in {java.home for java in board.facts.javas}:
        return None
    return fault(
        CHECK,
        board,
        f"JAVA_HOME is {named}, where no Java was found",
        fix=board.there("grep -rn JAVA_HOME /etc/environment /etc/profile.d /etc/security"),
    )


CHECK = Check(
    name="java_home",
    looks_at="JAVA_HOME as a program sees it that is started over SSH without a login shell.",
    why="Hadoop's own scripts find no Java there if it is set in .bashrc or .profile only. Daemons "
    "of boardcluster are given their Java by its path; your own programs may not be.",
    source='bash(1), "INVOCATION"; Hadoop wiki, hadoop-env.sh',
    severity=Severity.WARNING,
    look=look,
)
