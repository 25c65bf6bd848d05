"""Rules on memory: containers larger than their tasks, and nodes that swap."""

from __future__ import annotations

from collections.abc import Iterator

from boardcluster.analysis.advice.evidence import Advice, NodeUse
from boardcluster.analysis.advice.rule import LEAST_GAIN, Rule, advice, gain_words, percent, shrunk
from boardcluster.analysis.advice.settings import DEFAULT_PROFILE, node_key
from boardcluster.analysis.advice.tasks import container_mib, places_of
from boardcluster.analysis.advice.view import TASK, Group, RunView, View
from boardcluster.analysis.bottleneck import Bound
from boardcluster.analysis.trust import Thresholds
from boardcluster.records import HOST, NodeSpec
from boardcluster.units import format_bytes

__all__ = ["MEMORY_RULES"]

_PEAK_SHARE = 0.50  # of a container that its largest task used: half as large would have done
_MAP_SHARE = 0.10  # of the run
_STEP_BYTES = 64 << 20
_MIB = 1 << 20


def _containers(rule: Rule, view: View) -> Iterator[Advice]:
    for group in view.groups:
        run = group.typical
        size_mib = container_mib(run, "MAPS")
        peak_bytes = run.counter(f"{TASK}MAP_PHYSICAL_MEMORY_BYTES_MAX")
        # The sizes of the profile "default" follow from memory and cores, so nothing is to be set.
        if size_mib is None or not peak_bytes or run.jobs != 1 or group.trial.profile == "default":
            continue
        used = peak_bytes / _MIB / size_mib
        places = places_of(run, size_mib)
        share = run.phase_seconds("map") / run.measurement.duration_seconds
        wasted = used < _PEAK_SHARE and places < run.cores and share >= _MAP_SHARE
        if not wasted or run.first in (Bound.STORAGE, Bound.NETWORK):
            continue
        then = places_of(run, peak_bytes / _MIB)
        gain = shrunk(min(1.0, share), places / then)
        if gain < LEAST_GAIN:
            continue
        yield advice(
            rule,
            group,
            title=f"Use smaller containers for {group.subject}",
            seen=(
                f"map containers of {size_mib:.0f} MiB, of which the largest map used"
                f" {format_bytes(peak_bytes, binary=True)} ({percent(used)}); memory holds {places}"
                f" of them at once, on {run.cores} cores ({group.where})"
            ),
            setting=f"{DEFAULT_PROFILE}, which sizes containers for the nodes' memory and cores",
            brings=f"{gain_words(gain, emulated=group.emulated)}, if there are as many maps as "
            "cores and they wait for the CPU",
            gain=gain,
        )


def _swap(rule: Rule, view: View) -> Iterator[Advice]:
    allowed_bytes = Thresholds().swap_bytes
    for group in view.groups:
        swapping: dict[str, list[RunView]] = {}
        for run in group.runs:
            for row in () if run.facts is None else run.facts.nodes:
                if (row.swap_bytes or 0.0) > allowed_bytes:
                    swapping.setdefault(row.node, []).append(run)
        for node, runs in swapping.items():
            yield _swap_advice(rule, view, group, node, runs)


def _swap_advice(rule: Rule, view: View, group: Group, node: str, runs: list[RunView]) -> Advice:
    used = [row for run in runs if run.facts and (row := run.facts.node(node)) is not None]
    worst = max(used, key=lambda row: row.swap_bytes or 0.0)
    run = runs[used.index(worst)]
    gain = run.twice(Bound.MEMORY)
    known = run.whole is not None and gain > 1
    swapped = format_bytes(worst.swap_bytes or 0.0, binary=True)
    shared = run.fingerprint.emulated and node == HOST
    return advice(
        rule,
        group,
        title=f"Declare less memory for {'the nodes of this machine' if shared else node}",
        subject=node,
        seen=f"{node} swapped {swapped} in a run of {group.where}; in {len(runs)} of"
        f" {len(group.runs)} runs",
        setting=_less_memory(view.node(node), worst, group, shared=shared),
        brings=(gain_words(gain, emulated=group.emulated) if known else "no waiting for swap")
        + "; smaller containers, and so fewer tasks at once",
        gain=gain if known else None,
        runs=[run.name for run in runs],
    )


def _less_memory(declared: NodeSpec | None, worst: NodeUse, group: Group, *, shared: bool) -> str:
    if shared:
        return "a smaller `memory` in each `[[node]]` of cluster.toml, or fewer workers"
    if group.trial.profile != "default":
        return (
            f"{DEFAULT_PROFILE}: the sizes of {group.trial.profile} are fixed, whatever a node has"
        )
    if declared is None:
        return f"a smaller `memory` of {worst.node} in its `[[node]]` of cluster.toml"
    # What was in swap did not fit: so much less is what tasks may be given. What went to and fro
    # counts only where that is not known, as the same pages may have gone many times.
    used_bytes = worst.swap_used_most_bytes
    over_bytes = (worst.swap_bytes or 0.0) if used_bytes is None else used_bytes
    left_bytes = max(256 * _MIB, declared.memory_bytes - over_bytes)
    memory = int(left_bytes // _STEP_BYTES * _STEP_BYTES // _MIB)
    key = node_key(worst.node, f'memory = "{memory} MiB"')
    return f"{key} (now {format_bytes(declared.memory_bytes, binary=True)})"


MEMORY_RULES = (
    Rule(
        name="containers",
        source="Apache Hadoop, TaskCounter MAP_PHYSICAL_MEMORY_BYTES_MAX and JobCounter"
        " MB_MILLIS_MAPS; docs/reference/profiles.md",
        find=_containers,
    ),
    Rule(
        name="swap",
        source="proc(5), /proc/vmstat; the size is that of the verdict's rule",
        find=_swap,
    ),
)
