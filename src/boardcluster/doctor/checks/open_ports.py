"""No daemon listens on every address.

- A port of the cluster is open on every address. Fix: `sudo ss -ltnp` names the program.
"""

from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where
from boardcluster.records import Security
from boardcluster.services.layout import PORTS

__all__ = ["CHECK"]

_ANY = ("0.0.0.0", "::")  # noqa: S104  looked for, not bound to
_UNBOUND = "shuffle"
"""Hadoop's ShuffleHandler knows no address to bind to; only the firewall closes it."""


def _look(facts: Facts) -> Faults:
    if facts.declared.security is Security.INSECURE_LAB:
        yield "not checked: insecure-lab is open by design"
        return
    named = {number: name for name, number in PORTS.items() if name != _UNBOUND}
    for board in facts.boards:
        open_ = {port for address, port in board.details.listening if address in _ANY}
        if found := sorted(open_ & set(named)):
            yield Fault(
                "listens on every address: "
                + ", ".join(f"{port} ({named[port]})" for port in found),
                node=board.name,
                fix=f"{board.there('sudo ss -ltnp')} names the program; for one of the cluster's: "
                f"{facts.restart}",
            )


CHECK = Check(
    where=Where.BOARDS,
    looks_at="TCP ports of the cluster that are bound to 0.0.0.0 or ::, on every board. "
    "MapReduce's shuffle is left out: Hadoop can bind it to nothing else.",
    why="It would answer on Wi-Fi and every other network of the board, protected by nothing but "
    "the firewall.",
    source="docs/explanation/security.md; Apache Hadoop, class ShuffleHandler",
    severity=Severity.WARNING,
    look=_look,
    good="no port of the cluster is open on every address",
)
