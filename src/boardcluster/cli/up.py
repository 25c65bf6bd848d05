"""``boardcluster up``: bring the cluster up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import typer

from boardcluster.campaign.execution import attempt_tag, clear_leftovers, end_submission
from boardcluster.cli.console import Reporter, say
from boardcluster.cli.options import (
    CacheOption,
    ClusterOption,
    HomeOption,
    cache_folder,
    home_folder,
)
from boardcluster.cluster.lock import driver_lock
from boardcluster.services import operation
from boardcluster.services.lifecycle import Health
from boardcluster.services.operation import LiveCluster
from boardcluster.store import Store

__all__ = ["bring_up", "recover", "register", "reported_health"]


def reported_health(reporter: Reporter) -> Callable[[Health], None]:
    """Return what follows a starting cluster: it says each change once."""
    before: list[tuple[int, int]] = []

    def seen(health: Health) -> None:
        now = (health.live_datanodes, health.live_nodemanagers)
        if now != (0, 0) and now not in before:
            before.append(now)
            reporter.line(f"{now[0]} DataNodes and {now[1]} NodeManagers are live")

    return seen


def bring_up(home: Path, *, cache: Path, reporter: Reporter) -> LiveCluster:
    """Bring a cluster up and follow it."""
    seen = reported_health(reporter)
    live = operation.up(home, cache=cache, progress=reporter.progress, seen=seen)
    for remark in live.layout.profile.remarks:
        reporter.line(f"remark on profile {live.layout.profile.name}: {remark}")
    return live


def recover(store: Store, reporter: Reporter, live: LiveCluster | None = None) -> None:
    """Deal with what a killed driver left running; only with the driver lock held.

    Args:
        store: the results; its running attempts are a dead driver's.
        reporter: told what was found.
        live: the running cluster, whose leftover submissions are ended first.

    Raises:
        RemoteError: a leftover application does not end.
    """
    if live is not None:
        for attempt in store.running():
            reporter.line(f"ending what a killed driver submitted: {attempt.trial_id}")
            end_submission(live, attempt_tag(attempt.trial_id, attempt.number))
            clear_leftovers(live)
    if count := store.mark_interrupted("interrupted: the driver was killed"):
        reporter.line(f"{count} attempts of a killed driver are marked invalid")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="up", epilog="Example: boardcluster up && boardcluster status")(_up)


def _up(
    home: HomeOption = None, cluster: ClusterOption = "default", cache: CacheOption = None
) -> None:
    """Bring the cluster up: nodes, HDFS, YARN and history servers, until all are healthy.

    Fetches the engines the first time. A cluster that is up already is left as it is.
    """
    folder = home_folder(home, cluster)
    operation.read_spec(folder / "cluster.toml")
    reporter = Reporter()
    with driver_lock(folder, doing="up"), reporter.following():
        live = bring_up(folder, cache=cache_folder(cache), reporter=reporter)
        with Store.open(folder) as store:
            recover(store, reporter, live)
    say(f"up: 1 master and {len(live.spec.workers)} workers, profile {live.spec.profile}")
    for name in ("namenode", "resourcemanager", "jobhistory", "sparkhistory"):
        say(f"  {name:<16} {_url(live, name)}")
    if not live.state.host_link:
        say("  (made without root: see `boardcluster status` for how to open these pages)")


def _url(live: LiveCluster, daemon: str) -> str:
    return next(row.url for row in live.state.daemons if row.name == daemon)
