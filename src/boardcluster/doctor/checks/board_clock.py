"""The clocks of all boards are set by time servers, and agree.

- Two clocks, the driver's among them, are certainly more than a second apart (error). Fix: `sudo
  timedatectl set-ntp true`.
- No time service sets a clock (warning). Fix: the same; `--fix` does it where systemd runs.
- A clock is not known even to within half a second (error). Fix: `ping` shows whether the network
  is slow; if not, wait until the board has less to do.
"""

from boardcluster.cluster.discovery import skews, vague_clocks
from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where

__all__ = ["CHECK"]

_SET = "sudo timedatectl set-ntp true"
_WHY_SKEW = (
    "Durations that start on one board and end on another are wrong by that much, tokens are "
    "refused as expired or not yet valid, and `boardcluster up` refuses to start."
)
_WHY_VAGUE = "It may be more than a second wrong, so `boardcluster up` refuses to start."


def _look(facts: Facts) -> Faults:
    nodes = {board.name: board.facts for board in facts.boards}
    for seen in skews(nodes):
        # Where all boards are set by time servers, it is this machine's clock that is wrong.
        fix = " && ".join([*(board.there(_SET) for board in facts.boards), _SET])
        yield Fault(seen, why=_WHY_SKEW, fix=fix)
    vague = vague_clocks(nodes)
    for board in facts.boards:
        if board.name in vague:
            yield Fault(
                vague[board.name],
                why=_WHY_VAGUE,
                fix=f"ping -c 5 {board.spec.address}   (if the network is not slow, wait until "
                f"{board.name} has less to do)",
            )
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
