"""What was started still runs."""

from __future__ import annotations

from collections.abc import Iterator

from boardcluster.doctor.boards.view import BoardView, ClusterView, each, fault
from boardcluster.doctor.finding import Check, Finding, Severity

__all__ = ["CHECK"]


def look(view: ClusterView) -> Iterator[Finding]:
    """Compare the record of daemons with the processes on each board."""

    def judge(board: BoardView) -> Finding | None:
        if not board.inside.dead_daemons:
            return None
        names = ", ".join(board.inside.dead_daemons)
        log = f"{board.facts.folder}/logs/{board.inside.dead_daemons[0]}.log"
        return fault(
            CHECK,
            board,
            f"ended: {names}",
            fix=f"{view.command('down')}, then {view.command('up')}; "
            f"the reason: {board.there(f'sudo tail {log}')}",
        )

    yield from each(CHECK, view, judge, good="every recorded daemon runs")


CHECK = Check(
    name="dead_daemons",
    looks_at="The processes of all daemons that the record `state.json` names.",
    why="HDFS takes 630 seconds to miss a DataNode, YARN 600 to miss a NodeManager. Until then "
    "jobs are sent to where nobody is.",
    source="Apache Hadoop, dfs.namenode.heartbeat.recheck-interval and "
    "yarn.nm.liveness-monitor.expiry-interval-ms",
    severity=Severity.ERROR,
    look=look,
)
