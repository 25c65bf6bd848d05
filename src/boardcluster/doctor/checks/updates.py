"""No package manager is at work."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from boardcluster.doctor.finding import Check, Finding, Severity
from boardcluster.doctor.surroundings import Surroundings

__all__ = ["CHECK"]

_PROGRAMS = frozenset(
    {
        *("apt", "apt-get", "apt.systemd.daily", "aptitude", "dpkg", "dpkg-deb", "mandb"),
        *("unattended-upgrade", "unattended-upgrades", "update-initramfs"),
    }
)
_INTERPRETER = re.compile(r"(ba|da)?sh|perl|python[0-9.]*")


def look(around: Surroundings) -> Iterator[Finding]:
    """Go through the command lines of all processes."""
    busy = []
    for path in around.machine.paths("/proc/[0-9]*/cmdline"):
        argv = (around.machine.text(path) or "").split("\0")
        name = _program(argv)
        if name in _PROGRAMS:
            busy.append(f"{name} (process {path.split('/')[2]})")
    if not busy:
        yield CHECK.good("no package manager is at work")
        return
    yield CHECK.wrong(
        f"at work now: {', '.join(busy)}",
        fix="wait until it has ended; `sudo systemctl stop apt-daily.timer "
        "apt-daily-upgrade.timer` keeps the next one away until the next boot",
    )


def _program(argv: list[str]) -> str:
    """Return what runs: the script, if the program is an interpreter."""
    name = PurePosixPath(argv[0]).name
    if _INTERPRETER.fullmatch(name):
        words = [word for word in argv[1:] if not word.startswith("-")]
        return PurePosixPath(words[0]).name if words else name
    return name


CHECK = Check(
    name="updates",
    looks_at="Running processes of apt, dpkg and unattended-upgrades.",
    why="They take CPU and disk for minutes. Runs beside them are slower and not comparable.",
    source='Debian wiki, "UnattendedUpgrades"; apt-daily.timer, systemd.timer(5)',
    severity=Severity.WARNING,
    look=look,
)
