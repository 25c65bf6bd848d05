"""Runs of probes: their rows, and the file that each has beside the database."""

from __future__ import annotations

import json
import logging
import math
import sqlite3
from pathlib import Path

from boardcluster.errors import StoreError
from boardcluster.records import ProbeFigure, ProbeRun
from boardcluster.store.files import check_id, read_record, record_text, write_record
from boardcluster.store.rows import columns_of, insert_record, record_of

__all__ = [
    "adopt_probe_runs",
    "check_probe_run",
    "insert_probe_run",
    "probe_path",
    "probe_text",
    "select_probe_runs",
    "write_probe_run",
]

_LOG = logging.getLogger(__name__)
_FORMAT = 1
_COLUMNS = columns_of(ProbeRun, without=["figures"])
_HINT = "report this: the driver broke the store's rules"


def probe_path(home: Path, run_id: str) -> Path:
    """Path of the file of one run."""
    return home / "probes" / f"{check_id(run_id)}.json"


def check_probe_run(run: ProbeRun) -> None:
    """Check that a run can be stored.

    Raises:
        StoreError: it has neither figures nor a reason, or both, or a number that cannot be one.
    """
    check_id(run.id)
    if bool(run.figures) == bool(run.reason.strip()):
        raise StoreError(
            f"probe run {run.id} has {len(run.figures)} figures and the reason {run.reason!r}",
            hint=_HINT,
        )
    numbers = [run.duration_seconds, *(figure.value for figure in run.figures)]
    if not all(math.isfinite(number) for number in numbers) or run.duration_seconds < 0:
        raise StoreError(f"probe run {run.id} holds a number that cannot be one", hint=_HINT)


def insert_probe_run(connection: sqlite3.Connection, run: ProbeRun) -> None:
    """Insert a run with its figures.

    Raises:
        sqlite3.IntegrityError: its id is taken.
    """
    insert_record(connection, "probe_runs", run, _COLUMNS)
    connection.executemany(
        "INSERT INTO probe_figures (run_id, position, name, value, conditions)"
        " VALUES (?, ?, ?, ?, ?)",
        [
            (run.id, position, figure.name, figure.value, json.dumps(figure.conditions))
            for position, figure in enumerate(run.figures)
        ],
    )


def select_probe_runs(
    connection: sqlite3.Connection, *, node: str, probe: str
) -> tuple[ProbeRun, ...]:
    """Return runs, oldest first; an empty name stands for every node or probe."""
    rows = connection.execute(
        "SELECT * FROM probe_runs WHERE (:node = '' OR node = :node)"
        " AND (:probe = '' OR probe = :probe) ORDER BY started_utc, id",
        {"node": node, "probe": probe},
    ).fetchall()
    return tuple(
        record_of(ProbeRun, row, _COLUMNS, figures=_figures(connection, row["id"])) for row in rows
    )


def _figures(connection: sqlite3.Connection, run_id: str) -> tuple[ProbeFigure, ...]:
    rows = connection.execute(
        "SELECT name, value, conditions FROM probe_figures WHERE run_id = ? ORDER BY position",
        (run_id,),
    )
    return tuple(
        ProbeFigure(name=row["name"], value=row["value"], conditions=json.loads(row["conditions"]))
        for row in rows
    )


def write_probe_run(home: Path, run: ProbeRun) -> None:
    """Write the file of a run: whole, or not at all.

    Raises:
        OSError: the disk is full, read-only or out of reach.
    """
    write_record(probe_path(home, run.id), run, version=_FORMAT)


def probe_text(home: Path, run: ProbeRun) -> tuple[Path, str]:
    """Return the path of a run's file, and what is in it."""
    return probe_path(home, run.id), record_text(run, version=_FORMAT)


def _read(path: Path) -> ProbeRun:
    run = read_record(ProbeRun, path, readable=[_FORMAT])
    if path.name != f"{run.id}.json":
        raise StoreError(f"{path} holds run {run.id}", hint=f"look at {path}")
    return run


def adopt_probe_runs(connection: sqlite3.Connection, home: Path) -> int:
    """Give rows to each run that has a file but no rows: after a crash, or in a new database.

    A file that cannot be used is left where it is and named in a warning of the log.

    Returns:
        How many got rows.
    """
    known = {f"{row['id']}.json" for row in connection.execute("SELECT id FROM probe_runs")}
    adopted = 0
    for path in sorted((home / "probes").glob("[!.]*.json")):
        if path.name in known:
            continue
        connection.execute("SAVEPOINT adopted")
        try:
            run = _read(path)
            check_probe_run(run)
            insert_probe_run(connection, run)
            adopted += 1
        except (sqlite3.IntegrityError, StoreError) as error:
            connection.execute("ROLLBACK TO adopted")
            _LOG.warning("left out: %s: %s", path, error)
        finally:
            connection.execute("RELEASE adopted")
    return adopted
