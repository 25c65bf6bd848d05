"""The login user becomes root without a password."""

from __future__ import annotations

from collections.abc import Iterator

from boardcluster.cluster.discovery import refuse_sudo
from boardcluster.doctor.boards.reasons import refused_by_sudo
from boardcluster.doctor.boards.view import BoardView, ClusterView, each, fault
from boardcluster.doctor.finding import Check, Finding, Severity

__all__ = ["CHECK"]


def look(view: ClusterView) -> Iterator[Finding]:
    """Look at boards that refused because of sudo, and at what the others say of it."""
    refused = [row for row in view.lost if refused_by_sudo(row.error)]
    for lost in refused:
        yield CHECK.wrong(
            f"{lost.spec.name}: {lost.error.message.splitlines()[0]}",
            fix=lost.error.hint or f"ssh -t {lost.spec.host} sudo visudo",
            node=lost.spec.name,
        )
    if not refused or view.boards:
        yield from each(CHECK, view, _judge, good="sudo works without a password")


def _judge(board: BoardView) -> Finding | None:
    refusal = refuse_sudo(board.facts)
    return fault(CHECK, board, refusal.reason, fix=refusal.fix) if refusal else None


CHECK = Check(
    name="sudo_asks",
    looks_at="Whether `sudo -n` works for the user that logs in.",
    why="Packages, users, the firewall and services are root's. Nobody is there to type a password "
    "on each board, and it must not stand in a file.",
    source="sudo(8), -n; sudoers(5), NOPASSWD",
    severity=Severity.ERROR,
    look=look,
)
