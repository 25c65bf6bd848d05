"""The daemons that were started still run.

- Daemons have ended. Fix: `boardcluster down`, then `up`; it says where the reason is logged.
"""

from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where

__all__ = ["CHECK"]


def _look(facts: Facts) -> Faults:
    for board in facts.boards:
        if dead := board.details.dead_daemons:
            reason = board.there(f"sudo tail {board.facts.folder}/logs/{dead[0]}.log")
            yield Fault(
                f"ended: {', '.join(dead)}",
                node=board.name,
                fix=f"{facts.restart}; the reason: {reason}",
            )


CHECK = Check(
    where=Where.BOARDS,
    looks_at="The processes of all daemons that the record `state.json` names.",
    why="HDFS needs 630 seconds to notice that a DataNode is gone, YARN 600 for a NodeManager. "
    "Until then work is sent to nodes that cannot do it.",
    source="Apache Hadoop, dfs.namenode.heartbeat.recheck-interval and "
    "yarn.nm.liveness-monitor.expiry-interval-ms",
    severity=Severity.ERROR,
    look=_look,
    good="every recorded daemon runs",
)
