"""No NodeManager has been given up."""

from __future__ import annotations

from collections.abc import Iterator

from boardcluster.doctor.boards.view import ClusterView
from boardcluster.doctor.finding import Check, Finding, Severity

__all__ = ["CHECK"]


def look(view: ClusterView) -> Iterator[Finding]:
    """Repeat what the ResourceManager says of its nodes."""
    managers = view.masters.managers if view.masters else None
    if managers is None:
        yield CHECK.good(
            "the cluster is not up" if view.masters is None else "YARN gives no answer"
        )
        return
    bad = [row for row in managers if row.state in _BAD]
    for row in bad:
        report = f": {row.report}" if row.report else ""
        yield CHECK.wrong(
            f"{row.host} is {row.state}{report}",
            node=row.host,
            fix="free space on its disk, see the check board_disk"
            if "utilization" in row.report or "used space" in row.report
            else f"{view.command('down')}, then {view.command('up')}",
        )
    if not bad:
        yield CHECK.good("no NodeManager is unhealthy or lost")


_BAD = ("UNHEALTHY", "LOST", "DECOMMISSIONED", "REBOOTED")

CHECK = Check(
    name="unhealthy_nodes",
    looks_at="The state of each NodeManager and its own report, if the cluster is up.",
    why="YARN starts no container there, and says so nowhere else. A disk that is more than 90 % "
    "full is the usual cause.",
    source='Apache Hadoop, "NodeManager", Health Checker Service',
    severity=Severity.ERROR,
    look=look,
)
