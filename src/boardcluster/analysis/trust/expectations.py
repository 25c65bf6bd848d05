"""What a run is judged against: who must give samples, what is known of nodes, and thresholds."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from boardcluster.records import QUOTA_CORES_LEAST, NodeFacts, NodeLimits

__all__ = ["Expectations", "Thresholds", "expect"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """From where on something is looked at; each holds for one node.

    Whether it taints a run is not theirs to say: that is for how much of the run's time it
    explains. Here is what makes a run invalid, what is as exact as a measurement can be, and what
    is too little to have an effect that anyone can name. Shares are of the run's duration, or of
    all CPU time that the node's cores have in it. docs/reference/verdicts.md says why each is what
    it is.
    """

    cover_share: float = 0.80
    """Share of the run that the samples of a node must cover."""
    gap_intervals: float = 3.5
    """Longest pause between two samples, in sampling intervals."""
    gap_seconds: float = 1.0
    """Shorter ones are no gap, however fast samples are taken."""
    clock_nominal_ratio: float = 0.95
    """Measured clock over nominal or reported clock that counts as reached; one that is higher by
    the same ratio is above it."""
    clock_best_ratio: float = 0.85
    """Measured clock over the node's own best that counts as reached."""
    busy_share: float = 0.45
    """Share of a node's CPU time from which on its clock has no reason to be low: nearly two of
    four cores."""
    steal_share: float = 0.02
    """CPU time that a hypervisor gave to others and that is worth a remark before a run; in a run,
    what its reason says is from when on there was more."""
    foreign_share: float = 0.05
    """CPU time of programs that do not belong to the run; likewise."""
    swap_bytes: float = 16 * 2**20
    """Bytes swapped in and out together."""
    quota_ratio: float = 0.01
    """How far a CPU quota may be from the one that is meant, as a share of it."""
    host_idle_share: float = 0.10
    """Share of its CPU time that the machine below emulated boards must have idle, waiting for a
    disk included."""
    idle_window_seconds: float = 5.0
    """In any time of this length; a shorter run is one such time."""
    drop_share: float = 0.001
    """Dropped packets as a share of all, where a packet counts as 1,500 bytes."""
    drops_per_second: float = 10.0
    """Dropped packets per second, mean over the run."""
    clock_step_seconds: float = 0.5
    """Jump of a wall clock."""
    clock_skew_seconds: float = 1.0
    """Difference of the wall clocks of two nodes."""
    hot_celsius: float = 70.0
    """Temperature before a run that is worth a remark."""
    low_space_share: float = 0.10
    """Free share of a file system that is worth a remark if it is less."""
    low_space_bytes: float = 2 * 2**30
    """Free space that is worth a remark if it is less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectations:
    """What is known of a cluster before its telemetry is read."""

    nodes: tuple[str, ...]
    """Names that must have given samples; of an emulated cluster also ``host``."""
    nominal_hertz: Mapping[str, float] = field(default_factory=dict)
    """By node, the clock that it must hold under load; only where that is known."""
    least_hertz: Mapping[str, float] = field(default_factory=dict)
    """By node, the lowest clock that it can have; only where that is known."""
    best_hertz: Mapping[str, float] = field(default_factory=dict)
    """By node, the best clock that the same board had under load in earlier runs; only where it is
    one that a board holds with all cores."""
    quota_cores: Mapping[str, float] = field(default_factory=dict)
    """By node, a CPU quota that is meant; being held back by it is no fault, another quota is."""
    steered: frozenset[str] = frozenset()
    """Those of them whose quota is lowered on purpose as they get hot, and raised again."""
    host_idle_share: float | None = None
    """Share of CPU time that the machine below the nodes must have idle at any time; None where
    nodes have no limits, so that keeping it busy is no fault."""
    mixed: frozenset[str] = frozenset()
    """Nodes whose CPUs are of several kinds: there a measured clock depends on which CPU happened
    to measure, so it is not judged."""
    thresholds: Thresholds = field(default_factory=Thresholds)
    """From where on something counts."""


def expect(
    nodes: Iterable[str],
    facts: Mapping[str, NodeFacts],
    *,
    best_hertz: Mapping[str, float] = MappingProxyType({}),
    limits: Sequence[NodeLimits] = (),
    steered: Collection[str] = (),
) -> Expectations:
    """Work out expectations from what discovery found.

    The highest frequency of an ARM board is one that it holds with all cores; that of a PC is a
    turbo frequency of one core, which it does not, so a PC has no nominal clock here.

    Args:
        nodes: names that must give samples.
        facts: what is known of each board; empty for an emulated cluster.
        best_hertz: by node, the best clock that it had under load in earlier runs. That of a PC is
            not used, as it may be a turbo frequency, too.
        limits: what the kernel gives emulated boards; empty where nodes are not limited.
        steered: emulated boards whose quota follows modelled heat.
    """
    thresholds = Thresholds()
    mixed = frozenset(name for name, found in facts.items() if " + " in found.cpu)
    steady = {
        name: found
        for name, found in facts.items()
        if name not in mixed and found.architecture.startswith(("aarch64", "arm"))
    }
    nominal_hertz = {
        name: float(found.clock_most_hertz)
        for name, found in steady.items()
        if found.clock_most_hertz
    }
    least_hertz = {
        name: float(found.clock_least_hertz)
        for name, found in steady.items()
        if found.clock_least_hertz
    }
    return Expectations(
        nodes=tuple(nodes),
        nominal_hertz=nominal_hertz,
        least_hertz=least_hertz,
        best_hertz={name: hertz for name, hertz in best_hertz.items() if name in steady},
        quota_cores={row.node: max(QUOTA_CORES_LEAST, row.cpu_cores) for row in limits},
        steered=frozenset(steered),
        host_idle_share=thresholds.host_idle_share if limits else None,
        mixed=mixed,
        thresholds=thresholds,
    )
