"""``boardcluster report``: one page that opens offline."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from boardcluster.cli.console import Reporter, print_json, say
from boardcluster.cli.options import ClusterOption, HomeOption, JsonOption, home_folder
from boardcluster.cli.runs import find_run
from boardcluster.errors import (
    ClusterError,
    EmptySelectionError,
    SpecError,
    StoreError,
    UsageError,
)
from boardcluster.records import ClusterSpec, PowerSamples, Result
from boardcluster.services.operation import read_spec
from boardcluster.store import Store

if TYPE_CHECKING:
    from boardcluster.cli.samples import Look
    from boardcluster.report.evidence import Evidence, Gatherer, Key
    from boardcluster.report.source import Source

__all__ = ["register", "write"]

_PAGES = 50
"""The report links to the pages of so many runs, the latest; each takes about 0.05 s."""
_PAGES_FOLDER = "runs"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="report", epilog="Example: boardcluster report -o ~/my-report")(_report)


def write(
    home: Path,
    folder: Path,
    *,
    campaign: str | None = None,
    tainted: bool = False,
    figures: bool = False,
    reporter: Reporter | None = None,
) -> tuple[Path, Path]:
    """Write the report of a home's results; return the HTML and the Markdown file.

    Args:
        home: state folder of the cluster.
        folder: where to write; made if there is none.
        campaign: only this campaign.
        tainted: whether tainted runs count.
        figures: whether figures are written as files for print, too.
        reporter: follows the work; None for silence.

    Raises:
        EmptySelectionError: there is no such campaign.
        StoreError: the store cannot be read, or the folder not be written.
    """
    # Half a second to load, which no other command needs.
    from boardcluster.report import write_source  # noqa: PLC0415
    from boardcluster.report.source import Source  # noqa: PLC0415

    cluster = _spec(home)
    follow = reporter.progress if reporter else None
    with Store.open(home, read_only=True) as store:
        campaigns = store.campaigns()
        if campaign is not None:
            campaigns = tuple(row for row in campaigns if row.id == campaign)
            if not campaigns:
                raise EmptySelectionError(
                    f"no campaign {campaign}", hint="see `boardcluster results` for their ids"
                )
        results = store.results(campaign, all_attempts=True)
        source = Source.of(results, campaigns, tainted=tainted)
        evidence, pages = _watch(store, source, folder, cluster, follow)
        probes = store.probe_runs()
    written = write_source(
        replace(source, pages=pages),
        cluster=cluster,
        folder=folder,
        evidence=evidence,
        probes=probes,
        figures=figures,
        follow=follow,
    )
    return written.html, written.markdown


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
    from boardcluster.cli.samples import look_at_runs  # noqa: PLC0415
    from boardcluster.report.evidence import Gatherer, key_of  # noqa: PLC0415

    gatherer = Gatherer(cluster.power_models if cluster else ())
    _show(store, source, gatherer)
    runs = [result for result in source.results if result.attempt is not None]
    runs.sort(key=lambda result: result.attempt.started_utc if result.attempt else "", reverse=True)
    looks = list(_looks(store, source, gatherer, runs, folder))
    pages: dict[Key, str] = {}
    for look, seen in zip(looks, look_at_runs(looks, follow), strict=True):
        if seen.damaged:
            gatherer.add_damaged(look.result, seen.damaged)
        elif look.condenses:
            gatherer.add(look.result, seen.condensed)
        if seen.page:
            pages[key_of(look.result)] = f"{_PAGES_FOLDER}/{seen.page}"
    return gatherer.evidence(), pages


def _looks(
    store: Store, source: Source, gatherer: Gatherer, runs: Iterable[Result], folder: Path
) -> Iterator[Look]:
    """What is to be looked at: measured runs, and those that get a page, the latest of them."""
    from boardcluster.cli.samples import Look  # noqa: PLC0415

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
        yield Look(
            result=result,
            artefacts=store.artefact_folder(result.attempt),
            condenses=condenses,
            page_folder=folder / _PAGES_FOLDER if has_page else None,
            campaign=source.campaigns.get(result.trial.campaign_id),
            report="../report.html",
        )


def _show(store: Store, source: Source, gatherer: Gatherer) -> None:
    """Gather the curves of one run for each workload and engine, the first that has samples."""
    from boardcluster.report.evidence import representatives  # noqa: PLC0415

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


def _write_one(home: Path, folder: Path, run: str) -> Path:
    """Write the page of one run."""
    from boardcluster.report.run_page import write_run_page  # noqa: PLC0415

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


def _spec(home: Path) -> ClusterSpec | None:
    """Return the cluster as it last ran; a report of old results must not need a valid file."""
    for name in ("running.toml", "cluster.toml"):
        try:
            return read_spec(home / name)
        except SpecError:
            continue
    return None


def _report(
    home: HomeOption = None,
    cluster: ClusterOption = "default",
    campaign: Annotated[str | None, typer.Option(help="Only this campaign, by its id.")] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder to write to. Default: report/ of the cluster."),
    ] = None,
    tainted: Annotated[
        bool, typer.Option("--tainted", help="Let tainted runs count, named as such.")
    ] = False,
    figures: Annotated[
        bool,
        typer.Option(
            "--figures", help="Also write each figure as SVG, PNG and PDF for print, to figures/."
        ),
    ] = False,
    run: Annotated[
        str | None,
        typer.Option(help="Only the page of this run: TRIAL/NUMBER, or TRIAL for its latest."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write the report: one HTML file that opens offline, and Markdown; and pages of latest runs.

    The page of a run shows what every node did: CPU, disk, network, clock, temperature, memory.
    """
    state = home_folder(home, cluster)
    if not state.is_dir():
        raise ClusterError(
            f"there is no cluster in {state}", hint="name it with --cluster or --home"
        )
    folder = output or state / "report"
    if run is not None:
        if campaign is not None or tainted or figures:
            raise UsageError(
                "--run writes the page of one run: --campaign, --tainted and --figures are of the"
                " report",
                hint="leave them out",
            )
        page = _write_one(state, folder, run)
        print_json({"page": str(page)}) if as_json else say(f"page: {page}")
        return
    reporter = Reporter()
    with reporter.following():
        html, markdown = write(
            state, folder, campaign=campaign, tainted=tainted, figures=figures, reporter=reporter
        )
    if as_json:
        print_json({"html": str(html), "markdown": str(markdown)})
    else:
        say(f"report: {html}")
        say(f"        {markdown}")
