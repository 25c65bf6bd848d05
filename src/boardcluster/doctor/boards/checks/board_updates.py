"""No package manager is at work on a board."""

from __future__ import annotations

from collections.abc import Iterator

from boardcluster.doctor.boards.view import BoardView, ClusterView, each, fault
from boardcluster.doctor.finding import Check, Finding, Severity

__all__ = ["CHECK"]


def look(view: ClusterView) -> Iterator[Finding]:
    """Look at the running processes of package managers."""
    yield from each(CHECK, view, _judge, good="no package manager is at work")


def _judge(board: BoardView) -> Finding | None:
    busy = board.facts.package_managers
    if not busy:
        return None
    systemd = board.facts.service_manager == "systemd"
    return fault(
        CHECK,
        board,
        f"at work now: {', '.join(dict.fromkeys(busy))}",
        fix=f"wait until it has ended; {board.there(f'sudo systemctl stop {_TIMERS}')} keeps the "
        "next one away until the next boot",
        repair=("systemctl", "stop", *_TIMERS.split()) if systemd else (),
    )


_TIMERS = "apt-daily.timer apt-daily-upgrade.timer"

CHECK = Check(
    name="board_updates",
    looks_at="Running processes of apt, dpkg and unattended-upgrades on every board.",
    why="They take CPU and disk for minutes, and a new Java or kernel in the middle of a campaign "
    "makes its runs incomparable. Packages cannot be installed meanwhile, either.",
    source='Debian wiki, "UnattendedUpgrades"; apt-daily.timer, systemd.timer(5)',
    severity=Severity.WARNING,
    look=look,
)
