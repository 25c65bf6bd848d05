"""YARN uses every NodeManager.

- UNHEALTHY or LOST, with YARN's own words. Fix: free space on its disk, or `boardcluster down`,
  then `up`.
"""

from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where

__all__ = ["CHECK"]

_BAD = ("UNHEALTHY", "LOST", "DECOMMISSIONED", "REBOOTED")


def _look(facts: Facts) -> Faults:
    managers = facts.masters.managers if facts.masters else None
    if managers is None:
        yield facts.no_masters if facts.masters is None else "YARN gives no answer"
        return
    bad = [row for row in managers if row.state in _BAD]
    for row in bad:
        full = "utilization" in row.report or "used space" in row.report
        yield Fault(
            f"its NodeManager is {row.state}{': ' if row.report else ''}{row.report}",
            node=row.host,
            fix="free space on its disk, see the check board_disk" if full else facts.restart,
        )
    if not bad:
        yield "no NodeManager is unhealthy or lost"


CHECK = Check(
    where=Where.BOARDS,
    looks_at="The state of each NodeManager and its own report, if the cluster is up.",
    why="YARN starts no container there, and reports it nowhere else. A disk that is more than 90 "
    "% full is the usual cause.",
    source='Apache Hadoop, "NodeManager", Health Checker Service',
    severity=Severity.ERROR,
    look=_look,
)
