"""No two boards are clones of one card.

- Boards have the same id. Fix: `sudo systemd-machine-id-setup` after deleting the old one, on all
  but one, then reboot.
"""

from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where
from boardcluster.doctor.facts import Board

__all__ = ["CHECK"]

_RENEW = (
    "sudo rm -f /etc/machine-id /var/lib/dbus/machine-id && sudo systemd-machine-id-setup && "
    "sudo reboot"
)


def _look(facts: Facts) -> Faults:
    by_id: dict[str, list[Board]] = {}
    for board in facts.boards:
        if board.facts.machine_id:
            by_id.setdefault(board.facts.machine_id, []).append(board)
    for boards in by_id.values():
        if len(boards) > 1:
            yield Fault(
                f"{', '.join(board.name for board in boards)} have the same machine id",
                fix=f"{boards[-1].there(_RENEW)}   (on all but one)",
            )


CHECK = Check(
    where=Where.BOARDS,
    looks_at="/etc/machine-id of every board, hashed.",
    why="systemd-networkd and NetworkManager derive the DHCP client's id from it: a router gives "
    "clones of one card the same address, and connections break at random.",
    source="machine-id(5); systemd.network(5), DUIDType",
    severity=Severity.WARNING,
    look=_look,
    good="every board has a machine id of its own",
)
