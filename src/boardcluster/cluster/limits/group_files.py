"""Files of control groups: written, read and removed, with what to do where the kernel refuses."""

from __future__ import annotations

import errno
import operator
from pathlib import Path

from boardcluster.errors import ClusterError, HostError
from boardcluster.waiting import wait_until

__all__ = [
    "make_group",
    "read_counted",
    "read_limit",
    "remove_group",
    "rows_by_device",
    "write_limit",
]

_REMOVED_WITHIN_SECONDS = 120.0
"""The last process of a node leaves its group only when its disk is unmounted, and so when what
waited to be written there is written: gigabytes, at this machine's own speed by then."""
_HINT_RIGHTS = (
    "limits need root on the machine itself, or a container with CAP_SYS_ADMIN and a writable "
    "/sys/fs/cgroup"
)
_HINTS = {
    # Version 2 gives controllers only to groups that hold no processes themselves (cgroup-v2.rst,
    # "No Internal Process Constraint"); the root is free, but a container's root is not the root.
    errno.EBUSY: "processes are in that group itself, as in a container with groups of its own: "
    "run on the machine itself, or start the container with --cgroupns=host and the host's "
    "/sys/fs/cgroup"
}


def write_limit(path: Path, text: str) -> None:
    """Write a limit.

    Raises:
        HostError: the kernel refuses; says what and where.
    """
    try:
        path.write_text(text)
    except OSError as error:
        raise HostError(
            f"the kernel refuses {text!r} for {path}: {error.strerror}",
            hint=_HINTS.get(error.errno or 0, _HINT_RIGHTS),
        ) from error


def make_group(folder: Path) -> None:
    """Make a group, and those above it; one that exists is taken over.

    Raises:
        HostError: the kernel refuses.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HostError(
            f"the control group {folder} cannot be created: {error.strerror}",
            hint="limits need root; without root, bring up a cluster without boards",
        ) from error


def read_limit(path: Path) -> str:
    """Return what a file says, or in words why it cannot be read."""
    try:
        return path.read_text().strip()
    except OSError as error:
        return f"unreadable: {error.strerror}"


def read_counted(path: Path) -> str:
    """Return what the kernel counts; unlike a limit it cannot be read as some words.

    Raises:
        HostError: the group is gone.
    """
    try:
        return path.read_text()
    except OSError as error:
        raise HostError(
            f"the control group's {path} cannot be read: {error.strerror}",
            hint="the cluster was taken down, or another program removed its groups; see "
            "`boardcluster status`",
        ) from error


def rows_by_device(text: str) -> dict[str, str]:
    """Return lines ``DEVICE REST`` by device."""
    return dict(line.partition(" ")[::2] for line in text.splitlines())


def remove_group(folder: Path) -> None:
    """Remove a group and those in it; processes that were killed leave it a moment later.

    Raises:
        ClusterError: a group still holds processes after a while.
    """

    def refusal() -> OSError | None:
        if not folder.exists():  # of a tree that is read-only the kernel would say that alone
            return None
        try:
            folder.rmdir()
        except FileNotFoundError:
            return None
        except OSError as error:
            return error
        return None

    for inner in folder.iterdir() if folder.is_dir() else ():
        if inner.is_dir():
            remove_group(inner)
    if error := wait_until(
        refusal, ready=operator.not_, timeout_seconds=_REMOVED_WITHIN_SECONDS, poll_seconds=0.02
    ):
        raise ClusterError(
            f"the control group {folder} cannot be removed: {error.strerror}",
            hint=f"see which processes are in it: cat {folder}/cgroup.procs",
        ) from error
