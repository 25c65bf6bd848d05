"""Follow a campaign that another process is running: ``boardcluster results --watch``.

Everything is read from the store and from the kernel's list of locks; nothing is written, locked or
asked of the cluster, so that watching disturbs no run.
"""

from __future__ import annotations

import contextlib
import datetime
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from rich.live import Live

from boardcluster.cli.console import make_console, plain, say
from boardcluster.cli.show_progress import progress_picture, progress_title, progress_words
from boardcluster.cluster.lock import driver_at_work
from boardcluster.errors import EmptySelectionError
from boardcluster.foreign import json_text
from boardcluster.queries.progress import (
    Progress,
    driver_of_trials,
    progress_document,
    progress_of,
)
from boardcluster.store.files import DATABASE_NAME

__all__ = ["follow"]

_REFRESH_SECONDS = 1.0


class _Screen:
    """Shows progress: in place on a terminal, else a line for each change."""

    def __init__(self, live: Live | None, *, as_json: bool) -> None:
        self._live = live
        self._as_json = as_json
        self._shown: object = None

    def show(self, progress: Progress, driver: str, now_utc: datetime.datetime) -> None:
        if self._live is not None:
            self._live.update(progress_picture(progress, driver, now_utc), refresh=True)
            return
        running, last = progress.running, progress.last
        changing = (
            progress.campaign.id,
            bool(driver),
            progress.done,
            running and (running[1].trial_id, running[1].number),
            last and last.attempt and (last.attempt.trial_id, last.attempt.number),
        )
        if changing == self._shown:
            return
        if self._as_json:
            words = json_text(progress_document(progress, driver, now_utc))
            sys.stdout.write(words + "\n")
            sys.stdout.flush()
        else:
            if not isinstance(self._shown, tuple) or self._shown[0] != progress.campaign.id:
                say(progress_title(progress))
            say("; ".join(progress_words(progress, driver, now_utc)))
        self._shown = changing

    def wait_for_campaign(self, driver: str) -> None:
        words = f"`boardcluster {driver}` is running; it has not planned a campaign yet"
        if self._live is not None:
            self._live.update(plain(words), refresh=True)
        elif not self._as_json and self._shown is None:
            say(words)
            self._shown = words


@contextlib.contextmanager
def _screen(*, as_json: bool) -> Iterator[_Screen]:
    if as_json or not sys.stdout.isatty():
        yield _Screen(None, as_json=as_json)
        return
    with Live(console=make_console(), auto_refresh=False) as live:
        yield _Screen(live, as_json=False)


def follow(
    home: Path,
    campaign_id: str | None,
    *,
    as_json: bool,
    pause: Callable[[float], object] = time.sleep,
) -> None:
    """Show the progress of a campaign until the command that runs it has ended.

    Args:
        home: the cluster's state folder.
        campaign_id: the campaign; None for the newest, also one that is planned meanwhile.
        as_json: print a JSON document in a line for each change.
        pause: waits so many seconds before the next update.

    Raises:
        EmptySelectionError: there is no such campaign; or none at all, and nothing runs.
        StoreError: the store cannot be read.
    """
    seen: object = None
    progress: Progress | None = None
    with _screen(as_json=as_json) as screen:
        while True:
            # First: what it wrote before it ended is read then.
            driver = driver_of_trials(driver_at_work(home))
            stamp = _stamp(home)
            if progress is None or stamp != seen:
                progress, seen = progress_of(home, campaign_id), stamp
            if progress is not None:
                screen.show(progress, driver, datetime.datetime.now(datetime.UTC))
            elif driver:
                screen.wait_for_campaign(driver)
            else:
                raise EmptySelectionError(
                    f"there are no results in {home}, and nothing is running",
                    hint="run something first: `boardcluster run wordcount`",
                )
            if not driver or (progress and not progress.newest and not _open(progress)):
                return
            pause(_REFRESH_SECONDS)


def _open(progress: Progress) -> bool:
    return progress.done < len(progress.results)


def _stamp(home: Path) -> tuple[tuple[int, int], ...]:
    """What changes with every write: times and sizes of the store's files."""
    found = []
    for name in (DATABASE_NAME, f"{DATABASE_NAME}-wal"):
        with contextlib.suppress(OSError):
            seen = (home / name).stat()
            found.append((seen.st_mtime_ns, seen.st_size))
    return tuple(found)
