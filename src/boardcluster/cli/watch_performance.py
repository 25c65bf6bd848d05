"""``boardcluster watch-performance``: the same small campaign by a timer, and what changed."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from boardcluster.api import Cluster, WatchRound
from boardcluster.cli.console import Reporter, say, say_last
from boardcluster.cli.options import (
    CacheOption,
    ChosenCluster,
    JsonOption,
    cache_folder,
    require_cluster,
)
from boardcluster.cli.show_watch import (
    print_bisect_plan,
    print_bisection,
    print_round_plan,
    print_standing,
    print_timer,
)
from boardcluster.errors import OutOfLimitsError, RunError, UsageError

__all__ = ["EPILOG", "command"]

EPILOG = (
    "Examples: boardcluster watch-performance watch.toml\n\n"
    "boardcluster watch-performance watch.toml --timer 'Mon..Sun 03:00' --notify notify-send\n\n"
    "boardcluster watch-performance watch.toml --show\n\n"
    "boardcluster watch-performance watch.toml --bisect cluster tuned.toml --dry-run"
)

_NO_TIMER = "off"


@dataclass(frozen=True, slots=True)
class _RoundOptions:
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
class _BisectOptions:
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


def command(
    file: Annotated[Path, typer.Argument(help="A small campaign file.")],
    watch: _RoundOptions,
    parts: _BisectOptions,
    at: ChosenCluster,
    cache: CacheOption = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Show what would run and what it needs, without running it."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Run a small campaign once more, and say which cells take more or less than they did.

    The first rounds make the limits of each cell. Every further call is one more round; one that
    was interrupted goes on first. Ends with 12 while a cell is out of its limits. See
    docs/how-to/keep-watch-on-performance.md.
    """
    _refuse_mixed(watch, parts, dry_run=dry_run)
    folder = at.folder(only_read=watch.show)
    reporter = Reporter()
    cluster = Cluster(folder, cache_folder(cache), follow=reporter, options=at.again)
    if watch.timer is not None:
        print_timer(
            cluster.remove_watch_timer(file)
            if watch.timer == _NO_TIMER
            else cluster.write_watch_timer(file, watch.timer, notify=watch.notify or ""),
            as_json=as_json,
        )
        return
    if watch.show:
        print_standing(cluster.watch_standing(file), as_json=as_json)
        return
    require_cluster(folder, options=at.again)
    if parts.bisect is not None:
        _bisect(cluster, file, parts, new=watch.new, dry_run=dry_run, as_json=as_json)
        return
    if dry_run:
        print_round_plan(
            cluster.preview_round(
                file, baseline=watch.baseline, new=watch.new, tainted=parts.tainted
            ),
            as_json=as_json,
        )
        return
    done = cluster.watch_performance(
        file,
        baseline=watch.baseline,
        new=watch.new,
        tainted=parts.tainted,
        notify=watch.notify or "",
    )
    print_standing(done.standing, as_json=as_json)
    _end(done)


def _refuse_mixed(watch: _RoundOptions, parts: _BisectOptions, *, dry_run: bool) -> None:
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
    allowed = {"--bisect": ("--new", "--dry-run"), "--timer": ("--notify",), "--show": ()}
    for mode in given:
        idle = [name for name, is_given in no_round.items() if is_given]
        idle = [name for name in idle if name not in allowed[mode]]
        if idle:
            raise UsageError(f"{mode} has no use for {', '.join(idle)}", hint="leave it out")


def _bisect(
    cluster: Cluster,
    file: Path,
    parts: _BisectOptions,
    *,
    new: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    if parts.bisect is None:
        raise ValueError("nothing is to be bisected")
    first, second = parts.bisect
    only = parts.only or ()
    if dry_run:
        print_bisect_plan(cluster.preview_bisect(file, first, second, only=only), as_json=as_json)
        return
    done = cluster.bisect(file, first, second, only=only, tainted=parts.tainted, new=new)
    print_bisection(done, as_json=as_json)


def _end(done: WatchRound) -> None:
    """End with what the round came to.

    Raises:
        OutOfLimitsError: a cell is out of its limits.
        RunError: a run has no verified result.
    """
    if done.notify_failure:
        say_last(f"--notify: {done.notify_failure}")
    if done.standing.out:
        raise OutOfLimitsError(
            done.standing.notice,
            hint="undo what changed, or accept it with --new, which begins another baseline",
        )
    if bad := done.outcome.unverified:
        raise RunError(
            f"{len(bad)} of {len(done.outcome.chosen)} runs have no verified result",
            hint="see the reasons with `boardcluster results`",
        )
    if not sys.stdout.isatty():
        return
    say("the charts are also in `boardcluster report`")
