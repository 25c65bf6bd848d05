"""The declared nodes fit into the memory that is free.

- The nodes declare more than there is; with the arithmetic. Fix: fewer workers, or less memory for
  each; it says how many fit.
"""

from collections.abc import Callable

from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where
from boardcluster.errors import CapacityError
from boardcluster.records import ClusterSpec
from boardcluster.services.operation import check_memory
from boardcluster.units import format_bytes, format_count

__all__ = ["CHECK"]


def _look(facts: Facts, *, attempt: Callable[[ClusterSpec], None] = check_memory) -> Faults:
    if facts.spec is None:
        yield "no valid cluster.toml to compare this machine with"
        return
    declared = sum(node.memory_bytes for node in facts.spec.nodes)
    count = len(facts.spec.nodes)
    verb = "declares" if count == 1 else "declare"
    sum_of = f"{format_count(count, 'node')} {verb} {format_bytes(declared, binary=True)}"
    if facts.processes:
        yield f"{sum_of}; not compared: the running cluster already holds its share"
        return
    try:
        attempt(facts.spec)
    except CapacityError as error:
        yield Fault(error.message, fix=error.hint)
    else:
        yield f"{sum_of}, which is available"


CHECK = Check(
    where=Where.HERE,
    looks_at="The memory that all nodes together declare, against what the kernel says is "
    "available.",
    why="`boardcluster up` refuses to start nodes that do not fit: the kernel would kill a daemon "
    "in the middle of a job.",
    source="proc(5), MemAvailable",
    severity=Severity.ERROR,
    look=_look,
)
