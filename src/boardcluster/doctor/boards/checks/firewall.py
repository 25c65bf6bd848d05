"""Only the cluster and its driver reach the cluster's ports."""

from __future__ import annotations

from collections.abc import Iterator

from boardcluster.doctor.boards.view import BoardView, ClusterView, each, fault
from boardcluster.doctor.finding import Check, Finding, Severity
from boardcluster.records import Security
from boardcluster.services.provision.firewall import FIREWALL_FILE

__all__ = ["CHECK"]


def look(view: ClusterView) -> Iterator[Finding]:
    """Look for our table among the rules that each kernel has loaded."""
    if view.spec.security is Security.INSECURE_LAB:
        yield CHECK.wrong(
            "insecure-lab: whoever reaches a board may run any command on all of them",
            severity=Severity.WARNING,
            fix='set `security = "closed"` in cluster.toml, then '
            f"{view.command('down')} and {view.command('up')}",
        )
        return

    def judge(board: BoardView) -> Finding | None:
        inside = board.inside
        if not inside.provisioned or inside.firewall:
            return None
        seen = "nft gives no answer" if inside.firewall is None else "its firewall is not in force"
        there = inside.firewall is False and inside.firewall_file
        return fault(
            CHECK,
            board,
            seen,
            fix=board.there(f"sudo nft -f {FIREWALL_FILE}") if there else view.command("up"),
            repair=("nft", "-f", FIREWALL_FILE) if there else (),
        )

    yield from each(CHECK, view, judge, good="loaded on every board that `up` has installed")


CHECK = Check(
    name="firewall",
    looks_at="Whether the table `inet boardcluster` of nftables is loaded with its rules, on "
    "boards that are installed.",
    why="YARN runs any command for whoever reaches it, and scanners find an open one within "
    "minutes. A home or school network is no boundary.",
    source="docs/explanation/security.md; Radware 2018, DemonBot",
    severity=Severity.ERROR,
    look=look,
)
