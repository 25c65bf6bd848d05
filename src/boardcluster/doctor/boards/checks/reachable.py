"""Every board answers over SSH."""

from __future__ import annotations

from collections.abc import Iterator

from boardcluster.doctor.boards.reasons import refused_by_sudo
from boardcluster.doctor.boards.view import ClusterView
from boardcluster.doctor.finding import Check, Finding, Severity

__all__ = ["CHECK"]


def look(view: ClusterView) -> Iterator[Finding]:
    """Repeat why a board does not answer."""
    faults = [row for row in view.lost if not refused_by_sudo(row.error)]
    for lost in faults:
        yield CHECK.wrong(
            f"{lost.spec.name}: {lost.error.message.splitlines()[0]}",
            fix=lost.error.hint or f"ssh {lost.spec.host} true",
            node=lost.spec.name,
        )
    if not faults:
        yield CHECK.good(f"all {len(view.spec.nodes)} boards answer")


CHECK = Check(
    name="reachable",
    looks_at="Whether each board takes our connection, shows the host key that was accepted, and "
    "has python3.",
    why="What does not answer can be neither checked nor started. A host key that changed means a "
    "new card, or somebody else's machine at that address.",
    source="ssh(1), ssh_config(5), StrictHostKeyChecking",
    severity=Severity.ERROR,
    look=look,
)
