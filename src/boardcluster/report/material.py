"""What the sections of a report are made of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from boardcluster.analysis.advice import Advice, AdviceEvidence, advise
from boardcluster.analysis.advice.compared import pair_key
from boardcluster.analysis.cost import Cost, cost
from boardcluster.analysis.inference import CampaignDrift, find_drift, observe
from boardcluster.analysis.scaling import (
    FactorEffect,
    NodeScaling,
    factor_effects,
    in_family,
    node_scalings,
)
from boardcluster.analysis.twins import node_words
from boardcluster.analysis.watched import WatchStanding
from boardcluster.records import ClusterSpec, Engine, ProbeRun
from boardcluster.report.evidence import Evidence
from boardcluster.report.source import Source
from boardcluster.tuning.summary import TuningSummary

__all__ = ["OTHER_WORK_WITH_A_FAULT", "Material"]

OTHER_WORK_WITH_A_FAULT = (Engine.HTTP, Engine.GALERA)
"""Requests of a farm fail, and the load of a database goes on until it has its server again. A file
system holds the same blocks at the end."""


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
    tunings: tuple[TuningSummary, ...] = ()
    """What tunings found, oldest first; their searches' runs are not in the source."""
    watches: tuple[WatchStanding, ...] = ()
    """How watches of the performance stand."""

    @property
    def twins(self) -> str:
        """What the nodes are, see ``analysis.node_words``; without results, as declared."""
        cluster = self.cluster
        if self.source.results or cluster is None or cluster.capabilities.emulated:
            return node_words(self.source.results)
        return cluster.capabilities.short_mark

    @cached_property
    def _compared(self) -> tuple[tuple[FactorEffect, ...], tuple[NodeScaling, ...]]:
        cells = self.source.cells
        effects = [  # more work takes longer: no effect, and no member of the family
            row
            for row in factor_effects(cells)
            if row.factor not in self.evidence.work_parameters
            and not (row.factor == "fault" and row.faster.engine in OTHER_WORK_WITH_A_FAULT)
        ]
        return in_family(effects, node_scalings(cells), self.source.campaigns)

    @property
    def scalings(self) -> tuple[NodeScaling, ...]:
        """How cells scale with their number of workers."""
        return self._compared[1]

    @property
    def effects(self) -> tuple[FactorEffect, ...]:
        """What changing one factor changes; a family with the scalings, but what was declared."""
        return self._compared[0]

    @cached_property
    def drifts(self) -> tuple[CampaignDrift, ...]:
        """The campaigns whose times drift or jump, over all of their cells."""
        rows = find_drift([observe(cell.results) for cell in self.source.cells])
        return tuple(row for row in rows if row.is_shown)

    @cached_property
    def costs(self) -> tuple[Cost, ...]:
        """The cluster against one program on one node."""
        source = self.source
        return tuple(cost(source.cells, self.probes, self.scalings, tainted=source.tainted))

    @cached_property
    def advice(self) -> tuple[Advice, ...]:
        """What to change, best first."""
        return advise(
            AdviceEvidence(
                results=self.source.results,
                diagnoses=self.evidence.diagnoses,
                facts=self.evidence.facts,
                cluster=self.cluster,
                cells=self.source.cells,
                drifts=self.drifts,
                compared={pair_key(row.slower, row.faster): row.ratio for row in self.effects},
            )
        )
