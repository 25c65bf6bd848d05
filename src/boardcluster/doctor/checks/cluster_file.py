"""`cluster.toml` has no mistakes.

- A mistake, with its line, key, what is allowed and the nearest valid name. Fix: edit the file.
"""

from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where
from boardcluster.units import format_count

__all__ = ["CHECK"]


def _look(facts: Facts) -> Faults:
    error, spec = facts.spec_error, facts.spec
    if error is not None:
        yield Fault(error.message, fix=error.hint or f"edit {facts.home / 'cluster.toml'}")
    elif spec is None:
        yield f"none in {facts.home} yet; `{facts.command('init')}` writes one for this machine"
    else:
        workers = format_count(len(spec.workers), "worker")
        yield f"1 master, {workers}, {spec.engines}, {spec.profile}"


CHECK = Check(
    where=Where.ALWAYS,
    looks_at="The cluster's `cluster.toml`, if there is one.",
    why="No command accepts a file with a mistake in it. Checks of the cluster are skipped until "
    "it is corrected.",
    source="boardcluster, spec/cluster.py",
    severity=Severity.ERROR,
    look=_look,
)
