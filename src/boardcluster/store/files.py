"""The files beside the database: one per attempt and one per campaign.

They hold everything the database holds, are written atomically before the database commits, and
are what a damaged database is rebuilt from.

    <home>/store.sqlite
    <home>/campaigns/<campaign id>.json            campaign, trials
    <home>/campaigns/<campaign id>.toml            its campaign file, as it was when it began
    <home>/cluster.json                            only of imported results: their cluster
    <home>/imported.json                           only of imported results: the bundle
    <home>/attempts/<trial id>/<number>/           the attempt's raw artefacts
    <home>/attempts/<trial id>/<number>/attempt.json   campaign, trial, attempt, measurement
    <home>/attempts/<trial id>/<number>/telemetry.npz  the samples of every node
    <home>/attempts/<trial id>/<number>/power.json     the readings of every power meter
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from boardcluster.errors import StoreError
from boardcluster.records import Attempt, Campaign, ClusterSpec, Measurement, Trial
from boardcluster.store.codec import JsonValue, from_json, to_json

__all__ = [
    "CLUSTER_NAME",
    "DATABASE_NAME",
    "IMPORTED_NAME",
    "POWER_NAME",
    "TELEMETRY_NAME",
    "AttemptFile",
    "CampaignFile",
    "attempt_path",
    "campaign_file_path",
    "campaign_path",
    "check_id",
    "is_temporary",
    "put_in_place",
    "read_cluster",
    "read_record",
    "record_text",
    "replacing",
    "sync_folder",
    "write_record",
    "write_temporary",
    "write_temporary_bytes",
]

CLUSTER_NAME = "cluster.json"
DATABASE_NAME = "store.sqlite"
IMPORTED_NAME = "imported.json"
"""In a home that was imported, which bundle it is from."""
TELEMETRY_NAME = "telemetry.npz"
POWER_NAME = "power.json"
_FORMAT = 7
_READABLE = (1, 2, 3, 4, 5, 6, 7)
"""Earlier formats lack fields, which take the records' defaults: 1 those of campaign files, 2 those
of verdicts and energy, 3 those of emulated boards, 4 settings of the engines, 5 starts of the
cluster, precisions and declared comparisons, 6 digests of campaign files."""
_TEMPORARY = re.compile(r"\..+\.\d+")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,199}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignFile:
    """Content of ``campaigns/<id>.json``."""

    campaign: Campaign
    """The campaign."""
    trials: tuple[Trial, ...]
    """All its planned trials."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptFile:
    """Content of ``attempt.json``; complete in itself, so that it can stand without the rest."""

    campaign: Campaign
    """The campaign of the trial."""
    trial: Trial
    """The trial."""
    attempt: Attempt
    """The attempt."""
    measurement: Measurement | None
    """What it yielded; None while it runs and where it yielded nothing."""


_File = TypeVar("_File")


def check_id(text: str) -> str:
    """Return an id that is safe as a file name.

    Raises:
        StoreError: it is empty, too long, or could leave its folder.
    """
    if _ID.fullmatch(text) is None:
        raise StoreError(
            f"not usable as an id: {text!r}",
            hint="use letters, digits and . _ + -, starting with a letter or a digit",
        )
    return text


def campaign_path(home: Path, campaign_id: str) -> Path:
    """Path of a campaign's file."""
    return home / "campaigns" / f"{check_id(campaign_id)}.json"


def campaign_file_path(home: Path, campaign_id: str) -> Path:
    """Path of the campaign file that a campaign was begun with."""
    return home / "campaigns" / f"{check_id(campaign_id)}.toml"


def attempt_path(home: Path, trial_id: str, number: int) -> Path:
    """Path of an attempt's file; its folder holds the attempt's raw artefacts."""
    return home / "attempts" / check_id(trial_id) / str(number) / "attempt.json"


def write_record(path: Path, record: object, *, version: int = _FORMAT) -> None:
    """Write a record so that after any crash the file holds the old or the new content, whole.

    Raises:
        OSError: the disk is full, read-only or out of reach.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        write_temporary(temporary, record_text(record, version=version))


def record_text(record: object, *, version: int = _FORMAT) -> str:
    """Return what ``write_record`` writes into a file."""
    body = {"format": version, "record": to_json(record)}
    return json.dumps(body, indent=1, allow_nan=False) + "\n"


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give the block a name to write to; at its end that becomes the file, durably and at once.

    Raises:
        OSError: the disk is full, read-only or out of reach; the file is what it was.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield temporary
        put_in_place(temporary, path)
    except BaseException:  # Ctrl-C, too: nobody would ever delete it
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def is_temporary(name: str) -> bool:
    """Whether a name is one that ``replacing`` gives; a driver that is killed leaves the file."""
    return _TEMPORARY.fullmatch(name) is not None


def read_cluster(home: Path) -> ClusterSpec | None:
    """Return the cluster of results that were imported; None where there is none, or unreadable."""
    path = home / CLUSTER_NAME
    with suppress(StoreError):
        return read_record(ClusterSpec, path) if path.is_file() else None
    return None


def write_temporary(temporary: Path, text: str) -> None:
    """Write a file that nobody reads yet, down to the disk."""
    write_temporary_bytes(temporary, text.encode("ascii"))


def write_temporary_bytes(temporary: Path, content: bytes) -> None:
    """Write a file of any content that nobody reads yet, down to the disk."""
    with temporary.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def put_in_place(temporary: Path, path: Path) -> None:
    """Let readers see the new content at once and whole: the point of no return."""
    temporary.replace(path)


def sync_folder(folder: Path) -> None:
    """Make a rename durable: without this a power cut can undo it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_record(kind: type[_File], path: Path, *, readable: Collection[int] = _READABLE) -> _File:
    """Read a file that ``write_record`` wrote.

    Raises:
        StoreError: it is unreadable, not JSON, of an unknown format, or not such a record.
    """
    try:
        body: JsonValue = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise StoreError(f"unreadable: {path}: {error}", hint=f"look at {path}") from error
    if not isinstance(body, dict) or body.get("format") not in readable:
        raise StoreError(
            f"unknown format: {path}", hint="use the version of boardcluster that wrote it"
        )
    return from_json(kind, body.get("record"))
