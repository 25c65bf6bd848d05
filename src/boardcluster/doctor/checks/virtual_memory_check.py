"""YARN does not kill containers for address space.

- The check is on. Fix: `profile = "default"`.
"""

from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where

__all__ = ["CHECK"]


def _look(facts: Facts) -> Faults:
    profile = facts.declared.profile
    on = facts.setting("yarn-site", "yarn.nodemanager.vmem-check-enabled", "true") == "true"
    ratio = facts.setting("yarn-site", "yarn.nodemanager.vmem-pmem-ratio", "2.1")
    if facts.profile is None or not on:
        yield f"profile {profile} has it off"
        return
    yield Fault(
        f"profile {profile} has it on, at {ratio} times the memory of a container",
        fix=facts.default_profile,
    )


CHECK = Check(
    where=Where.BOARDS,
    looks_at="yarn.nodemanager.vmem-check-enabled and vmem-pmem-ratio of the profile.",
    why="A JVM reserves address space that it never touches: over 1 GiB for classes and 64 MiB for "
    "each thread's arena. On 64-bit boards small containers are killed for it "
    '("running beyond virtual memory limits").',
    source="YARN-4714; yarn-default.xml",
    severity=Severity.WARNING,
    look=_look,
)
