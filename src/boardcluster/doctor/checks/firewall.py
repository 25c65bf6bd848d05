"""Only the cluster and its driver reach the cluster's ports.

- Installed, but not loaded, or its rules were flushed. Fix: `boardcluster up`.
- `security = "insecure-lab"` (warning). Fix: `security = "closed"`.
"""

from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where
from boardcluster.records import Security

__all__ = ["CHECK"]


def _look(facts: Facts) -> Faults:
    if facts.declared.security is Security.INSECURE_LAB:
        yield Fault(
            "insecure-lab: anyone who can reach a board may run any command on all of them",
            severity=Severity.WARNING,
            fix='set `security = "closed"` in cluster.toml, then '
            f"{facts.command('down')} and {facts.command('up')}",
        )
        return
    for board in facts.boards:
        details = board.details
        if details.provisioned and not details.firewall:
            silent = details.firewall is None
            # No repair: only `up` takes rules back that lock the driver out.
            yield Fault(
                "nft gives no answer" if silent else "its firewall is not active",
                node=board.name,
                fix=facts.command("up"),
            )


CHECK = Check(
    where=Where.BOARDS,
    looks_at="Whether the table `inet boardcluster` of nftables is loaded with its rules, on "
    "boards that are installed.",
    why="YARN runs any command for anyone who can reach it, and scanners find an open one within "
    "minutes. A home or school network is no protection.",
    source="docs/explanation/security.md; Radware 2018, DemonBot",
    severity=Severity.ERROR,
    look=_look,
    good="loaded on every board that `up` has installed",
)
