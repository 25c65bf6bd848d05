"""The jar of our Spark jobs was built.

- The jar was not built. Fix: `make jar`.
"""

from collections.abc import Callable
from pathlib import Path

from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where
from boardcluster.errors import HostError
from boardcluster.services.jobs import jobs_jar

__all__ = ["CHECK"]


def _look(_: Facts, *, find: Callable[[], Path] = jobs_jar) -> Faults:
    try:
        yield f"{find()}"
    except HostError as error:
        yield Fault(error.message, fix="make jar")


CHECK = Check(
    where=Where.ALWAYS,
    looks_at="The jar that Maven builds from `jvm/`.",
    why="Workloads on Spark submit it. MapReduce and `submit` work without it.",
    source="boardcluster, jvm/pom.xml",
    severity=Severity.ERROR,
    look=_look,
)
