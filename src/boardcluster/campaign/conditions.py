"""Bring the nodes to the state that the policy asks for before a run, as far as that is allowed.

Lee and Park 2026 discard unused blocks before each run, because a full solid-state disk that has
to collect garbage is slow at times ("Discussion"). What cannot be done is a remark, not an error.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from boardcluster.errors import BoardclusterError
from boardcluster.fetch.cache import Progress
from boardcluster.records import CachePolicy, Policy
from boardcluster.remote.ask import Trimmed, boot_of, drop_caches, hottest_celsius, trim
from boardcluster.services.operation import LiveCluster
from boardcluster.waiting import wait_until

__all__ = ["drop_node_caches", "prepare_conditions", "trim_nodes"]

_NODES_AT_ONCE = 16
_POLL_SECONDS = 5.0
_SILENT = "the node does not answer"

_Item = TypeVar("_Item")
_Answer = TypeVar("_Answer")


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

    Each only if the policy asks for it. Heat comes first, because what follows should lie as
    shortly before the run as possible.

    Args:
        live: the cluster.
        policy: how every run of the campaign is treated.
        drop: whether page caches must go whatever the policy says.
        progress: told what is being done.
        sleep: waits so many seconds.
        clock: a monotonic clock, in seconds.

    Returns:
        What could not be done, in one line each.
    """
    remarks: tuple[str, ...] = ()
    if policy.cool_down_seconds > 0:
        progress(f"pausing for {policy.cool_down_seconds:g} s", 0, 0)
        sleep(policy.cool_down_seconds)
    if policy.cool_below_celsius > 0:
        remarks += _cool(live, policy, progress=progress, sleep=sleep, clock=clock)
    if policy.trim:
        progress("discarding unused blocks", 0, 0)
        remarks += trim_nodes(live)[1]
    if drop or policy.cache is CachePolicy.DROP:
        progress("dropping page caches", 0, 0)
        remarks += drop_node_caches(live)
    return remarks


def drop_node_caches(live: LiveCluster) -> tuple[str, ...]:
    """Write back and drop the page cache of every kernel of the cluster, once.

    Returns:
        Which were kept, and why, in one line each.
    """
    kernels, failures = _kernels(live)

    def one(names: Sequence[str]) -> str:
        return drop_caches(live.as_root[names[0]]).reason

    for names, reason in zip(kernels, _each(one, kernels), strict=True):
        failures |= dict.fromkeys(names, _SILENT if reason is None else reason)
    return _remarks(live, "page caches kept", failures)


def trim_nodes(live: LiveCluster) -> tuple[dict[str, int], tuple[str, ...]]:
    """Discard the unused blocks of every file system that a node's folders are on, each once.

    Returns:
        Bytes discarded per node (a file system that nodes share counts for the first of them),
        and which file systems were left as they are, and why, in one line each.
    """
    kernels, failures = _kernels(live)

    def one(names: Sequence[str]) -> dict[str, list[Trimmed] | None]:
        """Nodes of one kernel see the same devices, so they follow each other."""
        done: dict[str, list[Trimmed] | None] = {}
        devices: list[str] = []
        for name in names:
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
    for part in _each(one, kernels):
        reasons: list[str] = []
        for name, rows in (part or {}).items():
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

    def one(names: Sequence[str]) -> tuple[float | None]:
        return (hottest_celsius(live.as_root[names[0]]),)

    def look() -> dict[str, float]:
        hot: dict[str, float] = {}
        for names, answer in zip(kernels, _each(one, kernels), strict=True):
            if answer is None:
                failures.update(dict.fromkeys(names, _SILENT))
            elif answer[0] is None:
                failures.update(dict.fromkeys(names, "no temperature sensor"))
            elif answer[0] >= limit:
                hot[names[0]] = answer[0]
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


def _kernels(live: LiveCluster) -> tuple[list[list[str]], dict[str, str]]:
    """Return the nodes by the kernel they share, and those that do not answer with the reason."""
    names = list(live.remotes)
    boots = _each(lambda name: boot_of(live.remotes[name]), names)
    kernels: dict[str, list[str]] = {}
    for name, boot in zip(names, boots, strict=True):
        if boot is not None:
            kernels.setdefault(boot, []).append(name)
    silent = [name for name, boot in zip(names, boots, strict=True) if boot is None]
    return list(kernels.values()), dict.fromkeys(silent, _SILENT)


def _each(ask: Callable[[_Item], _Answer], items: Sequence[_Item]) -> list[_Answer | None]:
    """Ask about each item in parallel; None where nobody answers."""

    def one(item: _Item) -> _Answer | None:
        try:
            return ask(item)
        except BoardclusterError:
            return None

    with ThreadPoolExecutor(_NODES_AT_ONCE) as pool:
        return list(pool.map(one, items))


def _remarks(live: LiveCluster, what: str, failures: Mapping[str, str]) -> tuple[str, ...]:
    """Return one line per reason; nodes are named unless it is true of all.

    Args:
        live: the cluster.
        what: what was not done.
        failures: node to reason; nodes with an empty reason are well.
    """
    lines = []
    for reason in dict.fromkeys(reason for reason in failures.values() if reason):
        names = [name for name in live.remotes if failures.get(name) == reason]
        where = "" if len(names) == len(live.remotes) else f" on {', '.join(names)}"
        lines.append(f"{what}{where}: {reason}")
    return tuple(lines)
