"""No daemon listens on every address."""

from __future__ import annotations

from collections.abc import Iterator

from boardcluster.doctor.boards.view import BoardView, ClusterView, each, fault
from boardcluster.doctor.finding import Check, Finding, Severity
from boardcluster.records import Security
from boardcluster.services.layout import PORTS

__all__ = ["CHECK"]


def look(view: ClusterView) -> Iterator[Finding]:
    """Look for the cluster's ports on wildcard addresses."""

    def judge(board: BoardView) -> Finding | None:
        named = {number: name for name, number in PORTS.items() if name not in _ALWAYS}
        found = sorted(
            {port for address, port in board.inside.listening if address in _ANY and port in named}
        )
        if not found:
            return None
        listed = ", ".join(f"{port} ({named[port]})" for port in found)
        return fault(
            CHECK,
            board,
            f"listens on every address: {listed}",
            fix=f"{board.there('sudo ss -ltnp')} names the program; for one of the cluster's: "
            f"{view.command('down')}, then {view.command('up')}",
        )

    if view.spec.security is Security.INSECURE_LAB:
        yield CHECK.good("not looked at: insecure-lab is open by design")
        return
    yield from each(CHECK, view, judge, good="no port of the cluster is open on every address")


_ANY = ("0.0.0.0", "::")  # noqa: S104  looked for, not bound to
_ALWAYS = frozenset({"shuffle"})
"""Hadoop's ShuffleHandler knows no address to bind to; only the firewall closes it."""

CHECK = Check(
    name="open_ports",
    looks_at="TCP ports of the cluster that are bound to 0.0.0.0 or ::, on every board. "
    "MapReduce's shuffle is left out: Hadoop can bind it to nothing else.",
    why="It would answer on Wi-Fi and every other network of the board; only the firewall stands "
    "before it then.",
    source="docs/explanation/security.md; Apache Hadoop, class ShuffleHandler",
    severity=Severity.WARNING,
    look=look,
)
