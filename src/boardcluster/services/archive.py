"""Class-data archives: classes parsed once per machine and shared by all daemons and jobs.

Here are those of nodes that share this machine's files; boards have theirs in board_archives.py.

Measured on 1 + 4 nodes (benchmarks/cluster.py): up to healthy 17.5 s without, 10.0 s with; resident
memory, shared pages counted once, 1,458 MB without, 1,065 MB with. An archive fits one Java and one
set of jars; the JVM ignores one that does not fit, so nothing depends on it but speed and memory.

A daemon's JVM that crashes during start while it uses an archive makes us start again without any,
for good; a job's makes later jobs of its engine do without theirs.

The lists of classes are data beside the lock files, recorded from running daemons and jobs by
tools/record_classes.py; names that a Java does not know are skipped when the archive is made.
"""

from __future__ import annotations

import gzip
import hashlib
import shutil
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING

from boardcluster.errors import RemoteError
from boardcluster.fetch.cache import Progress, hold_lock
from boardcluster.remote.gate import run_program

if TYPE_CHECKING:  # an option needs none of what installs
    from boardcluster.services.install import Installation
    from boardcluster.services.java import Java

__all__ = [
    "ARCHIVES",
    "archive_options",
    "class_list",
    "dump_options",
    "lists_digest",
    "made_archives",
    "provide_archives",
    "refuse_archives",
    "refused_archives",
]

ARCHIVES = {"worker": "hadoop", "master": "hadoop", "mapreduce": "hadoop", "spark": "spark"}
"""Name of each archive and the engine whose jars it covers: those of daemons, of the JVMs of a
MapReduce job, and of Spark's history server and the JVMs of a Spark job."""

_LISTS = resources.files("boardcluster.services").joinpath("pairs")


def archive_options(path: Path) -> list[str]:
    """Return the JVM options that use an archive.

    The archive is mapped at its own address: at another one (the default of recent updates) the
    JVM rewrites every page, and nothing is shared any more.
    """
    return [
        f"-XX:SharedArchiveFile={path}",
        "-XX:+UnlockDiagnosticVMOptions",
        "-XX:ArchiveRelocationMode=0",
    ]


def made_archives(folder: Path) -> frozenset[str]:
    """Return the names of the archives in a folder of this machine."""
    there = {name for name in ARCHIVES if (folder / f"{name}.jsa").is_file()}
    return frozenset(there - refused_archives(folder))


def provide_archives(there: Installation, java: Java, *, cache: Path, progress: Progress) -> Path:
    """Make the archives of a pair for this Java unless they exist; return their folder.

    Makes none, and says so, for a pair without class lists or a Java that cannot dump.
    """
    version = f"{java.vendor}-{java.version}".replace(" ", "-").replace("/", "-")
    folder = cache / "archives" / there.pair.id / f"{version}-{lists_digest(there.pair.id)}"
    folder.mkdir(parents=True, exist_ok=True)
    newest = (there.folder / "manifest.json").stat().st_mtime

    def missing() -> list[str]:
        wanted = set(ARCHIVES) - refused_archives(folder)
        paths = {name: folder / f"{name}.jsa" for name in ARCHIVES if name in wanted}
        return [n for n, p in paths.items() if not p.is_file() or p.stat().st_mtime < newest]

    if not missing():
        return folder
    with hold_lock(folder.parent / ".lock", purpose="making class-data archives"):
        todo = missing()
        progress("making class-data archives (once per machine)", 0, len(todo))
        with ThreadPoolExecutor(2) as pool:
            for done, failure in enumerate(
                pool.map(lambda name: _dump(there, java, folder, name), todo), start=1
            ):
                if failure:
                    progress(f"no class-data archive, JVMs start slower: {failure}", 0, 0)
                progress("making class-data archives (once per machine)", done, len(todo))
    return folder


def refuse_archives(folder: Path, reason: str, names: Iterable[str] = tuple(ARCHIVES)) -> None:
    """Do without these archives from now on: a JVM crashed while it used one.

    JVMs that run keep what they have mapped. Those that are told of a file that is gone start
    without it, so no configuration has to be written again.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        _mark(folder, name).write_text(reason)
        (folder / f"{name}.jsa").unlink(missing_ok=True)


def refused_archives(folder: Path, *, since_seconds: float = 0.0) -> set[str]:
    """Name the archives that were refused, maybe only those after a moment in s since 1970."""
    marks = {name: _mark(folder, name) for name in ARCHIVES}
    return {
        name
        for name, mark in marks.items()
        if mark.is_file() and mark.stat().st_mtime >= since_seconds
    }


def _mark(folder: Path, name: str) -> Path:
    return folder / f"{name}.refused"


def class_list(pair_id: str, name: str) -> bytes:
    """Return the list of classes of an archive; nothing if the pair has none."""
    packed = _packed_list(pair_id, name)
    return gzip.decompress(packed.read_bytes()) if packed.is_file() else b""


def lists_digest(pair_id: str) -> str:
    """Hash the lists, so that archives of older lists are not used."""
    digest = hashlib.sha256()
    for name in ARCHIVES:
        packed = _packed_list(pair_id, name)
        digest.update(packed.read_bytes() if packed.is_file() else b"")
    return digest.hexdigest()[:8]


def dump_options(classes: str, target: str, jars: Sequence[str]) -> list[str]:
    """Return the JVM options, after ``-Xshare:dump``, that make an archive of a list of classes."""
    return [
        *("-XX:+UseSerialGC", "-Xmx512m"),
        *(f"-XX:SharedClassListFile={classes}", f"-XX:SharedArchiveFile={target}"),
        *("-Xlog:disable", "-Xlog:all=error:stderr", "-cp", ":".join(jars)),
    ]


def _packed_list(pair_id: str, name: str) -> Traversable:
    return _LISTS.joinpath(f"{pair_id}.{name}.classes.gz")


def _dump(there: Installation, java: Java, folder: Path, name: str) -> str:
    """Make one archive; return why it could not be made, or nothing."""
    listed = class_list(there.pair.id, name)
    if not listed:
        return f"{there.pair.id} has no list of classes for {name}"
    work = folder / f".{name}"
    shutil.rmtree(work, ignore_errors=True)
    classes = work / "classes"
    options = dump_options(str(classes), f"{work}/archive", there.jars(ARCHIVES[name]))
    try:
        work.mkdir()
        classes.write_bytes(listed)
        run_program([str(java.program), "-Xshare:dump", *options], timeout_seconds=900)
        (work / "archive").replace(folder / f"{name}.jsa")
    except (RemoteError, OSError) as error:
        return str(error).splitlines()[0]
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return ""
