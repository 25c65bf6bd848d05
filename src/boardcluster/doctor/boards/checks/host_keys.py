"""Every board has SSH host keys of its own."""

from __future__ import annotations

from collections.abc import Iterator

from boardcluster.doctor.boards.view import BoardView, ClusterView
from boardcluster.doctor.finding import Check, Finding, Severity

__all__ = ["CHECK"]


def look(view: ClusterView) -> Iterator[Finding]:
    """Compare the fingerprints of all host keys."""
    by_key: dict[str, list[BoardView]] = {}
    for board in view.boards:
        for key in board.facts.host_keys:
            by_key.setdefault(key, []).append(board)
    sharing = {tuple(board.name for board in boards): boards for boards in by_key.values()}
    clones = [boards for boards in sharing.values() if len(boards) > 1]
    for boards in clones:
        again = "sudo rm /etc/ssh/ssh_host_* && sudo ssh-keygen -A && sudo systemctl restart ssh"
        yield CHECK.wrong(
            f"{', '.join(board.name for board in boards)} show the same SSH host key",
            fix=f"{boards[-1].there(again)}   (on all but one; then accept its new key)",
        )
    if not clones:
        yield CHECK.good("every board has host keys of its own")


CHECK = Check(
    name="host_keys",
    looks_at="The fingerprints of /etc/ssh/ssh_host_*_key.pub of every board.",
    why="Boards made from one card can stand in for each other, and whoever has one card can stand "
    "in for all of them: host keys prove nothing any more.",
    source="ssh-keygen(1), -A; RFC 4251, section 4.1",
    severity=Severity.WARNING,
    look=look,
)
