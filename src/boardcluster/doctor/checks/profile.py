"""The engine configuration fits the declared nodes."""

from __future__ import annotations

from collections.abc import Iterator

from boardcluster.doctor.finding import Check, Finding, Severity
from boardcluster.doctor.surroundings import Surroundings
from boardcluster.errors import CapacityError
from boardcluster.services.profile import build_profile

__all__ = ["CHECK"]

_ODD = "Jobs run, but not as these settings promise. Papers print such settings: compare with care."
_NO_SPARK = "MapReduce runs, but YARN can give Spark no executor."


def look(around: Surroundings) -> Iterator[Finding]:
    """Build the profile and repeat its contradictions."""
    spec = around.spec
    if spec is None:
        yield CHECK.good("no valid cluster.toml to build it for")
        return
    try:
        profile = build_profile(spec.profile, spec)
    except CapacityError as error:
        yield CHECK.wrong(error.message, fix=error.hint)
        return
    for remark in profile.remarks:
        yield CHECK.wrong(
            f"{profile.name}: {remark}",
            severity=Severity.WARNING,
            why=_NO_SPARK if remark == profile.spark_refusal else _ODD,
            fix=_fix(profile.name, around),
        )
    if not profile.remarks:
        yield CHECK.good(f"{profile.name} fits {len(spec.workers)} workers")


def _fix(profile: str, around: Surroundings) -> str:
    path = around.home / "cluster.toml"
    if profile == "default":
        return f"give each worker more `memory` in {path}"
    return f'set `profile = "default"` in {path}; keep {profile} only to repeat what it stands for'


CHECK = Check(
    name="profile",
    looks_at="The container sizes of the profile, against the memory of each declared node.",
    why="YARN takes such a job and lets it wait in ACCEPTED forever, or promises memory that the "
    "node does not have, and its containers are killed.",
    source="Apache Hadoop, yarn-default.xml and mapred-default.xml; Lee, Oh and Park 2021, "
    "Table 11",
    severity=Severity.ERROR,
    look=look,
)
