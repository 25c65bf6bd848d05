"""Everything once on this machine, from nothing to results, and nothing left running."""

from __future__ import annotations

from pathlib import Path

from boardcluster.campaign.begin import CampaignRequest
from boardcluster.campaign.follow import Follower
from boardcluster.campaign.life import CampaignOutcome, run_campaign
from boardcluster.campaign.propose import propose, write_spec
from boardcluster.campaign.upkeep import start_cluster
from boardcluster.cluster.lock import driver_lock
from boardcluster.services import operation
from boardcluster.spec import DEFAULT_SUBNET, workers_that_fit

__all__ = ["run_demo"]

_WORKERS = 4


def run_demo(
    home: Path,
    request: CampaignRequest,
    *,
    cache: Path,
    follow: Follower,
    workers: int | None,
    engines: str,
) -> CampaignOutcome:
    """Build a cluster, run a campaign on it, and delete it; only results are kept.

    Args:
        home: state folder of the cluster.
        request: what to run.
        cache: folder of fetched engines and data.
        follow: told what is done.
        workers: workers beside the master; None for 4, or as many as memory holds.
        engines: the engine pair.

    Raises:
        LockedError: another driver is at work.
        CapacityError: this machine cannot hold the workers.
        ClusterError: the cluster does not come up, or a daemon was lost.
    """
    with driver_lock(home, doing="demo"), follow.following():
        operation.down(home)
        count = workers or _default_workers(follow)
        spec = propose(
            name="demo", workers=count, profile="default", engines=engines, subnet=DEFAULT_SUBNET
        )
        write_spec(spec, home / "cluster.toml")
        try:
            live = start_cluster(home, cache=cache, follow=follow)
            follow.line(f"up: 1 master and {len(live.spec.workers)} workers are healthy")
            done = run_campaign(home, request, cache=cache, follow=follow, locked=True)
        finally:  # whatever happened, nothing of the cluster is left
            operation.down(home)
            operation.wipe(home)
        follow.line(f"input: {done.campaign.dataset}, {done.campaign.dataset_source}")
        follow.line("the cluster is down and its nodes are deleted")
        return done


def _default_workers(follow: Follower) -> int:
    """Return 4, or fewer where memory does not hold 4; at least 1, which then is refused."""
    fitting = workers_that_fit(operation.available_memory_bytes())
    if fitting < _WORKERS:
        follow.line(f"workers that this machine's memory holds: {fitting}, not {_WORKERS}")
    return max(1, min(_WORKERS, fitting))
