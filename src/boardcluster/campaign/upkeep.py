"""Bring a cluster up, take it down, and recover from a driver that was killed."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from boardcluster.campaign.execution import (
    attempt_tag,
    clear_leftovers,
    clear_scratch,
    end_lost_jobs,
    end_submission,
)
from boardcluster.campaign.follow import Follower, each_health_once
from boardcluster.cluster.each_node import ASKED_AT_ONCE, each_node
from boardcluster.cluster.kinds.boards.nodes import board_nodes
from boardcluster.cluster.lock import driver_lock
from boardcluster.errors import ClusterNotUpError, RemoteError
from boardcluster.probes.tagged_remote import PROBING_VARIABLE
from boardcluster.records import ClusterSpec, NodeSpec, Security
from boardcluster.remote.base import Remote
from boardcluster.remote.local import LocalRemote
from boardcluster.remote.node_rpc import end_marked
from boardcluster.services import boards, operation
from boardcluster.services.boards import Ready
from boardcluster.services.declaration import read_spec
from boardcluster.services.operation import LiveCluster
from boardcluster.services.security import INSECURE_WARNING, LOCAL_WARNING, ROOT_WARNING
from boardcluster.store import Store, rebuild
from boardcluster.telemetry.metering import check_meters
from boardcluster.telemetry.meters.registry import meter_facts
from boardcluster.units import format_count

__all__ = [
    "OF_EXPERIMENT",
    "SCRATCH_STAYS",
    "attach_recovered",
    "bring_up",
    "meter_remotes",
    "nodes_words",
    "plan_changes",
    "read_declared",
    "rebuild_results",
    "recover",
    "start_cluster",
    "take_down",
    "uninstall",
]

_GRACE_SECONDS = 3.0
_END_SECONDS = 60.0

OF_EXPERIMENT = "of-experiment"
"""File in the state folder of a twin: what its nodes keep is to be deleted with the experiment."""
SCRATCH_STAYS = (
    "{name}: what a submission left in the folder scratch of this node, perhaps a secret, "
    "could not be deleted: {why}"
)
"""What is told of a node on which a submission's own folder stays."""


def bring_up(
    home: Path,
    *,
    cache: Path,
    follow: Follower,
    deep: bool = False,
    take_over: bool = False,
    leave_safe_mode: bool = False,
) -> LiveCluster:
    """Bring a cluster up as its only driver, and recover from one that was killed.

    Args:
        home: the cluster's state folder.
        cache: folder of fetched engines.
        follow: told what is done.
        deep: read every byte of what was copied to boards, not only names and sizes.
        take_over: first make boards this home's, whosever they are, and end what runs there.
        leave_safe_mode: have HDFS leave a safe mode that would never end, and say what it lost.

    Raises:
        LockedError: another driver is at work.
        ClusterError: it does not come up.
    """
    with driver_lock(home, doing="up"), follow.following():
        if take_over:
            boards.take_over_boards(home, read_spec(home / "cluster.toml").nodes)
        live = start_cluster(
            home, cache=cache, follow=follow, deep=deep, leave_safe_mode=leave_safe_mode
        )
        with Store.open(home) as store:
            recover(store, follow, live)
        return live


def start_cluster(
    home: Path,
    *,
    cache: Path,
    follow: Follower,
    deep: bool = False,
    leave_safe_mode: bool = False,
) -> LiveCluster:
    """Do what ``bring_up`` does to the cluster; only with the driver lock held."""
    (home / OF_EXPERIMENT).unlink(missing_ok=True)  # what it keeps from now on is the user's
    security = read_spec(home / "cluster.toml").security
    if security is Security.INSECURE_LAB:
        follow.line(INSECURE_WARNING)
    elif security is Security.LOCAL:
        follow.line(ROOT_WARNING if os.geteuid() == 0 else LOCAL_WARNING)
    live = operation.up(
        home,
        cache=cache,
        progress=follow.progress,
        seen=each_health_once(follow),
        deep=deep,
        leave_safe_mode=leave_safe_mode,
    )
    for remark in live.layout.profile.remarks:
        follow.line(f"remark on profile {live.layout.profile.name}: {remark}")
    return live


def nodes_words(live: LiveCluster) -> str:
    """Say how many nodes a cluster has: ``1 master and 4 workers``."""
    if len(live.spec.nodes) == 1:
        return "1 node, which is master and worker"
    return f"1 master and {format_count(len(live.spec.workers), 'worker')}"


def plan_changes(home: Path, *, cache: Path, follow: Follower, deep: bool = False) -> Ready:
    """Say what ``bring_up`` would change on boards; changes nothing.

    Raises:
        LockedError: another driver is at work.
        RemoteError: a board cannot be reached.
    """
    with driver_lock(home, doing="up --dry-run"), follow.following():
        return operation.plan_boards(home, cache=cache, progress=follow.progress, deep=deep)


def uninstall(
    home: Path,
    nodes: Sequence[NodeSpec],
    *,
    follow: Follower,
    keep_data: bool,
    dry_run: bool,
    without: Collection[str],
    take_over: bool = False,
) -> Mapping[str, Sequence[str]]:
    """End a cluster of boards, and take back what was installed; return the changes by node.

    Args:
        home: the cluster's state folder.
        nodes: the boards to take it back from.
        follow: told what is done.
        keep_data: whether the nodes' data folders are left: HDFS and logs.
        dry_run: whether it is only said what would be taken back.
        without: boards that are gone, and are left alone.
        take_over: first make boards this home's, whosever they are, and end what runs there.

    Raises:
        LockedError: another driver is at work, or boards are another's.
        RemoteError: a board cannot be reached.
    """
    with driver_lock(home, doing="uninstall"), follow.following():
        if take_over and not dry_run:
            boards.take_over_boards(home, nodes)
        if not dry_run:
            operation.down(home, without=without)
        done = boards.take_back(
            home, nodes, keep_data=keep_data, dry_run=dry_run, progress=follow.progress
        )
        if not (dry_run or keep_data or without):
            operation.forget(home)
        return done


def take_down(
    home: Path,
    *,
    follow: Follower,
    wipe: bool = False,
    without: Collection[str] = (),
    told: Callable[[int], object] | None = None,
) -> int:
    """End every process of a cluster, also after a crash; return how many were ended.

    Args:
        home: the cluster's state folder.
        follow: told what a killed driver left.
        wipe: whether the nodes' folders are deleted, too: HDFS, logs, settings.
        without: boards that are gone, and are left alone.
        told: told how many were ended, before the store is written, which may fail.

    Raises:
        LockedError: another driver is at work.
        RemoteError: a board cannot be reached.
    """
    with driver_lock(home, doing="down"):
        ended = operation.down(
            home,
            without=without,
            scratch_stays=lambda name, why: follow.line(SCRATCH_STAYS.format(name=name, why=why)),
        )
        if wipe:
            operation.wipe(home, without=without)
        if told is not None:
            told(ended)
        # Last: on a full disk the store cannot be written until the above has freed it.
        if (home / "store.sqlite").exists():
            with Store.open(home) as store:
                recover(store, follow)
        return ended


def rebuild_results(home: Path, *, follow: Follower) -> None:
    """Rebuild a damaged store from the files of its attempts, as the only driver of the cluster.

    Raises:
        LockedError: another driver is at work.
        StoreError: the new store cannot be written.
    """
    with driver_lock(home, doing="results --rebuild"):
        count = rebuild(home)
    follow.line(f"rebuilt the store from {count} attempts; the damaged file was kept")


def read_declared(home: Path) -> ClusterSpec:
    """Read ``cluster.toml``, and check that its power meters answer.

    Raises:
        SpecError: it is missing or wrong.
        MeterError: a meter does not answer.
    """
    declared = read_spec(home / "cluster.toml", meter_kinds=meter_facts())
    if declared.meters:  # reaching boards makes a folder for their connections
        check_meters(declared.meters, meter_remotes(home, declared))
    return declared


def meter_remotes(home: Path, spec: ClusterSpec) -> Mapping[str, Remote]:
    """Return every node as root; emulated nodes share this machine and its meters."""
    if not spec.capabilities.over_ssh:
        return {node.name: LocalRemote(node.name) for node in spec.nodes}
    reached = board_nodes(home)
    return {node.name: reached.admin(node) for node in spec.nodes}


def attach_recovered(
    home: Path, *, cache: Path, store: Store, follow: Follower, as_it_is: bool
) -> LiveCluster | None:
    """Find the running cluster, and end what a killed driver left; only with the lock held.

    Args:
        home: the cluster's state folder.
        cache: folder of fetched engines.
        store: its results.
        follow: told what was found.
        as_it_is: whether the cluster must be up as cluster.toml says. Otherwise it may be in any
            variant, or down, and is brought down where what was left does not end.

    Returns:
        The cluster; None if it is down.

    Raises:
        ClusterNotUpError: it must be up and is not.
        RemoteError: what was left does not end.
    """
    if as_it_is:
        live = operation.attach(home, cache=cache, progress=follow.progress)
        recover(store, follow, live)
        return live
    found: LiveCluster | None = None
    with contextlib.suppress(ClusterNotUpError):
        found = operation.attach(home, cache=cache, progress=follow.progress, any_variant=True)
    try:
        recover(store, follow, found)
    except RemoteError as error:
        follow.line(f"{error.message}; bringing the cluster down")
        operation.down(home)
        recover(store, follow)
        return None
    return found


def _end_probes(live: LiveCluster) -> None:
    """End what the probe of a killed driver left running, which would share the cores with runs."""
    mark = f"{PROBING_VARIABLE}={live.state.identity}"
    each_node(  # a node that cannot be asked is told of by what comes next
        [node.name for node in live.spec.nodes],
        lambda name: end_marked(
            live.remotes[name],  # as the user of jobs: nothing that runs here needs root
            mark,
            grace_seconds=_GRACE_SECONDS,
            timeout_seconds=_END_SECONDS * live.layout.dilation,
        ),
        at_once=ASKED_AT_ONCE,
    )


def recover(store: Store, follow: Follower, live: LiveCluster | None = None) -> None:
    """Deal with what a killed driver left running; only with the driver lock held.

    Its submissions are ended on the running cluster, if there is one, and its attempts marked.

    Raises:
        RemoteError: a leftover application does not end.
    """
    if live is not None:
        _end_probes(live)
        for attempt in store.running():
            follow.line(f"stopping what a killed driver submitted: {attempt.trial_id}")
            end_submission(live, attempt_tag(attempt.trial_id, attempt.number))
            clear_leftovers(live)
        for tag in end_lost_jobs(live):
            follow.line(f"stopped what an earlier driver had lost sight of: {tag}")
        for name, failure in clear_scratch(live).items():
            follow.line(SCRATCH_STAYS.format(name=name, why=failure.message))
    for attempt in store.running():
        folder = store.artefact_folder(attempt)
        for work in (folder / "work", *folder.glob("*/work")):
            shutil.rmtree(work, ignore_errors=True)  # outputs that were being verified
    if count := store.mark_interrupted("interrupted: the driver was killed"):
        follow.line(f"marked invalid: {format_count(count, 'attempt')} of a killed driver")
