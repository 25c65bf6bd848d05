"""The login user becomes root without a password.

- sudo asks, or is missing. Fix: a line in `/etc/sudoers.d`; it is shown.
"""

from boardcluster.cluster.discovery import refuse_sudo
from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where

__all__ = ["CHECK"]


def _look(facts: Facts) -> Faults:
    for lost in facts.lost:
        if lost.refused_by_sudo:
            yield Fault(
                lost.error.message.splitlines()[0],
                node=lost.spec.name,
                fix=lost.error.hint or f"ssh -t {lost.spec.host} sudo visudo",
            )
    for board in facts.boards:
        if refusal := refuse_sudo(board.facts):
            yield Fault(refusal.reason, node=board.name, fix=refusal.fix)


CHECK = Check(
    where=Where.BOARDS,
    looks_at="Whether `sudo -n` works for the user that logs in.",
    why="Packages, users, the firewall and services belong to root. Nobody can type a password on "
    "each board, and it must not be stored in a file.",
    source="sudo(8), -n; sudoers(5), NOPASSWD",
    severity=Severity.ERROR,
    look=_look,
    good="sudo works without a password",
)
