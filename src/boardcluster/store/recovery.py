"""Rebuild a damaged database from the files beside it."""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from boardcluster.errors import StoreError
from boardcluster.records import AttemptState
from boardcluster.store import rows
from boardcluster.store.connection import connect, translated
from boardcluster.store.files import DATABASE_NAME, AttemptFile, CampaignFile, read_record
from boardcluster.store.migrations import transaction
from boardcluster.store.probes import adopt_probe_runs
from boardcluster.store.rules import check_end

__all__ = ["rebuild"]

_LOG = logging.getLogger(__name__)
_SUFFIXES = ("", "-wal", "-shm")


def rebuild(home: Path) -> int:
    """Rebuild the store from its per-attempt and per-campaign files.

    The database in place is kept as ``store.sqlite.damaged-<n>``. A file that cannot be used is
    left where it is and named in a warning of the log. Call it only while holding the lock.

    Returns:
        The number of attempts in the new store.

    Raises:
        StoreError: the new store cannot be written.
    """
    path = home / DATABASE_NAME
    fresh = home / f"{DATABASE_NAME}.rebuilding"
    with translated(path):
        home.mkdir(parents=True, exist_ok=True)
        _remove(fresh)
        connection = connect(fresh)
        try:
            with transaction(connection):
                count = _fill(connection, home)
        finally:
            connection.close()
        _set_aside(path)
        fresh.replace(path)
    return count


def _remove(path: Path) -> None:
    for suffix in _SUFFIXES:
        Path(f"{path}{suffix}").unlink(missing_ok=True)


def _set_aside(path: Path) -> None:
    """Move the database and its journal out of the way under the first free number."""
    number = 1
    while os.path.lexists(f"{path}.damaged-{number}"):
        number += 1
    for suffix in reversed(_SUFFIXES):
        part = Path(f"{path}{suffix}")
        if part.exists():
            part.rename(f"{path}.damaged-{number}{suffix}")


def _fill(connection: sqlite3.Connection, home: Path) -> int:
    for path, found in _campaign_files(home):
        _whole(connection, path, partial(_insert_campaign, connection, found))
    adopt_probe_runs(connection, home)
    return sum(
        _whole(connection, path, partial(_insert_attempt, connection, entry))
        for path, entry in _attempt_files(home)
    )


def _whole(connection: sqlite3.Connection, path: Path, insert: Callable[[], None]) -> bool:
    """Insert what a file holds, whole or not at all; return whether it could be."""
    connection.execute("SAVEPOINT one")
    try:
        insert()
    except (sqlite3.IntegrityError, OverflowError, StoreError) as error:
        connection.execute("ROLLBACK TO one")
        _LOG.warning("left out: %s: %s", path, error)
        return False
    finally:
        connection.execute("RELEASE one")
    return True


def _insert_campaign(connection: sqlite3.Connection, found: CampaignFile) -> None:
    rows.insert_campaign(connection, found.campaign)
    rows.insert_trials(connection, found.trials)


def _insert_attempt(connection: sqlite3.Connection, entry: AttemptFile) -> None:
    """Insert an attempt, with its campaign and its trial where no file of a campaign has them."""
    if rows.select_campaign(connection, entry.campaign.id) is None:
        rows.insert_campaign(connection, entry.campaign)
    if rows.select_trial(connection, entry.trial.id) is None:
        rows.insert_trials(connection, [entry.trial])
    rows.insert_attempt(connection, entry.attempt)
    if entry.attempt.state is not AttemptState.RUNNING:
        check_end(entry.campaign, entry.attempt, entry.measurement)
        rows.insert_end(connection, entry.attempt, entry.measurement)


def _campaign_files(home: Path) -> Iterator[tuple[Path, CampaignFile]]:
    for path in sorted((home / "campaigns").glob("*.json")):
        try:
            yield path, read_record(CampaignFile, path)
        except StoreError as error:
            _LOG.warning("left out: %s", error.message)


def _attempt_files(home: Path) -> Iterator[tuple[Path, AttemptFile]]:
    """Every readable attempt file, lower numbers first."""
    paths = (home / "attempts").glob("*/*/attempt.json")
    for path in sorted(
        paths, key=lambda path: (path.parent.parent.name, len(path.parent.name), path)
    ):
        try:
            yield path, read_record(AttemptFile, path)
        except StoreError as error:
            _LOG.warning("left out: %s", error.message)
