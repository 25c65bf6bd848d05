"""The one process that spreads busy threads over the cores of emulated boards."""

from __future__ import annotations

import fcntl
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from boardcluster.cluster.limits import core_watcher
from boardcluster.cluster.limits.cgroups import Cgroups
from boardcluster.cluster.state import IDENTITY_VARIABLE
from boardcluster.errors import HostError
from boardcluster.records import NodeLimits
from boardcluster.remote.base import ProcessRef
from boardcluster.remote.local import LocalRemote
from boardcluster.waiting import wait_until

__all__ = ["CoreWatch", "forget_watch"]

_LOG = "core-watcher.log"
_STARTS_WITHIN_SECONDS = 10.0
_OPTIONS = "-IS"
"""Nothing but the standard library: it starts in a hundredth of a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreWatch:
    """Starts that process, and tells whether it runs; see core_watcher.py for what it does."""

    home: Path
    """The cluster's state folder."""
    identity: str
    """Of the cluster; what the process is found by, when the cluster is taken down."""
    first: Sequence[ProcessRef]
    """The nodes' first processes: with the last of them it ends."""

    @property
    def _lock(self) -> Path:
        """One for each cluster: that of an ended one goes a moment after its nodes."""
        return _lock_of(self.home, self.identity)

    def is_running(self) -> bool:
        """Whether the process holds its lock."""
        try:
            with self._lock.open() as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def ensure(self, groups: Cgroups, limits: Sequence[NodeLimits]) -> None:
        """Start the process unless it runs.

        Raises:
            HostError: it does not start.
        """
        if self.is_running():
            return
        request = {
            "lock": str(self._lock),
            "threads": groups.threads_name,
            "nodes": [
                [str(folder) for folder in groups.core_folders(row.node, row.board_cores)]
                for row in limits
            ],
            "first": [[row.pid, row.start_ticks] for row in self.first],
            "groups": [str(folder) for folder in groups.folders()],
        }
        LocalRemote().start(
            [sys.executable, _OPTIONS, core_watcher.__file__, json.dumps(request)],
            log=str(self.home / _LOG),
            env={IDENTITY_VARIABLE: self.identity},
        )
        if not wait_until(
            self.is_running, timeout_seconds=_STARTS_WITHIN_SECONDS, poll_seconds=0.02
        ):
            raise HostError(
                "the program that spreads threads over the boards' cores does not start",
                hint=f"see {self.home / _LOG}",
            )


def forget_watch(home: Path, identity: str) -> None:
    """Remove what the process of an ended cluster locked."""
    _lock_of(home, identity).unlink(missing_ok=True)


def _lock_of(home: Path, identity: str) -> Path:
    return home / f"core-watcher-{identity[:8]}.lock"
