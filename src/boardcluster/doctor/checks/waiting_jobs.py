"""No job waits in vain.

- Such a job, with YARN's own words. Fix: wait, or see unhealthy_nodes and profile.
"""

from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where
from boardcluster.units import format_seconds

__all__ = ["CHECK"]

_LONG_SECONDS = 30.0
"""An application master starts within seconds where there is room for it."""


def _look(facts: Facts) -> Faults:
    waiting = facts.masters.waiting if facts.masters else None
    if waiting is None:
        yield facts.no_masters if facts.masters is None else "YARN gives no answer"
        return
    stuck = [job for job in waiting if job.waited_seconds >= _LONG_SECONDS]
    for job in stuck:
        said = f": {job.diagnostics.strip()}" if job.diagnostics.strip() else ""
        waited = format_seconds(job.waited_seconds)
        yield Fault(
            f"{job.id} ({job.name}) has been ACCEPTED for {waited}{said}",
            fix="wait for the jobs before it, or see the checks unhealthy_nodes and profile; "
            f"{facts.command('down')} ends it",
        )
    if not stuck:
        yield "no job waits"


CHECK = Check(
    where=Where.BOARDS,
    looks_at="Jobs in the state ACCEPTED for more than 30 seconds, if the cluster is up.",
    why="YARN accepts a job that it has no room for, or whose container is larger than any node, "
    "and lets it wait without a message.",
    source='Apache Hadoop, ResourceManager REST APIs, "Cluster Applications API"',
    severity=Severity.WARNING,
    look=_look,
)
