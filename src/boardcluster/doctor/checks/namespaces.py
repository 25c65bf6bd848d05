"""The namespaces that nodes consist of can be made.

- The kernel or AppArmor refuses. Fix: `make allow-namespaces` on Ubuntu, or run as root.
"""

from collections.abc import Callable

from boardcluster.cluster.kinds.emulated.nodes import check_host
from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where
from boardcluster.errors import AddressError, HostError
from boardcluster.records import ClusterSpec

__all__ = ["CHECK"]


def _look(facts: Facts, *, attempt: Callable[[ClusterSpec], None] = check_host) -> Faults:
    for name in ("unshare", "ip"):
        if facts.machine.run([name, "-V"]) is None:
            yield f"cannot tell: `{name}` is missing, see the check tools"
            return
    try:
        attempt(facts.declared)
    except AddressError:
        pass  # the namespaces were made; the address is the business of the check subnet
    except HostError as error:
        yield Fault(error.message, fix=error.hint)
        return
    yield f"can be made {'as root' if facts.machine.is_root else 'without root'}"


CHECK = Check(
    where=Where.NAMESPACES,
    looks_at="Whether a network, mount, host-name and process namespace can be made, as root or in "
    "a user namespace.",
    why="Each node of an emulated cluster is a set of namespaces. Without them there are no nodes.",
    source='namespaces(7), user_namespaces(7); Ubuntu, "Restricted unprivileged user '
    'namespaces are coming to Ubuntu 23.10"',
    severity=Severity.ERROR,
    look=_look,
)
