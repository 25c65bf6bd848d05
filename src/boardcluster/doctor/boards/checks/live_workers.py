"""Every declared worker is live in HDFS and YARN."""

from __future__ import annotations

from collections.abc import Iterator

from boardcluster.doctor.boards.view import ClusterView
from boardcluster.doctor.finding import Check, Finding, Severity

__all__ = ["CHECK"]


def look(view: ClusterView) -> Iterator[Finding]:
    """Count what the masters count."""
    masters, wanted = view.masters, len(view.expected)
    if masters is None:
        yield CHECK.good("the cluster is not up")
        return
    if masters.live_datanodes is None:
        yield CHECK.wrong("the NameNode does not answer", fix=_again(view))
    elif masters.live_datanodes < wanted:
        yield CHECK.wrong(
            f"{masters.live_datanodes} of {wanted} DataNodes are live", fix=_again(view)
        )
    if masters.managers is None:
        yield CHECK.wrong("the ResourceManager does not answer", fix=_again(view))
        return
    hosts = {row.host for row in masters.managers}
    missing = [node.name for node in view.expected if node.name not in hosts]
    if missing:
        yield CHECK.wrong(
            f"no NodeManager has reported from {', '.join(missing)}", fix=_again(view)
        )
    elif masters.live_datanodes is not None and masters.live_datanodes >= wanted:
        yield CHECK.good(f"{wanted} DataNodes are live, and {wanted} NodeManagers have reported")


def _again(view: ClusterView) -> str:
    return f"{view.command('down')}, then {view.command('up')}"


CHECK = Check(
    name="live_workers",
    looks_at="How many DataNodes the NameNode counts and which NodeManagers the ResourceManager "
    "knows, if the cluster is up.",
    why="What is missing holds no blocks and runs no tasks: results are those of a smaller "
    "cluster.",
    source="Apache Hadoop, FSNamesystemState (JMX) and ResourceManager REST APIs",
    severity=Severity.ERROR,
    look=look,
)
