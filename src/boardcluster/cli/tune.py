"""``boardcluster tune``: search settings that take less, and prove it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from boardcluster.campaign.begin import Start
from boardcluster.campaign.tune import preview_tuning, run_tuning
from boardcluster.campaign.tune_order import PAIRS_LEAST, TuneOrder
from boardcluster.cli.console import Reporter, print_json
from boardcluster.cli.options import (
    CacheOption,
    ChosenCluster,
    JsonOption,
    cache_folder,
    parse_size_option,
    require_cluster,
)
from boardcluster.cli.show_tune import print_tune_preview, print_tuning
from boardcluster.cli.workload_options import (
    InputOption,
    InputSizeOption,
    ParameterOption,
    chosen_start,
    parse_parameters,
)
from boardcluster.errors import UsageError
from boardcluster.records import Engine
from boardcluster.spec.campaign import SEED_MAX
from boardcluster.tuning.record import Objective
from boardcluster.units import parse_duration
from boardcluster.workloads import workload_names

__all__ = ["EPILOG", "TuneGoing", "TuneOptions", "command"]

EPILOG = (
    "Examples: boardcluster tune wordcount --engine spark --budget 1h --dry-run\n\n"
    "boardcluster tune terasort --engine mapreduce --size 1GB --budget 2h\n\n"
    "boardcluster tune app.py --budget 30min -- input.txt"
)


@dataclass(frozen=True, slots=True)
class TuneOptions:
    """What is tuned, and against what."""

    engine: Annotated[
        Engine | None,
        typer.Option(help="The engine: spark or mapreduce. Default: spark if the workload has it."),
    ] = None
    objective: Annotated[
        Objective, typer.Option(help="What to minimise; both means energy times time.")
    ] = Objective.TIME
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="How long it may take, proof included. Default: as it was begun, or 1h.",
        ),
    ] = None
    size: InputSizeOption = None
    input: InputOption = None
    set: ParameterOption = None
    main_class: Annotated[str, typer.Option("--class", help="Main class of a Spark jar.")] = ""
    base: Annotated[
        str,
        typer.Option(help="The profile to start from. Default: the cluster's."),
    ] = ""
    pairs: Annotated[
        int | None,
        typer.Option(
            min=PAIRS_LEAST,
            max=100,
            help=f"Minimum number of pairs in the proof. Default: {PAIRS_LEAST}.",
        ),
    ] = None
    seed: Annotated[
        int | None,
        typer.Option(min=0, max=SEED_MAX, help="Seed of all random choices. Default: a new one."),
    ] = None
    tainted: Annotated[
        bool, typer.Option("--tainted", help="Also count pairs that were too disturbed.")
    ] = False
    out: Annotated[
        Path | None,
        typer.Option("--out", help="The profile to write. Default: a file in the state folder."),
    ] = None


@dataclass(frozen=True, slots=True)
class TuneGoing:
    """How a tuning begins or goes on."""

    go_on: Annotated[
        bool,
        typer.Option("--continue", help="Start it, resume it, or show it if finished."),
    ] = False
    resume: Annotated[bool, typer.Option("--resume", help="Resume an unfinished tuning.")] = False
    new: Annotated[
        bool,
        typer.Option("--new", help="Start a new tuning although an earlier one is unfinished."),
    ] = False

    @property
    def start(self) -> Start:
        """How to begin.

        Raises:
            UsageError: the options contradict each other.
        """
        return chosen_start(go_on=self.go_on, resume=self.resume, new=self.new)


def command(
    target: Annotated[
        str,
        typer.Argument(
            metavar="WORKLOAD|FILE",
            help=f"Your own program (a jar or .py file), or one of: {', '.join(workload_names())}.",
        ),
    ],
    wanted: TuneOptions,
    going: TuneGoing,
    at: ChosenCluster,
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            help="After `--`: the program's arguments; {run} becomes a new name each time."
        ),
    ] = None,
    cache: CacheOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the search space and what fits into the budget.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Search for engine settings with which a workload or your program takes less, and prove it.

    Every run is verified and stored. The best is measured against the base in pairs; only if these
    show that it takes less is a profile written. See docs/how-to/tune.md.
    """
    order = TuneOrder(
        target=target,
        budget_seconds=None if wanted.budget is None else _budget(wanted.budget),
        engine=wanted.engine,
        objective=wanted.objective,
        size_bytes=parse_size_option(wanted.size),
        base=wanted.base,
        seed=wanted.seed,
        pairs=wanted.pairs,
        text=wanted.input,
        parameters=parse_parameters(wanted.set),
        arguments=tuple(arguments or ()),
        main=wanted.main_class,
        start=going.start,
        out=wanted.out,
        tainted=wanted.tainted,
    )
    folder, store_folder = at.folder(), cache_folder(cache)
    require_cluster(folder, options=at.again)
    reporter = Reporter()
    if dry_run:
        preview = preview_tuning(folder, order, cache=store_folder, follow=reporter)
        print_tune_preview(preview, as_json=as_json)
        return
    done = run_tuning(folder, order, cache=store_folder, follow=reporter, cwd=Path.cwd())
    if as_json:
        print_json({"request": done.request, "tuning": done.summary, "proof": done.proof})
    else:
        print_tuning(done.summary)


def _budget(text: str) -> float:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise UsageError(f"--budget: {error}", hint="for example --budget 1h") from error
