"""Who started whom on this machine."""

from __future__ import annotations

from pathlib import Path

__all__ = ["children_of"]


def children_of(pid: int) -> list[int]:
    """Return what a process's first thread started and has not waited for, newest last.

    Raises:
        OSError: there is no such process.
    """
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
