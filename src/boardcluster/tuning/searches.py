"""Which stored runs belong to a search of ``tune``, and so to no cell.

A search chooses what promised much, so its runs would bias every mean and fill every table; the
pairs of its proof are in campaigns of their own and count.
"""

from __future__ import annotations

from collections.abc import Iterable

from boardcluster.tuning.record import TuningRecord

__all__ = ["search_campaigns"]


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
