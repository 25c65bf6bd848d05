"""The history of the stored format: named migrations, each applied once, in a transaction.

A new format is a new file in ``formats/``; a file that was released never changes. The column of a
new factor is a migration, too, which its row in factors.py declares.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import resources

from boardcluster.errors import StoreError
from boardcluster.factors import FACTORS

__all__ = ["MIGRATIONS", "begin", "commit", "is_current", "migrate", "transaction"]


def _statements(text: str) -> Iterator[str]:
    """Yield each statement of a text; those of a trigger end inside it."""
    lines: list[str] = []
    for line in text.splitlines():
        lines.append(line)
        if sqlite3.complete_statement(statement := "\n".join(lines)):
            yield statement.strip()
            lines = []


_FILES = tuple(
    (file.name.removesuffix(".sql"), tuple(_statements(file.read_text(encoding="utf-8"))))
    for file in resources.files("boardcluster.store").joinpath("formats").iterdir()
)
"""The migrations that have a file of their own."""

_FACTORS = tuple(
    (factor.migration[0], (f"ALTER TABLE trials ADD COLUMN {factor.name} {factor.migration[1]}",))
    for factor in FACTORS
    if factor.migration
)
"""A column for each factor that came later; the table of factors.py names the migration."""

MIGRATIONS: tuple[tuple[str, tuple[str, ...]], ...] = tuple(sorted((*_FILES, *_FACTORS)))


def begin(connection: sqlite3.Connection) -> None:
    """Take the write lock."""
    connection.execute("BEGIN IMMEDIATE")


def commit(connection: sqlite3.Connection) -> None:
    """Make what was written since ``begin`` durable, and give the write lock back."""
    connection.execute("COMMIT")


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Hold the write lock for the block; commit at its end, roll back if it is left early."""
    begin(connection)
    try:
        yield
        commit(connection)
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _applied(connection: sqlite3.Connection) -> tuple[str, ...]:
    known = connection.execute(
        "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'migrations'"
    ).fetchone()
    if known is None:
        return ()
    rows = connection.execute("SELECT name FROM migrations ORDER BY name").fetchall()
    return tuple(str(row[0]) for row in rows)


def is_current(connection: sqlite3.Connection) -> bool:
    """Say whether every known migration, and no other, has been applied.

    Raises:
        StoreError: the store was written by a newer version.
    """
    applied = _applied(connection)
    names = tuple(name for name, _ in MIGRATIONS)
    if applied != names[: len(applied)]:
        newer = [name for name in applied if name not in names]
        raise StoreError(
            f"the store has a format this version does not know: {', '.join(newer or applied)}",
            hint="install the version of boardcluster that wrote it, or a newer one",
        )
    return applied == names


def migrate(connection: sqlite3.Connection) -> None:
    """Apply, in one transaction, the migrations that are missing.

    Raises:
        StoreError: the store was written by a newer version.
    """
    if is_current(connection):
        return
    with transaction(connection):
        connection.execute(
            "CREATE TABLE IF NOT EXISTS migrations"
            " (name TEXT PRIMARY KEY, applied_utc TEXT NOT NULL) STRICT"
        )
        applied = _applied(connection)
        now_utc = datetime.now(UTC).isoformat(timespec="seconds")
        for name, statements in MIGRATIONS[len(applied) :]:
            for statement in statements:
                connection.execute(statement)
            connection.execute("INSERT INTO migrations VALUES (?, ?)", (name, now_utc))
