"""Open the database: checked, with its format up to date, and with errors that say what to do."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from boardcluster.errors import StoreError
from boardcluster.store.migrations import is_current, migrate

__all__ = ["REBUILD_HINT", "connect", "connect_reading", "translated"]

REBUILD_HINT = "run `boardcluster results --rebuild`"
_BUSY_SECONDS = 30.0


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn SQLite's and the disk's errors into StoreError with the next thing to do."""
    try:
        yield
    except (sqlite3.Error, OSError, OverflowError) as error:
        raise StoreError(f"{path}: {error}", hint=_hint(path, error)) from error


def _hint(path: Path, error: Exception) -> str:
    text = str(error)
    if "disk is full" in text or "No space" in text or "disk I/O" in text:
        return f"free space on the disk that holds {path.parent}, or repair it"
    if "locked" in text:
        return "wait until the other boardcluster has ended"
    if isinstance(error, PermissionError) or "readonly" in text or "unable to open" in text:
        return f"check who owns {path.parent} and who may write there"
    if isinstance(error, sqlite3.IntegrityError):
        return "choose another id; what is stored is never overwritten"
    return REBUILD_HINT


def connect(path: Path) -> sqlite3.Connection:
    """Open a database for writing, with its format up to date.

    ``synchronous`` is FULL: in WAL mode NORMAL can lose the last commits at a power cut. A trial
    takes many seconds and commits twice, so the two flushes cost nothing that anyone can see.
    """
    connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
    try:
        connection.row_factory = sqlite3.Row
        _check(connection, path)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        migrate(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def connect_reading(path: Path, *, whole: bool = True) -> sqlite3.Connection:
    """Open a database without changing anything on disk.

    No database yet, or one of an older format, is read from a copy in memory.

    Args:
        path: the database.
        whole: whether every page is checked, which takes as long as reading all of it; otherwise
            each page is checked when it is read.
    """
    source = None
    if path.exists():
        # A reader of another user cannot make the -shm file; without a -wal file nothing is missed.
        frozen = not os.access(path.parent, os.W_OK) and not Path(f"{path}-wal").exists()
        uri = f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if frozen else ''}"
        source = sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)
    try:
        if source is not None:
            source.row_factory = sqlite3.Row
            if whole:
                _check(source, path)
            else:
                source.execute("PRAGMA cell_size_check = ON")
            if is_current(source):
                return source
        copy = sqlite3.connect(":memory:", isolation_level=None)
        copy.row_factory = sqlite3.Row
        if source is not None:
            source.backup(copy)
            source.close()
        migrate(copy)
    except BaseException:
        if source is not None:
            source.close()
        raise
    return copy


def _check(connection: sqlite3.Connection, path: Path) -> None:
    found = [str(row[0]) for row in connection.execute("PRAGMA quick_check(3)")]
    if found != ["ok"]:
        raise StoreError(f"the store is damaged: {path}: {'; '.join(found)}", hint=REBUILD_HINT)
