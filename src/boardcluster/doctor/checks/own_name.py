"""No board's own name resolves to the loopback address.

- It resolves to 127.*: a warning before the first `up`, an error after it. Fix: `boardcluster up`,
  which puts the names of all boards first into /etc/hosts.
"""

from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where

__all__ = ["CHECK"]


def _look(facts: Facts) -> Faults:
    for board in facts.boards:
        loops = [one for one in board.details.name_addresses if one.startswith("127.")]
        if loops:
            up = facts.command("up")
            yield Fault(
                f"its own name resolves to {', '.join(loops)} there",
                node=board.name,
                severity=Severity.ERROR if board.details.provisioned else Severity.WARNING,
                fix=f"{up}   (puts the names of all boards first into its /etc/hosts)",
            )


CHECK = Check(
    where=Where.BOARDS,
    looks_at="What the name of each board in cluster.toml resolves to on that board.",
    why="Debian's installer writes `127.0.1.1 NAME` into /etc/hosts. A daemon that binds to its "
    "name is then alone: DataNodes cannot reach the NameNode, and nobody can reach a DataNode. "
    "Where cloud-init keeps /etc/hosts (`manage_etc_hosts: true`, as Raspberry Pi Imager 2 sets "
    "it), it is rewritten at each boot; the next `up` repairs it.",
    source='Debian Reference, "The hostname resolution"; Hadoop wiki, "ConnectionRefused"',
    severity=Severity.ERROR,
    look=_look,
    good="no board's name resolves to 127.*",
)
