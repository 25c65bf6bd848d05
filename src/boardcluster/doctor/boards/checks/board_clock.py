"""The clocks of all boards are kept, and agree."""

from __future__ import annotations

from collections.abc import Iterator

from boardcluster.cluster.discovery import skews
from boardcluster.doctor.boards.view import BoardView, ClusterView, each, fault
from boardcluster.doctor.finding import Check, Finding, Severity

__all__ = ["CHECK"]


def look(view: ClusterView) -> Iterator[Finding]:
    """Compare the clocks with each other, and ask whether each is kept."""
    apart = skews({board.name: board.facts for board in view.boards})
    for words in apart:
        yield CHECK.wrong(words, severity=Severity.ERROR, why=_WHY_SKEW, fix=_fix(view))
    for finding in each(CHECK, view, _judge, good="kept, and less than a second apart"):
        if not (finding.ok and apart):
            yield finding


def _fix(view: ClusterView) -> str:
    command = "sudo timedatectl set-ntp true"
    return " && ".join(board.there(command) for board in view.boards)


def _judge(board: BoardView) -> Finding | None:
    if board.facts.clock_synchronised is not False:
        return None
    systemd = board.facts.service_manager == "systemd"
    return fault(
        CHECK,
        board,
        "no time service keeps its clock",
        severity=Severity.WARNING,
        fix=board.there("sudo timedatectl set-ntp true")
        + "   (after `sudo apt-get install systemd-timesyncd` if that is missing)",
        repair=("timedatectl", "set-ntp", "true") if systemd else (),
    )


_WHY_SKEW = (
    "Durations that start on one board and end on another are wrong by that much, tokens are "
    "refused as expired or not yet valid, and `boardcluster up` refuses to start."
)

CHECK = Check(
    name="board_clock",
    looks_at="The offset of each clock from ours (half of the way there and back is its error), "
    "and whether the kernel says that a time service keeps it.",
    why="Boards have no battery: without a time service they start in the past and drift by "
    "seconds a day.",
    source="RFC 5905, section 8; adjtimex(2), maxerror; timedatectl(1), NTPSynchronized",
    severity=Severity.ERROR,
    look=look,
)
