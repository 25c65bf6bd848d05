"""A node that is a set of Linux namespaces on this machine.

Adds one thing to LocalRemote: the prefix that enters the namespaces of the node's first process.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from boardcluster.remote.local import LocalRemote

__all__ = ["NetnsRemote", "enter"]


def enter(pid: int, *, own_user: bool, kinds: str) -> tuple[str, ...]:
    """Return the command prefix that enters the namespaces of a process.

    Args:
        pid: process id on this machine.
        own_user: whether the namespaces belong to a user namespace made without root.
        kinds: letters of ``nsenter``: n (network), m (mount), u (host name), p (process ids).
    """
    flags = tuple(f"-{kind}" for kind in kinds)
    user = ("-U", "--preserve-credentials") if own_user else ()
    return ("nsenter", "-t", str(pid), *user, *flags, "--")


class NetnsRemote(LocalRemote):
    """An emulated node, by its first process; ``joining`` is a prefix that joins its groups."""

    def __init__(self, name: str, *, pid: int, own_user: bool, joining: Sequence[str] = ()) -> None:
        inside = enter(pid, own_user=own_user, kinds="nmup")
        super().__init__(name, prefix=(*joining, *inside))
        self._inside = inside
        self._limited = bool(joining)
        self._root = Path(f"/proc/{pid}/root") if joining else Path("/")

    @property
    def unlimited(self) -> LocalRemote:
        """The same node outside its control groups; itself if it has no limits."""
        return LocalRemote(self.name, prefix=self._inside) if self._limited else self

    def _seen_from_here(self, path: str) -> Path:
        """Return the path by the node's own root: a limited node has a disk mounted in it alone."""
        return self._root / path.lstrip("/")
