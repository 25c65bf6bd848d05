"""Rules on what runs where and when: the master's daemons, and jobs at once or in turn."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from boardcluster.analysis.advice.evidence import Advice, NodeUse
from boardcluster.analysis.advice.published import published
from boardcluster.analysis.advice.rule import (
    LEAST_GAIN,
    Rule,
    advice,
    gain_words,
    measured,
    measured_advice,
    percent,
    shrunk,
)
from boardcluster.analysis.advice.settings import matrix_key
from boardcluster.analysis.advice.view import Group, RunView, View
from boardcluster.analysis.bottleneck import Bound
from boardcluster.records import MasterPlacement, Role
from boardcluster.units import format_bytes, format_seconds

__all__ = ["PLACEMENT_RULES"]

_BUSIER = 1.10  # than the middle of the other workers: the others wait for it
_MASTER_SHARE = 0.02  # of a node's CPU time that the master's daemons used there
_IDLE_SHARE = 0.10
_CPU_SHARE = 0.50
_LESS = "less waiting for the slowest worker"
_PLACED = {
    MasterPlacement.SEPARATE: "on a node of its own",
    MasterPlacement.COMBINED: "with the first worker",
    MasterPlacement.DECLARED: "as declared in cluster.toml",
}


def _master(rule: Rule, view: View) -> Iterator[Advice]:
    yield from _measured(rule, view)
    for group in view.groups:
        # Plain emulated nodes share this machine's cores, whichever of them a daemon is on.
        if group.is_boards or group.is_twin:
            yield from _combined(rule, view, group)
            yield from _separate(rule, view, group)


def _measured(rule: Rule, view: View) -> Iterator[Advice]:
    for pair, group in measured(view, "master"):
        where = _PLACED[pair.faster.master]
        yield measured_advice(
            rule,
            group,
            pair,
            title=f"Run the master {where} for {group.subject}",
            seen=f"{where} instead of {_PLACED[pair.slower.master]}",
            level=f'master = "{pair.faster.master}"',
        )


def _combined(rule: Rule, view: View, group: Group) -> Iterator[Advice]:
    """A worker that has the master's daemons, too, and is busier than the others."""
    run = group.typical
    workers = view.workers(run)
    both = [
        row
        for row in workers
        if (row.master_cpu_seconds or 0.0) > _MASTER_SHARE * _cpu_seconds(row, run)
    ]
    others = [row.busy_share for row in workers if row not in both and row.busy_share is not None]
    for row in both:
        if row.busy_share is None or not others or not row.master_cpu_seconds:
            continue
        if row.busy_share < _BUSIER * median(others):
            continue
        left = 1 - row.master_cpu_seconds / (row.busy_share * _cpu_seconds(row, run))
        gain = shrunk(run.share(Bound.CPU), max(left, 1e-3))
        paper = published()
        yield advice(
            rule,
            group,
            title=f"Move the master off worker {row.node}",
            subject="master",
            seen=f"{row.node}, which has the master's daemons, used {percent(row.busy_share)} of"
            f" its CPU, the other workers {percent(median(others))}; {_daemons(row)}"
            f" ({group.where})",
            setting=matrix_key('master = "separate"')
            + ', or a node with only `roles = ["master"]` in cluster.toml',
            brings=f"{gain_words(gain, emulated=group.emulated) if gain >= LEAST_GAIN else _LESS}"
            f"; in the 2021 paper a worker saved {paper['separate-memory'].value:g} % of memory and"
            f" {paper['separate-writes'].value:g} % of its writes",
            gain=gain if gain >= LEAST_GAIN else None,
        )


def _daemons(row: NodeUse) -> str:
    used = format_seconds(row.master_cpu_seconds or 0.0)
    least = row.memory_available_least_bytes
    free = f" and left {format_bytes(least, binary=True)} of memory free" if least else ""
    return f"they took {used} of CPU time{free}"


def _cpu_seconds(row: NodeUse, run: RunView) -> float:
    return row.capacity_cores * (run.facts.duration_seconds if run.facts else 0.0)


def _separate(rule: Rule, view: View, group: Group) -> Iterator[Advice]:
    """A master that only waits, while the workers' CPUs are what holds the job back."""
    run, cluster = group.typical, view.cluster
    if cluster is None or group.trial.master is not MasterPlacement.DECLARED:
        return
    master = cluster.master
    row = None if run.facts is None else run.facts.node(master.name)
    workers = len(cluster.workers)
    share = run.share(Bound.CPU)
    if Role.WORKER in master.roles or row is None or row.busy_share is None:
        return
    large = master.memory_bytes >= 2 * min(node.memory_bytes for node in cluster.workers)
    whole = group.trial.workers == workers
    if not (large and whole) or row.busy_share >= _IDLE_SHARE or share < _CPU_SHARE:
        return
    gain = shrunk(share, workers / (workers + 1))
    if gain < LEAST_GAIN:
        return
    yield advice(
        rule,
        group,
        title=f"Make {master.name} a worker, too",
        subject="master",
        seen=f"{master.name}, which has only the master's daemons, used {percent(row.busy_share)}"
        f" of its CPU, while the CPU bound {percent(share)} of the run; it has"
        f" {format_bytes(master.memory_bytes, binary=True)} ({group.where})",
        setting=f'`roles = ["master", "worker"]` of {master.name} in its `[[node]]` of'
        " cluster.toml",
        brings=f"{gain_words(gain, emulated=group.emulated)} with {workers + 1} workers instead of"
        f" {workers}; that machine then no longer runs only the master",
        gain=gain,
    )


def _at_once(rule: Rule, view: View) -> Iterator[Advice]:
    for pair, group in measured(view, "concurrency"):
        now, then = pair.slower.concurrency, pair.faster.concurrency
        if not pair.faster.is_mix or min(now, then) > 1:
            continue
        yield measured_advice(
            rule,
            group,
            pair,
            title=f"Run {then} jobs of {group.subject} at once"
            if then > 1
            else f"Run the jobs of {group.subject} one after the other",
            seen=f"{_way(then)} instead of {_way(now)}",
            level=f"concurrency = {then}",
            also=f"the 2026 paper saw {published()['at-once'].value:g} times with four jobs at"
            " once",
        )


def _way(concurrency: int) -> str:
    return f"{concurrency} jobs at once" if concurrency > 1 else "one after the other"


PLACEMENT_RULES = (
    Rule(
        name="master",
        source=published()["separate-memory"].source,
        find=_master,
    ),
    Rule(
        name="jobs at once",
        source=published()["at-once"].source,
        find=_at_once,
    ),
)
