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
        typer.Option(help="Number of first rounds that set the limits, at least 5. Default: 10."),
    ] = None
    new: Annotated[
        bool,
        typer.Option(
            "--new",
            help="Start a new baseline with this round, or measure a bisection again.",
        ),
    ] = False
    show: Annotated[
        bool, typer.Option("--show", help="Show the charts without running a round.")
    ] = False
    notify: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="Run this command when a cell leaves its limits or none of its runs counts, "
            "without a shell, with one sentence as its last argument.",
        ),
    ] = None
    timer: Annotated[
        str | None,
        typer.Option(
            metavar="CALENDAR|off",
            help="Write a systemd user timer that runs this on a schedule, for example daily, "
            "without enabling it; off removes it. Nothing is measured now.",
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
            "`cluster` (as declared), or two engine pairs.",
        ),
    ] = None
    tainted: Annotated[
        bool,
        typer.Option(
            "--tainted", help="Also count disturbed runs; decided when a baseline begins."
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
            raise UsageError(f"{', '.join(idle)} cannot be used with {mode}", hint="leave it out")
