"""The processes of this machine that belong to a cluster."""

from __future__ import annotations

import contextlib
import operator
import os
import signal
from pathlib import Path

from boardcluster.cluster.state import IDENTITY_VARIABLE
from boardcluster.errors import ClusterError
from boardcluster.waiting import wait_until

__all__ = ["end_processes_of", "is_alive", "leftover_processes"]


def is_alive(pid: int, start_ticks: int) -> bool:
    """Whether exactly this process of this machine runs."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return False
    return int(fields[19]) == start_ticks and fields[0] not in ("Z", "X")


def leftover_processes(identity: str) -> list[int]:
    """Find every process of this machine that carries the cluster's identity."""
    mark = f"{IDENTITY_VARIABLE}={identity}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found


def end_processes_of(identity: str, *, within_seconds: float) -> int:
    """End every process that carries the cluster's identity; return how many there were.

    Safe to repeat, and safe after a reboot: processes are found by the identity, never by name.

    Raises:
        ClusterError: something does not end.
    """
    ended: set[int] = set()

    def left() -> list[int]:
        found = leftover_processes(identity)
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        ended.update(found)
        return found

    if still := wait_until(
        left, ready=operator.not_, timeout_seconds=within_seconds, poll_seconds=0.02
    ):
        raise ClusterError(
            f"processes {still} of the cluster do not end", hint="kill them by hand: kill -9"
        )
    return len(ended)
