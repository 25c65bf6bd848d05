"""Nothing else on this machine uses the cluster's network.

- Another network is there. Fix: `boardcluster down` for the other cluster, or another `subnet` in
  cluster.toml.
"""

from collections.abc import Callable

from boardcluster.cluster.kinds.emulated.nodes import check_host
from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where
from boardcluster.errors import AddressError, HostError
from boardcluster.records import ClusterSpec

__all__ = ["CHECK"]


def _look(facts: Facts, *, attempt: Callable[[ClusterSpec], None] = check_host) -> Faults:
    subnet = facts.declared.network.subnet
    if not facts.machine.is_root:
        yield f"{subnet} cannot collide: without root the cluster has a network of its own"
        return
    if facts.this_boot or facts.driver is not None:
        yield f"{subnet} belongs to this cluster"
        return
    try:
        attempt(facts.declared)
    except AddressError as error:
        yield Fault(error.message, fix=error.hint)
    except HostError:
        yield "cannot tell: see the check namespaces"
    else:
        yield f"{subnet} is free"


CHECK = Check(
    where=Where.NAMESPACES,
    looks_at="As root: routes of this machine into the cluster's network.",
    why="Packets for a node would go to another machine. `boardcluster up` refuses.",
    source="RFC 2544, 198.18.0.0/15",
    severity=Severity.ERROR,
    look=_look,
)
