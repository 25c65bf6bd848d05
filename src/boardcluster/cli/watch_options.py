"""The options of ``watch-performance``: those of rounds and of bisections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from boardcluster.errors import UsageError

__all__ = ["BisectOptions", "RoundOptions", "refuse_mixed"]


@dataclass(frozen=True, slots=True)
class RoundOptions:
    """How a round is run and judged."""

    baseline: Annotated[
        int | None,
        typer.Option(help="First rounds that make the limits, at least 5. Default: 10."),
    ] = None
    new: Annotated[
        bool,
        typer.Option(
            "--new",
            help="Begin another baseline with this round, or measure a bisection again.",
        ),
    ] = False
    show: Annotated[
        bool, typer.Option("--show", help="Show the charts as they are, without a round.")
    ] = False
    notify: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="Run this, without a shell, with one sentence as its last argument when a cell "
            "leaves its limits.",
        ),
    ] = None
    timer: Annotated[
        str | None,
        typer.Option(
            metavar="CALENDAR|off",
            help="Write a systemd timer of yours that runs this by the calendar, for example "
            "daily, without enabling it; off removes it. Nothing is measured now.",
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class BisectOptions:
    """What is compared."""

    bisect: Annotated[
        tuple[str, str] | None,
        typer.Option(
            metavar="A B",
            help="Find what makes the difference between two profiles, KEY=VALUE[,KEY=VALUE], "
            "`cluster` as it is declared, or two engine pairs.",
        ),
    ] = None
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="With --bisect: only cells with KEY=VALUE[,VALUE]; repeat to narrow further."
        ),
    ] = None
    tainted: Annotated[
        bool,
        typer.Option(
            "--tainted", help="Count disturbed runs, too; a baseline is begun with or without."
        ),
    ] = False


def refuse_mixed(watch: RoundOptions, parts: BisectOptions, *, dry_run: bool) -> None:
    """Refuse options that have no effect together.

    Raises:
        UsageError: names them.
    """
    modes = {"--bisect": parts.bisect, "--timer": watch.timer, "--show": watch.show or None}
    given = [name for name, value in modes.items() if value is not None]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} contradict each other", hint="give one of them")
    if parts.bisect is None and parts.only:
        raise UsageError("--only is for --bisect", hint="leave it out, or add --bisect A B")
    no_round = {"--baseline": watch.baseline is not None, "--dry-run": dry_run}
    no_round |= {"--notify": watch.notify is not None, "--new": watch.new}
    no_round |= {"--tainted": parts.tainted}
    allowed = {
        "--bisect": ("--new", "--dry-run", "--tainted"),
        "--timer": ("--notify",),
        "--show": (),
    }
    for mode in given:
        idle = [name for name, is_given in no_round.items() if is_given]
        idle = [name for name in idle if name not in allowed[mode]]
        if idle:
            raise UsageError(f"{mode} has no use for {', '.join(idle)}", hint="leave it out")
