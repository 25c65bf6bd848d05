"""``boardcluster report``: one page that opens offline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from boardcluster.cli.console import print_json, say
from boardcluster.cli.options import ClusterOption, HomeOption, JsonOption, home_folder
from boardcluster.cli.runs import find_run, runs_with_samples
from boardcluster.errors import ClusterError, EmptySelectionError, SpecError, UsageError
from boardcluster.records import ClusterSpec
from boardcluster.report import write_report
from boardcluster.services.operation import read_spec
from boardcluster.store import Store

__all__ = ["register", "write"]

_PAGES = 50
"""The report links to the pages of so many runs, the latest; each takes about 0.05 s."""
_PAGES_FOLDER = "runs"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="report", epilog="Example: boardcluster report -o ~/my-report")(_report)


def write(
    home: Path, folder: Path, *, campaign: str | None = None, tainted: bool = False
) -> tuple[Path, Path]:
    """Write the report of a home's results; return the HTML and the Markdown file.

    Args:
        home: state folder of the cluster.
        folder: where to write; made if there is none.
        campaign: only this campaign.
        tainted: whether tainted runs count.

    Raises:
        EmptySelectionError: there is no such campaign.
    """
    with Store.open(home, read_only=True) as store:
        results = store.results(campaign, all_attempts=True)
        campaigns = store.campaigns()
        pages = _write_pages(store, folder, campaign)
    if campaign is not None:
        campaigns = tuple(row for row in campaigns if row.id == campaign)
        if not campaigns:
            raise EmptySelectionError(
                f"no campaign {campaign}", hint="see `boardcluster results` for their ids"
            )
    return write_report(
        results, campaigns, cluster=_spec(home), folder=folder, tainted=tainted, pages=pages
    )


def _write_pages(store: Store, folder: Path, campaign: str | None) -> dict[tuple[str, int], str]:
    """Write the pages of the latest runs; return where they are, by trial and attempt."""
    from boardcluster.report.run_page import write_run_page  # noqa: PLC0415  loads numpy

    campaigns = {row.id: row for row in store.campaigns()}
    pages = {}
    for result, attempt, telemetry in runs_with_samples(store, campaign=campaign, most=_PAGES):
        page = write_run_page(
            result,
            attempt,
            telemetry,
            folder=folder / _PAGES_FOLDER,
            campaign=campaigns.get(result.trial.campaign_id),
            report="../report.html",
        )
        pages[attempt.trial_id, attempt.number] = f"{_PAGES_FOLDER}/{page.name}"
    return pages


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
    run: Annotated[
        str | None,
        typer.Option(help="Only the page of this run: TRIAL/NUMBER, or TRIAL for its latest."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write the report: one HTML file that opens offline, and Markdown; and a page for each run.

    The page of a run shows what every node did: CPU, disk, network, clock, temperature, memory.
    """
    state = home_folder(home, cluster)
    if not state.is_dir():
        raise ClusterError(
            f"there is no cluster in {state}", hint="name it with --cluster or --home"
        )
    folder = output or state / "report"
    if run is not None:
        if campaign is not None or tainted:
            raise UsageError(
                "--run writes the page of one run: --campaign and --tainted are of the report",
                hint="leave them out",
            )
        page = _write_one(state, folder, run)
        print_json({"page": str(page)}) if as_json else say(f"page: {page}")
        return
    html, markdown = write(state, folder, campaign=campaign, tainted=tainted)
    if as_json:
        print_json({"html": str(html), "markdown": str(markdown)})
    else:
        say(f"report: {html}")
        say(f"        {markdown}")
