"""What follows from a crash of a job's JVM: later jobs do without the class-data archives it used.

What crashed in a library of the program's own is no fault of an archive, so that costs none.
"""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

from boardcluster.records import Engine
from boardcluster.services.archive import ARCHIVES, refuse_archives, refused_archives
from boardcluster.services.board_archives import refuse_on_boards
from boardcluster.services.jvm import JOB_ARCHIVE, uses_archive
from boardcluster.services.operation import LiveCluster

__all__ = ["consequence_of_crash", "lost_archives", "starts_with_archive"]

_NATIVE_FRAME = re.compile(r"(?:^|; )C +\[([^+\]]+)")
"""The library in which a native frame of a crash report is."""
_JAVA_LIBRARY = re.compile(r"lib(jvm|java|jli|zip|nio|net|verify|jimage|instrument|c|m|pthread)\b")
"""The JVM's own, and the C library, which the JVM calls with what it read from an archive."""


def starts_with_archive(live: LiveCluster, engine: Engine) -> bool:
    """Whether a job of an engine that starts now gets class-data archives."""
    return uses_archive(live.layout, engine) and not _mark(live).exists()


def consequence_of_crash(live: LiveCluster, engine: Engine, words: str) -> str:
    """Refuse the class-data archives that a crashed job had; say what that means for later ones.

    Args:
        live: the cluster.
        engine: the engine of the job.
        words: the signal and the frame, as ``crash_words`` returns them.

    Returns:
        A clause to follow the crash; empty if it is no fault of an archive.
    """
    native = _NATIVE_FRAME.search(words)
    if native and not _JAVA_LIBRARY.match(native[1]):
        return ""
    layout = live.layout
    if layout.shares_files:
        name = JOB_ARCHIVE[engine]
        refuse_archives(layout.archives, words, [name])
        return f"later jobs start without the class-data archive {name}"
    if not _mark(live).exists() and refuse_on_boards(live.as_root, layout.archives, words):
        with contextlib.suppress(OSError):
            _mark(live).write_text(words)
    return (
        "later jobs start without the class-data archives of these boards, which the next `up` "
        "removes from all"
    )


def lost_archives(live: LiveCluster) -> frozenset[str]:
    """Name the class-data archives that were refused since the cluster came up."""
    written = live.home / "conf"
    if not written.is_dir():
        return frozenset()
    if _mark(live).exists():
        return frozenset(ARCHIVES)
    since_seconds = written.stat().st_mtime
    return frozenset(refused_archives(live.layout.archives, since_seconds=since_seconds))


def _mark(live: LiveCluster) -> Path:
    """Return the file that says why boards lost theirs since the cluster came up."""
    return live.home / "conf" / "archives-refused"
