"""The record of what was changed on a node, written before each change."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from typing import Any, NoReturn

from boardcluster.services.provision.node.system import NEW, FailedError, Node, write
from boardcluster.waiting import wait_until

__all__ = ["FOLDER", "Manifest", "lock", "one_at_a_time"]

FOLDER = "/etc/boardcluster"
FORMAT = 1
LOCK_SECONDS_MOST = 600.0


class Manifest:
    """The record of everything that was touched, oldest first."""

    def __init__(self, node: Node) -> None:
        self.path = node.at(FOLDER) + "/manifest.json"
        self.entries: list[dict[str, Any]] = self._read() if os.path.lexists(self.path) else []

    def _damaged(self, why: str) -> NoReturn:
        raise FailedError(
            f"the record of what was installed, {self.path}, is damaged: {why}; nothing was "
            "changed",
            hint="restore the file from a backup; or delete it; `boardcluster "
            "uninstall` can then no longer restore what was there before",
        )

    def _read(self) -> list[dict[str, Any]]:
        try:
            with open(self.path, "rb") as stream:
                raw = json.load(stream)
            entries, digest, form = raw["entries"], raw["sha256"], raw["format"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            self._damaged(f"{type(error).__name__}: {error}")
        if form != FORMAT:
            self._damaged(f"its format is {form!r}, and this version reads {FORMAT}")
        if digest != self._digest(entries):
            self._damaged("its content does not match the digest in it")
        return list(entries)

    @staticmethod
    def _digest(entries: list[dict[str, Any]]) -> str:
        return hashlib.sha256(json.dumps(entries, sort_keys=True).encode()).hexdigest()

    def save(self) -> None:
        """Write it down, to survive a power cut."""
        body = {"format": FORMAT, "sha256": self._digest(self.entries), "entries": self.entries}
        write(self.path, json.dumps(body, indent=1).encode() + b"\n", mode=0o644)

    def entry(self, key: str) -> dict[str, Any] | None:
        """Return the entry of a resource, if it was ever touched."""
        return next((entry for entry in self.entries if entry["key"] == key), None)

    def remove(self) -> None:
        """Delete the record once nothing is left in it."""
        for path in (self.path, self.path + NEW):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)


@contextlib.contextmanager
def one_at_a_time(node: Node) -> Iterator[None]:
    """Wait for another run on this node, such as one whose connection broke."""
    folder = node.at(FOLDER)
    descriptor = wait_until(
        lambda: lock(folder),
        ready=lambda held: held is not None,
        timeout_seconds=LOCK_SECONDS_MOST,
        poll_seconds=0.2,
    )
    if descriptor is None:
        raise FailedError("another run is still changing this node", hint="wait, then try again")
    with contextlib.ExitStack() as stack:
        stack.callback(os.close, descriptor)
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                os.rmdir(folder)  # empty if there is nothing to record


def lock(folder: str) -> int | None:
    """Lock a folder; return what holds the lock, or None if somebody else has it."""
    os.makedirs(folder, mode=0o755, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # An uninstall that held it may have removed the folder meanwhile.
        held = os.path.samestat(os.fstat(descriptor), os.stat(folder))
    except (BlockingIOError, FileNotFoundError):
        held = False
    if not held:
        os.close(descriptor)
    return descriptor if held else None
