"""Home and cache are on a disk, not in memory."""

from __future__ import annotations

from collections.abc import Iterator

from boardcluster.doctor.finding import Check, Finding, Severity
from boardcluster.doctor.surroundings import Surroundings

__all__ = ["CHECK"]

_IN_MEMORY = ("tmpfs", "ramfs")


def look(around: Surroundings) -> Iterator[Finding]:
    """Ask for the kind of file system."""
    faults = 0
    for folder, option in ((around.home, "--home"), (around.cache, "--cache")):
        place = around.machine.disk(folder).place
        done = around.machine.run(["stat", "--file-system", "--format=%T", place])
        if done is not None and (kind := done.text.strip()) in _IN_MEMORY:
            faults += 1
            yield CHECK.wrong(
                f"{folder} is on {kind}", fix=f"choose a folder on a disk with {option}"
            )
    if not faults:
        yield CHECK.good("home and cache are not in memory")


CHECK = Check(
    name="tmpfs",
    looks_at="Whether home (HDFS and `hadoop.tmp.dir`) and cache are on tmpfs.",
    why="Data there takes the memory that the nodes count on, is gone after a reboot, and makes "
    "disk figures meaningless. Debian 13 keeps /tmp in memory.",
    source='tmpfs(5); Debian 13 release notes, "The temporary-files directory /tmp is now stored '
    'in a tmpfs"',
    severity=Severity.WARNING,
    look=look,
)
