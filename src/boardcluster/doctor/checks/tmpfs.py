"""Home and cache are on a disk, not in memory.

- Home or cache is in memory. Fix: `--home` or `--cache` on a disk.
"""

from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where

__all__ = ["CHECK", "IN_MEMORY"]

IN_MEMORY = ("tmpfs", "ramfs")
"""File systems that keep their files in memory."""


def _look(facts: Facts) -> Faults:
    for folder, option in ((facts.home, "--home"), (facts.cache, "--cache")):
        there = facts.machine.disk(folder).folder
        done = facts.machine.run(["stat", "--file-system", "--format=%T", there])
        if done is not None and (kind := done.text.strip()) in IN_MEMORY:
            yield Fault(f"{folder} is on {kind}", fix=f"choose a folder on a disk with {option}")


CHECK = Check(
    where=Where.ALWAYS,
    looks_at="Whether home (HDFS and `hadoop.tmp.dir`) and cache are on tmpfs.",
    why="Data there uses the memory that the nodes count on, is gone after a reboot, and makes "
    "disk figures meaningless. Debian 13 keeps /tmp in memory.",
    source='tmpfs(5); Debian 13 release notes, "The temporary-files directory /tmp is now stored '
    'in a tmpfs"',
    severity=Severity.WARNING,
    look=_look,
    good="home and cache are not in memory",
)
