"""No two boards are clones of one card."""

from __future__ import annotations

from collections.abc import Iterator

from boardcluster.doctor.boards.view import BoardView, ClusterView
from boardcluster.doctor.finding import Check, Finding, Severity

__all__ = ["CHECK"]


def look(view: ClusterView) -> Iterator[Finding]:
    """Compare the hashes of all machine ids."""
    by_id: dict[str, list[BoardView]] = {}
    for board in view.boards:
        if board.facts.machine_id:
            by_id.setdefault(board.facts.machine_id, []).append(board)
    clones = [boards for boards in by_id.values() if len(boards) > 1]
    for boards in clones:
        again = "sudo rm -f /etc/machine-id /var/lib/dbus/machine-id && "
        yield CHECK.wrong(
            f"{', '.join(board.name for board in boards)} have the same machine id",
            fix=boards[-1].there(f"{again}sudo systemd-machine-id-setup && sudo reboot")
            + "   (on all but one)",
        )
    if not clones:
        yield CHECK.good("every board has a machine id of its own")


CHECK = Check(
    name="machine_ids",
    looks_at="/etc/machine-id of every board, hashed.",
    why="systemd-networkd and NetworkManager derive the DHCP client's id from it: a router gives "
    "clones of one card the same address, and connections break at random.",
    source="machine-id(5); systemd.network(5), DUIDType",
    severity=Severity.WARNING,
    look=look,
)
