"""The jar of our Spark jobs: where it is on this machine and on the nodes."""

from __future__ import annotations

from pathlib import Path

from boardcluster.errors import HostError
from boardcluster.services.layout import Layout

__all__ = ["jobs_jar", "jobs_jar_on_nodes"]


def jobs_jar() -> Path:
    """Return the jar of our Spark jobs.

    Raises:
        HostError: it was not built.
    """
    here = Path(__file__).resolve()
    places = [here.parents[1] / "workloads" / "jars" / "boardcluster-jobs.jar"]
    places += [parent / "jvm" / "target" / "boardcluster-jobs.jar" for parent in here.parents[2:4]]
    for place in places:
        if place.is_file():
            return place
    raise HostError("the jar of the Spark jobs has not been built", hint="run `make jar`")


def jobs_jar_on_nodes(layout: Layout) -> str:
    """Return the jar's path as nodes see it.

    Raises:
        HostError: it was not built.
    """
    return layout.jobs_jar or str(jobs_jar())
