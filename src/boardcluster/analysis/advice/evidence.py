"""What advice is, and what it is given on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, TypeAlias

from boardcluster.analysis.advice.compared import Compared
from boardcluster.records import ClusterSpec, Result

if TYPE_CHECKING:
    from boardcluster.analysis.bottleneck import Diagnosis
    from boardcluster.analysis.cells import Cell
    from boardcluster.analysis.inference import CampaignDrift

__all__ = ["Advice", "AdviceEvidence", "Attempted", "Certainty", "NodeUse", "RunFacts"]

Attempted: TypeAlias = "tuple[str, int]"
"""Id of a trial and number of the attempt at it."""


class Certainty(IntEnum):
    """How sure a gain is; the larger, the surer.

    PUBLISHED: others saw it on their boards. COMPUTED: it follows from what these runs took, as a
    prediction or as the most that can be gained. COMPARED: both settings were measured here.
    """

    PUBLISHED = 1
    COMPUTED = 2
    COMPARED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """One thing to change."""

    rule: str
    """Name of the rule that gives it."""
    title: str
    """What to do, in the imperative."""
    subject: str
    """What it is about: a workload on an engine, or a node."""
    seen: str
    """The evidence, with its numbers."""
    setting: str
    """The file and key, the command, or the part of a board that is to change."""
    brings: str
    """What it should bring, and what it costs."""
    gain: float | None
    """How many times as fast the run would be; None where it is unknown."""
    certainty: Certainty
    """How sure the gain is."""
    source: str
    """Where the rule comes from."""
    workload: str
    """The workload that was seen; of several, the one that it would help most."""
    emulated: str
    """Words that must be shown with its numbers: that the nodes are emulated, and of which boards
    with which dilation; empty for boards."""
    runs: tuple[str, ...]
    """The runs it was seen in, each as ``TRIAL/NUMBER``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeUse:
    """What the rules need of one node over one run. None is unknown: the node has no such column.

    Times are those of the telemetry, which is not divided by a dilation.
    """

    node: str
    """Its name; ``host`` is the machine that emulated nodes share."""
    scope: str
    """``machine`` or ``node``."""
    capacity_cores: float
    """CPU time per second that it can have, in cores."""
    busy_share: float | None
    """CPU time that it used, as a share of its capacity."""
    jobs_cpu_seconds: float | None
    """CPU time of the tasks that ran on it."""
    master_cpu_seconds: float | None
    """CPU time of the master's daemons on it."""
    swap_bytes: float | None
    """Bytes swapped in and out together."""
    swap_used_most_bytes: float | None
    """Highest use of its swap areas."""
    memory_available_least_bytes: float | None
    """Least memory that was free for programs."""
    temperature_most_celsius: float | None
    """Highest temperature."""
    heat_seconds: float | None
    """How long the firmware held its clock back without saying under-voltage."""
    weak_supply_seconds: float | None
    """How long the firmware said under-voltage."""
    slowed_clock_ratio: float | None
    """Its measured clock in such moments over its nominal clock, or over its highest measured one;
    None as well where it was never held back."""
    link_bits_per_second: float | None
    """Lowest rate of its own link, of several the fastest one."""
    received_bytes_per_second: float | None
    """Mean over the run, by its own interfaces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """One run's telemetry, condensed so that the samples of a thousand runs need not be kept."""

    duration_seconds: float
    """Of the run by its telemetry, not divided by a dilation."""
    nodes: tuple[NodeUse, ...]
    """One entry for each node that gave samples, in their order."""

    def node(self, name: str) -> NodeUse | None:
        """Return the entry of a node; None if it gave no samples."""
        return next((row for row in self.nodes if row.node == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceEvidence:
    """What advice is asked for."""

    results: tuple[Result, ...]
    """Trials with their attempts, of one cluster."""
    diagnoses: Mapping[Attempted, Diagnosis] = field(default_factory=dict)
    """What bound each run; runs without an entry are judged by their counters alone."""
    facts: Mapping[Attempted, RunFacts] = field(default_factory=dict)
    """Each run's telemetry; runs without an entry have none."""
    cluster: ClusterSpec | None = None
    """What is declared of the cluster; None where it is not known."""
    cells: tuple[Cell, ...] | None = None
    """The cells of the results (``summarise``), where somebody has them already: making them takes
    most of the time. None makes them."""
    drifts: tuple[CampaignDrift, ...] | None = None
    """How the times of campaigns drift, as it is shown elsewhere. None works it out."""
    compared: Compared = field(default_factory=dict)
    """Ratios of cells that are shown elsewhere, by ``pair_key``, so that advice says the same."""
