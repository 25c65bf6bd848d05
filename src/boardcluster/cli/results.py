"""``boardcluster results``: what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from boardcluster.analysis.cells import summarise, untrusted
from boardcluster.cli.console import Reporter, print_json
from boardcluster.cli.options import ChosenCluster, JsonOption
from boardcluster.cli.show_results import print_results
from boardcluster.cli.watch import follow
from boardcluster.errors import EmptySelectionError, UsageError
from boardcluster.queries.searches import without_searches
from boardcluster.records import Campaign, Result
from boardcluster.store import Store

__all__ = ["EPILOG", "command", "document"]


EPILOG = "Example: boardcluster results --json | jq .results"


def command(
    at: ChosenCluster,
    campaign: Annotated[str | None, typer.Option(help="Only this campaign, by its id.")] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Show every attempt, not only the latest of each trial.")
    ] = False,
    from_files: Annotated[
        bool,
        typer.Option(
            "--rebuild", help="First rebuild a damaged store from the files of each attempt."
        ),
    ] = False,
    tainted: Annotated[
        bool, typer.Option("--tainted", help="Include tainted runs, labelled as such.")
    ] = False,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch", help="Follow the campaign that another process is running until it ends."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show stored results: each run with its verdict, and mean with 95 % intervals per engine."""
    folder = at.folder(only_read=True)
    if watch:
        named = {"--all": every, "--rebuild": from_files, "--tainted": tainted}
        if other := [name for name, given in named.items() if given]:
            raise UsageError(
                f"--watch cannot be used with {' or '.join(other)}: it shows progress, not numbers",
                hint="leave one of them out",
            )
        follow(folder, campaign, as_json=as_json)
        return
    if from_files:
        from boardcluster.campaign.upkeep import rebuild_results  # noqa: PLC0415  slow to load

        rebuild_results(folder, follow=Reporter())
    with Store.open(folder, read_only=True) as store:
        results = store.results(campaign, all_attempts=every)
        tries = results if every else store.results(campaign, all_attempts=True)
        campaigns = store.campaigns()
    if campaign is not None:
        campaigns = tuple(row for row in campaigns if row.id == campaign)
    if not results:
        raise EmptySelectionError(
            f"there are no results in {folder}",
            hint="run something first: `boardcluster run wordcount`",
        )
    counted = without_searches(tries, folder, asked=campaign)
    if as_json:
        print_json(document(campaigns, results, counted, tainted=tainted))
    else:
        print_results(results, counted, tainted=tainted)


def document(
    campaigns: Sequence[Campaign],
    results: Sequence[Result],
    counted: Sequence[Result] | None = None,
    *,
    tainted: bool,
) -> dict[str, Sequence[object]]:
    """What ``--json`` prints: every run, the cells, and the cells without a run that counts.

    Cells are of those that are ``counted``: every try of each trial, without searches of ``tune``.
    """
    counted = results if counted is None else counted
    return {
        "campaigns": campaigns,
        "results": results,
        "cells": summarise(counted, tainted=tainted),
        "untrusted": untrusted(counted, tainted=tainted),
    }
