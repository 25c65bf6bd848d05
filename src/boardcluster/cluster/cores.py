"""How many cores this machine has for us: a container may be bound to some, or have a CPU quota.

Sources: sched_getaffinity(2); Linux, Documentation/scheduler/sched-bwc.rst, and ``cpu.max`` in
Documentation/admin-guide/cgroup-v2.rst.
"""

from __future__ import annotations

import math
import os
from pathlib import Path

from boardcluster.cluster.own_groups import own_groups

__all__ = ["available_cores"]


def available_cores(root: Path = Path("/")) -> int:
    """Return how many cores may be busy at once, by those that we are bound to and by CPU quotas.

    Quotas are those of the groups that we are in and of all above them. A part of a core does not
    count, but there is always one.

    Args:
        root: folder to use instead of ``/``.
    """
    bound = float(len(os.sched_getaffinity(0)))
    quotas = (_quota_cores(folder, is_v1) for folder, is_v1 in own_groups("cpu", root=root))
    return max(1, math.floor(min([bound, *quotas])))


def _quota_cores(folder: Path, is_v1: bool) -> float:
    """Return the CPU time per second that a group may have; infinite where nothing limits it."""
    try:
        if is_v1:
            quota = int((folder / "cpu.cfs_quota_us").read_text())
            period = int((folder / "cpu.cfs_period_us").read_text())
        else:
            quota, period = map(int, (folder / "cpu.max").read_text().split())
    except (OSError, ValueError):  # there is no such file here, or it says `max`
        return math.inf
    return quota / period if quota > 0 and period > 0 else math.inf
