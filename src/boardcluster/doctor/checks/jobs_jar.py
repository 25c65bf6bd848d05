"""The jar of our Spark jobs was built."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from boardcluster.doctor.finding import Check, Finding, Severity
from boardcluster.doctor.surroundings import Surroundings
from boardcluster.errors import HostError
from boardcluster.services.jobs import jobs_jar

__all__ = ["CHECK"]


def look(around: Surroundings, *, find: Callable[[], Path] = jobs_jar) -> Iterator[Finding]:
    """Look where a workload would look."""
    del around
    try:
        place = find()
    except HostError as error:
        yield CHECK.wrong(error.message, fix="make jar")
        return
    yield CHECK.good(f"{place}")


CHECK = Check(
    name="jobs_jar",
    looks_at="The jar that Maven builds from `jvm/`.",
    why="Workloads on Spark submit it. MapReduce and `submit` work without.",
    source="boardcluster, jvm/pom.xml",
    severity=Severity.ERROR,
    look=look,
)
