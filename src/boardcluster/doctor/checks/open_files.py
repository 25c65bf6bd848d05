"""Daemons may open enough files.

- Fewer than 4,096. Fix: a line in `/etc/security/limits.d/boardcluster.conf`, then log in again.
"""

import re

from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where

__all__ = ["CHECK"]

_LEAST = 4096
_LINE = re.compile(r"^Max open files +(\S+) +(\S+)", re.MULTILINE)


def _look(facts: Facts) -> Faults:
    limits = _LINE.search(facts.machine.text("/proc/self/limits") or "")
    if limits is None:
        yield "cannot tell: the kernel does not say"
        return
    hard = limits[2]
    if hard == "unlimited" or int(hard) >= _LEAST:
        yield f"a daemon may open {hard} files"
        return
    yield Fault(
        f"a daemon may open only {hard} files, fewer than {_LEAST}",
        fix='echo "$USER - nofile 65536" | sudo tee /etc/security/limits.d/boardcluster.conf'
        "   (then log in again)",
    )


CHECK = Check(
    where=Where.HERE,
    looks_at="The hard limit of open files. The soft limit, often 1,024, does not matter: the JVM "
    "raises it to the hard limit.",
    why="A DataNode holds a socket and two files for each block it moves. Beyond the limit jobs "
    'fail with "Too many open files".',
    source="OpenJDK, option MaxFDLimit; Apache Hadoop, dfs.datanode.max.transfer.threads (4,096)",
    severity=Severity.WARNING,
    look=_look,
)
