"""Everything once on this machine, from nothing to results, and nothing left running."""

from __future__ import annotations

from pathlib import Path

from boardcluster.campaign.begin import CampaignRequest
from boardcluster.campaign.follow import Follower
from boardcluster.campaign.life import CampaignOutcome, run_campaign
from boardcluster.campaign.propose import propose, write_spec
from boardcluster.campaign.upkeep import nodes_words, start_cluster
from boardcluster.capabilities import Capabilities, every_kind
from boardcluster.cluster.lock import driver_lock
from boardcluster.errors import AddressError, HostError, SpecError, UsageError
from boardcluster.records import ClusterSpec
from boardcluster.services import operation
from boardcluster.services.declaration import read_spec
from boardcluster.spec.cluster import DEFAULT_SUBNET
from boardcluster.spec.template import workers_that_fit
from boardcluster.units import format_count

__all__ = ["run_demo"]

_NAME = "demo"
"""Of the cluster that it makes."""
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

    Without a number of workers it has 4, or as many as memory holds.

    Raises:
        LockedError: another driver is at work.
        UsageError: the folder holds a cluster that no demo made; it stays as it is.
        SpecError: it holds one whose file cannot be read; that stays as it is, too.
        HostError: workers were asked for, and this machine can hold none.
        CapacityError: this machine cannot hold the workers.
        ClusterError: the cluster does not come up, or a daemon was lost.
    """
    with driver_lock(home, doing="demo"), follow.following():
        _require_no_other(home)
        operation.down(home)  # what an earlier demo left takes memory that this one needs
        write_spec(_propose_runnable(home, workers, engines, follow), home / "cluster.toml")
        try:
            live = start_cluster(home, cache=cache, follow=follow)
            follow.line(f"up: {nodes_words(live)}, healthy")
            done = run_campaign(home, request, cache=cache, follow=follow, locked=True)
        finally:  # whatever happened, nothing of the cluster is left
            operation.down(home)
            operation.wipe(home)
        follow.line(f"input: {done.campaign.dataset}, {done.campaign.dataset_source}")
        follow.line("the cluster is down and its nodes were deleted")
        return done


def _require_no_other(home: Path) -> None:
    """Refuse a folder that holds a cluster which no demo made: it would be ended and deleted.

    Raises:
        UsageError: it holds one.
        SpecError: a file there that describes a cluster is wrong or unreadable.
    """
    for path in (home / "cluster.toml", home / "running.toml"):
        if not path.exists():
            continue
        try:
            spec = read_spec(path)
        except SpecError as error:
            ways = filter(None, [error.hint, "move it away, if an earlier demo left it"])
            raise SpecError(error.message, hint="; or ".join(ways)) from error
        may_be_ours = spec.capabilities.on_this_machine and spec.twin is None
        if spec.name != _NAME or not may_be_ours:
            raise UsageError(
                f'{path} describes the cluster "{spec.name}", which no demo made: a demo in this '
                "folder would end it and delete its data",
                hint="choose an empty folder with --home, or use neither --home nor "
                "BOARDCLUSTER_HOME: the demo then takes a folder of its own",
            )


def _propose_runnable(
    home: Path, workers: int | None, engines: str, follow: Follower
) -> ClusterSpec:
    """Propose emulated nodes; or, where this machine allows neither root nor namespaces, itself.

    Raises:
        HostError: workers were asked for, and this machine can hold none.
        CapacityError: its memory does not suffice.
    """

    def proposed(kind: Capabilities) -> ClusterSpec:
        return propose(
            name=_NAME,
            workers=(workers or _default_workers(follow)) if kind.nodes_max > 1 else 0,
            profile="default",
            engines=engines,
            subnet=DEFAULT_SUBNET,
            kind=kind.kind,
        )

    here = [kind for kind in every_kind().values() if kind.on_this_machine]
    first, fallback = here[0], next(kind for kind in here if kind.nodes_max == 1)
    spec = proposed(first)
    try:
        operation.nodes_of(home, spec.kind).check(spec)
    except AddressError:
        pass  # `up` says so: the machine could hold the nodes
    except HostError:
        if workers is not None:
            raise
        follow.line(
            "this machine does not allow the namespaces that several nodes need, so the demo runs "
            "on one local node, which is this machine itself; its results say so, and "
            "`boardcluster doctor` says why"
        )
        return proposed(fallback)
    return spec


def _default_workers(follow: Follower) -> int:
    """Return 4, or fewer where memory does not hold 4; at least 1, which then is refused."""
    fitting = workers_that_fit(operation.available_memory_bytes())
    if fitting < _WORKERS:
        room = format_count(fitting, "worker")
        follow.line(f"this machine's memory has room for {room}, not {_WORKERS}")
    return max(1, min(_WORKERS, fitting))
