"""Gathers what the report of a cluster's results shows, and has it written."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from boardcluster.errors import EmptySelectionError, StoreError
from boardcluster.queries.runs import find_run
from boardcluster.queries.samples import RunRequest, digest_runs
from boardcluster.queries.watches import watch_standings
from boardcluster.records import ClusterSpec, PowerSamples, ProbeRun, Result
from boardcluster.report import Written, write_source
from boardcluster.report.evidence import (
    Evidence,
    Gatherer,
    Key,
    key_of,
    representatives,
    work_parameters_of,
)
from boardcluster.report.run_page import write_run_page
from boardcluster.report.source import Source
from boardcluster.store import Store
from boardcluster.tuning.record import read_records
from boardcluster.tuning.searches import search_campaigns
from boardcluster.tuning.summary import summarise_tuning

if TYPE_CHECKING:
    from boardcluster.plan.expected import ExpectedRun

__all__ = ["write_home_report", "write_one_page"]

_PAGES = 50
"""The report links to the pages of so many runs, the latest; each takes about 0.05 s."""
_PAGES_FOLDER = "runs"


def write_home_report(
    home: Path,
    folder: Path,
    *,
    cluster: ClusterSpec | None,
    campaign: str | None = None,
    tainted: bool = False,
    figures: bool = False,
    changes_work: Callable[[str], bool],
    follow: Callable[[str, int, int], None] | None = None,
) -> Written:
    """Write the report of a home's results.

    Args:
        home: state folder of the cluster.
        folder: where to write; made if there is none.
        cluster: the cluster as it last ran; None if nothing is known of it.
        campaign: only this campaign.
        tainted: whether tainted runs count.
        figures: whether figures are written as files for print, too.
        changes_work: whether another value of ``workload.parameter`` is other work.
        follow: told what is done, and how much; None for silence.

    Raises:
        EmptySelectionError: there is no such campaign.
        StoreError: the store cannot be read, or the folder not be written.
    """
    with Store.open(home, read_only=True) as store:
        campaigns = store.campaigns()
        if campaign is not None:
            campaigns = tuple(row for row in campaigns if row.id == campaign)
            if not campaigns:
                raise EmptySelectionError(
                    f"no campaign {campaign}", hint="see `boardcluster results` for their ids"
                )
        tunings = [row for row in read_records(home) if campaign in {None, row.request.id}]
        searches = search_campaigns(tunings) - {campaign}
        results = tuple(
            row
            for row in store.results(campaign, all_attempts=True)
            if row.trial.campaign_id not in searches
        )
        campaigns = tuple(row for row in campaigns if row.id not in searches)
        source = Source.of(results, campaigns, tainted=tainted)
        evidence, pages = _watch(store, source, folder, cluster, follow)
        probes = store.probe_runs()
        unusable: list[str] = []
        standings = watch_standings(store, unusable=unusable.append)
        watches = [row for row in standings if campaign in {None, *row.rounds}]
    return write_source(
        replace(source, pages=pages),
        cluster=cluster,
        folder=folder,
        evidence=replace(
            evidence,
            expected=_expected(source, cluster, probes),
            unusable_watches=tuple(unusable) if campaign is None else (),
            work_parameters=work_parameters_of(results, changes_work),
        ),
        probes=probes,
        tunings=[summarise_tuning(row) for row in tunings],
        watches=watches,
        figures=figures,
        follow=follow,
    )


def _expected(
    source: Source, cluster: ClusterSpec | None, probes: Sequence[ProbeRun]
) -> tuple[ExpectedRun, ...]:
    """Predict the cells of a report; one without any does not wait for the model to load."""
    if not source.cells:
        return ()
    from boardcluster.plan.expected import expected_runs  # noqa: PLC0415  loads numpy and scipy

    return expected_runs(source.cells, cluster, probes)


def _watch(
    store: Store,
    source: Source,
    folder: Path,
    cluster: ClusterSpec | None,
    follow: Callable[[str, int, int], None] | None,
) -> tuple[Evidence, dict[Key, str]]:
    """Go through the samples of every run once; keep none of them.

    Returns:
        What they gave, and where the pages of runs are, by trial and attempt.
    """
    gatherer = Gatherer(cluster.power_models if cluster else ())
    _show(store, source, gatherer)
    runs = [result for result in source.results if result.attempt is not None]
    runs.sort(key=lambda result: result.attempt.started_utc if result.attempt else "", reverse=True)
    requests = list(_looks(store, source, gatherer, runs, folder))
    pages: dict[Key, str] = {}
    for request, seen in zip(requests, digest_runs(requests, follow), strict=True):
        if seen.damaged:
            gatherer.add_damaged(request.result, seen.damaged)
        elif request.condenses:
            gatherer.add(request.result, seen.condensed)
        if seen.page:
            pages[key_of(request.result)] = f"{_PAGES_FOLDER}/{seen.page}"
    return gatherer.evidence(), pages


def _looks(
    store: Store, source: Source, gatherer: Gatherer, runs: Iterable[Result], folder: Path
) -> Iterator[RunRequest]:
    """What is to be looked at: measured runs, and those that get a page, the latest of them."""
    paged = 0
    for result in runs:
        if result.attempt is None:
            continue
        wants_page = paged < _PAGES or gatherer.shows(result)
        has_page = wants_page and store.has_samples(result.attempt)
        condenses = result.measurement is not None and not source.is_own_program(result)
        if not has_page and not condenses:
            continue
        paged += has_page
        yield RunRequest(
            result=result,
            artefacts=store.artefact_folder(result.attempt),
            condenses=condenses,
            page_folder=folder / _PAGES_FOLDER if has_page else None,
            campaign=source.campaigns.get(result.trial.campaign_id),
            report="../report.html",
        )


def _show(store: Store, source: Source, gatherer: Gatherer) -> None:
    """Gather the curves of one run for each workload and engine, the first that has samples."""
    for runs in representatives(source.cells):
        for result in runs:
            telemetry = None
            if result.attempt is not None:
                with contextlib.suppress(StoreError):  # said where all samples are read
                    telemetry = store.telemetry(result.attempt)
            if result.attempt is None or telemetry is None:
                continue
            power: tuple[PowerSamples, ...] = ()
            try:
                power = store.power_samples(result.attempt)
            except StoreError as error:
                gatherer.add_damaged(result, error.message)
            gatherer.add_curves(result, telemetry, power)
            break


def write_one_page(home: Path, folder: Path, run: str) -> Path:
    """Write the page of one run; return its file.

    Args:
        home: state folder of the cluster.
        folder: where to write; made if there is none.
        run: ``TRIAL/NUMBER``, or ``TRIAL`` for its latest attempt.

    Raises:
        EmptySelectionError: there is no such run.
        StoreError: the store cannot be read, or the folder not be written.
    """
    with Store.open(home, read_only=True) as store:
        result, attempt, telemetry = find_run(store, run)
        campaigns = {row.id: row for row in store.campaigns()}
    return write_run_page(
        result,
        attempt,
        telemetry,
        folder=folder,
        campaign=campaigns.get(result.trial.campaign_id),
    )
