"""What a watch of the performance keeps beside its rounds, which are campaigns of its name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from boardcluster.store.files import read_record, write_record

__all__ = ["WatchRecord", "read_watch", "read_watches", "watch_files", "write_watch"]

_FOLDER = "watches"


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
        StoreError: its record is damaged or of a newer version.
    """
    path = _path(home, name)
    return read_record(WatchRecord, path) if path.is_file() else None


def read_watches(home: Path) -> tuple[WatchRecord, ...]:
    """Return every watch of a cluster, by name.

    Raises:
        StoreError: a record is damaged or of a newer version.
    """
    return tuple(read_record(WatchRecord, path) for path in watch_files(home))


def watch_files(home: Path) -> tuple[Path, ...]:
    """Return the files of all watches of a cluster, by name."""
    return tuple(sorted((home / _FOLDER).glob("*.json")))
