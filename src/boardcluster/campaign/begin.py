"""Where a campaign begins: a new one, or an earlier one of the same file that continues."""

from __future__ import annotations

import datetime
import hashlib
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any

from boardcluster.analysis.stopping import aims_of
from boardcluster.campaign.driver import now_utc
from boardcluster.campaign.plan import plan, spec_digest
from boardcluster.campaign.rounds import next_round
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
from boardcluster.spec.campaign import default_repetitions_max
from boardcluster.store import Store
from boardcluster.workloads import load_workload
from boardcluster.workloads.base import InputKind

__all__ = [
    "CampaignRequest",
    "Design",
    "PlannedWork",
    "Start",
    "as_begun",
    "find_work",
    "left_of",
    "new_campaign",
    "new_campaign_id",
    "require_same_text",
    "single_spec",
]

_DRAWN_SEEDS = 1_000_000
"""A drawn seed is from 1 to this: few digits to repeat an order with."""
_EDITED = "the file, cluster.toml or a file of your own that they name"
"""One of these was, where a campaign is not the one that began."""


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
class Design:
    """How often and in which order a new campaign runs, where that is not as its file says.

    What is None is as the file says. An earlier campaign continues as it was begun.
    """

    seed: int | None = None
    """Seed of the random order."""
    starts: int | None = None
    """How often the cluster is started."""
    precision: float | None = None
    """How far intervals may reach, as a share of the result."""
    repetitions_max: int | None = None
    """Most measured runs of a cell with a precision."""

    def applied(self, spec: CampaignSpec) -> CampaignSpec:
        """Return a specification with what is set here.

        Raises:
            UsageError: the maximum has nothing to limit, or is below the minimum.
        """
        given: dict[str, Any] = {name: value for name, value in self._values() if value is not None}
        designed = replace(spec, **given)
        least = designed.starts * max(matrix.repetitions for matrix in designed.matrices)
        planned = spec.starts * max(matrix.repetitions for matrix in spec.matrices)
        unset = spec.repetitions_max in {0, default_repetitions_max(planned)}
        if designed.precision is not None and self.repetitions_max is None and unset:
            designed = replace(designed, repetitions_max=default_repetitions_max(least))
        if designed.precision is None and self.repetitions_max is not None:
            raise UsageError(
                "a maximum of repetitions has no effect without a precision",
                hint='add --until, for example --until "3 %"',
            )
        if designed.precision is not None and designed.repetitions_max < least:
            each = f" ({least // designed.starts} in each of {designed.starts} starts)"
            raise UsageError(
                f"at most {designed.repetitions_max} runs of each cell, but {least} are planned "
                f"first{each if designed.starts > 1 else ''}",
                hint="allow more with --at-most, or plan fewer",
            )
        return designed

    def refuse_other(self, campaign: Campaign) -> None:
        """Refuse to continue a campaign differently from how it was begun.

        Raises:
            UsageError: names what differs.
        """
        for name, value in self._values():
            begun = getattr(campaign, name)
            if value is not None and value != begun:
                raise UsageError(
                    f"campaign {campaign.id} was begun with {_design_words(name, begun)}, not "
                    f"{_design_words(name, value)}",
                    hint="continue it without the option, or start a new campaign with --new",
                )

    def _values(self) -> tuple[tuple[str, float | None], ...]:
        return tuple((row.name, getattr(self, row.name)) for row in fields(self))


def _design_words(name: str, value: float | None) -> str:
    if name == "precision":
        return f"until {value * 100:g} %" if value else "no precision"
    if name == "repetitions_max":
        return f"at most {value} runs of each cell" if value else "no maximum"
    return f"{name} {value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignRequest:
    """What is asked for."""

    spec: CampaignSpec
    """What to run."""
    design: Design = field(default_factory=Design)
    """What differs from it in a new campaign."""
    is_file: bool = True
    """Whether it is a campaign file, which may change the cluster's variant; otherwise it runs on
    the cluster as it is up."""
    only: tuple[str, ...] = ()
    """The selection, as given: ``workload=grep``."""
    start: Start = Start.BEGIN
    """How to begin."""
    retry_failed: bool = False
    """Whether continuing runs failed trials again."""
    file_bytes: bytes = b""
    """The campaign file as it is now; empty without one. A new campaign keeps it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedWork:
    """What is to be done now."""

    campaign: Campaign | None
    """The stored campaign to continue; None for a new one."""
    spec: CampaignSpec
    """Its specification, with the seed of its order."""
    planned: tuple[Trial, ...]
    """All its trials."""
    chosen: tuple[Trial, ...]
    """Those to run now, in order; none where an earlier campaign has all it needs."""
    further: tuple[Trial, ...] = ()
    """Those of ``planned`` that the stored campaign does not have yet: its next round."""


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
        return _gone_on(store, request, declared, latest, digest)
    if latest is not None and request.start is not Start.NEW:
        same = latest.spec_sha256 == digest
        if request.start is Start.CONTINUE and same:
            return _gone_on(store, request, declared, latest, digest)
        _require_finished(store, request, declared, latest, same=same)
    spec = request.design.applied(request.spec)
    if spec.seed is None:
        spec = replace(spec, seed=1 + secrets.randbelow(_DRAWN_SEEDS))
    planned = plan(spec, declared, campaign_id=campaign_id)
    _require_compared(spec, planned)
    chosen = select(planned, parse_only(request.only))
    return PlannedWork(campaign=None, spec=spec, planned=planned, chosen=chosen)


def _require_compared(spec: CampaignSpec, planned: Sequence[Trial]) -> None:
    """Refuse a declared comparison that no two cells can make.

    Raises:
        UsageError: names the level that is missing.
    """
    for row in spec.comparisons:
        for level in row.levels[1:]:
            pair = replace(row, levels=(row.levels[0], level))
            if not aims_of([pair], planned):
                raise UsageError(
                    f"{row.factor} {level} cannot be compared with {row.levels[0]} as declared: "
                    "no two cells of the campaign differ only in that",
                    hint="correct the [[comparison]], or add the level to a [[matrix]]",
                )


def as_begun(spec: CampaignSpec, campaign: Campaign) -> CampaignSpec:
    """Return the specification of a file's campaign with what it was begun with."""
    return replace(
        spec,
        seed=campaign.seed,
        starts=campaign.starts,
        precision=campaign.precision,
        repetitions_max=campaign.repetitions_max,
    )


def _require_finished(
    store: Store,
    request: CampaignRequest,
    declared: ClusterSpec,
    campaign: Campaign,
    *,
    same: bool,
) -> None:
    summary, name = store.summary(campaign.id), request.spec.name
    unfinished = summary.pending + summary.invalid > 0
    if same and not unfinished:
        spec = as_begun(request.spec, campaign)
        unfinished = bool(next_round(store, campaign, spec, declared).trials)
    if unfinished:
        # What was edited is refused by --resume.
        edited = "" if same else f", though {_EDITED} was edited since"
        restore = "" if same else "restore what was edited and "
        goes_on = request.start is Start.CONTINUE
        again = "run the command again" if goes_on else "continue with --resume"
        raise UsageError(
            f"campaign {campaign.id} of {name!r} is not finished: "
            f"{summary.ok} of {summary.planned} runs are ok{edited}",
            hint=f"{restore}{again}, or start a new one with --new",
        )


def _gone_on(
    store: Store,
    request: CampaignRequest,
    declared: ClusterSpec,
    campaign: Campaign,
    digest: str,
) -> PlannedWork:
    if campaign.spec_sha256 != digest:
        raise UsageError(
            f"{_EDITED} was edited since campaign {campaign.id} began: its runs would not be "
            "comparable",
            hint="restore it, or start a new campaign with --new",
        )
    request.design.refuse_other(campaign)
    spec = as_begun(request.spec, campaign)
    planned = store.trials(campaign.id)
    only = parse_only(request.only)
    left = left_of(store, campaign, request.spec.policy, retry_failed=request.retry_failed)
    further: tuple[Trial, ...] = ()
    if not left:
        further = left = next_round(store, campaign, spec, declared).trials
        planned += further
    if not left and request.start is not Start.CONTINUE:
        raise EmptySelectionError(
            f"there is nothing left to run of campaign {campaign.id}",
            hint=f"see `boardcluster results --campaign {campaign.id}`, or start a new one: --new",
        )
    still = {trial.id for trial in left}
    chosen = tuple(trial for trial in select(planned, only) if trial.id in still)
    if not chosen and request.start is not Start.CONTINUE:
        raise EmptySelectionError(
            f"nothing that --only selects is left to run of campaign {campaign.id}",
            hint="select something else, or leave --only out to run the rest",
        )
    return PlannedWork(
        campaign=campaign, spec=spec, planned=planned, chosen=chosen, further=further
    )


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
        # A repeat that failed is the trial's result: it is not repeated at every resume.
        if states[trial.id] not in done
        or (states[trial.id] is AttemptState.OK and trial.id in again)
    )


def require_same_text(
    campaign: Campaign, trials: Sequence[Trial], texts: Callable[[Trial], Dataset]
) -> None:
    """Refuse to continue a campaign with another text than it was begun with.

    Args:
        campaign: the campaign; of one whose trials read several texts nothing is known.
        trials: those to be run.
        texts: returns the prepared text of a trial.

    Raises:
        UsageError: the text was edited.
    """
    reader = next(filter(_takes_text, trials), None) if campaign.dataset_sha256 else None
    if reader is not None and texts(reader).sha256 != campaign.dataset_sha256:
        raise UsageError(
            f"the text {reader.input or campaign.dataset} is not the one that campaign "
            f"{campaign.id} began with: its runs would not be comparable",
            hint="restore it, or start a new campaign with --new",
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
    seed: int | None,
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
    spec_sha256: str,
    file_bytes: bytes = b"",
) -> Campaign:
    """Return the record of a campaign; its text is named where all trials read the same one.

    Args:
        spec: its specification, with the seed of its order.
        declared: its cluster.
        trials: its first trials.
        campaign_id: its id.
        texts: returns the prepared text of a trial.
        spec_sha256: digest of what its file means.
        file_bytes: the file; empty without one.

    Raises:
        ValueError: no seed was drawn.
    """
    if spec.seed is None:
        raise ValueError("the seed must be drawn before the order")
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
        spec_sha256=spec_sha256,
        starts=spec.starts,
        precision=spec.precision,
        repetitions_max=spec.repetitions_max,
        comparisons=spec.comparisons,
        file_sha256=hashlib.sha256(file_bytes).hexdigest() if file_bytes else "",
    )
