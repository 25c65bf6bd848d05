"""Which stored runs belong to a search of ``tune``, and so to no cell.

A search chooses what promised much, so its runs would bias every mean and fill every table; the
pairs of its proof are in campaigns of their own and count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from boardcluster.records import Result
from boardcluster.tuning.record import TuningRecord, read_records

__all__ = ["search_campaigns", "without_searches"]


def search_campaigns(tunings: Iterable[TuningRecord]) -> set[str]:
    """Return the campaigns of searches; a program's runs are a campaign each."""
    found = set()
    for record in tunings:
        found.add(record.request.id)
        found |= {
            row.run.partition("/")[0].rpartition("-submit-")[0]
            for row in record.runs
            if "-submit-" in row.run
        }
    return found


def without_searches(
    results: Sequence[Result], home: Path, *, asked: str | None
) -> tuple[Result, ...]:
    """Leave out the runs of searches, unless their campaign is the one that was asked for.

    Raises:
        StoreError: the record of a tuning is damaged.
    """
    searches = search_campaigns(read_records(home)) - {asked}
    return tuple(row for row in results if row.trial.campaign_id not in searches)
