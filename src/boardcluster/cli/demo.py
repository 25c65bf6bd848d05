"""``boardcluster demo``: everything once, from nothing to a report, and nothing left running."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from boardcluster.campaign.begin import Design
from boardcluster.campaign.demo import run_demo
from boardcluster.campaign.request import single_workload
from boardcluster.cli.console import Reporter, print_json, say
from boardcluster.cli.options import (
    CacheOption,
    HomeOption,
    JsonOption,
    cache_folder,
    home_folder,
    parse_size_option,
)
from boardcluster.cli.show_results import print_results
from boardcluster.errors import RunError
from boardcluster.records import Engine
from boardcluster.services.pair import pair_ids
from boardcluster.spec.campaign import SEED_MAX

__all__ = ["EPILOG", "command"]


EPILOG = "Example: boardcluster demo --workers 2 --size 64MB"


def command(
    home: HomeOption = None,
    cache: CacheOption = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1, max=63, help="Number of workers. Default: 4, or as many as fit in memory."
        ),
    ] = None,
    size: Annotated[str, typer.Option(help="Input size.")] = "256MB",
    repetitions: Annotated[int, typer.Option(min=1, max=100, help="Runs per engine.")] = 3,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=SEED_MAX,
            help="Seed of the random order. Default: a new one each time, which is printed.",
        ),
    ] = None,
    engines: Annotated[
        str, typer.Option(help=f"Engine pair: {', '.join(pair_ids())}.")
    ] = pair_ids()[0],
    as_json: JsonOption = False,
) -> None:
    """Build a real cluster on this machine, count words of flight data, report and clean up.

    Results and report stay in the cluster "demo"; its nodes and their data are deleted.
    """
    from boardcluster.api import report  # noqa: PLC0415  slow to load

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
        design=Design(seed=seed),
    )
    done = run_demo(
        folder, request, cache=store_folder, follow=reporter, workers=workers, engines=engines
    )
    html = report(home=folder, campaign=done.campaign.id).html
    if as_json:
        print_json({"campaign": done.campaign, "results": done.results, "report": str(html)})
    else:
        print_results(done.results)
        say(f"done after {time.monotonic() - began:.0f} s; report: {html}")
    if done.unverified:
        raise RunError(
            f"{len(done.unverified)} of {len(done.results)} runs have no verified result",
            hint="see the reasons above, and the report",
        )
