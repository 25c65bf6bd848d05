"""``boardcluster demo``: everything once, from nothing to a report, and nothing left running."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from boardcluster.campaign.begin import CampaignRequest
from boardcluster.campaign.life import CampaignOutcome, run_campaign
from boardcluster.campaign.single import single_workload
from boardcluster.campaign.upkeep import start_cluster
from boardcluster.cli.console import Reporter, print_json, say
from boardcluster.cli.init import propose, write_spec
from boardcluster.cli.options import (
    CacheOption,
    HomeOption,
    JsonOption,
    cache_folder,
    home_folder,
    parse_size_option,
)
from boardcluster.cli.show_results import print_results
from boardcluster.cluster.lock import driver_lock
from boardcluster.errors import RunError
from boardcluster.records import Engine
from boardcluster.services import operation
from boardcluster.services.pair import pair_ids
from boardcluster.spec import DEFAULT_SUBNET, workers_that_fit

__all__ = ["register"]

_WORKERS = 4


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="demo", epilog="Example: boardcluster demo --workers 2 --size 64MB")(_demo)


def _demo(
    home: HomeOption = None,
    cache: CacheOption = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1, max=63, help="Workers beside the master. Default: 4, or as many as memory holds."
        ),
    ] = None,
    size: Annotated[str, typer.Option(help="Input size.")] = "256MB",
    repetitions: Annotated[int, typer.Option(min=1, max=100, help="Runs per engine.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random order.")] = 1,
    engines: Annotated[
        str, typer.Option(help=f"Engine pair: {', '.join(pair_ids())}.")
    ] = pair_ids()[0],
    as_json: JsonOption = False,
) -> None:
    """Build a real cluster on this machine, count real flights on both engines, report, clean up.

    Results and report are kept in the cluster "demo"; its nodes and their data are deleted.
    """
    began = time.monotonic()
    folder, store_folder = home_folder(home, "demo"), cache_folder(cache)
    reporter = Reporter()
    request = single_workload(
        "wordcount",
        cache=store_folder,
        progress=reporter.progress,
        engines=(Engine.MAPREDUCE, Engine.SPARK),
        size_bytes=parse_size_option(size),
        repetitions=repetitions,
        seed=seed,
    )
    with driver_lock(folder, doing="demo"), reporter.following():
        operation.down(folder)
        count = workers or _default_workers(reporter)
        spec = propose(
            name="demo", workers=count, profile="default", engines=engines, subnet=DEFAULT_SUBNET
        )
        write_spec(spec, folder / "cluster.toml")
        done, html = _build_and_run(folder, store_folder, request, reporter)
        reporter.line("the cluster is down and its nodes are deleted")
    if as_json:
        print_json({"campaign": done.campaign, "results": done.results, "report": str(html)})
    else:
        print_results(done.results)
        say(f"done after {time.monotonic() - began:.0f} s; report: {html}")
    if done.unverified:
        raise RunError(
            f"{len(done.unverified)} of {len(done.results)} runs have no verified result"
        )


def _build_and_run(
    folder: Path, cache: Path, request: CampaignRequest, reporter: Reporter
) -> tuple[CampaignOutcome, Path]:
    """Bring the cluster up, run, report; whatever happens, nothing of the cluster is left."""
    from boardcluster.queries.report import write_home_report  # noqa: PLC0415  slow to load

    try:
        live = start_cluster(folder, cache=cache, follow=reporter)
        reporter.line(f"up: 1 master and {len(live.spec.workers)} workers are healthy")
        done = run_campaign(folder, request, cache=cache, follow=reporter, locked=True)
        reporter.line(f"input: {done.campaign.dataset}, {done.campaign.dataset_source}")
        written = write_home_report(
            folder, folder / "report", cluster=live.spec, campaign=done.campaign.id
        )
    finally:
        operation.down(folder)
        operation.wipe(folder)
    return done, written.html


def _default_workers(reporter: Reporter) -> int:
    """Return 4, or fewer where memory does not hold 4; at least 1, which then is refused."""
    fitting = workers_that_fit(operation.available_memory_bytes())
    if fitting < _WORKERS:
        reporter.line(f"workers that this machine's memory holds: {fitting}, not {_WORKERS}")
    return max(1, min(_WORKERS, fitting))
