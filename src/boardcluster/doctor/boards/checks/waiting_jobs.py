"""No job waits for what never comes."""

from __future__ import annotations

from collections.abc import Iterator

from boardcluster.doctor.boards.view import ClusterView
from boardcluster.doctor.finding import Check, Finding, Severity
from boardcluster.units import format_seconds

__all__ = ["CHECK"]


def look(view: ClusterView) -> Iterator[Finding]:
    """Look for jobs that YARN took long ago and has not started."""
    waiting = view.masters.waiting if view.masters else None
    if waiting is None:
        yield CHECK.good(
            "the cluster is not up" if view.masters is None else "YARN gives no answer"
        )
        return
    stuck = [job for job in waiting if job.waited_seconds >= _LONG_SECONDS]
    for job in stuck:
        said = f": {job.diagnostics.strip()}" if job.diagnostics.strip() else ""
        yield CHECK.wrong(
            f"{job.id} ({job.name}) is ACCEPTED since {format_seconds(job.waited_seconds)}{said}",
            fix="wait for the jobs before it, or see the checks unhealthy_nodes and profile; "
            f"{view.command('down')} ends it",
        )
    if not stuck:
        yield CHECK.good("no job waits")


_LONG_SECONDS = 30.0
"""An application master starts within seconds where there is room for it."""

CHECK = Check(
    name="waiting_jobs",
    looks_at="Jobs in the state ACCEPTED for more than 30 seconds, if the cluster is up.",
    why="YARN takes a job for which it has no room, or whose container is larger than any node, "
    "and lets it wait without a message.",
    source='Apache Hadoop, ResourceManager REST APIs, "Cluster Applications API"',
    severity=Severity.WARNING,
    look=look,
)
