"""The clocks of all boards are set by time servers, and agree.

- Two clocks, the driver's among them, are certainly more than a second apart, or one is known
  only to within half a second (error). Fix: `sudo timedatectl set-ntp true`.
- No time service sets a clock (warning). Fix: the same; `--fix` does it where systemd runs.
"""

from boardcluster.cluster.discovery import skews
from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where

__all__ = ["CHECK"]

_SET = "sudo timedatectl set-ntp true"
_WHY_SKEW = (
    "Durations that start on one board and end on another are wrong by that much, tokens are "
    "refused as expired or not yet valid, and `boardcluster up` refuses to start."
)


def _look(facts: Facts) -> Faults:
    for seen in skews({board.name: board.facts for board in facts.boards}):
        fix = " && ".join(board.there(_SET) for board in facts.boards)
        yield Fault(seen, why=_WHY_SKEW, fix=fix)
    for board in facts.boards:
        if board.facts.clock_synchronised is False:
            systemd = board.facts.service_manager == "systemd"
            yield Fault(
                "no time service sets its clock",
                node=board.name,
                severity=Severity.WARNING,
                fix=f"{board.there(_SET)}   (after `sudo apt-get install systemd-timesyncd` if "
                "that is missing)",
                repair=("timedatectl", "set-ntp", "true") if systemd else (),
            )


CHECK = Check(
    where=Where.BOARDS,
    looks_at="The offset of each clock from ours (known to within half of the shortest of several "
    "round trips), and whether "
    "the kernel says that a time service sets it.",
    why="Boards have no battery: without a time service they start in the past and drift by "
    "seconds a day.",
    source="RFC 5905, section 8; adjtimex(2), maxerror; timedatectl(1), NTPSynchronized",
    severity=Severity.ERROR,
    look=_look,
    good="set by time servers, and less than a second apart",
)
