"""Every board has SSH host keys of its own.

- Boards show the same key. Fix: `sudo ssh-keygen -A` after deleting the old ones, on all but one.
"""

from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where
from boardcluster.doctor.facts import Board

__all__ = ["CHECK"]

_RENEW = "sudo rm /etc/ssh/ssh_host_* && sudo ssh-keygen -A && sudo systemctl restart ssh"


def _look(facts: Facts) -> Faults:
    by_key: dict[str, list[Board]] = {}
    for board in facts.boards:
        for key in board.facts.host_keys:
            by_key.setdefault(key, []).append(board)
    sharing = {tuple(board.name for board in boards): boards[-1] for boards in by_key.values()}
    for names, last in sharing.items():
        if len(names) > 1:
            yield Fault(
                f"{', '.join(names)} show the same SSH host key",
                fix=f"{last.there(_RENEW)}   (on all but one; then accept its new key)",
            )


CHECK = Check(
    where=Where.BOARDS,
    looks_at="The fingerprints of /etc/ssh/ssh_host_*_key.pub of every board.",
    why="Boards made from one card can pass for each other, and anyone who has one card can "
    "impersonate all of them: host keys no longer prove anything.",
    source="ssh-keygen(1), -A; RFC 4251, section 4.1",
    severity=Severity.WARNING,
    look=_look,
    good="every board has host keys of its own",
)
