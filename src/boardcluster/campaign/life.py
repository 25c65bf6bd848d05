"""The whole life of a campaign, on one page."""

from __future__ import annotations

import contextlib
import functools
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from boardcluster.campaign.begin import (
    CampaignRequest,
    PlannedWork,
    find_work,
    new_campaign,
    new_campaign_id,
    require_same_text,
)
from boardcluster.campaign.driver import run_trials
from boardcluster.campaign.follow import Follower, each_health_once, each_run
from boardcluster.campaign.plan import idle_settings, spec_digest
from boardcluster.campaign.prediction import CampaignPrediction, predict_trials
from boardcluster.campaign.preflight import Preflight, check_preflight, free_bytes
from boardcluster.campaign.recovery import Recovery
from boardcluster.campaign.rounds import Outlook, look_ahead, next_round
from boardcluster.campaign.texts import prepared_texts
from boardcluster.campaign.trial import Bench
from boardcluster.campaign.trial_jobs import variant_of
from boardcluster.campaign.upkeep import attach_recovered, read_declared
from boardcluster.campaign.variants import VariantSwitcher
from boardcluster.cluster.each_node import each_node
from boardcluster.cluster.lock import driver_lock
from boardcluster.datasets.text import check_text
from boardcluster.errors import CapacityError, UsageError
from boardcluster.records import (
    MANY_YEARS,
    AttemptState,
    Campaign,
    ClusterSpec,
    Dataset,
    OnLoss,
    Result,
    Trial,
)
from boardcluster.services import operation
from boardcluster.services.boards import boards_free_bytes
from boardcluster.services.declaration import read_spec
from boardcluster.services.linpack import BUILD_TOOLS, is_built
from boardcluster.spec.variant import apply_variant
from boardcluster.store import CampaignSummary, Store
from boardcluster.telemetry.meters.registry import meter_facts
from boardcluster.units import format_count

__all__ = [
    "CampaignOutcome",
    "Preview",
    "preflight_of",
    "preview_campaign",
    "refuse_problems",
    "run_campaign",
]


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
       A campaign with a precision then plans and runs another round, until its intervals are
       narrow or each cell has run as often as it may.
    8. Leave the cluster as it was found, up or down; after an error or Ctrl-C, too.
    9. Return what the store has of the campaign now.

    What ``show`` raises when it is told what the runs need ends the campaign before it began.
    With ``locked`` the caller holds the cluster's lock already.

    Raises:
        LockedError: another driver is at work.
        UsageError: there is nothing to resume, the file or the text that it reads was edited, or
            an unfinished campaign is in the way.
        EmptySelectionError: nothing is left or selected.
        CapacityError: it cannot run here; with every reason.
        ClusterError: a node or daemon was lost, and did not come back as far as the policy waits
            for it; the trials left stay pending.
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
            preflight = _preflight_of_work(home, spec, store, work, cache=cache, live=found)  # 5
            if show is not None:
                show(preflight)
            refuse_problems(preflight)
            with follow.following():  # only now: progress bars and a question do not go together
                texts = prepared_texts(cache, follow.progress)
                if work.campaign is not None:
                    require_same_text(work.campaign, work.chosen, texts)
                campaign = work.campaign or _store_plan(store, request, spec, work, texts)  # 6
                bench = Bench(
                    policy=request.spec.policy, cache=cache, progress=follow.progress, text=texts
                )
                live = found if as_it_is and campaign.starts == 1 else None
                begun = _begun_start(store, campaign)
                with _cluster(home, live, begun, cache, follow) as cluster:  # 8
                    work = _run_rounds(  # 7
                        store, campaign, work, spec, cluster=cluster, bench=bench, follow=follow
                    )
            return _outcome(store, campaign, work)  # 9


def _run_rounds(
    store: Store,
    campaign: Campaign,
    work: PlannedWork,
    declared: ClusterSpec,
    *,
    cluster: Callable[[Trial], operation.LiveCluster],
    bench: Bench,
    follow: Follower,
) -> PlannedWork:
    """Run what was chosen, and further rounds; return the work with all that ran.

    Where trials were skipped there are none: what a further round is planned from is missing.
    """
    if work.further:
        store.add_trials(campaign.id, work.further)
    trials = work.chosen
    recovery = _recovery(declared, cluster, bench, work)
    while True:
        watch = each_run(campaign, trials, follow)
        run_trials(
            store, campaign, trials, cluster=cluster, bench=bench, watch=watch, recovery=recovery
        )
        if recovery is not None and recovery.skipped:
            follow.line(_skipped_words(recovery, campaign))
            return work
        following = next_round(store, campaign, work.spec, declared)
        if following.words:
            follow.line(following.words)
        if not (trials := following.trials):
            return work
        store.add_trials(campaign.id, trials)
        work = replace(work, planned=(*work.planned, *trials), chosen=(*work.chosen, *trials))


def _recovery(
    declared: ClusterSpec,
    cluster: Callable[[Trial], operation.LiveCluster],
    bench: Bench,
    work: PlannedWork,
) -> Recovery | None:
    """Return what deals with losses; None for a cluster that is used as it is up."""
    if not isinstance(cluster, VariantSwitcher):
        return None
    return Recovery(
        cluster.home,
        declared,
        bench.policy,
        cluster,
        goes_on_without=_goes_on_without(work),
        progress=bench.progress,
    )


def _goes_on_without(work: PlannedWork) -> bool:
    """Whether an earlier campaign continues without what may still be away."""
    return work.campaign is not None and work.spec.policy.on_loss is OnLoss.WITHOUT


def _skipped_words(recovery: Recovery, campaign: Campaign) -> str:
    gone = "; ".join(f"{name}: {why}" for name, why in recovery.left_out.items())
    count = len(recovery.skipped)
    runs = f"{format_count(count, 'run')} {'stays' if count == 1 else 'stay'} pending"
    again = "continue with `boardcluster run FILE --resume`"
    return (
        f"{runs} for lack of workers that were lost ({gone}); once these are back, "
        f"{again if campaign.is_resumable else 'run the command again'}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What a campaign would do."""

    work: PlannedWork
    """What would run first."""
    preflight: Preflight
    """What that takes."""
    outlook: Outlook | None
    """What its precision takes; None without one."""
    all_preflight: Preflight | None
    """What all the runs take that the precision asks for, as far as is known; None without one."""
    prediction: CampaignPrediction
    """Time and energy of what would run first, predicted."""


def preview_campaign(home: Path, request: CampaignRequest, *, cache: Path) -> Preview:
    """Return what ``run_campaign`` would do, and what it would need; changes nothing.

    Raises:
        BoardclusterError: as ``run_campaign`` in its steps 2 and 4.
    """
    declared = read_spec(home / "cluster.toml", meter_kinds=meter_facts())
    with Store.open(home, read_only=True) as store:
        work = find_work(store, request, declared, campaign_id="dry-run")
        outlook = look_ahead(store, work.spec, declared, work.planned)
        everything: Preflight | None = None
        if outlook is not None:
            first = {trial.id for trial in work.planned}
            later = tuple(trial for trial in outlook.trials if trial.id not in first)
            everything = preflight_of(
                home,
                declared,
                store,
                (*work.chosen, *later),
                cache=cache,
                may_lack=_goes_on_without(work),
            )
        return Preview(
            work=work,
            preflight=_preflight_of_work(home, declared, store, work, cache=cache),
            outlook=outlook,
            all_preflight=everything,
            prediction=predict_trials(home, store, declared, work.chosen),
        )


def _preflight_of_work(
    home: Path,
    spec: ClusterSpec,
    store: Store,
    work: PlannedWork,
    *,
    cache: Path,
    live: operation.LiveCluster | None = None,
) -> Preflight:
    """Say what the chosen runs of a campaign will need."""
    return preflight_of(
        home,
        spec,
        store,
        work.chosen,
        cache=cache,
        live=live,
        idle=idle_settings(work.spec, work.planned),
        may_lack=_goes_on_without(work),
    )


def preflight_of(
    home: Path,
    declared: ClusterSpec,
    store: Store,
    chosen: Sequence[Trial],
    *,
    cache: Path | None = None,
    live: operation.LiveCluster | None = None,
    idle: Sequence[str] = (),
    freed_bytes: int = 0,
    may_lack: bool = False,
) -> Preflight:
    """Say what trials will need.

    Args:
        home: the cluster's state folder.
        declared: the cluster.
        store: its results.
        chosen: the trials.
        cache: the driver's cache folder; None asks for nothing that only building needs.
        live: the cluster as it is up; None where it is not, or nobody looked.
        idle: properties that their campaign sets, and that none of them has.
        freed_bytes: what is deleted on this machine's disk before they run.
        may_lack: whether boards may be out of reach, as where a campaign continues without them.

    Raises:
        InputError: a text that they read is missing or cannot be read.
    """
    for source in sorted({trial.input for trial in chosen} - {"", MANY_YEARS}):
        check_text(Path(source))
    if declared.capabilities.provisioned:
        names = _workers_of(declared, chosen)
        free = boards_free_bytes(home, declared, of=names, may_lack=may_lack)
    else:
        free = free_bytes(home, declared, freed_bytes)
    return check_preflight(
        declared,
        chosen,
        typical_seconds=store.typical_seconds(),
        free=free,
        lacking=functools.partial(_lacking, declared, cache, live),
        idle=idle,
    )


def _workers_of(declared: ClusterSpec, trials: Sequence[Trial]) -> frozenset[str]:
    """Name the workers that trials need; all where no trial can have what it asks for."""
    names: set[str] = set()
    for variant in {variant_of(trial) for trial in trials}:
        with contextlib.suppress(UsageError):  # said with everything else that cannot run
            names |= {worker.name for worker in apply_variant(declared, variant).workers}
    return frozenset(names or {worker.name for worker in declared.workers})


def _lacking(
    declared: ClusterSpec,
    cache: Path | None,
    live: operation.LiveCluster | None,
    program: str,
    nodes: Sequence[str],
) -> str:
    """Name those of some nodes that lack a program; on boards `up` installs what is needed."""
    if program in BUILD_TOOLS and (cache is None or is_built(cache)):
        return ""
    if not declared.capabilities.provisioned:
        return "" if shutil.which(program) else "this machine"
    if live is None:
        return ""
    remotes = live.remotes
    found, _ = each_node(  # a board that cannot be asked is said later, and better
        [name for name in nodes if name in remotes],
        lambda name: remotes[name].run(["sh", "-c", 'command -v "$0"', program], check=False),
    )
    return ", ".join(name for name, done in found.items() if done.returncode != 0)


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
        work.spec,
        spec,
        work.planned,
        campaign_id=work.planned[0].campaign_id,
        texts=texts,
        spec_sha256=spec_digest(request.spec, spec),
        file_bytes=request.file_bytes,
    )
    store.add_campaign(campaign, work.planned, file_bytes=request.file_bytes)
    return campaign


def _cluster(
    home: Path,
    live: operation.LiveCluster | None,
    begun: tuple[int, str] | None,
    cache: Path,
    follow: Follower,
) -> contextlib.AbstractContextManager[Callable[[Trial], operation.LiveCluster]]:
    """Return the cluster as it is up; or, without one, in the variant and start of each trial."""
    if live is not None:
        return contextlib.nullcontext(lambda _: live)
    seen = each_health_once(follow)
    return VariantSwitcher(home, cache=cache, progress=follow.progress, seen=seen, begun=begun)


def _begun_start(store: Store, campaign: Campaign) -> tuple[int, str] | None:
    """Return the start in which a campaign of several ran last, and its id; None for one start."""
    if campaign.starts == 1:
        return None
    ran = [(row.trial, row.attempt) for row in store.results(campaign.id) if row.attempt]
    if not ran:
        return 0, ""
    trial, attempt = max(ran, key=lambda row: (row[1].started_utc, row[0].position))
    return trial.start, attempt.start_id


def _outcome(store: Store, campaign: Campaign, work: PlannedWork) -> CampaignOutcome:
    return CampaignOutcome(
        campaign=campaign,
        chosen=work.chosen,
        summary=store.summary(campaign.id),
        results=store.results(campaign.id),
    )
