"""What the sections of a report are made of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from boardcluster.analysis import node_words
from boardcluster.analysis.advice import Advice, AdviceEvidence, advise
from boardcluster.analysis.cost import Cost, cost
from boardcluster.analysis.scaling import FactorEffect, NodeScaling, factor_effects, node_scalings
from boardcluster.records import ClusterSpec, ProbeRun
from boardcluster.report.evidence import Evidence
from boardcluster.report.source import Source

__all__ = ["Material"]


@dataclass(frozen=True, kw_only=True)
class Material:
    """Records, and what is computed from them once for several sections."""

    source: Source
    """The records."""
    cluster: ClusterSpec | None
    """The cluster's declaration; None if nothing is known of it."""
    evidence: Evidence
    """What the telemetry of the runs gave."""
    probes: tuple[ProbeRun, ...]
    """Runs of probes on the cluster's nodes, oldest first."""

    @property
    def twins(self) -> str:
        """What the nodes are, see ``analysis.node_words``; without results, as declared."""
        cluster = self.cluster
        if self.source.results or cluster is None or cluster.capabilities.emulated:
            return node_words(self.source.results)
        return cluster.capabilities.short_mark

    @cached_property
    def scalings(self) -> tuple[NodeScaling, ...]:
        """How cells scale with their number of workers."""
        return node_scalings(self.source.cells)

    @cached_property
    def effects(self) -> tuple[FactorEffect, ...]:
        """What changing one factor changes."""
        return factor_effects(self.source.cells)

    @cached_property
    def costs(self) -> tuple[Cost, ...]:
        """The cluster against one program on one node."""
        return tuple(cost(self.source.cells, self.probes))

    @cached_property
    def advice(self) -> tuple[Advice, ...]:
        """What to change, best first."""
        return advise(
            AdviceEvidence(
                results=self.source.results,
                diagnoses=self.evidence.diagnoses,
                facts=self.evidence.facts,
                cluster=self.cluster,
            )
        )
