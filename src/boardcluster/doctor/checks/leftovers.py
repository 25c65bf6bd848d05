"""Nothing is left of a cluster whose driver was killed.

- A cluster whose driver was killed, or a record from before a reboot (warning). Fix:
  `boardcluster down`.
- A record that cannot be read (error). Fix: what its message says.
"""

from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where
from boardcluster.units import format_count

__all__ = ["CHECK"]


def _look(facts: Facts) -> Faults:
    state = facts.state
    if facts.state_error is not None:
        yield Fault(
            facts.state_error.message,
            severity=Severity.ERROR,
            why="Without this record neither `up` nor `down` knows what is running.",
            fix=facts.state_error.hint,
        )
    elif state is None:
        yield "nothing is recorded as alive"
    elif facts.driver is not None:
        yield f"process {facts.driver} is working on this cluster right now"
    elif not state.capabilities.on_this_machine:
        boards = format_count(len(state.nodes), "board")
        yield f"{boards} recorded as alive: see dead_daemons"
    elif facts.alive and state.phase == "up":
        yield "the cluster is up, with every node alive"
    else:
        yield Fault(_what(facts, link=state.host_link), fix=facts.command("down"))


def _what(facts: Facts, *, link: str) -> str:
    if not facts.this_boot:
        return "a cluster is recorded as alive, but this machine was rebooted since"
    count = len(facts.processes)
    parts = [format_count(count, "process", "processes")] if count else []
    if link and facts.machine.paths(f"/sys/class/net/{link}"):
        parts.append(f"the network interface {link}")
    rest = " and ".join(parts) or "its record only"
    return f"a cluster died without `down`; left: {rest}"


CHECK = Check(
    where=Where.ALWAYS,
    looks_at="The record `state.json` in home, the processes that carry the cluster's identity, "
    "and the network interface into it.",
    why="What is left holds memory and, as root, the network. `up` also clears it away first.",
    source="boardcluster, cluster/state.py",
    severity=Severity.WARNING,
    look=_look,
)
