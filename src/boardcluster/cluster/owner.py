"""Whose a cluster is: a random id of each state folder, which boards keep on their disk.

Names prove nothing: two machines that were made from one image have the same, and the same folders.
"""

from __future__ import annotations

import contextlib
import datetime
import getpass
import json
import os
import socket
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path

from boardcluster.errors import StoreError
from boardcluster.fetch.cache import make_folder, write_atomically, writing
from boardcluster.store import from_json

__all__ = ["CLAIM_FILE", "SERVICE_USER", "Owner", "home_owner", "known_owner"]

CLAIM_FILE = "/etc/boardcluster-owner.json"
"""Says on a board whose it is. On its disk, because what it protects is there, too, and not in a
folder that provisioning has yet to make."""

SERVICE_USER = "boardcluster"
"""The system user that daemons and jobs run as on boards: no password, no shell, no sudo."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Who claimed a board."""

    id: str
    """Random; of one state folder. Empty if nobody knows."""
    who: str
    """User, host name and folder, for people."""
    since_utc: str
    """When the id was made; empty if nobody knows."""

    @property
    def words(self) -> str:
        """The same in words."""
        return f"{self.who} (since {self.since_utc})" if self.since_utc else self.who


def _path(home: Path) -> Path:
    return home / "owner.json"


def known_owner(home: Path) -> Owner | None:
    """Return who owns what a state folder claimed; None if it never claimed anything.

    Raises:
        StoreError: the file is damaged.
    """
    try:
        return from_json(Owner, json.loads(_path(home).read_text()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, StoreError) as error:
        raise StoreError(
            f"{_path(home)} cannot be read: {error}",
            hint=f"delete it; then `boardcluster up --home {home} --take-over` makes the boards "
            "yours again",
        ) from error


def home_owner(home: Path) -> Owner:
    """Return the owner of a state folder, made once; only with the driver lock held.

    Raises:
        StoreError: the file is damaged.
        HostError: it cannot be written.
    """
    if (known := known_owner(home)) is not None:
        return known
    user = os.environ.get("SUDO_USER", "")
    with contextlib.suppress(KeyError, OSError):  # a user without a name
        user = user or getpass.getuser()
    made = Owner(
        id=str(uuid.uuid4()),
        who=f"{user or os.getuid()}@{socket.gethostname()}:{home.resolve()}",
        since_utc=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    )
    make_folder(home)
    with writing(_path(home)):
        write_atomically(_path(home), json.dumps(asdict(made), indent=1))
    return made
