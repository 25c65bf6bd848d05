"""``boardcluster report``: one page that opens offline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from boardcluster.cli.console import print_json, say
from boardcluster.cli.options import ClusterOption, HomeOption, JsonOption, home_folder
from boardcluster.errors import ClusterError, EmptySelectionError, SpecError
from boardcluster.records import ClusterSpec
from boardcluster.report import write_report
from boardcluster.services.operation import read_spec
from boardcluster.store import Store

__all__ = ["register", "write"]


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
    if campaign is not None:
        campaigns = tuple(row for row in campaigns if row.id == campaign)
        if not campaigns:
            raise EmptySelectionError(
                f"no campaign {campaign}", hint="see `boardcluster results` for their ids"
            )
    folder.mkdir(parents=True, exist_ok=True)
    return write_report(results, campaigns, cluster=_spec(home), folder=folder, tainted=tainted)


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
    as_json: JsonOption = False,
) -> None:
    """Write the report: one HTML file that opens offline, and Markdown."""
    state = home_folder(home, cluster)
    if not state.is_dir():
        raise ClusterError(
            f"there is no cluster in {state}", hint="name it with --cluster or --home"
        )
    html, markdown = write(state, output or state / "report", campaign=campaign, tainted=tainted)
    if as_json:
        print_json({"html": str(html), "markdown": str(markdown)})
    else:
        say(f"report: {html}")
        say(f"        {markdown}")
