"""This machine can be a node itself: its user and its own name are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from boardcluster.cluster.kinds.local.nodes import check_machine
from boardcluster.doctor.finding import Check, Finding, Severity
from boardcluster.doctor.surroundings import Surroundings
from boardcluster.errors import HostError

__all__ = ["CHECK"]


def look(around: Surroundings, *, attempt: Callable[[], None] = check_machine) -> Iterator[Finding]:
    """Look both up."""
    del around
    try:
        attempt()
    except HostError as error:
        yield CHECK.wrong(error.message, fix=error.hint)
        return
    yield CHECK.good("the user has a name, and this machine's own name has an address")


CHECK = Check(
    name="local_node",
    looks_at="For a local node: whether the user has a name, and this machine's own name an "
    "address.",
    why="Hadoop's programs log in by the user's name, and a job that is submitted states the "
    "machine's own name and address. In containers either may be missing.",
    source="Apache Hadoop, classes UserGroupInformation and JobSubmitter",
    severity=Severity.ERROR,
    look=look,
    matters=lambda kind: kind.shares_processes,
)
