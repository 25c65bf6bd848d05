"""What a watch of the performance keeps beside its rounds, which are campaigns of its name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from boardcluster.errors import StoreError
from boardcluster.records import BASELINE_LEAST
from boardcluster.store.files import read_record, write_record

__all__ = ["WatchRecord", "read_watch", "watch_files", "write_watch"]

_FOLDER = "watches"
_DIGEST = re.compile(r"[0-9a-f]{64}")
_SHOWN_CHARACTERS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchRecord:
    """One watch: what its rounds are compared by."""

    name: str
    """The name that its rounds have as campaigns."""
    file: str
    """The campaign file, an absolute path."""
    spec_sha256: str
    """Digest of what the file means; another one needs another baseline."""
    baseline: int
    """Rounds that make the limits."""
    begun_utc: str
    """ISO 8601; earlier rounds of the name are of an earlier baseline."""
    factors: tuple[str, ...]
    """Factors whose levels the file sets. All others come from the cluster, and may change."""
    settings: tuple[str, ...]
    """Properties of the engines that it sets, likewise."""
    tainted: bool = False
    """Whether runs that were too disturbed count, too."""
    told: tuple[str, ...] = ()
    """What notices have told of: the id of the round in which a cell left its limits or since which
    no run of it counts, a space, and the name of the cell. So one that came back and left again is
    told of again, whoever looked."""


def _path(home: Path, name: str) -> Path:
    """Path of a watch's record."""
    return home / _FOLDER / f"{name}.json"


def write_watch(home: Path, record: WatchRecord) -> None:
    """Write a record, whole or not at all.

    Raises:
        OSError: the disk is full, read-only or out of reach.
    """
    write_record(_path(home, record.name), record)


def read_watch(home: Path, name: str) -> WatchRecord | None:
    """Return the watch of a name; None if none was begun.

    Raises:
        StoreError: its record is damaged, of a newer version, or makes no sense; names the file,
            the field, its value and what is allowed.
    """
    path = _path(home, name)
    if not path.is_file():
        return None
    where = f"{_FOLDER}/{path.name}"
    hint = f"correct {path}, or start a new baseline: boardcluster watch-performance FILE --new"
    try:
        record = read_record(WatchRecord, path)
    except StoreError as error:
        words = error.message.replace(str(path), where)
        said = words if where in words else f"{where}: {words}"
        raise StoreError(said, hint=hint) from error
    if faults := _faults(record, name):
        said = "; ".join(
            f"{key} is {str(getattr(record, key))[:_SHOWN_CHARACTERS]!r}, allowed: {allowed}"
            for key, allowed in faults.items()
        )
        raise StoreError(f"{where}: {said}", hint=hint)
    return record


def _faults(record: WatchRecord, name: str) -> dict[str, str]:
    """Return what is allowed in each field that makes no sense: anybody may have written it."""
    faults = {}
    if record.name != name:
        faults["name"] = f"{name!r}, the name of the file"
    if not _DIGEST.fullmatch(record.spec_sha256):
        faults["spec_sha256"] = "a SHA-256, 64 digits of 0-9 and a-f"
    if record.baseline < BASELINE_LEAST:
        faults["baseline"] = f"at least {BASELINE_LEAST} rounds"
    if not _is_moment(record.begun_utc):
        faults["begun_utc"] = "a date and time with offset, as 2026-09-01T03:00:00+00:00"
    return faults


def _is_moment(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def watch_files(home: Path) -> tuple[Path, ...]:
    """Return the files of all watches of a cluster, by name."""
    return tuple(sorted((home / _FOLDER).glob("*.json")))
