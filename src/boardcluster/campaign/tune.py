"""Tune a workload or a program: search settings that take less, and prove it, on one page."""

from __future__ import annotations

import datetime
import hashlib
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from boardcluster import __version__
from boardcluster.analysis.inference import EffectVerdict, MeasuredRatio, RunValue, compare
from boardcluster.campaign.begin import Start, new_campaign_id
from boardcluster.campaign.driver import now_utc
from boardcluster.campaign.follow import Follower, each_health_once
from boardcluster.campaign.preflight import Preflight
from boardcluster.campaign.submit import UserProgram, check_program
from boardcluster.campaign.tune_order import TuneOrder, TunePlan, plan_tuning
from boardcluster.campaign.tune_runs import ProgramRuns, TuneRuns, TuneTools, WorkloadRuns
from boardcluster.campaign.upkeep import attach_recovered, read_declared
from boardcluster.campaign.variants import VariantSwitcher
from boardcluster.cluster.lock import driver_lock
from boardcluster.errors import EmptySelectionError, RunError, UsageError
from boardcluster.services import operation
from boardcluster.services.profile import own_parts
from boardcluster.services.settings import by_file
from boardcluster.store import Store
from boardcluster.telemetry.meters.registry import meter_facts
from boardcluster.tuning.profile_text import ProfileParts, tuned_profile
from boardcluster.tuning.record import (
    BASE,
    Candidate,
    Outcome,
    ProofPlan,
    ProofResult,
    Sitting,
    TrialRecord,
    TuningRecord,
    TuningRequest,
    begin_record,
    read_records,
    record_folder,
)
from boardcluster.tuning.sampler import require_optuna
from boardcluster.tuning.search import (
    SearchEnd,
    Standing,
    Step,
    next_step,
    proof_pairs,
    proof_seconds,
    sizes_of,
)
from boardcluster.tuning.space import RuledOut
from boardcluster.tuning.summary import TuningSummary, summarise_tuning
from boardcluster.units import format_bytes, format_seconds

__all__ = ["TuneOutcome", "TunePreview", "preview_tuning", "run_tuning"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneOutcome:
    """What a tuning came to."""

    request: TuningRequest
    """What was asked for."""
    summary: TuningSummary
    """What it found."""
    proof: MeasuredRatio | None
    """Best against base; None without a proof, or where its runs gave no values."""
    profile: Path | None
    """The profile that was written; None if nothing was shown to be better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TunePreview:
    """What a tuning would do."""

    plan: TunePlan
    """The space, what is ruled out of it, and what is tried first."""
    sizes_bytes: tuple[int, ...]
    """The sizes that points are tried at, the whole first."""
    run_seconds: float | None
    """What a run of the whole took before, on average; None if none was made yet."""
    proof_seconds: float | None
    """What the pairs would take; None likewise."""
    runs: int | None
    """For about how many runs of the whole the rest is; None likewise."""


def preview_tuning(home: Path, order: TuneOrder, *, cache: Path, follow: Follower) -> TunePreview:
    """Return what ``run_tuning`` would do; changes nothing.

    Raises:
        BoardclusterError: as ``run_tuning`` before its first run.
    """
    declared = operation.read_spec(home / "cluster.toml", meter_kinds=meter_facts())
    planned = plan_tuning(order, declared, tuning_id="dry-run", cache=cache, follow=follow)
    with Store.open(home, read_only=True) as store:
        took = _typical_seconds(store, planned)
    pairs = None if took is None else proof_seconds(took, order.pairs)
    left = 0.0 if took is None or pairs is None else order.budget_seconds - pairs - took
    if took is not None:
        _refuse_small_budget(order.budget_seconds, took, order.pairs, go_on="")
    return TunePreview(
        plan=planned,
        sizes_bytes=sizes_of(planned.request.size_bytes),
        run_seconds=took,
        proof_seconds=pairs,
        runs=None if took is None else int(left / took),
    )


def run_tuning(
    home: Path,
    order: TuneOrder,
    *,
    cache: Path,
    follow: Follower,
    cwd: Path,
) -> TuneOutcome:
    """Search settings for a workload or a program, and prove the best against the base.

    1. Lock the cluster; recover what a killed driver left.
    2. Find the tuning to continue, or begin its record: all that follows is in it.
    3. Measure the base at the whole size, and refuse a budget that is too small for one proof.
    4. Do what ``search.next_step`` says until the budget, less the proof, is spent.
    5. Prove: the best and the base in pairs, in an order drawn at random.
    6. Write a profile if the pairs show that it takes less; else none.
    7. Leave the cluster as it was found, up or down; after an error or Ctrl-C, too.

    Raises:
        UsageError: the order cannot be, the budget is too small, Optuna is not installed, or an
            unfinished tuning of the same is in the way.
        RunError: one run after the other failed; names the last cause.
        CapacityError: the driver's disk is full.
    """
    require_optuna()
    if order.is_program:
        check_program(UserProgram(engine=order.program_engine, path=Path(order.target), arguments=()))
    with driver_lock(home, doing="tune"):  # 1
        declared = read_declared(home)
        with Store.open(home) as store, follow.following():
            attach_recovered(home, cache=cache, store=store, follow=follow, as_it_is=False)
            planned = plan_tuning(
                order, declared, tuning_id=new_campaign_id(), cache=cache, follow=follow
            )
            if (took := _typical_seconds(store, planned)) is not None:
                _refuse_small_budget(order.budget_seconds, took, order.pairs, go_on="")
            record = _found_record(home, order, planned)  # 2
            if record.end is not None:
                return _outcome(record, None)
            planned = replace(planned, request=record.request)
            seen = each_health_once(follow)
            with VariantSwitcher(  # 7
                home, cache=cache, progress=follow.progress, seen=seen
            ) as cluster:
                tools = TuneTools(
                    home=home,
                    cache=cache,
                    follow=follow,
                    store=store,
                    declared=declared,
                    cluster=cluster,
                )
                life = _Life(tools, planned, record, _runs(tools, record, cwd))
                try:
                    end = life.search()  # 3, 4
                except KeyboardInterrupt, SystemExit:
                    raise
                return life.prove(end, order.out)  # 5, 6
