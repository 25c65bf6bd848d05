"""Records to rows and back. Each function is one or a few statements; none of them commits."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

from boardcluster.records import (
    Attempt,
    AttemptState,
    Campaign,
    CampaignKind,
    Energy,
    Fingerprint,
    Measurement,
    Result,
    Trial,
    Verdict,
    Verification,
)
from boardcluster.store.codec import from_json, to_json

__all__ = [
    "insert_attempt",
    "insert_campaign",
    "insert_end",
    "insert_trials",
    "select_attempt",
    "select_campaign",
    "select_campaigns",
    "select_results",
    "select_running",
    "select_states",
    "select_tainted",
    "select_trial",
    "select_trials",
    "select_typical_seconds",
    "select_verdict",
]

_Key: TypeAlias = tuple[str, int]

_TRIAL_KINDS = typing.get_type_hints(Trial)
_TRIAL_COLUMNS = ", ".join(f"t.{name} AS {name}" for name in _TRIAL_KINDS)
_INSERT_TRIAL = (
    f"INSERT INTO trials ({', '.join(_TRIAL_KINDS)})"  # noqa: S608 - constants only
    f" VALUES ({', '.join('?' for _ in _TRIAL_KINDS)})"
)
_ATTEMPT_COLUMNS = """
    a.trial_id AS trial_id, a.number AS number, a.state AS state, a.reason AS reason,
    a.started_utc AS started_utc, a.ended_utc AS ended_utc, a.artefacts AS artefacts,
    f.sha256 AS fingerprint_sha256, f.record AS fingerprint
"""
_ATTEMPTS = "attempts a JOIN fingerprints f ON f.sha256 = a.fingerprint_sha256"
_LATEST = "AND a.number = (SELECT max(number) FROM attempts WHERE trial_id = t.id)"
_RESULTS = """
    SELECT {trial}, {attempt},
        m.duration_seconds AS duration_seconds, m.input_bytes AS input_bytes,
        m.output_bytes AS output_bytes, m.verification AS verification,
        m.exit_status AS exit_status, m.application_id AS application_id,
        m.intermediate_bytes AS intermediate_bytes, m.remarks AS remarks, m.verdict AS verdict,
        m.verdict_reasons AS verdict_reasons, m.energy AS energy, m.dilation AS dilation
    FROM trials t
    LEFT JOIN attempts a ON a.trial_id = t.id {which}
    LEFT JOIN fingerprints f ON f.sha256 = a.fingerprint_sha256
    LEFT JOIN measurements m ON m.trial_id = a.trial_id AND m.number = a.number
    WHERE :campaign_id IS NULL OR t.campaign_id = :campaign_id
    ORDER BY t.campaign_id, t.position, a.number
"""
_OF_CAMPAIGN = """
    JOIN trials t ON t.id = d.trial_id
    WHERE :campaign_id IS NULL OR t.campaign_id = :campaign_id
"""
_STATES = """
    SELECT t.id, a.state
    FROM trials t LEFT JOIN attempts a ON a.trial_id = t.id
        AND a.number = (SELECT max(number) FROM attempts WHERE trial_id = t.id)
    WHERE t.campaign_id = ? ORDER BY t.position
"""
_TAINTED = """
    SELECT m.trial_id
    FROM measurements m
    JOIN attempts a ON a.trial_id = m.trial_id AND a.number = m.number
    JOIN trials t ON t.id = m.trial_id
    WHERE t.campaign_id = ? AND a.state = 'ok'
    GROUP BY m.trial_id HAVING sum(m.verdict = 'tainted') = count(*) AND count(*) <= ?
"""
_VERDICT = "SELECT verdict FROM measurements WHERE trial_id = ? AND number = ?"
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


def insert_campaign(connection: sqlite3.Connection, campaign: Campaign) -> None:
    """Add one campaign; a second one with its id is an IntegrityError."""
    connection.execute(
        "INSERT INTO campaigns VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
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
            _text(campaign.name),
            campaign.spec_sha256,
        ),
    )


def insert_trials(connection: sqlite3.Connection, trials: Iterable[Trial]) -> None:
    """Add trials; a second one with the same id or position is an IntegrityError."""
    connection.executemany(
        _INSERT_TRIAL,
        [[_column(getattr(trial, name)) for name in _TRIAL_KINDS] for trial in trials],
    )


def _column(value: object) -> str | int:
    """Return a field of a trial as its column holds it."""
    if isinstance(value, dict | tuple):
        return json.dumps(value)
    return int(value) if isinstance(value, int) else _text(str(value))


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
        _insert_measurement(connection, key, measurement)
    connection.execute(
        "UPDATE attempts SET state = ?, reason = ?, ended_utc = ?"
        " WHERE trial_id = ? AND number = ?",
        (attempt.state.value, _text(attempt.reason), attempt.ended_utc, *key),
    )


def _insert_measurement(
    connection: sqlite3.Connection, key: tuple[str, int], measurement: Measurement
) -> None:
    connection.execute(
        "INSERT INTO measurements VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *key,
            measurement.duration_seconds,
            measurement.input_bytes,
            measurement.output_bytes,
            json.dumps(to_json(measurement.verification)),
            measurement.exit_status,
            measurement.application_id,
            measurement.intermediate_bytes,
            json.dumps(measurement.remarks),
            measurement.verdict.value,
            json.dumps(measurement.verdict_reasons),
            json.dumps(to_json(measurement.energy)),
            measurement.dilation,
        ),
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


def select_tainted(
    connection: sqlite3.Connection, campaign_id: str, attempts_most: int
) -> frozenset[str]:
    """The trials whose ok attempts are all tainted, and no more than so many."""
    rows = connection.execute(_TAINTED, (campaign_id, attempts_most))
    return frozenset(row[0] for row in rows)


def select_verdict(connection: sqlite3.Connection, attempt: Attempt) -> Verdict:
    """What an attempt's measurement was judged; UNJUDGED where there is none."""
    row = connection.execute(_VERDICT, (attempt.trial_id, attempt.number)).fetchone()
    return Verdict.UNJUDGED if row is None else Verdict(row["verdict"])


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
        trial=_TRIAL_COLUMNS, attempt=_ATTEMPT_COLUMNS, which="" if all_attempts else _LATEST
    )
    parameters = {"campaign_id": campaign_id}
    rows = connection.execute(statement, parameters).fetchall()
    details = _Details.select(connection, parameters)
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
            measurement=None if row["duration_seconds"] is None else _measurement(row, details),
        )
        for row in rows
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Details:
    """What measurements hold beside their own row, by trial and number of the attempt."""

    counters: Mapping[_Key, dict[str, int]]
    figures: Mapping[_Key, dict[str, float]]
    phases_seconds: Mapping[_Key, dict[str, float]]
    node_written_bytes: Mapping[_Key, dict[str, int]]
    node_read_bytes: Mapping[_Key, dict[str, int]]

    @classmethod
    def select(cls, connection: sqlite3.Connection, parameters: Mapping[str, str | None]) -> Self:
        """Read them for one campaign, or for all."""

        def read(columns: str, table: str, order: str) -> dict[_Key, dict[str, Any]]:
            found: dict[_Key, dict[str, Any]] = {}
            statement = (
                f"SELECT d.trial_id, d.number, {columns} FROM {table} d {_OF_CAMPAIGN}"  # noqa: S608 - constants only
                f" ORDER BY {order}"
            )
            for trial_id, number, name, value in connection.execute(statement, parameters):
                if value is not None:
                    found.setdefault((trial_id, number), {})[name] = value
            return found

        return cls(
            counters=read("d.name, d.value", "counters", "d.trial_id, d.number, d.name"),
            figures=read("d.name, d.value", "figures", "d.position"),
            phases_seconds=read("d.name, d.duration_seconds", "phases", "d.position"),
            node_written_bytes=read("d.node, d.written_bytes", "node_bytes", "d.position"),
            node_read_bytes=read("d.node, d.read_bytes", "node_bytes", "d.position"),
        )


def _campaign(row: sqlite3.Row) -> Campaign:
    return Campaign(
        id=row["id"],
        kind=CampaignKind(row["kind"]),
        created_utc=row["created_utc"],
        seed=row["seed"],
        cluster=row["cluster"],
        emulated=bool(row["emulated"]),
        dataset=row["dataset"],
        dataset_sha256=row["dataset_sha256"],
        dataset_source=row["dataset_source"],
        name=row["name"],
        spec_sha256=row["spec_sha256"],
    )


def _trial(row: sqlite3.Row) -> Trial:
    return Trial(**{name: _field(kind, row[name]) for name, kind in _TRIAL_KINDS.items()})


def _field(kind: Any, value: Any) -> Any:
    """Return the field of a trial that a column holds."""
    origin = typing.get_origin(kind)
    if origin is not None:
        return origin(json.loads(value))
    return kind(value)


def _fingerprint(row: sqlite3.Row) -> Fingerprint:
    return from_json(Fingerprint, json.loads(row["fingerprint"]))


def _attempt(row: sqlite3.Row, fingerprint: Fingerprint) -> Attempt:
    return Attempt(
        trial_id=row["trial_id"],
        number=row["number"],
        state=AttemptState(row["state"]),
        reason=row["reason"],
        started_utc=row["started_utc"],
        ended_utc=row["ended_utc"],
        artefacts=row["artefacts"],
        fingerprint=fingerprint,
    )


def _measurement(row: sqlite3.Row, details: _Details) -> Measurement:
    key = (row["trial_id"], row["number"])
    verification, energy = json.loads(row["verification"]), json.loads(row["energy"])
    return Measurement(
        duration_seconds=row["duration_seconds"],
        input_bytes=row["input_bytes"],
        output_bytes=row["output_bytes"],
        counters=details.counters.get(key, {}),
        verification=None if verification is None else from_json(Verification, verification),
        exit_status=row["exit_status"],
        application_id=row["application_id"],
        figures=details.figures.get(key, {}),
        phases_seconds=details.phases_seconds.get(key, {}),
        intermediate_bytes=row["intermediate_bytes"],
        node_written_bytes=details.node_written_bytes.get(key, {}),
        node_read_bytes=details.node_read_bytes.get(key, {}),
        remarks=tuple(json.loads(row["remarks"])),
        verdict=Verdict(row["verdict"]),
        verdict_reasons=tuple(json.loads(row["verdict_reasons"])),
        energy=None if energy is None else from_json(Energy, energy),
        dilation=row["dilation"],
    )
