"""Nobody else on this machine uses the cluster's network."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from boardcluster.capabilities import Network
from boardcluster.cluster.kinds.emulated.nodes import check_host
from boardcluster.doctor.finding import Check, Finding, Severity
from boardcluster.doctor.surroundings import Surroundings
from boardcluster.errors import AddressError, HostError
from boardcluster.records import ClusterSpec

__all__ = ["CHECK"]


def look(
    around: Surroundings, *, attempt: Callable[[ClusterSpec], None] = check_host
) -> Iterator[Finding]:
    """Look for a route into the same network."""
    subnet = around.declared.network.subnet
    if not around.machine.is_root:
        yield CHECK.good(f"{subnet} cannot collide: without root the cluster's network is its own")
        return
    if around.this_boot or around.driver is not None:
        yield CHECK.good(f"{subnet} belongs to this cluster")
        return
    try:
        attempt(around.declared)
    except AddressError as error:
        yield CHECK.wrong(error.message, fix=error.hint)
    except HostError:
        yield CHECK.good("cannot tell: no namespace can be made, see the check namespaces")
    else:
        yield CHECK.good(f"{subnet} is free")


CHECK = Check(
    name="subnet",
    looks_at="As root: routes of this machine into the cluster's network.",
    why="Packets for a node would go to somebody else. `boardcluster up` refuses.",
    source="RFC 2544, 198.18.0.0/15",
    severity=Severity.ERROR,
    look=look,
    matters=lambda kind: kind.network is Network.OWN,
)
