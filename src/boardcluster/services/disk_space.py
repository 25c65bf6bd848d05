"""Room on the disk that holds a cluster's home, counted as the daemons count it."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

from boardcluster.cluster.each_node import each_node
from boardcluster.errors import BoardclusterError, CapacityError, RemoteTimeoutError
from boardcluster.fetch.cache import require_space
from boardcluster.records import NodeSpec
from boardcluster.remote.base import Remote
from boardcluster.services.layout import Layout
from boardcluster.units import format_bytes

__all__ = [
    "FULL_PERCENT",
    "full_disk",
    "fullest_disk",
    "no_block_words",
    "require_disk_space",
    "require_space_for_run",
    "require_space_of_driver",
    "sick_disks",
    "used_percent",
]

FULL_PERCENT = 90.0
"""yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage: above it a
NodeManager is unhealthy and its jobs wait without a message (Apache Hadoop, "NodeManager")."""

_KERNEL_ERROR = re.compile(r"I/O error|EXT4-fs error|read-only|abort", re.IGNORECASE)

_ANSWER_SECONDS = 20.0
"""A disk that takes longer to make an empty file is not one that jobs can work with."""

_NEED_BYTES = 500_000_000
"""Below 100 MiB free (dfs.namenode.resource.du.reserved) the NameNode goes into safe mode; the
rest is for logs, edits (preallocated, at least 1 MiB each) and the first data."""


def used_percent(*, total_bytes: int, available_bytes: int) -> float:
    """Return how full a disk is as YARN counts: what only root may still write counts as used.

    Source: Apache Hadoop, class DirectoryCollection.
    """
    return 100 * (1 - available_bytes / total_bytes) if total_bytes else 0.0


def require_disk_space(home: Path) -> None:
    """Refuse to start on a disk on which the daemons would give up.

    Raises:
        CapacityError: with the arithmetic.
    """
    require_space(home, need_bytes=_NEED_BYTES, purpose="starting a cluster")
    seen = os.statvfs(home)
    total_bytes, available_bytes = seen.f_blocks * seen.f_frsize, seen.f_bavail * seen.f_frsize
    percent = used_percent(total_bytes=total_bytes, available_bytes=available_bytes)
    if percent <= FULL_PERCENT:
        return
    wanted_bytes = int(total_bytes * (1 - FULL_PERCENT / 100))
    missing_bytes = wanted_bytes - available_bytes
    raise CapacityError(
        f"the disk of {home} is {percent:.1f} % full: {format_bytes(available_bytes)} of "
        f"{format_bytes(total_bytes)} are free, and YARN stops using its nodes below "
        f"{format_bytes(wanted_bytes)}",
        hint=f"free {format_bytes(missing_bytes)} there, or choose a larger disk with --home",
    )


def require_space_of_driver(home: Path) -> None:
    """Refuse to go on where results no longer fit; nodes have disks of their own.

    Raises:
        CapacityError: with the arithmetic.
    """
    require_space(home, need_bytes=_NEED_BYTES, purpose="keeping results")


def require_space_for_run(home: Path, *, on_this_machine: bool) -> None:
    """Refuse a run on a disk that is too full for it, or for what it measures.

    Args:
        home: the cluster's state folder.
        on_this_machine: whether its nodes are on the disk of that folder, too.

    Raises:
        CapacityError: with the arithmetic.
    """
    if on_this_machine:
        require_disk_space(home)
    else:
        require_space_of_driver(home)


def sick_disks(
    layout: Layout,
    remotes: Mapping[str, Remote],
    admins: Mapping[str, Remote],
) -> dict[str, str]:
    """Say of every node why its disk cannot be worked with; nothing of those that can.

    That is a disk as full as YARN allows, one that can no longer be written, and one that does not
    answer. The master's, too: when it fills, the NameNode goes into safe mode and no job can write.

    YARN itself looks only every two minutes (yarn.nodemanager.disk-health-checker.interval-ms). A
    file system becomes read-only when the kernel meets an error on it; the kernel's own line is
    added where it may be read. A node that cannot be reached is not one with a sick disk.
    """
    nodes = {node.name: node for node in layout.spec.nodes}
    found, _ = each_node(
        nodes, lambda name: _sickness(layout, nodes[name], remotes[name], admins[name])
    )
    return {name: words for name, words in found.items() if words}


def full_disk(layout: Layout, remote: Remote, node: NodeSpec) -> str:
    """Say how full a node's disk is, if it is as full as YARN allows; nothing is written to it.

    Nothing is said of a node that cannot be asked.
    """
    with contextlib.suppress(BoardclusterError, ValueError, IndexError):
        patience = _ANSWER_SECONDS * layout.dilation
        return _full(_usage(remote, layout.data(node), timeout_seconds=patience)[0])
    return ""


def no_block_words(layout: Layout, remotes: Mapping[str, Remote]) -> str:
    """Say of HDFS that it took no block, and which disk is the fullest now."""
    fullest = fullest_disk(layout, remotes)
    return "no DataNode took a block" + (f" ({fullest})" if fullest else "")


def fullest_disk(layout: Layout, remotes: Mapping[str, Remote]) -> str:
    """Say which worker's disk is the fullest now; nothing if no worker can be asked."""
    workers = {node.name: node for node in layout.spec.workers}
    patience = _ANSWER_SECONDS * layout.dilation

    def percent(name: str) -> float:
        try:
            return _usage(remotes[name], layout.data(workers[name]), timeout_seconds=patience)[0]
        except (ValueError, IndexError):
            return 0.0

    found, _ = each_node(workers, percent)
    name = max(found, key=lambda name: found[name], default="")
    return f"{name}: its disk is {found[name]:.1f} % full now" if found.get(name) else ""


def _full(percent: float) -> str:
    """Return in words that a disk is full, or nothing."""
    return f"its disk is {percent:.1f} % full" if percent > FULL_PERCENT else ""


def _usage(remote: Remote, folder: str, *, timeout_seconds: float) -> tuple[float, str]:
    """Return how full a disk is, as YARN counts, and its device."""
    shown = remote.run(
        ["df", "--block-size=1", "--output=size,avail,source", folder],
        timeout_seconds=timeout_seconds,
    )
    total, available, device = shown.text.splitlines()[1].split(maxsplit=2)
    return used_percent(total_bytes=int(total), available_bytes=int(available)), device


def _sickness(layout: Layout, node: NodeSpec, remote: Remote, admin: Remote) -> str:
    """Return what is wrong with a node's disk; empty if nothing is, or if nobody can be asked."""
    folder, patience = layout.data(node), _ANSWER_SECONDS * layout.dilation
    try:
        percent, device = _usage(remote, folder, timeout_seconds=patience)
        if words := _full(percent):
            return words
        if why := _unwritable(remote, folder, timeout_seconds=patience):
            return f"its disk cannot be written to: {why}{_kernel_line(admin, Path(device).name)}"
    except RemoteTimeoutError:
        return f"its disk has not answered for {patience:g} s"
    except (BoardclusterError, ValueError, IndexError):
        return ""
    return ""


def _unwritable(remote: Remote, folder: str, *, timeout_seconds: float) -> str:
    """Return why nothing can be written; empty if it can.

    It is tried, because the file system of a broken disk need not call itself read-only.
    """
    probe = f"{folder}/.written-by-boardcluster"
    done = remote.run(["touch", probe], check=False, timeout_seconds=timeout_seconds)
    if done.returncode == 0:
        remote.run(["rm", "-f", probe], check=False)
        return ""
    return done.stderr.decode(errors="replace").strip().rpartition(": ")[2]


def _kernel_line(remote: Remote, device: str) -> str:
    """Return the kernel's last words about an error of a device, or nothing."""
    text = remote.run(["dmesg", "--notime"], check=False).text
    named = re.compile(rf"\b{re.escape(device)}\b")  # loop1 is not loop12
    lines = [
        line for line in text.splitlines() if named.search(line) and _KERNEL_ERROR.search(line)
    ]
    return f" (kernel: {lines[-1].strip()})" if lines else ""
