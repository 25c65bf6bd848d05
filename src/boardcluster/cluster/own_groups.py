"""The control groups that this process is in, as far as they can be seen from here.

Sources: Linux, Documentation/admin-guide/cgroup-v1/cgroups.rst and cgroup-v2.rst.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

__all__ = ["own_groups"]


def own_groups(controller: str, *, root: Path = Path("/")) -> Iterator[tuple[Path, bool]]:
    """Yield the folders of our groups in which a controller may limit us, and of those above them.

    Args:
        controller: its name, such as ``memory``.
        root: folder to use instead of ``/``.

    Yields:
        The folder, which may not be there, and whether it is of version 1.
    """
    rows: list[str] = []
    with contextlib.suppress(OSError):
        rows = (root / "proc/self/cgroup").read_text().splitlines()
    for row in rows:
        _, controllers, path = row.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        # In a container the path may be the host's: then its mount is the group itself.
        mount = root / "sys/fs/cgroup" / (controller if controllers else "")
        group = mount / path.lstrip("/")
        for folder in (group, *group.parents):
            if folder.is_relative_to(mount):
                yield folder, bool(controllers)
