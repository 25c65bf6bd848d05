"""No kernel has killed a process for lack of memory.

- A process was killed since boot; the kernel's line is shown. Fix: less `memory` in cluster.toml.
"""

import re

from boardcluster.doctor.check import Check, Facts, Faults, Severity, Where, faults_in_logs

__all__ = ["CHECK"]

_KILL = re.compile(r"[Oo]ut of memory")
"""Of the machine, or of a control group, such as that of a daemon's unit."""


def _look(facts: Facts) -> Faults:
    return faults_in_logs(
        facts,
        _KILL,
        lambda board: (
            f"declare less `memory` for {board.name} in cluster.toml, and end other programs there"
        ),
    )


CHECK = Check(
    where=Where.BOARDS,
    looks_at="Lines about processes killed for lack of memory in each kernel's log.",
    why="A killed container is started again and the job is slower; a killed daemon ends the job.",
    source="Linux, mm/oom_kill.c",
    severity=Severity.WARNING,
    look=_look,
    good="no process was killed for lack of memory",
)
