"""``boardcluster plan``: what to buy for a run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from boardcluster.campaign.purchase import (
    PurchaseRequest,
    plan_for_request,
    read_limits,
    read_planned_size,
    write_plan,
)
from boardcluster.cli.console import print_json, say
from boardcluster.cli.options import ChosenCluster, JsonOption
from boardcluster.cli.show_plan import plan_fields, print_plan
from boardcluster.plan.candidates import WORKERS_MOST
from boardcluster.plan.feasibility import HDFS_SHARES
from boardcluster.queries.plan_model import learn_for_plan
from boardcluster.records import Engine
from boardcluster.report.plots import FORMATS, save
from boardcluster.report.plots.plan_figures import plan_figures
from boardcluster.services.containers import copies_of_profile
from boardcluster.workloads import parameter_defaults

__all__ = ["EPILOG", "PlanLimitOptions", "PlanPartOptions", "command"]

EPILOG = (
    "Examples: boardcluster plan terasort --engine spark --size 100GB --deadline 1h\n\n"
    "boardcluster plan wordcount --size 1TB --budget 1500 --price medium=45 --price supply=12"
    " --price switch=60 --out plan\n\n"
    "boardcluster plan terasort --size 50GB --deadline 30min"
    " --have '4 x rpi-4b-4gb-1500mhz, samsung-ufs-256gb'"
)


@dataclass(frozen=True, slots=True)
class PlanLimitOptions:
    """What must be kept, with 90 % probability."""

    deadline: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Longest time of a run.")
    ] = None
    budget: Annotated[
        float | None, typer.Option(help="Highest price of what is bought, in US dollars.")
    ] = None
    watts: Annotated[
        float | None, typer.Option(help="Highest mean power of the workers during a run.")
    ] = None
    joules: Annotated[
        float | None, typer.Option(help="Highest energy of the workers in a run.")
    ] = None


@dataclass(frozen=True, slots=True)
class PlanPartOptions:
    """What can be bought, and what is there."""

    board: Annotated[
        list[str] | None,
        typer.Option(help="A board to try, or a .toml file of your own; repeat for several."),
    ] = None
    medium: Annotated[
        list[str] | None,
        typer.Option(help="A storage medium to try, likewise."),
    ] = None
    network: Annotated[list[str] | None, typer.Option(help="A switch to try, likewise.")] = None
    profile: Annotated[
        list[str] | None,
        typer.Option(help="An engine configuration to try; repeat for several. Default: default."),
    ] = None
    price: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=AMOUNT",
            help="Price of one piece, by its name or as board, medium, supply, switch, cooling or"
            " other; repeat for several.",
        ),
    ] = None
    have: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COUNT x BOARD, MEDIUM|FILE",
            help="Workers that you already have, with a master; repeat for several.",
        ),
    ] = None
    workers_most: Annotated[
        int, typer.Option(min=1, max=WORKERS_MOST, help="Most workers to buy.")
    ] = WORKERS_MOST
    replication: Annotated[
        int | None,
        typer.Option(min=1, max=10, help="Copies of each block. Default: the profile's."),
    ] = None


def command(
    workload: Annotated[str, typer.Argument(help=f"One of: {', '.join(HDFS_SHARES)}.")],
    limits: PlanLimitOptions,
    parts: PlanPartOptions,
    at: ChosenCluster,
    size: Annotated[
        str | None, typer.Option(help="Size of the input, with its unit; pi takes none.")
    ] = None,
    engine: Annotated[
        Engine | None, typer.Option(help="spark or mapreduce. Default: both are tried.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Write cluster.toml, twin.toml and a shopping list to this folder."),
    ] = None,
    chart: Annotated[
        Path | None,
        typer.Option(help="Write the Pareto front and the curves as figures to this folder."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Say what to buy for a run: boards, media, workers, a switch, and what it costs.

    Every cluster of the catalog's parts is predicted. Those that hold the data, have the memory and
    stay within your limits with 90 % probability are kept. See docs/how-to/decide-what-to-buy.md.
    """
    request = PurchaseRequest(
        workload=workload,
        size_bytes=read_planned_size(workload, size),
        engine=engine,
        limits=read_limits(
            deadline=limits.deadline,
            budget=limits.budget,
            watts=limits.watts,
            joules=limits.joules,
        ),
        boards=parts.board or (),
        media=parts.medium or (),
        networks=parts.network or (),
        profiles=parts.profile or (),
        prices=parts.price or (),
        there=parts.have or (),
        workers_most=parts.workers_most,
        replication=parts.replication,
    )
    home, defaults = at.folder(only_read=True), parameter_defaults(workload)
    plan = plan_for_request(
        request, partial(learn_for_plan, home, defaults=defaults, copies_of=copies_of_profile)
    )
    files, words = write_plan(plan, out) if out is not None else ((), ())
    figures = (
        [path for row in plan_figures(plan) for path in save(row, chart, FORMATS)] if chart else []
    )
    if as_json:
        print_json(plan_fields(plan) | {"files": [*files, *figures], "remarks_on_files": words})
        return
    print_plan(plan)
    for line in (*words, *(f"written: {path}" for path in (*files, *figures))):
        say(line)
