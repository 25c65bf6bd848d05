"""What of a home goes into a bundle: read from its store, which is the truth about results."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from boardcluster.errors import ClusterError, EmptySelectionError
from boardcluster.records import AttemptState, Campaign, ClusterSpec, ProbeRun, Result, Trial
from boardcluster.store import Store
from boardcluster.store.database import CampaignSummary

__all__ = ["BundledCampaign", "Gathered", "gather"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BundledCampaign:
    """A campaign with what was laid down before its first run."""

    campaign: Campaign
    """The campaign."""
    trials: tuple[Trial, ...]
    """All its planned trials."""
    summary: CampaignSummary
    """How many of them are in which state."""
    file: bytes
    """Its campaign file; empty if it has none, or if it was not kept."""
    first_run_utc: str
    """When its first run began, ISO 8601 with offset; empty if none did."""
    is_registered: bool
    """Whether the file is the one whose digest was stored before the first run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """What goes into a bundle."""

    home: Path
    """The home it is from."""
    campaigns: tuple[BundledCampaign, ...]
    """The campaigns, oldest first."""
    results: tuple[Result, ...]
    """Every attempt at their trials."""
    probes: tuple[ProbeRun, ...]
    """The runs of probes."""
    cluster: ClusterSpec | None
    """The cluster as it last ran; None if that is not known."""
    chosen: str
    """The one campaign that was asked for; empty for all."""

    @property
    def attempts(self) -> tuple[Result, ...]:
        """Those of the results that are an attempt."""
        return tuple(row for row in self.results if row.attempt is not None)

    @property
    def last_utc(self) -> str:
        """When the last of the runs ended."""
        ends = [row.attempt.ended_utc for row in self.results if row.attempt]
        return max([*ends, *(row.started_utc for row in self.probes)])


def gather(home: Path, *, campaign: str | None, cluster: ClusterSpec | None) -> Gathered:
    """Read what goes into a bundle.

    Args:
        home: state folder of the cluster.
        campaign: only this campaign, by its id; None for all.
        cluster: the cluster as it last ran.

    Raises:
        EmptySelectionError: there is no such campaign, or no run.
        ClusterError: a run has not ended.
        StoreError: the store cannot be read.
    """
    with Store.open(home, read_only=True) as store:
        results = store.results(campaign, all_attempts=True)
        if not any(row.attempt for row in results):
            raise EmptySelectionError(
                "there are no runs to put into a bundle",
                hint="run something first: `boardcluster run wordcount`",
            )
        _require_ended(results)
        first: dict[str, str] = {}
        for row in results:
            if row.attempt is not None:
                key, moment = row.trial.campaign_id, row.attempt.started_utc
                first[key] = min(moment, first.get(key, moment))
        campaigns = tuple(
            _bundled(store, row, first.get(row.id, ""))
            for row in store.campaigns()
            if campaign in {None, row.id}
        )
        probes = store.probe_runs()
    return Gathered(
        home=home,
        campaigns=campaigns,
        results=results,
        probes=probes,
        cluster=cluster,
        chosen=campaign or "",
    )


def _bundled(store: Store, campaign: Campaign, first_run_utc: str) -> BundledCampaign:
    file = store.campaign_file(campaign.id) or b""
    return BundledCampaign(
        campaign=campaign,
        trials=store.trials(campaign.id),
        summary=store.summary(campaign.id),
        file=file,
        first_run_utc=first_run_utc,
        is_registered=bool(file) and hashlib.sha256(file).hexdigest() == campaign.file_sha256,
    )


def _require_ended(results: Sequence[Result]) -> None:
    """Refuse runs that go on.

    Raises:
        ClusterError: names one.
    """
    for row in results:
        if row.attempt is not None and row.attempt.state is AttemptState.RUNNING:
            raise ClusterError(
                f"{row.attempt.name} has not ended",
                hint="wait until it has, or choose another campaign with --campaign; what a killed "
                "driver left is ended by the next `boardcluster up`, `run` or `down`",
            )
