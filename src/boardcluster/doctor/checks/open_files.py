"""Daemons may open enough files."""

from __future__ import annotations

import re
from collections.abc import Iterator

from boardcluster.doctor.finding import Check, Finding, Severity
from boardcluster.doctor.surroundings import Surroundings

__all__ = ["CHECK"]

_LEAST = 4096
_LINE = re.compile(r"^Max open files +(\S+) +(\S+)", re.MULTILINE)


def look(around: Surroundings) -> Iterator[Finding]:
    """Compare the hard limit, which the JVM makes its own when it starts."""
    limits = _LINE.search(around.machine.text("/proc/self/limits") or "")
    if limits is None:
        yield CHECK.good("cannot tell: the kernel does not say")
        return
    hard = limits[2]
    if hard == "unlimited" or int(hard) >= _LEAST:
        yield CHECK.good(f"a daemon may open {hard} files")
        return
    yield CHECK.wrong(
        f"a daemon may open {hard} files only, less than {_LEAST}",
        fix='echo "$USER - nofile 65536" | sudo tee /etc/security/limits.d/boardcluster.conf'
        "   (then log in again)",
    )


CHECK = Check(
    name="open_files",
    looks_at="The hard limit of open files. The soft one, often 1,024, does not matter: the JVM "
    "raises it to the hard one.",
    why="A DataNode holds a socket and two files for each block it moves. Beyond the limit jobs "
    'fail with "Too many open files".',
    source="OpenJDK, option MaxFDLimit; Apache Hadoop, dfs.datanode.max.transfer.threads (4,096)",
    severity=Severity.WARNING,
    look=look,
    matters=lambda kind: kind.on_this_machine,
)
