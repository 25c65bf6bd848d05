"""The CPU runs at one frequency."""

from __future__ import annotations

from collections.abc import Iterator

from boardcluster.doctor.finding import Check, Finding, Severity
from boardcluster.doctor.surroundings import Surroundings

__all__ = ["CHECK"]

_FILES = "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor"


def look(around: Surroundings) -> Iterator[Finding]:
    """Read the governor of every CPU."""
    read = {path: around.machine.text(path) for path in around.machine.paths(_FILES)}
    governors = sorted({text.strip() for text in read.values() if text})
    others = [name for name in governors if name != "performance"]
    if not governors:
        yield CHECK.good("this kernel does not steer the CPU's frequency")
    elif not others:
        yield CHECK.good("performance")
    else:
        yield CHECK.wrong(
            f"{' and '.join(others)} instead of performance",
            fix="echo performance | sudo tee "
            "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor   (until the next boot)",
        )


CHECK = Check(
    name="governor",
    looks_at="The frequency governor of every CPU.",
    why="Others raise the frequency only after load has come. Short phases of a job run slower, "
    "and runs differ more from each other.",
    source='Linux kernel, "CPU Performance Scaling", admin-guide/pm/cpufreq',
    severity=Severity.WARNING,
    look=look,
    matters=lambda kind: kind.on_this_machine,
)
