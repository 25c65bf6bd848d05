"""The CPUs of all boards run at one frequency."""

from __future__ import annotations

from collections.abc import Iterator

from boardcluster.doctor.boards.view import BoardView, ClusterView, each, fault
from boardcluster.doctor.finding import Check, Finding, Severity

__all__ = ["CHECK"]


def look(view: ClusterView) -> Iterator[Finding]:
    """Look at the frequency governors."""
    yield from each(CHECK, view, _judge, good="performance, or not steered by the kernel")


def _judge(board: BoardView) -> Finding | None:
    governor = board.facts.governor
    if governor in ("", "performance"):
        return None
    return fault(
        CHECK,
        board,
        f"{governor} instead of performance",
        fix=board.there(f"echo performance | sudo tee {_FILES}") + "   (until the next boot)",
        repair=("sh", "-c", f"for file in {_FILES}; do echo performance > $file; done"),
    )


_FILES = "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"

CHECK = Check(
    name="governors",
    looks_at="The frequency governor of every CPU of every board.",
    why="Others raise the frequency only after load has come. Short phases of a job run slower, "
    "and runs differ more from each other.",
    source='Linux kernel, "CPU Performance Scaling", admin-guide/pm/cpufreq',
    severity=Severity.WARNING,
    look=look,
)
