"""``boardcluster watch-performance``: the same small campaign by a timer, and what changed."""

from __future__ import annotations

import sys
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
from boardcluster.cli.watch_options import BisectOptions, RoundOptions, refuse_mixed
from boardcluster.errors import OutOfLimitsError, RunError

__all__ = ["EPILOG", "command"]

EPILOG = (
    "Examples: boardcluster watch-performance watch.toml\n\n"
    "boardcluster watch-performance watch.toml --timer 'Mon..Sun 03:00' --notify notify-send\n\n"
    "boardcluster watch-performance watch.toml --show\n\n"
    "boardcluster watch-performance watch.toml --bisect cluster tuned.toml --dry-run"
)

_NO_TIMER = "off"


def command(
    file: Annotated[Path, typer.Argument(help="A small campaign file.")],
    watch: RoundOptions,
    parts: BisectOptions,
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
    """Run a small campaign once more, and say which cells now take more or less time.

    The first rounds set the limits of each cell. Every further call is one more round; one that
    was interrupted is finished first. Exit code 12 while a cell is out of its limits. See
    docs/how-to/keep-watch-on-performance.md.
    """
    refuse_mixed(watch, parts, dry_run=dry_run)
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


def _bisect(
    cluster: Cluster,
    file: Path,
    parts: BisectOptions,
    *,
    new: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    if parts.bisect is None:
        raise ValueError("there is nothing to bisect")
    first, second = parts.bisect
    if dry_run:
        print_bisect_plan(cluster.preview_bisect(file, first, second), as_json=as_json)
        return
    done = cluster.bisect(file, first, second, tainted=parts.tainted, new=new)
    print_bisection(done, as_json=as_json)


def _end(done: WatchRound) -> None:
    """End with what the round came to.

    Raises:
        OutOfLimitsError: a cell is out of its limits.
        RunError: a run has no verified result, or no run of a cell counts.
    """
    if done.notify_failure:
        say_last(f"--notify: {done.notify_failure}")
    if done.standing.out:
        raise OutOfLimitsError(
            done.standing.notice,
            hint="undo what changed, or accept it with --new, which starts a new baseline",
        )
    if bad := done.outcome.unverified:
        raise RunError(
            f"{len(bad)} of {len(done.outcome.chosen)} runs have no verified result",
            hint="see the reasons with `boardcluster results`",
        )
    if silent := done.standing.silent:
        raise RunError(
            "; ".join(row.words for row in silent),
            hint="remove what disturbs it, or start a new baseline with --new --tainted",
        )
    if not sys.stdout.isatty():
        return
    say("the charts are also in `boardcluster report`")
