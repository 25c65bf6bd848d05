"""The kernel can limit the memory of a service."""

from __future__ import annotations

from collections.abc import Iterator

from boardcluster.doctor.boards.view import BoardView, ClusterView, each, fault
from boardcluster.doctor.finding import Check, Finding, Severity

__all__ = ["CHECK"]


def look(view: ClusterView) -> Iterator[Finding]:
    """Look for `memory` among the control-group controllers."""

    def judge(board: BoardView) -> Finding | None:
        if board.facts.memory_controller:
            return None
        return fault(
            CHECK,
            board,
            "`memory` is not among the cgroup controllers "
            f"({' '.join(board.facts.cgroup_controllers) or 'none'})",
            fix=f"{view.command('up')}, then {board.there('sudo reboot')}   (`up` adds "
            "cgroup_enable=memory to /boot/firmware/cmdline.txt on a Raspberry Pi)",
        )

    yield from each(CHECK, view, judge, good="every kernel has the memory controller on")


CHECK = Check(
    name="memory_controller",
    looks_at="The controllers in /sys/fs/cgroup/cgroup.controllers; with cgroup 1, /proc/cgroups.",
    why="The firmware of a Raspberry Pi passes cgroup_disable=memory. Without the controller the "
    "memory limits of the daemons' units do nothing, and when memory ends the kernel may kill sshd "
    "instead of the daemon that took it.",
    source="Linux, admin-guide/cgroup-v2; github.com/raspberrypi/linux, issues 3644 and 6980",
    severity=Severity.WARNING,
    look=look,
)
