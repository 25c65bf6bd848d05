"""The clock is set by a time server.

- The clock is not set by a time server. Fix: `sudo timedatectl set-ntp true`.
"""

from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where

__all__ = ["CHECK"]

_KEY = "NTPSynchronized"


def _look(facts: Facts) -> Faults:
    done = facts.machine.run(["timedatectl", "show", "-p", _KEY])
    answer = done.text.strip() if done is not None and done.returncode == 0 else ""
    if answer == f"{_KEY}=no":
        yield Fault("not set by a time server", fix="sudo timedatectl set-ntp true")
    elif answer != f"{_KEY}=yes":
        yield "cannot tell: timedatectl gives no answer here"


CHECK = Check(
    where=Where.ALWAYS,
    looks_at="Whether the kernel says that a time service sets the clock.",
    why="Results carry its time, and with a clock that is far off no engine can be fetched over "
    "HTTPS. Most boards have no battery: without the network they start in the past.",
    source="timedatectl(1), NTPSynchronized; adjtimex(2), STA_UNSYNC",
    severity=Severity.WARNING,
    look=_look,
    good="set by a time server",
)
