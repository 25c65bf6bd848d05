"""Bring the nodes to the state that the policy asks for before a run, as far as that is allowed.

Lee and Park 2026 discard unused blocks before each run, because a full solid-state disk that has
to collect garbage is slow at times ("Discussion"). What cannot be done is a remark, not an error.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping

from boardcluster.cluster.each_node import each_node
from boardcluster.errors import BoardclusterError
from boardcluster.fetch.cache import Progress
from boardcluster.records import CachePolicy, OnLoss, Policy
from boardcluster.remote.node_rpc import Trimmed, boot_of, drop_caches, hottest_celsius, trim
from boardcluster.services.lifecycle import Copying, copying
from boardcluster.services.operation import LiveCluster
from boardcluster.twin.heat import heat_models
from boardcluster.units import format_count
from boardcluster.waiting import wait_until

__all__ = [
    "await_copies",
    "cool_down_seconds",
    "drop_node_caches",
    "prepare_conditions",
    "trim_nodes",
]

_POLL_SECONDS = 5.0
_SILENT = "the node does not answer"
_COPY_POLL_SECONDS = 2.0
_COPY_LEAST_SECONDS = 30.0
"""A job that has just ended may leave a block to be copied for a moment."""
_COPY_STILL_SECONDS = 600.0
"""Twice what the NameNode waits for a copy before it hands it out again
(dfs.namenode.reconstruction.pending.timeout-sec)."""


def prepare_conditions(
    live: LiveCluster,
    policy: Policy,
    *,
    drop: bool,
    progress: Progress,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[str, ...]:
    """Pause, wait until every node is cool, discard unused blocks, drop page caches.

    Each only if the policy asks for it; with ``drop`` page caches are dropped whatever it says.
    Heat comes first, because what follows should lie as shortly before the run as possible.

    Returns:
        What could not be done, in one line each.
    """
    remarks: tuple[str, ...] = ()
    if policy.cool_down_seconds > 0:
        seconds = cool_down_seconds(live, policy)
        here = f" of the boards, {seconds:g} s here" if seconds != policy.cool_down_seconds else ""
        progress(f"pausing for {policy.cool_down_seconds:g} s{here}", 0, 0)
        sleep(seconds)
    if policy.cool_below_celsius > 0:
        remarks += _cool(live, policy, progress=progress, sleep=sleep, clock=clock)
    if policy.trim:
        progress("discarding unused blocks", 0, 0)
        remarks += trim_nodes(live)[1]
    if drop or policy.cache is CachePolicy.DROP:
        progress("dropping page caches", 0, 0)
        remarks += drop_node_caches(live)
    return remarks


def await_copies(
    live: LiveCluster,
    policy: Policy,
    *,
    progress: Progress,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[str, ...]:
    """Wait until HDFS copies no blocks, as it does after a board or its card was replaced.

    As long as that goes on it takes disks and network from a run. It is waited for as long as
    ``loss_wait`` says, unless nothing changes any more. That blocks lack copies is no reason to
    wait: files of jobs ask for ten.

    Returns:
        That it was still at it, in one line; nothing if it was not.
    """
    # Limits are lifted meanwhile; only the NameNode's own steps are as slow as the nodes.
    least_seconds = _COPY_LEAST_SECONDS * live.layout.dilation
    last: list[tuple[Copying, float]] = []

    def look() -> Copying:
        seen = Copying(blocks=0, lacking_blocks=0)
        with contextlib.suppress(BoardclusterError):  # whoever needs the NameNode next says so
            seen = copying(live.layout, live.master)
        if not last or last[0][0] != seen:
            last[:] = [(seen, clock())]
        return seen

    def over(seen: Copying) -> bool:
        if seen.blocks:
            progress("waiting until HDFS has copied blocks of which it lacks copies", 0, 0)
        return not seen.blocks or clock() - last[0][1] >= max(_COPY_STILL_SECONDS, least_seconds)

    waits_seconds = 0.0 if policy.on_loss is OnLoss.STOP else policy.loss_wait_seconds
    seen = wait_until(
        look,
        ready=over,
        timeout_seconds=max(least_seconds, waits_seconds),
        poll_seconds=_COPY_POLL_SECONDS,
        clock=clock,
        sleep=sleep,
    )
    if not seen.blocks:
        return ()
    return (f"HDFS was still copying {format_count(seen.blocks, 'block')} when the run began",)


def cool_down_seconds(live: LiveCluster, policy: Policy) -> float:
    """Return the pause before a run, in this machine's time: modelled boards cool slowly, too."""
    seconds, dilation = policy.cool_down_seconds, live.layout.dilation
    if not seconds or dilation == 1:
        return seconds  # the catalog need not be read for that
    return seconds * dilation if heat_models(live.spec.nodes) else seconds


def drop_node_caches(live: LiveCluster) -> tuple[str, ...]:
    """Write back and drop the page cache of every kernel of the cluster, once.

    Returns:
        Which were kept, and why, in one line each.
    """
    kernels, failures = _kernels(live)
    reasons, _ = each_node(kernels, lambda first: drop_caches(live.as_root[first]).reason)
    for first, names in kernels.items():
        failures |= dict.fromkeys(names, reasons.get(first, _SILENT))
    return _remarks(live, "page caches kept", failures)


def trim_nodes(live: LiveCluster) -> tuple[dict[str, int], tuple[str, ...]]:
    """Discard the unused blocks of every file system that a node's folders are on, each once.

    Returns:
        Bytes discarded per node (a file system that nodes share counts for the first of them),
        and which file systems were left as they are, and why, in one line each.
    """
    kernels, failures = _kernels(live)

    def one(first: str) -> dict[str, list[Trimmed] | None]:
        """Nodes of one kernel see the same devices, so they follow each other."""
        done: dict[str, list[Trimmed] | None] = {}
        devices: list[str] = []
        for name in kernels[first]:
            node = next(row for row in live.spec.nodes if row.name == name)
            folders = [live.layout.folder(node), live.layout.data(node)]
            try:
                rows = trim(live.as_root[name], folders, skip=devices)
            except BoardclusterError:
                done[name] = None
                continue
            done[name] = rows
            devices += [row.device for row in rows]
        return done

    discarded: dict[str, int] = {}
    for part in each_node(kernels, one)[0].values():
        reasons: list[str] = []
        for name, rows in part.items():
            if rows is None:
                failures[name] = _SILENT
                continue
            discarded[name] = sum(row.trimmed_bytes for row in rows)
            if rows:  # else it shares the file systems of the node before it
                reasons = [f"{row.mount}: {row.reason}" for row in rows if row.reason]
            failures[name] = "; ".join(reasons)
    return discarded, _remarks(live, "unused blocks not discarded", failures)


def _cool(
    live: LiveCluster,
    policy: Policy,
    *,
    progress: Progress,
    sleep: Callable[[float], None],
    clock: Callable[[], float],
) -> tuple[str, ...]:
    """Wait until the hottest sensor of every node is below the policy's temperature."""
    limit = policy.cool_below_celsius
    kernels, failures = _kernels(live)

    def look() -> dict[str, float]:
        hot: dict[str, float] = {}
        found, silent = each_node(kernels, lambda first: hottest_celsius(live.as_root[first]))
        for first, names in kernels.items():
            celsius, words = found.get(first), ""  # a node may answer again at the next look
            if celsius is None:
                words = _SILENT if first in silent else "no temperature sensor"
            elif celsius >= limit:
                hot[first] = celsius
            failures.update(dict.fromkeys(names, words))
        return hot

    def cool(hot: dict[str, float]) -> bool:
        if hot:
            name = max(hot, key=hot.__getitem__)
            progress(f"cooling: {name} has {hot[name]:.0f} °C, waiting for {limit:g} °C", 0, 0)
        return not hot

    hot = wait_until(
        look,
        ready=cool,
        timeout_seconds=policy.cool_wait_seconds,
        poll_seconds=_POLL_SECONDS,
        clock=clock,
        sleep=sleep,
    )
    remarks = _remarks(live, f"not known to be below {limit:g} °C", failures)
    return remarks + tuple(
        f"{name} still had {celsius:.1f} °C after {policy.cool_wait_seconds:g} s, not below "
        f"{limit:g} °C"
        for name, celsius in hot.items()
    )


def _kernels(live: LiveCluster) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Return the nodes of each kernel by the first of them, and those that do not answer."""
    boots, silent = each_node(live.remotes, lambda name: boot_of(live.remotes[name]))
    kernels: dict[str, list[str]] = {}
    for name, boot in boots.items():
        kernels.setdefault(boot, []).append(name)
    return {names[0]: names for names in kernels.values()}, dict.fromkeys(silent, _SILENT)


def _remarks(live: LiveCluster, what: str, failures: Mapping[str, str]) -> tuple[str, ...]:
    """Return one line per reason why something was not done; an empty one is no failure.

    Nodes are named unless it is true of all.
    """
    lines = []
    for reason in dict.fromkeys(reason for reason in failures.values() if reason):
        names = [name for name in live.remotes if failures.get(name) == reason]
        where = "" if len(names) == len(live.remotes) else f" on {', '.join(names)}"
        lines.append(f"{what}{where}: {reason}")
    return tuple(lines)
