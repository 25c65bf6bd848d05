"""The whole life of a campaign, on one page."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from boardcluster.campaign.begin import (
    CampaignRequest,
    PlannedWork,
    find_work,
    new_campaign,
    new_campaign_id,
)
from boardcluster.campaign.driver import run_trials
from boardcluster.campaign.follow import Follower, each_health_once, each_run
from boardcluster.campaign.preflight import Preflight, check_preflight, free_bytes
from boardcluster.campaign.texts import prepared_texts
from boardcluster.campaign.trial import Bench
from boardcluster.campaign.upkeep import attach_recovered, read_declared
from boardcluster.campaign.variants import VariantSwitcher
from boardcluster.cluster.lock import driver_lock
from boardcluster.datasets.text import check_text
from boardcluster.errors import CapacityError
from boardcluster.records import AttemptState, Campaign, ClusterSpec, Dataset, Result, Trial
from boardcluster.services import operation
from boardcluster.services.boards import boards_free_bytes
from boardcluster.store import CampaignSummary, Store
from boardcluster.telemetry.meters.registry import meter_facts

__all__ = ["CampaignOutcome", "preflight_of", "preview_campaign", "refuse_problems", "run_campaign"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignOutcome:
    """The outcome of a campaign."""

    campaign: Campaign
    """The campaign."""
    chosen: tuple[Trial, ...]
    """Its trials that ran now, in order; none if nothing was left to run."""
    summary: CampaignSummary
    """How many of all its trials are in which state."""
    results: tuple[Result, ...]
    """All its trials with their latest attempts."""

    @property
    def runs(self) -> tuple[str, ...]:
        """The runs that were made now, in order, as ``TRIAL/NUMBER``."""
        latest = {row.trial.id: row.attempt for row in self.results}
        attempts = (latest[trial.id] for trial in self.chosen)
        return tuple(attempt.name for attempt in attempts if attempt is not None)

    @property
    def unverified(self) -> tuple[Result, ...]:
        """Those of them that have no verified result."""
        ran = {trial.id for trial in self.chosen}
        return tuple(
            row
            for row in self.results
            if row.trial.id in ran
            and (row.attempt is None or row.attempt.state is not AttemptState.OK)
        )


def run_campaign(
    home: Path,
    request: CampaignRequest,
    *,
    cache: Path,
    follow: Follower,
    show: Callable[[Preflight], object] | None = None,
    locked: bool = False,
) -> CampaignOutcome:
    """The whole life of a campaign, from what is asked for to results in the store.

    1. Lock the cluster: it has one driver at a time.
    2. Read cluster.toml, and check that its power meters answer.
    3. Recover: end what a killed driver left running, and mark its attempts as interrupted.
    4. Find where to begin, or where to continue an earlier campaign of the same file.
    5. Look ahead: show what the runs need, and refuse what cannot run.
    6. Store the plan. From here on planned = ok + failed + invalid + pending, always.
    7. Run each trial on the cluster in the trial's variant; ``run_trials`` lists the steps of one.
    8. Leave the cluster as it was found, up or down; after an error or Ctrl-C, too.
    9. Return what the store has of the campaign now.

    What ``show`` raises when it is told what the runs need ends the campaign before it began.
    With ``locked`` the caller holds the cluster's lock already.

    Raises:
        LockedError: another driver is at work.
        UsageError: there is nothing to resume, the file was edited, or an unfinished campaign is
            in the way.
        EmptySelectionError: nothing is left or selected.
        CapacityError: it cannot run here; with every reason.
        ClusterError: a node or daemon was lost; the trials left stay pending.
    """
    with contextlib.nullcontext() if locked else driver_lock(home, doing="run"):  # 1
        declared = read_declared(home)  # 2
        with Store.open(home) as store:
            as_it_is = not request.is_file
            found = attach_recovered(  # 3
                home, cache=cache, store=store, follow=follow, as_it_is=as_it_is
            )
            spec = found.spec if found is not None and as_it_is else declared
            work = find_work(store, request, spec, campaign_id=new_campaign_id())  # 4
            if work.campaign is not None and not work.chosen:
                return _outcome(store, work.campaign, work)
            preflight = preflight_of(home, spec, store, work.chosen)  # 5
            if show is not None:
                show(preflight)
            refuse_problems(preflight)
            with follow.following():  # only now: progress bars and a question do not go together
                texts = prepared_texts(cache, follow.progress)
                campaign = work.campaign or _store_plan(store, request, spec, work, texts)  # 6
                with _cluster(home, found if as_it_is else None, cache, follow) as cluster:  # 8
                    run_trials(  # 7
                        store,
                        campaign,
                        work.chosen,
                        cluster=cluster,
                        bench=Bench(
                            policy=request.spec.policy,
                            cache=cache,
                            progress=follow.progress,
                            text=texts,
                        ),
                        watch=each_run(campaign, work.chosen, follow),
                    )
            return _outcome(store, campaign, work)  # 9


def preview_campaign(home: Path, request: CampaignRequest) -> tuple[PlannedWork, Preflight]:
    """Return what ``run_campaign`` would do, and what it would need; changes nothing.

    Raises:
        BoardclusterError: as ``run_campaign`` in its steps 2 and 4.
    """
    declared = operation.read_spec(home / "cluster.toml", meter_kinds=meter_facts())
    with Store.open(home, read_only=True) as store:
        work = find_work(store, request, declared, campaign_id="dry-run")
        return work, preflight_of(home, declared, store, work.chosen)


def preflight_of(
    home: Path, declared: ClusterSpec, store: Store, chosen: Sequence[Trial]
) -> Preflight:
    """Say what trials will need.

    Raises:
        InputError: a text that they read is missing or cannot be read.
    """
    for source in sorted({trial.input for trial in chosen} - {""}):
        check_text(Path(source))
    provisioned = declared.capabilities.provisioned
    return check_preflight(
        declared,
        chosen,
        typical_seconds=store.typical_seconds(),
        free=boards_free_bytes(home, declared) if provisioned else free_bytes(home),
        # On boards `up` installs what the workloads need.
        has_tool=lambda program: provisioned or shutil.which(program) is not None,
    )


def refuse_problems(preflight: Preflight) -> None:
    """Refuse what cannot run.

    Raises:
        CapacityError: with every reason.
    """
    if preflight.problems:
        raise CapacityError(
            "this cannot run:\n" + "\n".join(f"  {problem}" for problem in preflight.problems),
            hint="change the campaign or cluster.toml; `--dry-run` checks without running",
        )


def _store_plan(
    store: Store,
    request: CampaignRequest,
    spec: ClusterSpec,
    work: PlannedWork,
    texts: Callable[[Trial], Dataset],
) -> Campaign:
    campaign = new_campaign(
        request.spec, spec, work.planned, campaign_id=work.planned[0].campaign_id, texts=texts
    )
    store.add_campaign(campaign, work.planned)
    return campaign


def _cluster(
    home: Path, live: operation.LiveCluster | None, cache: Path, follow: Follower
) -> contextlib.AbstractContextManager[Callable[[Trial], operation.LiveCluster]]:
    """Return the cluster as it is up; or, without one, in the variant of each trial."""
    if live is not None:
        return contextlib.nullcontext(lambda _: live)
    return VariantSwitcher(
        home, cache=cache, progress=follow.progress, seen=each_health_once(follow)
    )


def _outcome(store: Store, campaign: Campaign, work: PlannedWork) -> CampaignOutcome:
    return CampaignOutcome(
        campaign=campaign,
        chosen=work.chosen,
        summary=store.summary(campaign.id),
        results=store.results(campaign.id),
    )
