"""Every declared worker is live in HDFS and YARN.

- Fewer live DataNodes than declared, a NodeManager that never reported, or a master that does not
  answer. Fix: `boardcluster down`, then `up`.
"""

from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where

__all__ = ["CHECK"]


def _look(facts: Facts) -> Faults:
    masters, wanted = facts.masters, len(facts.expected_workers)
    if masters is None:
        yield facts.no_masters
        return
    live, managers = masters.live_datanodes, masters.managers
    if live is None:
        yield Fault("the NameNode does not answer", fix=facts.restart)
    elif live < wanted:
        yield Fault(f"{live} of {wanted} DataNodes are live", fix=facts.restart)
    if managers is None:
        yield Fault("the ResourceManager does not answer", fix=facts.restart)
        return
    hosts = {row.host for row in managers}
    missing = [node.name for node in facts.expected_workers if node.name not in hosts]
    if missing:
        yield Fault(f"no NodeManager has reported from {', '.join(missing)}", fix=facts.restart)
    elif live is not None and live >= wanted:
        yield f"{wanted} DataNodes are live, and {wanted} NodeManagers have reported"


CHECK = Check(
    where=Where.BOARDS,
    looks_at="How many DataNodes the NameNode counts and which NodeManagers the ResourceManager "
    "knows, if the cluster is up.",
    why="A missing worker holds no blocks and runs no tasks: results are those of a smaller "
    "cluster.",
    source="Apache Hadoop, FSNamesystemState (JMX) and ResourceManager REST APIs",
    severity=Severity.ERROR,
    look=_look,
)
