"""Nothing is left of a cluster whose driver was killed."""

from __future__ import annotations

from collections.abc import Iterator

from boardcluster.doctor.finding import Check, Finding, Severity
from boardcluster.doctor.surroundings import Surroundings

__all__ = ["CHECK"]


def look(around: Surroundings) -> Iterator[Finding]:
    """Compare the record of what lives with what lives."""
    if around.state_error is not None:
        yield CHECK.wrong(
            around.state_error.message,
            severity=Severity.ERROR,
            why="Without this record neither `up` nor `down` knows what lives.",
            fix=around.state_error.hint,
        )
        return
    if around.state is None:
        yield CHECK.good("nothing is recorded as alive")
        return
    if around.driver is not None:
        yield CHECK.good(f"process {around.driver} works on this cluster right now")
        return
    if not around.state.capabilities.on_this_machine:
        yield CHECK.good(f"{len(around.state.nodes)} boards are recorded: see dead_daemons")
        return
    if around.alive and around.state.phase == "up":
        yield CHECK.good("the cluster is up, with every node alive")
        return
    yield CHECK.wrong(_what(around), fix=around.command("down"))


def _what(around: Surroundings) -> str:
    state = around.state
    link = state.host_link if state else ""
    if not around.this_boot:
        return "a cluster is recorded as alive, but this machine was rebooted since"
    count = len(around.processes)
    parts = [f"{count} process{'es' if count > 1 else ''}"] if count else []
    if link and around.machine.paths(f"/sys/class/net/{link}"):
        parts.append(f"the network interface {link}")
    rest = " and ".join(parts) or "its record only"
    return f"a cluster died without `down`; left: {rest}"


CHECK = Check(
    name="leftovers",
    looks_at="The record `state.json` in home, the processes that carry the cluster's identity, "
    "and the network interface into it.",
    why="What is left holds memory, and as root the network. `up` clears it away first, too.",
    source="boardcluster, cluster/state.py",
    severity=Severity.WARNING,
    look=look,
)
