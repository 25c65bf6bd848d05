"""``boardcluster run``: a workload, or a whole campaign, repeated, verified, stored."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from boardcluster.campaign.begin import CampaignRequest
from boardcluster.campaign.life import (
    CampaignOutcome,
    preview_campaign,
    refuse_problems,
    run_campaign,
)
from boardcluster.campaign.preflight import Preflight
from boardcluster.campaign.request import campaign_file, names_a_file, refuse_given, single_workload
from boardcluster.cli.asking import ask_yes
from boardcluster.cli.console import Reporter, print_json, say
from boardcluster.cli.options import (
    CacheOption,
    ChosenCluster,
    JsonOption,
    cache_folder,
    parse_size_option,
    require_cluster,
)
from boardcluster.cli.run_options import DesignOptions, FileOptions, WorkloadOptions
from boardcluster.cli.show_predict import print_campaign_prediction
from boardcluster.cli.show_preflight import print_precision, print_preflight
from boardcluster.cli.show_results import print_results
from boardcluster.cli.workload_options import parse_parameters
from boardcluster.errors import RunError
from boardcluster.records import Campaign
from boardcluster.services.settings import settings_of_submission
from boardcluster.workloads import workload_names

__all__ = ["EPILOG", "command"]


EPILOG = (
    "Examples: boardcluster run wordcount --size 1GB --engine spark --repetitions 5\n\n"
    "boardcluster run examples/quick.toml --dry-run\n\n"
    "boardcluster run examples/quick.toml --only workload=grep,pi --only engine=spark\n\n"
    "boardcluster run examples/quick.toml --continue\n\n"
    'boardcluster run terasort --size 1GB --starts 4 --until "3 %" --dry-run'
)


_NOT_FOR_FILES = "with a campaign file; set it in the file"
_ONLY_FOR_FILES = "with a workload, only with a campaign file"
_HELP = "see `boardcluster run --help`"
_Target = Annotated[
    str,
    typer.Argument(
        metavar="WORKLOAD|FILE", help=f"A campaign file, or one of: {', '.join(workload_names())}."
    ),
]


def command(
    target: _Target,
    workload: WorkloadOptions,
    file: FileOptions,
    how: DesignOptions,
    at: ChosenCluster,
    cache: CacheOption = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Show what would run and what it needs, without running it."
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before starting.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Run a workload, or a campaign of many, in seeded random order; verify and store each run.

    A workload runs on the cluster as it is up. A campaign FILE brings the cluster up in each
    variant it needs, and leaves it up or down as it found it. See docs/reference/campaign-toml.md.
    """
    folder, store_folder = at.folder(), cache_folder(cache)
    reporter = Reporter()
    only = tuple(file.only or ())
    if names_a_file(target):
        refuse_given(workload.given(), because=_NOT_FOR_FILES, hint=_HELP)
        request = campaign_file(
            Path(target),
            start=file.start,
            only=only,
            retry_failed=file.retry_failed,
            design=how.design(),
        )
    else:
        refuse_given(file.given(), because=_ONLY_FOR_FILES, hint=_HELP)
        request = single_workload(
            target,
            cache=store_folder,
            progress=reporter.progress,
            engines=tuple(workload.engine or ()),
            size_bytes=parse_size_option(workload.size),
            text=workload.input,
            parameters=parse_parameters(workload.set),
            settings=settings_of_submission(workload.setting or ()),
            repetitions=workload.repetitions or 3,
            design=how.design(),
            timeout_seconds=workload.timeout or 3600.0,
            only=only,
        )
    require_cluster(folder, options=at.again)
    if dry_run:
        _preview(folder, request, cache=store_folder, as_json=as_json)
        return
    confirm = request.is_file and not yes and sys.stdin.isatty() and sys.stderr.isatty()

    def show(preflight: Preflight) -> None:
        if not request.is_file:
            for note in preflight.notes:
                reporter.line(note)
            return
        print_preflight(preflight, reporter=reporter)
        if confirm and not preflight.problems and not ask_yes("Start?", default=True):
            raise typer.Exit(0)

    done = run_campaign(folder, request, cache=store_folder, follow=reporter, show=show)
    _show(done, request, as_json=as_json)


def _preview(folder: Path, request: CampaignRequest, *, cache: Path, as_json: bool) -> None:
    preview = preview_campaign(folder, request, cache=cache)
    work = preview.work
    if as_json:
        print_json(
            {
                "outlook": preview.preflight,
                "trials": work.chosen,
                "policy": request.spec.policy,
                "precision": preview.outlook,
                "precision_outlook": preview.all_preflight,
                "prediction": preview.prediction,
            }
        )
    elif work.campaign is not None and not work.chosen:
        say(_nothing_left(work.campaign, request))
    else:
        print_preflight(preview.preflight, reporter=None)
        print_campaign_prediction(preview.prediction)
        print_precision(preview)
    refuse_problems(preview.preflight)


def _nothing_left(campaign: Campaign, request: CampaignRequest) -> str:
    what = "nothing that --only selects" if request.only else "nothing"
    return f"{what} is left to run of campaign {campaign.id}"


def _show(done: CampaignOutcome, request: CampaignRequest, *, as_json: bool) -> None:
    if as_json:
        print_json({"campaign": done.campaign, "summary": done.summary, "results": done.results})
    else:
        print_results(done.results)
    if not done.chosen and not as_json:
        summary = done.summary
        counts = f"{summary.ok} of {summary.planned} runs are ok, {summary.failed} failed"
        say(f"{_nothing_left(done.campaign, request)}: {counts}")
    if bad := done.unverified:
        raise RunError(
            f"{len(bad)} of {len(done.chosen)} runs have no verified result",
            hint="see the reasons above and the artefacts under the cluster's attempts folder",
        )
