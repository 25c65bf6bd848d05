"""The declared nodes fit into the memory that is free."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from boardcluster.doctor.finding import Check, Finding, Severity
from boardcluster.doctor.surroundings import Surroundings
from boardcluster.errors import CapacityError
from boardcluster.records import ClusterSpec
from boardcluster.services.operation import check_memory
from boardcluster.units import format_bytes

__all__ = ["CHECK"]


def look(
    around: Surroundings, *, attempt: Callable[[ClusterSpec], None] = check_memory
) -> Iterator[Finding]:
    """Add up what the nodes declare."""
    if around.spec is None:
        yield CHECK.good("no valid cluster.toml to compare this machine with")
        return
    declared = sum(node.memory_bytes for node in around.spec.nodes)
    sum_of = f"{len(around.spec.nodes)} nodes declare {format_bytes(declared, binary=True)}"
    if around.processes:
        yield CHECK.good(f"{sum_of}; not compared: its processes hold their share already")
        return
    try:
        attempt(around.spec)
    except CapacityError as error:
        yield CHECK.wrong(error.message, fix=error.hint)
        return
    yield CHECK.good(f"{sum_of}, and so much is available")


CHECK = Check(
    name="memory",
    looks_at="The memory that all nodes declare together, against what the kernel says is "
    "available.",
    why="`boardcluster up` refuses to start what does not fit: the kernel would kill a daemon in "
    "the middle of a job.",
    source="proc(5), MemAvailable",
    severity=Severity.ERROR,
    look=look,
    matters=lambda kind: kind.on_this_machine,
)
