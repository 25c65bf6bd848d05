"""A JAVA_HOME that is set leads to a Java.

- It names a folder without a Java. Fix: find where it is set; the command is shown.
"""

from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where

__all__ = ["CHECK"]

_SEARCH = "grep -rn JAVA_HOME /etc/environment /etc/profile.d /etc/security"


def _look(facts: Facts) -> Faults:
    for board in facts.boards:
        named = board.facts.java_home
        if named and named not in {java.home for java in board.facts.javas}:
            yield Fault(
                f"JAVA_HOME is {named}, where no Java was found",
                node=board.name,
                fix=board.there(_SEARCH),
            )


CHECK = Check(
    where=Where.BOARDS,
    looks_at="JAVA_HOME as seen by a program started over SSH without a login shell.",
    why="Hadoop's own scripts find no Java there if it is set in .bashrc or .profile only. Daemons "
    "of boardcluster are given their Java by its path; your own programs may not be.",
    source='bash(1), "INVOCATION"; Hadoop wiki, hadoop-env.sh',
    severity=Severity.WARNING,
    look=_look,
    good="JAVA_HOME is not needed: every daemon is given its own Java",
)
