"""The trials of one workload on a made-up cluster."""

from __future__ import annotations

from collections.abc import Sequence

from boardcluster.campaign.plan import expand
from boardcluster.records import Campaign, CampaignSpec, Engine, Matrix, Policy, Trial
from boardcluster.spec.campaign import WorkloadFacts


def plan_trials(
    campaign: Campaign,
    *,
    workload: str,
    engines: Sequence[Engine],
    profile: str,
    size_bytes: int,
    workers: int,
    repetitions: int,
) -> tuple[Trial, ...]:
    """Return the trials of one matrix with one workload."""
    matrix = Matrix(
        workloads=(workload,),
        engines=tuple(engines),
        sizes_bytes=(size_bytes,),
        repetitions=repetitions,
    )
    spec = CampaignSpec(name="run", seed=campaign.seed, policy=Policy(), matrices=(matrix,))
    facts = WorkloadFacts(
        engines=tuple(engines),
        parameters={},
        takes_size=True,
        size_is_optional=False,
        takes_text=False,
    )
    return expand(
        spec,
        campaign_id=campaign.id,
        workloads={workload: facts},
        cluster_profile=profile,
        cluster_workers=workers,
    )
