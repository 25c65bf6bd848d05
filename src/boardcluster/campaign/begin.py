"""Where a campaign begins: a new one, or an earlier one of the same file that continues."""

from __future__ import annotations

import datetime
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from boardcluster.campaign.driver import now_utc
from boardcluster.campaign.plan import expand, spec_digest, workload_facts
from boardcluster.campaign.selection import parse_only, select
from boardcluster.errors import EmptySelectionError, UsageError
from boardcluster.records import (
    AttemptState,
    Campaign,
    CampaignKind,
    CampaignSpec,
    ClusterSpec,
    Dataset,
    Engine,
    Matrix,
    Policy,
    Trial,
)
from boardcluster.store import Store
from boardcluster.workloads import load_workload
from boardcluster.workloads.base import InputKind

__all__ = [
    "CampaignRequest",
    "PlannedWork",
    "Start",
    "find_work",
    "left_of",
    "new_campaign",
    "new_campaign_id",
    "plan",
    "single_spec",
]


class Start(StrEnum):
    """How a campaign file is begun.

    BEGIN refuses while an earlier campaign of that name is unfinished. RESUME continues the
    latest one. NEW begins a new one in any case. CONTINUE does what is right: begin, continue, or
    nothing where all is done.
    """

    BEGIN = "begin"
    RESUME = "resume"
    NEW = "new"
    CONTINUE = "continue"


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignRequest:
    """What is asked for."""

    spec: CampaignSpec
    """What to run."""
    is_file: bool = True
    """Whether it is a campaign file, which may change the cluster's variant; otherwise it runs on
    the cluster as it is up."""
    only: tuple[str, ...] = ()
    """The selection, as given: ``workload=grep``."""
    start: Start = Start.BEGIN
    """How to begin."""
    retry_failed: bool = False
    """Whether continuing runs failed trials again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedWork:
    """What is to be done now."""

    campaign: Campaign | None
    """The stored campaign to continue; None for a new one."""
    planned: tuple[Trial, ...]
    """All its trials."""
    chosen: tuple[Trial, ...]
    """Those to run now, in order; none where an earlier campaign has all it needs."""


def find_work(
    store: Store, request: CampaignRequest, declared: ClusterSpec, *, campaign_id: str
) -> PlannedWork:
    """Find where to begin or to continue; the id is that of a new campaign.

    Raises:
        UsageError: there is nothing to resume, the file was edited, or an unfinished campaign is
            in the way.
        EmptySelectionError: nothing is left or selected.
    """
    earlier = store.find_campaigns(request.spec.name) if request.is_file else ()
    latest = earlier[-1] if earlier else None
    digest = spec_digest(request.spec, declared)
    if request.start is Start.RESUME:
        if latest is None:
            raise UsageError(
                f"there is no campaign {request.spec.name!r} to resume",
                hint="run it without --resume",
            )
        return _gone_on(store, request, latest, digest)
    if latest is not None and request.start is not Start.NEW:
        same = latest.spec_sha256 == digest
        if request.start is Start.CONTINUE and same:
            return _gone_on(store, request, latest, digest)
        _require_finished(store, latest, request.spec.name, same=same)
    planned = plan(request.spec, declared, campaign_id=campaign_id)
    chosen = select(planned, parse_only(request.only))
    return PlannedWork(campaign=None, planned=planned, chosen=chosen)


def _require_finished(store: Store, campaign: Campaign, name: str, *, same: bool) -> None:
    summary = store.summary(campaign.id)
    if summary.pending + summary.invalid:
        edited = "" if same else ", though the file was edited since"
        raise UsageError(
            f"campaign {campaign.id} of {name!r} is not finished: "
            f"{summary.ok} of {summary.planned} runs are ok{edited}",
            hint="continue with --resume, or start a new one with --new",
        )


def _gone_on(
    store: Store, request: CampaignRequest, campaign: Campaign, digest: str
) -> PlannedWork:
    if campaign.spec_sha256 != digest:
        raise UsageError(
            f"the file or cluster.toml was edited since campaign {campaign.id} began: its runs "
            "would not be comparable",
            hint="restore it, or start a new campaign with --new",
        )
    planned = store.trials(campaign.id)
    only = parse_only(request.only)
    left = left_of(store, campaign, request.spec.policy, retry_failed=request.retry_failed)
    if request.start is Start.CONTINUE:
        still = {trial.id for trial in left}
        chosen = tuple(trial for trial in select(planned, only) if trial.id in still)
        return PlannedWork(campaign=campaign, planned=planned, chosen=chosen)
    if not left:
        raise EmptySelectionError(
            f"there is nothing left to run of campaign {campaign.id}",
            hint=f"see `boardcluster results --campaign {campaign.id}`, or start a new one: --new",
        )
    return PlannedWork(campaign=campaign, planned=planned, chosen=select(left, only))


def left_of(
    store: Store, campaign: Campaign, policy: Policy, *, retry_failed: bool = False
) -> tuple[Trial, ...]:
    """Return what a resume of a campaign runs, in run order; none if it is finished.

    Args:
        store: the results.
        campaign: one of its campaigns.
        policy: says how often a disturbed run is repeated.
        retry_failed: whether failed trials are run again.
    """
    states = store.states(campaign.id)
    done = {AttemptState.OK} if retry_failed else {AttemptState.OK, AttemptState.FAILED}
    again = store.excluded(campaign.id, attempts_most=policy.repeat_tainted)
    return tuple(
        trial
        for trial in store.trials(campaign.id)
        if states[trial.id] not in done or trial.id in again
    )


# A new campaign


def new_campaign_id() -> str:
    """Return an id that sorts by time and is unique."""
    moment = datetime.datetime.now(datetime.UTC).strftime("%Y%m%d-%H%M%S")
    return f"{moment}-{secrets.token_hex(2)}"


def single_spec(
    workload: str,
    *,
    engines: Sequence[Engine],
    size_bytes: int,
    repetitions: int,
    seed: int,
    policy: Policy,
    text: str = "",
    parameters: Mapping[str, str] | None = None,
    settings: Mapping[str, str] | None = None,
) -> CampaignSpec:
    """Return the specification of one workload at one size on the cluster as it is."""
    matrix = Matrix(
        workloads=(workload,),
        engines=tuple(dict.fromkeys(engines)),
        sizes_bytes=(size_bytes,),
        repetitions=repetitions,
        input=text,
        parameters={key: (value,) for key, value in (parameters or {}).items()},
        settings={key: (value,) for key, value in (settings or {}).items()},
    )
    return CampaignSpec(name="", seed=seed, policy=policy, matrices=(matrix,))


def plan(spec: CampaignSpec, declared: ClusterSpec, *, campaign_id: str) -> tuple[Trial, ...]:
    """Return every trial of a specification in the order to run it."""
    return expand(
        spec,
        campaign_id=campaign_id,
        workloads=workload_facts(),
        cluster_profile=declared.profile,
        cluster_workers=len(declared.workers),
        cluster_settings=declared.settings,
    )


def _takes_text(trial: Trial) -> bool:
    return any(
        load_workload(name).input_kind is InputKind.TEXT for name in trial.workload.split("+")
    )


def new_campaign(
    spec: CampaignSpec,
    declared: ClusterSpec,
    trials: Sequence[Trial],
    *,
    campaign_id: str,
    texts: Callable[[Trial], Dataset],
) -> Campaign:
    """Return the record of a campaign; its text is named where all trials read the same one."""
    readers = {(trial.input, trial.size_bytes): trial for trial in trials if _takes_text(trial)}
    text = texts(next(iter(readers.values()))) if len(readers) == 1 else None
    return Campaign(
        id=campaign_id,
        kind=CampaignKind.RUN,
        created_utc=now_utc(),
        seed=spec.seed,
        cluster=declared.name,
        emulated=declared.capabilities.emulated,
        dataset=text.name if text else "",
        dataset_sha256=text.sha256 if text else "",
        dataset_source=text.source if text else "",
        name=spec.name,
        spec_sha256=spec_digest(spec, declared),
    )
