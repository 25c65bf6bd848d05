"""A campaign file as a request."""

from __future__ import annotations

from pathlib import Path

from boardcluster.campaign.begin import CampaignRequest, Start
from boardcluster.campaign.plan import workload_facts
from boardcluster.services.profile import profile_names
from boardcluster.services.settings import check_setting
from boardcluster.spec import load_campaign
from boardcluster.workloads import workload_names

__all__ = ["campaign_file", "names_a_file"]


def names_a_file(target: str) -> bool:
    """Whether it is a campaign file; a workload's name is one, whatever lies in the folder."""
    return target not in workload_names() and (target.endswith(".toml") or Path(target).is_file())


def campaign_file(
    path: Path,
    *,
    start: Start = Start.BEGIN,
    only: tuple[str, ...] = (),
    retry_failed: bool = False,
) -> CampaignRequest:
    """Read a campaign file.

    Args:
        path: the file.
        start: how to begin.
        only: run only trials with KEY=VALUE[,VALUE].
        retry_failed: whether going on runs failed trials again.

    Raises:
        SpecError: it is missing or wrong; names each problem with its line.
    """
    spec = load_campaign(
        path,
        workloads=workload_facts(),
        profiles=profile_names(),
        check_setting=check_setting,
    )
    return CampaignRequest(spec=spec, only=only, start=start, retry_failed=retry_failed)
