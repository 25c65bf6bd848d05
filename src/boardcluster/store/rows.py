"""Records to rows and back. Each function is one or a few statements; none of them commits."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Mapping

from boardcluster.records import (
    Attempt,
    AttemptState,
    Campaign,
    CampaignKind,
    Engine,
    Fingerprint,
    Measurement,
    Result,
    Trial,
    Verification,
)
from boardcluster.store.codec import from_json, to_json

__all__ = [
    "insert_attempt",
    "insert_campaign",
    "insert_end",
    "insert_trials",
    "select_attempt",
    "select_campaigns",
    "select_results",
    "select_running",
    "select_trials",
]

_ATTEMPT_COLUMNS = """
    a.trial_id AS trial_id, a.number AS number, a.state AS state, a.reason AS reason,
    a.started_utc AS started_utc, a.ended_utc AS ended_utc, a.artefacts AS artefacts,
    f.record AS fingerprint
"""
_ATTEMPTS = "attempts a JOIN fingerprints f ON f.sha256 = a.fingerprint_sha256"
_LATEST = "AND a.number = (SELECT max(number) FROM attempts WHERE trial_id = t.id)"
_RESULTS = """
    SELECT t.id AS id, t.campaign_id AS campaign_id, t.position AS position,
        t.workload AS workload, t.engine AS engine, t.profile AS profile,
        t.size_bytes AS size_bytes, t.workers AS workers, t.repetition AS repetition,
        t.arguments AS arguments, {attempt},
        m.duration_seconds AS duration_seconds, m.input_bytes AS input_bytes,
        m.output_bytes AS output_bytes, m.verification AS verification,
        m.exit_status AS exit_status, m.application_id AS application_id
    FROM trials t
    LEFT JOIN attempts a ON a.trial_id = t.id {which}
    LEFT JOIN fingerprints f ON f.sha256 = a.fingerprint_sha256
    LEFT JOIN measurements m ON m.trial_id = a.trial_id AND m.number = a.number
    WHERE :campaign_id IS NULL OR t.campaign_id = :campaign_id
    ORDER BY t.campaign_id, t.position, a.number
"""
_COUNTERS = """
    SELECT c.trial_id, c.number, c.name, c.value
    FROM counters c JOIN trials t ON t.id = c.trial_id
    WHERE :campaign_id IS NULL OR t.campaign_id = :campaign_id
"""


def _text(text: str) -> str:
    """Make bytes of a foreign file name or log line storable: SQLite takes valid UTF-8 only."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def insert_campaign(connection: sqlite3.Connection, campaign: Campaign) -> None:
    """Add one campaign; a second one with its id is an IntegrityError."""
    connection.execute(
        "INSERT INTO campaigns VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            campaign.id,
            campaign.kind.value,
            campaign.created_utc,
            campaign.seed,
            campaign.cluster,
            int(campaign.emulated),
            _text(campaign.dataset),
            campaign.dataset_sha256,
            _text(campaign.dataset_source),
        ),
    )


def insert_trials(connection: sqlite3.Connection, trials: Iterable[Trial]) -> None:
    """Add trials; a second one with the same id or position is an IntegrityError."""
    connection.executemany(
        "INSERT INTO trials VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                trial.id,
                trial.campaign_id,
                trial.position,
                trial.workload,
                trial.engine.value,
                trial.profile,
                trial.size_bytes,
                trial.workers,
                trial.repetition,
                json.dumps(trial.arguments),
            )
            for trial in trials
        ],
    )


def insert_attempt(connection: sqlite3.Connection, attempt: Attempt) -> None:
    """Add an attempt that begins; its end is written by ``insert_end``."""
    record = json.dumps(to_json(attempt.fingerprint), sort_keys=True)
    digest = hashlib.sha256(record.encode()).hexdigest()
    connection.execute("INSERT OR IGNORE INTO fingerprints VALUES (?, ?)", (digest, record))
    connection.execute(
        "INSERT INTO attempts VALUES (?, ?, 'running', '', ?, '', ?, ?)",
        (attempt.trial_id, attempt.number, attempt.started_utc, attempt.artefacts, digest),
    )


def insert_end(
    connection: sqlite3.Connection, attempt: Attempt, measurement: Measurement | None
) -> None:
    """Write the end of a running attempt and what it yielded."""
    key = (attempt.trial_id, attempt.number)
    if measurement is not None:
        connection.execute(
            "INSERT INTO measurements VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *key,
                measurement.duration_seconds,
                measurement.input_bytes,
                measurement.output_bytes,
                json.dumps(to_json(measurement.verification)),
                measurement.exit_status,
                measurement.application_id,
            ),
        )
        connection.executemany(
            "INSERT INTO counters VALUES (?, ?, ?, ?)",
            [(*key, _text(name), value) for name, value in measurement.counters.items()],
        )
    connection.execute(
        "UPDATE attempts SET state = ?, reason = ?, ended_utc = ?"
        " WHERE trial_id = ? AND number = ?",
        (attempt.state.value, _text(attempt.reason), attempt.ended_utc, *key),
    )


def select_campaigns(connection: sqlite3.Connection) -> tuple[Campaign, ...]:
    """All campaigns in the order of their ids."""
    rows = connection.execute("SELECT * FROM campaigns ORDER BY id").fetchall()
    return tuple(
        Campaign(
            id=row["id"],
            kind=CampaignKind(row["kind"]),
            created_utc=row["created_utc"],
            seed=row["seed"],
            cluster=row["cluster"],
            emulated=bool(row["emulated"]),
            dataset=row["dataset"],
            dataset_sha256=row["dataset_sha256"],
            dataset_source=row["dataset_source"],
        )
        for row in rows
    )


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
    return None if row is None else _attempt(row)


def select_running(connection: sqlite3.Connection) -> tuple[Attempt, ...]:
    """Every attempt that began and has no end."""
    rows = connection.execute(
        f"SELECT {_ATTEMPT_COLUMNS} FROM {_ATTEMPTS}"  # noqa: S608 - constants only
        " WHERE a.state = 'running' ORDER BY a.started_utc, a.trial_id"
    ).fetchall()
    return tuple(_attempt(row) for row in rows)


def select_results(
    connection: sqlite3.Connection, campaign_id: str | None, *, all_attempts: bool
) -> tuple[Result, ...]:
    """Each trial with its latest attempt, or once per attempt."""
    statement = _RESULTS.format(attempt=_ATTEMPT_COLUMNS, which="" if all_attempts else _LATEST)
    parameters = {"campaign_id": campaign_id}
    rows = connection.execute(statement, parameters).fetchall()
    counters: dict[tuple[str, int], dict[str, int]] = {}
    for trial_id, number, name, value in connection.execute(_COUNTERS, parameters):
        counters.setdefault((trial_id, number), {})[name] = value
    return tuple(
        Result(
            trial=_trial(row),
            attempt=None if row["trial_id"] is None else _attempt(row),
            measurement=None if row["duration_seconds"] is None else _measurement(row, counters),
        )
        for row in rows
    )


def _trial(row: sqlite3.Row) -> Trial:
    return Trial(
        id=row["id"],
        campaign_id=row["campaign_id"],
        position=row["position"],
        workload=row["workload"],
        engine=Engine(row["engine"]),
        profile=row["profile"],
        size_bytes=row["size_bytes"],
        workers=row["workers"],
        repetition=row["repetition"],
        arguments=tuple(json.loads(row["arguments"])),
    )


def _attempt(row: sqlite3.Row) -> Attempt:
    return Attempt(
        trial_id=row["trial_id"],
        number=row["number"],
        state=AttemptState(row["state"]),
        reason=row["reason"],
        started_utc=row["started_utc"],
        ended_utc=row["ended_utc"],
        artefacts=row["artefacts"],
        fingerprint=from_json(Fingerprint, json.loads(row["fingerprint"])),
    )


def _measurement(
    row: sqlite3.Row, counters: Mapping[tuple[str, int], dict[str, int]]
) -> Measurement:
    verification = json.loads(row["verification"])
    return Measurement(
        duration_seconds=row["duration_seconds"],
        input_bytes=row["input_bytes"],
        output_bytes=row["output_bytes"],
        counters=counters.get((row["trial_id"], row["number"]), {}),
        verification=None if verification is None else from_json(Verification, verification),
        exit_status=row["exit_status"],
        application_id=row["application_id"],
    )
