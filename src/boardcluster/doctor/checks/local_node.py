"""This machine can itself be a node: the names of its user and of the machine are known.

- The user has no name. Fix: run as a user that /etc/passwd names; in a container, leave out the
  option --user or add a line for it to /etc/passwd.
- The machine's own name has no address. Fix: add it to /etc/hosts.
"""

from collections.abc import Callable

from boardcluster.cluster.kinds.local.nodes import check_machine
from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where
from boardcluster.errors import HostError

__all__ = ["CHECK"]


def _look(_: Facts, *, attempt: Callable[[], None] = check_machine) -> Faults:
    try:
        attempt()
    except HostError as error:
        yield Fault(error.message, fix=error.hint)


CHECK = Check(
    where=Where.LOCAL,
    looks_at="For a local node: whether the user has a name, and this machine's own name an "
    "address.",
    why="Hadoop's programs log in by the user's name, and a job that is submitted states the "
    "machine's own name and address. In containers either may be missing.",
    source="Apache Hadoop, classes UserGroupInformation and JobSubmitter",
    severity=Severity.ERROR,
    look=_look,
    good="the user has a name, and this machine's own name has an address",
)
