"""Find the run that a name stands for."""

from __future__ import annotations

import difflib

from boardcluster.errors import EmptySelectionError, UsageError
from boardcluster.records import Attempt, Result, Telemetry
from boardcluster.store import Store

__all__ = ["find_attempt", "find_run", "nearest"]

_SHOWN = 3


def nearest(word: str, known: list[str]) -> str:
    """The known words that are most like this one, for a hint; empty if there are none."""
    found = difflib.get_close_matches(word, known, n=_SHOWN, cutoff=0.0)
    return ", ".join(found)


def find_run(
    store: Store, name: str | None, *, campaign_id: str | None = None
) -> tuple[Result, Attempt, Telemetry | None]:
    """Return the run of a name with its samples.

    Args:
        store: the store.
        name: ``TRIAL/NUMBER``, or ``TRIAL`` for its latest attempt; None for the latest attempt
            that has samples.
        campaign_id: the campaign of that latest one; None for any.

    Raises:
        EmptySelectionError: there is no such run, or campaign; the hint names the nearest.
        StoreError: its samples are damaged.
    """
    if name is None:
        for result, attempt in reversed(_begun(store, campaign_id)):
            telemetry = store.telemetry(attempt)
            if telemetry is not None:
                return result, attempt, telemetry
        of = f" of campaign {campaign_id}" if campaign_id is not None else ""
        raise EmptySelectionError(
            f"no run{of} has samples yet", hint="run something first: `boardcluster run wordcount`"
        )
    result, attempt = find_attempt(store, name)
    return result, attempt, store.telemetry(attempt)


def find_attempt(store: Store, name: str) -> tuple[Result, Attempt]:
    """Return the run of a name; its samples are not read.

    Args:
        store: the store.
        name: ``TRIAL/NUMBER``, or ``TRIAL`` for its latest attempt.

    Raises:
        EmptySelectionError: there is no such run; the hint names the nearest.
        UsageError: the name is none.
    """
    runs = _begun(store)
    trial, slash, number = name.partition("/")
    if slash and not (number.isascii() and number.isdecimal()):
        raise UsageError(f"{name!r} is not TRIAL/NUMBER", hint="name it in the form trial-1/1")
    chosen = [
        (result, attempt)
        for result, attempt in runs
        if attempt.trial_id == trial and (not slash or attempt.number == int(number))
    ]
    if not chosen:
        known = [attempt.name for _, attempt in runs]
        words = nearest(name if slash else f"{name}/1", known)
        raise EmptySelectionError(
            f"no run {name}",
            hint=f"name one of: {words}" if words else "run something first",
        )
    return chosen[-1]


def _begun(store: Store, campaign_id: str | None = None) -> list[tuple[Result, Attempt]]:
    """Every attempt with its result, oldest first."""
    pairs = [
        (result, result.attempt)
        for result in store.results(campaign_id, all_attempts=True)
        if result.attempt is not None
    ]
    return sorted(pairs, key=lambda row: (row[1].started_utc, row[0].trial.position, row[1].number))
