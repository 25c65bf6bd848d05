"""Results without the runs of searches."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from boardcluster.records import Result
from boardcluster.tuning.record import read_records
from boardcluster.tuning.searches import search_campaigns

__all__ = ["without_searches"]


def without_searches(
    results: Sequence[Result], home: Path, *, asked: str | None
) -> tuple[Result, ...]:
    """Leave out the runs of searches, unless their campaign is the one that was asked for.

    Raises:
        StoreError: the record of a tuning is damaged.
    """
    searches = search_campaigns(read_records(home)) - {asked}
    return tuple(row for row in results if row.trial.campaign_id not in searches)
