"""Every board answers over SSH.

- No answer, no accepted key, an unknown or changed host key, no python3. Fix: what the message
  says.
"""

from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where

__all__ = ["CHECK"]


def _look(facts: Facts) -> Faults:
    faults = [row for row in facts.lost if not row.refused_by_sudo]
    for lost in faults:
        yield Fault(
            lost.error.message.splitlines()[0],
            node=lost.spec.name,
            fix=lost.error.hint or f"ssh {lost.spec.host} true",
        )
    if not faults:
        count = len(facts.declared.nodes)
        yield "the only board answers" if count == 1 else f"all {count} boards answer"


CHECK = Check(
    where=Where.BOARDS,
    looks_at="Whether each board accepts our connection, shows the host key that was accepted, and "
    "has python3.",
    why="A board that does not answer can be neither checked nor started. A changed host key means "
    "a new card, or another machine at that address.",
    source="ssh(1), ssh_config(5), StrictHostKeyChecking",
    severity=Severity.ERROR,
    look=_look,
)
