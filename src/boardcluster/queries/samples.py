"""Go through the samples of every run once, for a report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from boardcluster.errors import StoreError
from boardcluster.records import Campaign, Result
from boardcluster.report.evidence import Condensed, condense
from boardcluster.report.parallel_map import parallel_map
from boardcluster.report.run_page import write_run_page
from boardcluster.store.samples import read_telemetry

__all__ = ["RunDigest", "RunRequest", "digest_runs"]

_MANY = 100
"""From so many runs on it pays to start processes, and to say how far it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """One run whose samples are to be read."""

    result: Result
    """The run; it has an attempt."""
    artefacts: Path
    """Folder of the attempt."""
    condenses: bool
    """Whether the report needs what is condensed from its samples."""
    page_folder: Path | None
    """Where its page goes; None for no page."""
    campaign: Campaign | None
    """Of the run, for its page."""
    report: str
    """Where the report is, relative to the page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDigest:
    """What the samples of a run gave."""

    condensed: Condensed | None = None
    """What is kept of them; None without samples, or where that was not asked for."""
    damaged: str = ""
    """Why they cannot be read; empty if they can, or there are none."""
    page: str = ""
    """File name of its page; empty without one."""


def digest_runs(
    requests: Sequence[RunRequest], follow: Callable[[str, int, int], None] | None
) -> list[RunDigest]:
    """Read the samples of runs, in their order; each run's are dropped before it returns.

    Args:
        requests: the runs.
        follow: told how many are done; None for silence.

    Raises:
        StoreError: a page cannot be written.
    """

    def tell(done: int, total: int) -> None:
        if follow is not None:
            follow("reading samples", done, total)

    return parallel_map(_digest_run, requests, many=_MANY, follow=tell)


def _digest_run(request: RunRequest) -> RunDigest:
    result, attempt = request.result, request.result.attempt
    try:
        telemetry = read_telemetry(request.artefacts)
    except StoreError as error:  # one damaged file must not cost the report
        return RunDigest(damaged=error.message)
    condensed = condense(result, telemetry) if request.condenses else None
    page = ""
    if telemetry is not None and request.page_folder is not None and attempt is not None:
        folder, campaign = request.page_folder, request.campaign
        page = write_run_page(
            result, attempt, telemetry, folder=folder, campaign=campaign, report=request.report
        ).name
    return RunDigest(condensed=condensed, page=page)
