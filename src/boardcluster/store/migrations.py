"""The history of the stored format: named migrations, each applied once, in a transaction.

A new format is a new entry at the end of MIGRATIONS; an entry that was released never changes. The
column of a new factor is such an entry, too: its row in factors.py says it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from boardcluster.errors import StoreError
from boardcluster.factors import FACTORS

__all__ = ["MIGRATIONS", "begin", "commit", "is_current", "migrate", "transaction"]

_FIRST = (
    """
    CREATE TABLE campaigns (
        id TEXT PRIMARY KEY,
        kind TEXT NOT NULL CHECK (kind IN ('run', 'submit')),
        created_utc TEXT NOT NULL,
        seed INTEGER NOT NULL,
        cluster TEXT NOT NULL,
        emulated INTEGER NOT NULL CHECK (emulated IN (0, 1)),
        dataset TEXT NOT NULL,
        dataset_sha256 TEXT NOT NULL,
        dataset_source TEXT NOT NULL
    ) STRICT
    """,
    """
    CREATE TABLE trials (
        id TEXT PRIMARY KEY,
        campaign_id TEXT NOT NULL REFERENCES campaigns (id),
        position INTEGER NOT NULL,
        workload TEXT NOT NULL,
        engine TEXT NOT NULL,
        profile TEXT NOT NULL,
        size_bytes INTEGER NOT NULL,
        workers INTEGER NOT NULL,
        repetition INTEGER NOT NULL,
        arguments TEXT NOT NULL,  -- a JSON list of strings
        UNIQUE (campaign_id, position)
    ) STRICT
    """,
    """
    CREATE TABLE fingerprints (
        sha256 TEXT PRIMARY KEY,  -- of the record
        record TEXT NOT NULL  -- JSON
    ) STRICT
    """,
    """
    CREATE TABLE attempts (
        trial_id TEXT NOT NULL REFERENCES trials (id),
        number INTEGER NOT NULL CHECK (number >= 1),
        state TEXT NOT NULL CHECK (state IN ('running', 'ok', 'failed', 'invalid')),
        reason TEXT NOT NULL,
        started_utc TEXT NOT NULL,
        ended_utc TEXT NOT NULL CHECK ((ended_utc = '') = (state = 'running')),
        artefacts TEXT NOT NULL,
        fingerprint_sha256 TEXT NOT NULL REFERENCES fingerprints (sha256),
        PRIMARY KEY (trial_id, number)
    ) STRICT
    """,
    """
    CREATE TABLE measurements (
        trial_id TEXT NOT NULL,
        number INTEGER NOT NULL,
        duration_seconds REAL NOT NULL CHECK (duration_seconds > 0),
        input_bytes INTEGER NOT NULL,
        output_bytes INTEGER NOT NULL,
        verification TEXT NOT NULL,  -- JSON; null where there is no known answer
        exit_status INTEGER NOT NULL,
        application_id TEXT NOT NULL,
        PRIMARY KEY (trial_id, number),
        FOREIGN KEY (trial_id, number) REFERENCES attempts (trial_id, number)
    ) STRICT
    """,
    """
    CREATE TABLE counters (
        trial_id TEXT NOT NULL,
        number INTEGER NOT NULL,
        name TEXT NOT NULL,
        value INTEGER NOT NULL,
        PRIMARY KEY (trial_id, number, name),
        FOREIGN KEY (trial_id, number) REFERENCES measurements (trial_id, number)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE UNIQUE INDEX one_running_attempt ON attempts (trial_id) WHERE state = 'running'",
    """
    CREATE TRIGGER attempts_begin_running BEFORE INSERT ON attempts
    WHEN new.state <> 'running'
    BEGIN SELECT raise(ABORT, 'an attempt begins as running'); END
    """,
    """
    CREATE TRIGGER attempts_end_once BEFORE UPDATE ON attempts
    WHEN old.state <> 'running'
    BEGIN SELECT raise(ABORT, 'an ended attempt is never overwritten'); END
    """,
    """
    CREATE TRIGGER attempts_are_kept BEFORE DELETE ON attempts
    BEGIN SELECT raise(ABORT, 'an attempt is never deleted'); END
    """,
    """
    CREATE TRIGGER ok_needs_measurement BEFORE UPDATE ON attempts
    WHEN new.state = 'ok' AND NOT EXISTS (
        SELECT 1 FROM measurements
        WHERE trial_id = new.trial_id AND number = new.number
    )
    BEGIN SELECT raise(ABORT, 'an attempt without a measurement is not ok'); END
    """,
)

_CAMPAIGNS = (
    "ALTER TABLE campaigns ADD COLUMN name TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE campaigns ADD COLUMN spec_sha256 TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE trials ADD COLUMN concurrency INTEGER NOT NULL DEFAULT 1",
    "ALTER TABLE trials ADD COLUMN replication INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE trials ADD COLUMN checksum TEXT NOT NULL DEFAULT 'crc32c'",
    "ALTER TABLE trials ADD COLUMN master TEXT NOT NULL DEFAULT 'declared'",
    "ALTER TABLE trials ADD COLUMN warm_up INTEGER NOT NULL DEFAULT 0 CHECK (warm_up IN (0, 1))",
    "ALTER TABLE trials ADD COLUMN input TEXT NOT NULL DEFAULT ''",
    # A JSON object of strings.
    "ALTER TABLE trials ADD COLUMN parameters TEXT NOT NULL DEFAULT '{}'",
    # NULL where the engine does not say.
    "ALTER TABLE measurements ADD COLUMN intermediate_bytes INTEGER",
    # A JSON list of strings.
    "ALTER TABLE measurements ADD COLUMN remarks TEXT NOT NULL DEFAULT '[]'",
    """
    CREATE TABLE figures (
        trial_id TEXT NOT NULL,
        number INTEGER NOT NULL,
        position INTEGER NOT NULL,  -- the workload's own order, most important first
        name TEXT NOT NULL,
        value REAL NOT NULL,
        PRIMARY KEY (trial_id, number, name),
        FOREIGN KEY (trial_id, number) REFERENCES measurements (trial_id, number)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE phases (
        trial_id TEXT NOT NULL,
        number INTEGER NOT NULL,
        position INTEGER NOT NULL,  -- run order
        name TEXT NOT NULL,
        duration_seconds REAL NOT NULL CHECK (duration_seconds >= 0),
        PRIMARY KEY (trial_id, number, name),
        FOREIGN KEY (trial_id, number) REFERENCES measurements (trial_id, number)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE node_bytes (
        trial_id TEXT NOT NULL,
        number INTEGER NOT NULL,
        position INTEGER NOT NULL,  -- the cluster's order of nodes
        node TEXT NOT NULL,
        written_bytes INTEGER CHECK (written_bytes >= 0),
        read_bytes INTEGER CHECK (read_bytes >= 0),
        PRIMARY KEY (trial_id, number, node),
        FOREIGN KEY (trial_id, number) REFERENCES measurements (trial_id, number)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX campaigns_by_name ON campaigns (name, id)",
    """
    CREATE TRIGGER ok_needs_proof BEFORE UPDATE ON attempts
    WHEN new.state = 'ok' AND EXISTS (
        SELECT 1 FROM measurements m
        JOIN trials t ON t.id = m.trial_id
        JOIN campaigns c ON c.id = t.campaign_id
        WHERE m.trial_id = new.trial_id AND m.number = new.number
            AND c.kind = 'run' AND m.verification = 'null'
    )
    BEGIN SELECT raise(ABORT, 'a run without a verified output is not ok'); END
    """,
)

_TRUST = (
    """
    ALTER TABLE measurements ADD COLUMN verdict TEXT NOT NULL DEFAULT 'unjudged'
    CHECK (verdict IN ('valid', 'tainted', 'invalid', 'unjudged'))
    """,
    # A JSON list of strings.
    "ALTER TABLE measurements ADD COLUMN verdict_reasons TEXT NOT NULL DEFAULT '[]'",
    # A JSON object; null where nothing measures or models it.
    "ALTER TABLE measurements ADD COLUMN energy TEXT NOT NULL DEFAULT 'null'",
    """
    CREATE TRIGGER ok_needs_telemetry BEFORE UPDATE ON attempts
    WHEN new.state = 'ok' AND EXISTS (
        SELECT 1 FROM measurements
        WHERE trial_id = new.trial_id AND number = new.number AND verdict = 'invalid'
    )
    BEGIN SELECT raise(ABORT, 'a run whose telemetry does not cover it is not ok'); END
    """,
)

_PROBES = (
    """
    CREATE TABLE probe_runs (
        id TEXT PRIMARY KEY,
        probe TEXT NOT NULL,
        mode TEXT NOT NULL CHECK (mode IN ('quick', 'paper')),
        node TEXT NOT NULL,
        peer TEXT NOT NULL,  -- empty where there is none
        started_utc TEXT NOT NULL,
        duration_seconds REAL NOT NULL CHECK (duration_seconds >= 0),
        cluster TEXT NOT NULL,  -- empty for a machine that is in none
        emulated INTEGER NOT NULL CHECK (emulated IN (0, 1)),
        versions TEXT NOT NULL,  -- a JSON list of strings
        hardware TEXT NOT NULL,
        reason TEXT NOT NULL  -- empty if it measured something
    ) STRICT
    """,
    """
    CREATE TABLE probe_figures (
        run_id TEXT NOT NULL REFERENCES probe_runs (id),
        position INTEGER NOT NULL,  -- the probe's own order
        name TEXT NOT NULL,
        value REAL NOT NULL,
        conditions TEXT NOT NULL,  -- a JSON object of strings
        PRIMARY KEY (run_id, position),
        UNIQUE (run_id, name, conditions)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE INDEX probe_runs_by_node ON probe_runs (node, probe, id)",
    """
    CREATE TRIGGER probe_runs_never_change BEFORE UPDATE ON probe_runs
    BEGIN SELECT raise(ABORT, 'a run of a probe is never overwritten'); END
    """,
    """
    CREATE TRIGGER probe_runs_are_kept BEFORE DELETE ON probe_runs
    BEGIN SELECT raise(ABORT, 'a run of a probe is never deleted'); END
    """,
)

_TWINS = (
    # By how much nodes were slower than the boards they stand for; times are the boards'.
    "ALTER TABLE measurements ADD COLUMN dilation REAL NOT NULL DEFAULT 1 CHECK (dilation >= 1)",
)

_FACTORS = tuple(
    (factor.migration[0], (f"ALTER TABLE trials ADD COLUMN {factor.name} {factor.migration[1]}",))
    for factor in FACTORS
    if factor.migration
)
"""A column for each factor that came later; the table of factors.py names the migration."""

MIGRATIONS: tuple[tuple[str, tuple[str, ...]], ...] = tuple(
    sorted(
        (
            ("0001_first", _FIRST),
            ("0002_campaigns", _CAMPAIGNS),
            ("0003_trust", _TRUST),
            ("0004_probes", _PROBES),
            ("0005_twins", _TWINS),
            *_FACTORS,
        )
    )
)


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
