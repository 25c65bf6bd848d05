"""We may make the namespaces that nodes are."""

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
    """Make one and let it go again."""
    for name in ("unshare", "ip"):
        if around.machine.run([name, "-V"]) is None:
            yield CHECK.good(f"cannot tell: `{name}` is missing, see the check tools")
            return
    try:
        attempt(around.declared)
    except AddressError:
        pass  # the namespaces were made; the address is the business of the check subnet
    except HostError as error:
        yield CHECK.wrong(error.message, fix=error.hint)
        return
    yield CHECK.good(f"can be made {'as root' if around.machine.is_root else 'without root'}")


CHECK = Check(
    name="namespaces",
    looks_at="Whether a network, mount, host-name and process namespace can be made, as root or in "
    "a user namespace.",
    why="Each node of an emulated cluster is a set of namespaces. Without them there are no nodes.",
    source='namespaces(7), user_namespaces(7); Ubuntu, "Restricted unprivileged user '
    'namespaces are coming to Ubuntu 23.10"',
    severity=Severity.ERROR,
    look=look,
    matters=lambda kind: kind.network is Network.OWN,
)
