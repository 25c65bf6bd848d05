"""A store with rounds of a watch, whose times are made up."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.builders import NOON, make_campaign, make_measurement, make_trial, store_run

from boardcluster.records import Verdict
from boardcluster.store import Store
from boardcluster.store.watches import WatchRecord, write_watch

__all__ = ["BEGUN_UTC", "NAME", "store_rounds", "watch_record"]

NAME = "watch-night"
BEGUN_UTC = NOON.isoformat()
_FROM_THE_FILE = ("workload", "engine", "size_bytes")


def watch_record(**changes: Any) -> WatchRecord:
    """A watch whose file names a workload, its engine and a size, and no more."""
    plain: dict[str, Any] = {
        "name": NAME,
        "file": "/srv/night.toml",
        "spec_sha256": "ab" * 32,
        "baseline": 5,
        "begun_utc": BEGUN_UTC,
        "factors": _FROM_THE_FILE,
        "settings": (),
    }
    return WatchRecord(**(plain | changes))


def store_rounds(
    home: Path,
    seconds: Sequence[float | None],
    *,
    begin: int = 0,
    trial: dict[str, Any] | None = None,
    measured: dict[str, Any] | None = None,
    record: WatchRecord | None = None,
    **run: Any,
) -> None:
    """Store one round for each time, a day apart; None is a round whose run failed.

    Args:
        home: the state folder.
        seconds: the times.
        begin: how many days after the watch began the first one is.
        trial: fields of the trials.
        measured: fields of the measurements.
        record: the watch.
        run: as of ``builders.store_run``.
    """
    write_watch(home, record or watch_record())
    with Store.open(home) as store:
        for place, took in enumerate(seconds, start=begin):
            day = (NOON + datetime.timedelta(days=place)).isoformat()
            campaign = make_campaign(id=f"c{place:03}", name="watch-night", created_utc=day)
            one = make_trial(id=f"c{place:03}-t", campaign_id=campaign.id, **(trial or {}))
            store.add_campaign(campaign, [one])
            found = None
            if took is not None:
                fields = {"verdict": Verdict.VALID, "input_bytes": 1000, **(measured or {})}
                found = make_measurement(took, **fields)
            store_run(store, one, found, started_utc=day, **run)
