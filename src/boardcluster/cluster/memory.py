"""How much memory this machine has for us: a container, or a user's session, may have less.

Sources: proc(5), MemAvailable; Linux, Documentation/admin-guide/cgroup-v1/memory.rst and
cgroup-v2.rst. Page cache counts as available, in groups as on the machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from boardcluster.cluster.own_groups import own_groups
from boardcluster.errors import ClusterError

__all__ = ["available_memory_bytes"]

_VERSION_1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_")
_VERSION_2 = ("memory.max", "memory.current", "")
"""Of a group: files of its limit and its use, and how names in memory.stat begin."""


def available_memory_bytes(root: Path = Path("/")) -> int:
    """Return what may be used without swapping, by the kernel and by the groups that we are in.

    Args:
        root: folder to use instead of ``/``.

    Raises:
        ClusterError: the kernel does not say.
    """
    text = (root / "proc/meminfo").read_text()
    found = re.search(r"^MemAvailable: +(\d+) kB", text, re.MULTILINE)
    if found is None:
        raise ClusterError("/proc/meminfo has no MemAvailable")
    return min([int(found[1]) * 1024, *_left_in_groups(root)])


def _left_in_groups(root: Path) -> Iterator[int]:
    """Yield what is left in each of our groups that limits memory, and in those above it."""
    for folder, is_version_1 in own_groups("memory", root=root):
        yield from _left_in(folder, *(_VERSION_1 if is_version_1 else _VERSION_2))


def _left_in(folder: Path, limit: str, use: str, start: str) -> Iterator[int]:
    try:
        most = (folder / limit).read_text().strip()
        used_bytes = int((folder / use).read_text())
        stat = (folder / "memory.stat").read_text()
    except OSError:
        return  # no such group here, or none that limits memory
    cache = re.findall(rf"^{start}(?:in)?active_file (\d+)$", stat, re.MULTILINE)
    if most != "max":
        yield max(0, int(most) - used_bytes + sum(map(int, cache)))
