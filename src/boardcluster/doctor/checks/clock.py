"""The clock is set by a time server."""

from __future__ import annotations

from collections.abc import Iterator

from boardcluster.doctor.finding import Check, Finding, Severity
from boardcluster.doctor.surroundings import Surroundings

__all__ = ["CHECK"]

_KEY = "NTPSynchronized"


def look(around: Surroundings) -> Iterator[Finding]:
    """Ask systemd, which asks the kernel and so sees any time service."""
    done = around.machine.run(["timedatectl", "show", "-p", _KEY])
    answer = done.text.strip() if done is not None and done.returncode == 0 else ""
    if answer == f"{_KEY}=yes":
        yield CHECK.good("set by a time server")
    elif answer == f"{_KEY}=no":
        yield CHECK.wrong("not set by a time server", fix="sudo timedatectl set-ntp true")
    else:
        yield CHECK.good("cannot tell: timedatectl gives no answer here")


CHECK = Check(
    name="clock",
    looks_at="Whether the kernel says that a time service keeps the clock.",
    why="Results carry its time, and with a clock that is far off no engine can be fetched over "
    "HTTPS. Most boards have no battery: without the network they start in the past.",
    source="timedatectl(1), NTPSynchronized; adjtimex(2), STA_UNSYNC",
    severity=Severity.WARNING,
    look=look,
)
