"""``cluster.toml`` is right."""

from __future__ import annotations

from collections.abc import Iterator

from boardcluster.doctor.finding import Check, Finding, Severity
from boardcluster.doctor.surroundings import Surroundings

__all__ = ["CHECK"]


def look(around: Surroundings) -> Iterator[Finding]:
    """Repeat what validation said."""
    error = around.spec_error
    if error is not None:
        yield CHECK.wrong(error.message, fix=error.hint or f"edit {around.home / 'cluster.toml'}")
    elif around.spec is None:
        yield CHECK.good(
            f"none in {around.home} yet; `{around.command('init')}` writes one for this machine"
        )
    else:
        spec = around.spec
        yield CHECK.good(f"1 master, {len(spec.workers)} workers, {spec.engines}, {spec.profile}")


CHECK = Check(
    name="cluster_file",
    looks_at="The cluster's `cluster.toml`, if there is one.",
    why="No command starts from a file with a mistake in it. Checks of the cluster are left out "
    "until it is mended.",
    source="boardcluster, spec/cluster.py",
    severity=Severity.ERROR,
    look=look,
)
