"""Each board has, or will get, a Java that runs the engines.

- Installed, but the link leads to no suitable Java (error). Fix: `boardcluster up`.
- Not installed yet, and none is suitable (warning). Fix: `boardcluster up` installs one.
"""

from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where
from boardcluster.records import JavaHome
from boardcluster.services.pair import EnginePair

__all__ = ["CHECK"]


def _look(facts: Facts) -> Faults:
    pair, up = facts.pair, facts.command("up")
    wanted = f"{pair.id} needs Java {pair.java_oldest} to {pair.java_newest}"
    for board in facts.boards:
        javas, used = board.facts.javas, board.details.java
        suitable = {java.home for java in javas if _suits(java, pair)}
        found = ", ".join(f"{java.version or 'unknown'} ({java.home})" for java in javas) or "none"
        if board.details.provisioned and used not in suitable:
            seen = f"/opt/boardcluster/java points to {used or 'nothing'}; {wanted}; found: {found}"
            yield Fault(seen, node=board.name, fix=up)
        elif not suitable:
            yield Fault(
                f"{wanted}; found: {found}",
                node=board.name,
                severity=Severity.WARNING,
                fix=f"{up}   (installs one)",
            )


def _suits(java: JavaHome, pair: EnginePair) -> bool:
    return java.feature is not None and pair.java_oldest <= java.feature <= pair.java_newest


CHECK = Check(
    where=Where.BOARDS,
    looks_at="Every Java on each board that only root and the user who logs in may change, and "
    "where /opt/boardcluster/java points.",
    why="Hadoop up to 3.4.2 fails on Java 24 and newer, and Spark 4 needs Java 17.",
    source='HADOOP-19212 and JEP 486; Apache Spark 4.1, "Downloading"; the lock files in pairs/',
    severity=Severity.ERROR,
    look=_look,
    good="every board has a Java for the engines",
)
