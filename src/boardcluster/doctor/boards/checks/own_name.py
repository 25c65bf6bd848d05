"""No board takes its own name for the loopback address."""

from __future__ import annotations

from collections.abc import Iterator

from boardcluster.doctor.boards.view import BoardView, ClusterView, each, fault
from boardcluster.doctor.finding import Check, Finding, Severity

__all__ = ["CHECK"]


def look(view: ClusterView) -> Iterator[Finding]:
    """Resolve each board's name on the board itself."""

    def judge(board: BoardView) -> Finding | None:
        loops = [one for one in board.inside.name_addresses if one.startswith("127.")]
        if not loops:
            return None
        return fault(
            CHECK,
            board,
            f"its own name means {', '.join(loops)} there",
            severity=Severity.ERROR if board.inside.provisioned else Severity.WARNING,
            fix=f"{view.command('up')}   (puts the names of all boards first into its /etc/hosts)",
        )

    yield from each(CHECK, view, judge, good="no board's name means 127.*")


CHECK = Check(
    name="own_name",
    looks_at="What the name of each board in cluster.toml resolves to on that board.",
    why="Debian's installer writes `127.0.1.1 NAME` into /etc/hosts. A daemon that binds to its "
    "name is then alone: DataNodes cannot reach the NameNode, and nobody can reach a DataNode. "
    "Where cloud-init keeps /etc/hosts (`manage_etc_hosts: true`, as Raspberry Pi Imager 2 sets "
    "it), it is written anew at each boot; the next `up` repairs it.",
    source='Debian Reference, "The hostname resolution"; Hadoop wiki, "ConnectionRefused"',
    severity=Severity.ERROR,
    look=look,
)
