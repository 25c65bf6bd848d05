"""No package manager is at work."""

from __future__ import annotations

from collections.abc import Iterator

from boardcluster.cluster.facts import package_manager
from boardcluster.doctor.finding import Check, Finding, Severity
from boardcluster.doctor.surroundings import Surroundings

__all__ = ["CHECK"]


def look(around: Surroundings) -> Iterator[Finding]:
    """Go through the command lines of all processes."""
    busy = []
    for path in around.machine.paths("/proc/[0-9]*/cmdline"):
        name = package_manager((around.machine.text(path) or "").split("\0"))
        if name:
            busy.append(f"{name} (process {path.split('/')[2]})")
    if not busy:
        yield CHECK.good("no package manager is at work")
        return
    yield CHECK.wrong(
        f"at work now: {', '.join(busy)}",
        fix="wait until it has ended; `sudo systemctl stop apt-daily.timer "
        "apt-daily-upgrade.timer` keeps the next one away until the next boot",
    )


CHECK = Check(
    name="updates",
    looks_at="Running processes of apt, dpkg and unattended-upgrades.",
    why="They take CPU and disk for minutes. Runs beside them are slower and not comparable.",
    source='Debian wiki, "UnattendedUpgrades"; apt-daily.timer, systemd.timer(5)',
    severity=Severity.WARNING,
    look=look,
    matters=lambda kind: kind.on_this_machine,
)
