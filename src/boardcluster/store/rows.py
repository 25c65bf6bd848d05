"""Records to rows and back. Each function is one or a few statements; none of them commits."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import sqlite3
import typing
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeAlias, TypeVar, cast

from boardcluster.records import (
    Attempt,
    AttemptState,
    Campaign,
    Fingerprint,
    Measurement,
    Result,
    Trial,
)
from boardcluster.store.codec import from_json, from_row, to_json

__all__ = [
    "columns_of",
    "insert_attempt",
    "insert_campaign",
    "insert_end",
    "insert_record",
    "insert_trials",
    "record_of",
    "select_attempt",
    "select_best_clocks",
    "select_campaign",
    "select_campaigns",
    "select_recent",
    "select_results",
    "select_running",
    "select_states",
    "select_trial",
    "select_trials",
    "select_typical_seconds",
]

_Key: TypeAlias = tuple[str, int]
_Record = TypeVar("_Record")

_DETAILS = {
    "counters": ("d.name, d.value", "counters", "d.trial_id, d.number, d.name"),
    "figures": ("d.name, d.value", "figures", "d.position"),
    "phases_seconds": ("d.name, d.duration_seconds", "phases", "d.position"),
    "node_written_bytes": ("d.node, d.written_bytes", "node_bytes", "d.position"),
    "node_read_bytes": ("d.node, d.read_bytes", "node_bytes", "d.position"),
}
"""Fields of a measurement that have rows of their own: name and value, table, order."""


def columns_of(kind: type[Any], *, without: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the columns of a record's own row, which have the names of its fields."""
    left_out = frozenset(without)
    return tuple(row.name for row in dataclasses.fields(kind) if row.name not in left_out)


def _shown(table: str, columns: Iterable[str]) -> str:
    return ", ".join(f"{table}.{name} AS {name}" for name in columns)


_MEASUREMENT = columns_of(Measurement, without=_DETAILS)
_ATTEMPT = columns_of(Attempt, without=["fingerprint"])
_ATTEMPT_COLUMNS = f"{_shown('a', _ATTEMPT)}, f.sha256 AS fingerprint_sha256, f.record AS record"
_ATTEMPTS = "attempts a JOIN fingerprints f ON f.sha256 = a.fingerprint_sha256"
_LATEST = "AND a.number = (SELECT max(number) FROM attempts WHERE trial_id = t.id)"
_RESULTS = """
    SELECT {trial}, {attempt}, {measurement}
    FROM trials t
    LEFT JOIN attempts a ON a.trial_id = t.id {which}
    LEFT JOIN fingerprints f ON f.sha256 = a.fingerprint_sha256
    LEFT JOIN measurements m ON m.trial_id = a.trial_id AND m.number = a.number
    WHERE :campaign_id IS NULL OR t.campaign_id = :campaign_id
    ORDER BY t.campaign_id, t.position, a.number
"""
_RECENT = """
    SELECT {trial}, {attempt}, {measurement}
    FROM measurements m
    JOIN attempts a ON a.trial_id = m.trial_id AND a.number = m.number
    JOIN trials t ON t.id = m.trial_id
    JOIN fingerprints f ON f.sha256 = a.fingerprint_sha256
    WHERE a.state = 'ok' AND NOT t.warm_up AND t.concurrency = 1
        AND t.workload = :workload AND t.engine = :engine
        AND t.campaign_id NOT IN (SELECT value FROM json_each(:without))
    ORDER BY a.started_utc DESC LIMIT :most
"""
_PHASES = "SELECT name, duration_seconds FROM phases WHERE trial_id = ? AND number = ?"
_FIGURES = "SELECT name, value FROM figures WHERE trial_id = ? AND number = ?"
_OF_CAMPAIGN = """
    JOIN trials t ON t.id = d.trial_id
    WHERE :campaign_id IS NULL OR t.campaign_id = :campaign_id
"""
_STATES = """
    SELECT t.id,
        CASE WHEN t.warm_up AND a.state IN ('failed', 'invalid')
            AND EXISTS (SELECT 1 FROM attempts WHERE trial_id = t.id AND state = 'ok')
        THEN 'ok' ELSE a.state END
    FROM trials t LEFT JOIN attempts a ON a.trial_id = t.id
        AND a.number = (SELECT max(number) FROM attempts WHERE trial_id = t.id)
    WHERE t.campaign_id = ? ORDER BY t.position
"""
"""A warm-up that ran once is done, however it ends when it runs again for another start of the
daemons."""
_CLOCKS = """
    SELECT m.clock_hertz, f.sha256, f.record
    FROM measurements m
    JOIN attempts a ON a.trial_id = m.trial_id AND a.number = m.number
    JOIN fingerprints f ON f.sha256 = a.fingerprint_sha256
    WHERE m.clock_hertz != '{}' AND a.state = 'ok' AND m.verdict = 'valid'
"""
_TYPICAL = """
    SELECT t.workload, t.engine, t.size_bytes, t.workers,
        avg(m.duration_seconds * m.dilation)
    FROM measurements m
    JOIN attempts a ON a.trial_id = m.trial_id AND a.number = m.number
    JOIN trials t ON t.id = m.trial_id
    JOIN campaigns c ON c.id = t.campaign_id
    WHERE a.state = 'ok' AND NOT t.warm_up AND c.kind = 'run'
    GROUP BY t.workload, t.engine, t.size_bytes, t.workers
"""


def _text(text: str) -> str:
    """Make bytes of a foreign file name or log line storable: SQLite takes valid UTF-8 only."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def insert_record(
    connection: sqlite3.Connection,
    table: str,
    record: Any,
    columns: Iterable[str],
    **more: str | int,
) -> None:
    """Add a record's own row: its fields that are columns, and more columns.

    Raises:
        sqlite3.IntegrityError: its key is taken.
    """
    values = {**more, **{name: _column(record, name) for name in columns}}
    connection.execute(
        f"INSERT INTO {table} ({', '.join(values)})"  # noqa: S608 - constants only
        f" VALUES ({', '.join('?' for _ in values)})",
        tuple(values.values()),
    )


def _column(record: Any, name: str) -> str | int | float | None:
    """Return a field as its column holds it."""
    value, kind = getattr(record, name), record.__class__
    if name in _json_columns(kind):
        return json.dumps(to_json(value))
    if value is None or isinstance(value, int | float):
        return int(value) if isinstance(value, bool) else value
    return _text(str(value))


@functools.cache
def _json_columns(kind: Any) -> frozenset[str]:
    """Return the fields whose column holds JSON: lists, tables and records."""
    return frozenset(
        name
        for name, hint in typing.get_type_hints(kind).items()
        if typing.get_origin(hint) in {dict, tuple}
        or any(map(dataclasses.is_dataclass, typing.get_args(hint)))
    )


def record_of(
    kind: type[_Record], row: sqlite3.Row, columns: Iterable[str], **more: object
) -> _Record:
    """Build a record from its row, whose columns have the names of fields, and its other fields.

    Raises:
        StoreError: the row holds what no such record can.
    """
    inside = _json_columns(cast("Any", kind))
    values = {name: json.loads(row[name]) if name in inside else row[name] for name in columns}
    return from_row(kind, {**values, **more})


def insert_campaign(connection: sqlite3.Connection, campaign: Campaign) -> None:
    """Add one campaign; a second one with its id is an IntegrityError."""
    insert_record(connection, "campaigns", campaign, columns_of(Campaign))


def insert_trials(connection: sqlite3.Connection, trials: Iterable[Trial]) -> None:
    """Add trials; a second one with the same id or position is an IntegrityError."""
    for trial in trials:
        insert_record(connection, "trials", trial, columns_of(Trial))


def insert_attempt(connection: sqlite3.Connection, attempt: Attempt) -> None:
    """Add an attempt that begins; its end is written by ``insert_end``."""
    record = json.dumps(to_json(attempt.fingerprint), sort_keys=True)
    digest = hashlib.sha256(record.encode()).hexdigest()
    connection.execute("INSERT OR IGNORE INTO fingerprints VALUES (?, ?)", (digest, record))
    insert_record(
        connection,
        "attempts",
        dataclasses.replace(attempt, state=AttemptState.RUNNING, reason="", ended_utc=""),
        _ATTEMPT,
        fingerprint_sha256=digest,
    )


def insert_end(
    connection: sqlite3.Connection, attempt: Attempt, measurement: Measurement | None
) -> None:
    """Write the end of a running attempt and what it yielded."""
    key = (attempt.trial_id, attempt.number)
    if measurement is not None:
        _insert_measurement(connection, key, measurement)
    connection.execute(
        "UPDATE attempts SET state = ?, reason = ?, ended_utc = ?"
        " WHERE trial_id = ? AND number = ?",
        (attempt.state.value, _text(attempt.reason), attempt.ended_utc, *key),
    )


def _insert_measurement(
    connection: sqlite3.Connection, key: tuple[str, int], measurement: Measurement
) -> None:
    insert_record(
        connection, "measurements", measurement, _MEASUREMENT, trial_id=key[0], number=key[1]
    )
    connection.executemany(
        "INSERT INTO counters VALUES (?, ?, ?, ?)",
        [(*key, _text(name), value) for name, value in measurement.counters.items()],
    )
    for table, values in (
        ("figures", measurement.figures),
        ("phases", measurement.phases_seconds),
    ):
        connection.executemany(
            f"INSERT INTO {table} VALUES (?, ?, ?, ?, ?)",  # noqa: S608 - constants only
            [
                (*key, position, _text(name), value)
                for position, (name, value) in enumerate(values.items())
            ],
        )
    written, read = measurement.node_written_bytes, measurement.node_read_bytes
    connection.executemany(
        "INSERT INTO node_bytes VALUES (?, ?, ?, ?, ?, ?)",
        [
            (*key, position, _text(node), written.get(node), read.get(node))
            for position, node in enumerate(dict.fromkeys([*written, *read]))
        ],
    )


def select_campaigns(
    connection: sqlite3.Connection, *, name: str | None = None
) -> tuple[Campaign, ...]:
    """All campaigns, or those of one name, in the order of their ids."""
    rows = connection.execute(
        "SELECT * FROM campaigns WHERE :name IS NULL OR name = :name ORDER BY id",
        {"name": None if name is None else _text(name)},
    ).fetchall()
    return tuple(_campaign(row) for row in rows)


def select_campaign(connection: sqlite3.Connection, campaign_id: str) -> Campaign | None:
    """One campaign; None if there is none."""
    row = connection.execute(
        "SELECT * FROM campaigns WHERE id = ?", (_text(campaign_id),)
    ).fetchone()
    return None if row is None else _campaign(row)


def select_trial(connection: sqlite3.Connection, trial_id: str) -> Trial | None:
    """One trial; None if there is none."""
    row = connection.execute("SELECT * FROM trials WHERE id = ?", (trial_id,)).fetchone()
    return None if row is None else _trial(row)


def select_states(
    connection: sqlite3.Connection, campaign_id: str
) -> dict[str, AttemptState | None]:
    """State of each trial's latest attempt, in run order; None where there is none."""
    rows = connection.execute(_STATES, (campaign_id,))
    return {trial_id: None if state is None else AttemptState(state) for trial_id, state in rows}


def select_typical_seconds(
    connection: sqlite3.Connection,
) -> dict[tuple[str, str, int, int], float]:
    """Mean time on this machine of ok runs by workload, engine, bytes and number of workers."""
    return {(row[0], row[1], row[2], row[3]): row[4] for row in connection.execute(_TYPICAL)}


def select_trials(connection: sqlite3.Connection, campaign_id: str) -> tuple[Trial, ...]:
    """The trials of a campaign in run order."""
    rows = connection.execute(
        "SELECT * FROM trials WHERE campaign_id = ? ORDER BY position", (campaign_id,)
    ).fetchall()
    return tuple(_trial(row) for row in rows)


def select_attempt(
    connection: sqlite3.Connection, trial_id: str, number: int | None = None
) -> Attempt | None:
    """One attempt, by default the latest; None if there is none."""
    row = connection.execute(
        f"SELECT {_ATTEMPT_COLUMNS} FROM {_ATTEMPTS}"  # noqa: S608 - constants only
        " WHERE a.trial_id = :trial AND (:number IS NULL OR a.number = :number)"
        " ORDER BY a.number DESC LIMIT 1",
        {"trial": trial_id, "number": number},
    ).fetchone()
    return None if row is None else _attempt(row, _fingerprint(row))


def select_best_clocks(
    connection: sqlite3.Connection, fingerprint: Fingerprint
) -> dict[str, float]:
    """The best clock under load that was measured on each board of a fingerprint, by node."""
    best: dict[str, float] = {}
    boards: dict[str, frozenset[str]] = {}
    ours = _boards(fingerprint)
    for clocks, digest, record in connection.execute(_CLOCKS):
        if digest not in boards:
            same = _boards(from_json(Fingerprint, json.loads(record))).items() & ours.items()
            boards[digest] = frozenset(node for node, _ in same)
        for node, hertz in json.loads(clocks).items():
            if node in boards[digest]:
                best[node] = max(hertz, best.get(node, 0.0))
    return best


def _boards(fingerprint: Fingerprint) -> dict[str, str]:
    """Each node's own line of a fingerprint, by its name."""
    return {line.partition(":")[0]: line for line in fingerprint.hardware}


def select_running(connection: sqlite3.Connection) -> tuple[Attempt, ...]:
    """Every attempt that began and has no end."""
    rows = connection.execute(
        f"SELECT {_ATTEMPT_COLUMNS} FROM {_ATTEMPTS}"  # noqa: S608 - constants only
        " WHERE a.state = 'running' ORDER BY a.started_utc, a.trial_id"
    ).fetchall()
    return tuple(_attempt(row, _fingerprint(row)) for row in rows)


def select_results(
    connection: sqlite3.Connection, campaign_id: str | None, *, all_attempts: bool
) -> tuple[Result, ...]:
    """Each trial with its latest attempt, or once per attempt."""
    statement = _RESULTS.format(
        trial=_shown("t", columns_of(Trial)),
        attempt=_ATTEMPT_COLUMNS,
        measurement=_shown("m", _MEASUREMENT),
        which="" if all_attempts else _LATEST,
    )
    parameters = {"campaign_id": campaign_id}
    rows = connection.execute(statement, parameters).fetchall()
    details = _details(connection, parameters)
    fingerprints = {
        row["fingerprint_sha256"]: row for row in rows if row["fingerprint_sha256"] is not None
    }
    # A store holds many attempts and few setups: each is decoded once.
    decoded = {digest: _fingerprint(row) for digest, row in fingerprints.items()}
    return tuple(
        Result(
            trial=_trial(row),
            attempt=None
            if row["trial_id"] is None
            else _attempt(row, decoded[row["fingerprint_sha256"]]),
            measurement=None
            if row["duration_seconds"] is None
            else record_of(
                Measurement, row, _MEASUREMENT, **details.get((row["trial_id"], row["number"]), {})
            ),
        )
        for row in rows
    )


def select_recent(
    connection: sqlite3.Connection,
    workload: str,
    engine: str,
    *,
    most: int,
    without: Collection[str],
) -> tuple[Result, ...]:
    """The newest ok runs of a workload on an engine, without counters and bytes by node."""
    statement = _RECENT.format(
        trial=_shown("t", columns_of(Trial)),
        attempt=_ATTEMPT_COLUMNS,
        measurement=_shown("m", _MEASUREMENT),
    )
    asked = {
        "workload": workload,
        "engine": engine,
        "most": most,
        "without": json.dumps(sorted(without)),
    }
    decoded: dict[str, Fingerprint] = {}
    found = []
    for row in connection.execute(statement, asked).fetchall():
        digest = row["fingerprint_sha256"]
        if digest not in decoded:
            decoded[digest] = _fingerprint(row)
        attempt = _attempt(row, decoded[digest])
        key = (attempt.trial_id, attempt.number)
        measurement = record_of(
            Measurement,
            row,
            _MEASUREMENT,
            phases_seconds=dict(map(tuple, connection.execute(_PHASES, key))),
            figures=dict(map(tuple, connection.execute(_FIGURES, key))),
        )
        found.append(Result(trial=_trial(row), attempt=attempt, measurement=measurement))
    return tuple(found)


def _details(
    connection: sqlite3.Connection, parameters: Mapping[str, str | None]
) -> Mapping[_Key, dict[str, dict[str, float]]]:
    """Return what measurements hold beside their own row, by trial and number of the attempt."""
    found: defaultdict[_Key, dict[str, dict[str, float]]] = defaultdict(dict)
    for field, (columns, table, order) in _DETAILS.items():
        statement = (
            f"SELECT d.trial_id, d.number, {columns} FROM {table} d {_OF_CAMPAIGN}"  # noqa: S608 - constants only
            f" ORDER BY {order}"
        )
        for trial_id, number, name, value in connection.execute(statement, parameters):
            if value is not None:
                found[trial_id, number].setdefault(field, {})[name] = value
    return found


def _campaign(row: sqlite3.Row) -> Campaign:
    return record_of(Campaign, row, columns_of(Campaign))


def _trial(row: sqlite3.Row) -> Trial:
    return record_of(Trial, row, columns_of(Trial))


def _fingerprint(row: sqlite3.Row) -> Fingerprint:
    return from_json(Fingerprint, json.loads(row["record"]))


def _attempt(row: sqlite3.Row, fingerprint: Fingerprint) -> Attempt:
    return record_of(Attempt, row, _ATTEMPT, fingerprint=fingerprint)
