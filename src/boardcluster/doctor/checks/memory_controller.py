"""The kernel can limit the memory of a service.

- `memory` is missing. Fix: `boardcluster up` adds it on a Raspberry Pi, then reboot.
"""

from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where

__all__ = ["CHECK"]


def _look(facts: Facts) -> Faults:
    for board in facts.boards:
        if not board.facts.memory_controller:
            there = " ".join(board.facts.cgroup_controllers) or "none"
            yield Fault(
                f"`memory` is not among the cgroup controllers ({there})",
                node=board.name,
                fix=f"{facts.command('up')}, then {board.there('sudo reboot')}   (`up` adds "
                "cgroup_enable=memory to /boot/firmware/cmdline.txt on a Raspberry Pi)",
            )


CHECK = Check(
    where=Where.BOARDS,
    looks_at="The controllers in /sys/fs/cgroup/cgroup.controllers; with cgroup 1, /proc/cgroups.",
    why="The firmware of a Raspberry Pi passes cgroup_disable=memory. Without the controller the "
    "memory limits of the daemons' units do nothing, and when memory runs out the kernel may kill "
    "sshd instead of the daemon that used it up.",
    source="Linux, admin-guide/cgroup-v2; github.com/raspberrypi/linux, issues 3644 and 6980",
    severity=Severity.WARNING,
    look=_look,
    good="every kernel has the memory controller on",
)
