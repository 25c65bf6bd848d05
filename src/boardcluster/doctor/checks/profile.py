"""The engine configuration fits the declared nodes.

- No container could ever run, with the arithmetic (error). Fix: another profile, or more memory.
- No such profile, or a file of your own that is wrong, with its line (error). Fix: the profile.
- A contradiction between profile and nodes (warning). Fix: `profile = "default"`, or more memory.
"""

from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where
from boardcluster.errors import BoardclusterError
from boardcluster.services.profile import build_profile
from boardcluster.units import format_count

__all__ = ["CHECK"]

_ODD = (
    "Jobs run, but not as these settings promise. Papers print such settings, so compare with "
    "caution."
)
_NO_SPARK = "MapReduce runs, but YARN can give Spark no executor."


def _look(facts: Facts) -> Faults:
    spec = facts.spec
    if spec is None:
        yield "no valid cluster.toml to check it against"
        return
    try:
        profile = build_profile(spec.profile, spec)
    except BoardclusterError as error:
        yield Fault(error.message, fix=error.hint)
        return
    more = f"give each worker more `memory` in {facts.home / 'cluster.toml'}"
    for remark in profile.remarks:
        yield Fault(
            f"{profile.name}: {remark}",
            severity=Severity.WARNING,
            why=_NO_SPARK if remark == profile.spark_refusal else _ODD,
            fix=more if profile.name == "default" else facts.default_profile,
        )
    if not profile.remarks:
        yield f"{profile.name} fits {format_count(len(spec.workers), 'worker')}"


CHECK = Check(
    where=Where.ALWAYS,
    looks_at="The container sizes of the profile, against the memory of each declared node.",
    why="YARN accepts such a job and lets it wait in ACCEPTED forever, or promises memory that the "
    "node does not have, and its containers are killed.",
    source="Apache Hadoop, yarn-default.xml and mapred-default.xml; Lee, Oh and Park 2021, "
    "Table 11",
    severity=Severity.ERROR,
    look=_look,
)
