"""The installed engines are complete.

- Files are missing or changed (warning). Fix: `boardcluster up`, which fetches them again.
- With `--deep`: other bytes behind the same size and time stamp (error). Fix: `rm` them, then
  `boardcluster up`.
"""

import os
import shlex

from boardcluster.doctor.check import Check, Facts, Fault, Faults, Severity, Where
from boardcluster.services.install import Installation, corrupt_files
from boardcluster.units import format_bytes

__all__ = ["CHECK"]

_SHOWN = 3


def _look(facts: Facts) -> Faults:
    pair, up = facts.pair, facts.command("up", fetches=True)
    there = Installation(pair=pair, folder=facts.cache / "engines" / pair.id)
    if not os.access(there.folder / "manifest.json", os.R_OK):
        fetched = pair.pyspark_size_bytes + sum(jar.size_bytes for jar in pair.jars)
        half = ", some of it is here already" if os.access(there.folder, os.F_OK) else ""
        yield f"{pair.id} is not installed yet; `{up}` fetches {format_bytes(fetched)}{half}"
        return
    changed = [str(path) for path in corrupt_files(there)]
    if changed:
        yield Fault(_listed(changed), severity=Severity.WARNING, fix=f"{up}   (fetches them again)")
    if not facts.deep:
        if not changed:
            yield f"{pair.id} is complete by size and time stamp (--deep compares the content)"
        return
    hidden = [str(p) for p in corrupt_files(there, every_byte=True) if str(p) not in changed]
    if hidden:
        yield Fault(
            f"same size and time stamp, but other bytes: {_listed(hidden)}",
            why="The disk or memory is failing. `up` compares only size and time stamp.",
            fix=f"rm {shlex.join(hidden)} && {up}",
        )
    elif not changed:
        yield f"{pair.id} is complete; every byte was compared"


def _listed(files: list[str]) -> str:
    names = ", ".join(files[:_SHOWN])
    more = f" and {len(files) - _SHOWN} more" if len(files) > _SHOWN else ""
    return f"missing or corrupt: {names}{more}"


CHECK = Check(
    where=Where.ALWAYS,
    looks_at="The installed engine pair, file by file; with `--deep`, byte by byte.",
    why="A corrupt jar makes daemons fail with errors that do not name it.",
    source="boardcluster, the lock files in pairs/ and the manifest written from them",
    severity=Severity.ERROR,
    look=_look,
)
