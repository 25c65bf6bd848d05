"""YARN does not kill containers for address space."""

from __future__ import annotations

from collections.abc import Iterator

from boardcluster.doctor.boards.view import ClusterView
from boardcluster.doctor.finding import Check, Finding, Severity

__all__ = ["CHECK"]


def look(view: ClusterView) -> Iterator[Finding]:
    """Look at the profile."""
    on = view.setting("yarn-site", "yarn.nodemanager.vmem-check-enabled", "true") == "true"
    ratio = view.setting("yarn-site", "yarn.nodemanager.vmem-pmem-ratio", "2.1")
    if view.profile is None or not on:
        yield CHECK.good(f"profile {view.spec.profile} has it off")
        return
    yield CHECK.wrong(
        f"profile {view.spec.profile} has it on, at {ratio} times the memory of a container",
        fix='set `profile = "default"` in cluster.toml; keep this one only to repeat what it '
        "stands for",
    )


CHECK = Check(
    name="virtual_memory_check",
    looks_at="yarn.nodemanager.vmem-check-enabled and vmem-pmem-ratio of the profile.",
    why="A JVM reserves address space that it never touches: over 1 GiB for classes and 64 MiB for "
    "each thread's arena. On 64-bit boards small containers are killed for it "
    '("running beyond virtual memory limits").',
    source="YARN-4714; yarn-default.xml",
    severity=Severity.WARNING,
    look=look,
)
