"""The fetched engines are whole."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator

from boardcluster.doctor.finding import Check, Finding, Severity
from boardcluster.doctor.surroundings import Surroundings
from boardcluster.services.install import Installation, corrupt_files
from boardcluster.units import format_bytes

__all__ = ["CHECK"]

_SHOWN = 3


def look(around: Surroundings) -> Iterator[Finding]:
    """Compare files with the manifest: by size and time stamp, with ``deep`` by content."""
    pair = around.pair
    there = Installation(pair=pair, folder=around.cache / "engines" / pair.id)
    if not os.access(there.folder / "manifest.json", os.R_OK):
        fetched = pair.pyspark_size_bytes + sum(jar.size_bytes for jar in pair.jars)
        half = ", some of it is here already" if os.access(there.folder, os.F_OK) else ""
        yield CHECK.good(
            f"{pair.id} is not installed yet; `{around.command('up', fetches=True)}` fetches "
            f"{format_bytes(fetched)}{half}"
        )
        return
    changed = [str(path) for path in corrupt_files(there)]
    if changed:
        yield CHECK.wrong(
            _listed(changed),
            severity=Severity.WARNING,
            fix=f"{around.command('up', fetches=True)}   (fetches them again)",
        )
    if not around.deep:
        if not changed:
            yield CHECK.good(f"{pair.id} is complete by size and time stamp (--deep reads it all)")
        return
    hidden = [str(p) for p in corrupt_files(there, every_byte=True) if str(p) not in changed]
    if hidden:
        yield CHECK.wrong(
            f"same size and time stamp, but other bytes: {_listed(hidden)}",
            why="The disk or memory is failing. `up` looks at size and time stamp only.",
            fix=f"rm {shlex.join(hidden)} && {around.command('up', fetches=True)}",
        )
    elif not changed:
        yield CHECK.good(f"{pair.id} is complete, every byte was compared")


def _listed(files: list[str]) -> str:
    names = ", ".join(files[:_SHOWN])
    more = f" and {len(files) - _SHOWN} more" if len(files) > _SHOWN else ""
    return f"missing or corrupt: {names}{more}"


CHECK = Check(
    name="engines",
    looks_at="The installed engine pair, file by file; with `--deep`, byte by byte.",
    why="A corrupt jar makes daemons fail in ways that do not name it.",
    source="boardcluster, the lock files in pairs/ and the manifest written from them",
    severity=Severity.ERROR,
    look=look,
)
