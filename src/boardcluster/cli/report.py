"""``boardcluster report``: one page that opens offline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from boardcluster.cli.console import Reporter, print_json, say
from boardcluster.cli.options import ChosenCluster, JsonOption
from boardcluster.cluster.folders import require_home
from boardcluster.errors import UsageError

__all__ = ["EPILOG", "command"]


EPILOG = "Example: boardcluster report -o ~/my-report"


def command(
    at: ChosenCluster,
    campaign: Annotated[str | None, typer.Option(help="Only this campaign, by its id.")] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder to write to. Default: report/ of the cluster."),
    ] = None,
    tainted: Annotated[
        bool, typer.Option("--tainted", help="Include tainted runs, labelled as such.")
    ] = False,
    figures: Annotated[
        bool,
        typer.Option(
            "--figures", help="Also write each figure as SVG, PNG and PDF for print, to figures/."
        ),
    ] = False,
    run: Annotated[
        str | None,
        typer.Option(
            help="Write only the page of this run: TRIAL/NUMBER, or TRIAL for its latest."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Write the report as one HTML file that opens offline and as Markdown, and pages of runs.

    The page of a run shows what every node did: CPU, disk, network, clock, temperature, memory.
    """
    # Half a second to load, which no other command needs.
    from boardcluster.api import report  # noqa: PLC0415
    from boardcluster.queries.report import write_one_page  # noqa: PLC0415

    state = at.folder(only_read=True)
    require_home(state)
    folder = output or state / "report"
    if run is not None:
        if campaign is not None or tainted or figures:
            raise UsageError(
                "--run cannot be used with --campaign, --tainted or --figures: it writes the page "
                "of one run",
                hint="leave them out",
            )
        page = write_one_page(state, folder, run)
        print_json({"page": str(page)}) if as_json else say(f"page: {page}")
        return
    reporter = Reporter()
    with reporter.following():
        written = report(
            at.cluster,
            home=at.home,
            out=folder,
            campaign=campaign,
            tainted=tainted,
            figures=figures,
            follow=reporter.progress,
        )
    if as_json:
        print_json({"html": str(written.html), "markdown": str(written.markdown)})
    else:
        say(f"report: {written.html}")
        say(f"        {written.markdown}")
