"""Tune a workload or a program: search settings that take less, and prove it, on one page."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic

from boardcluster.analysis.inference import EffectVerdict, MeasuredRatio, RunValue, compare
from boardcluster.campaign.begin import Start, new_campaign_id
from boardcluster.campaign.driver import now_utc
from boardcluster.campaign.follow import Follower, each_health_once
from boardcluster.campaign.submit import SUBMIT, stored_arguments
from boardcluster.campaign.tune_order import (
    PAIRS_LEAST,
    TuneOrder,
    TunePlan,
    checked_settings,
    plan_tuning,
)
from boardcluster.campaign.tune_runs import (
    PairRun,
    ProgramRuns,
    ProofRuns,
    TuneRuns,
    TuneTools,
    WorkloadRuns,
)
from boardcluster.campaign.upkeep import attach_recovered, read_declared
from boardcluster.campaign.variants import VariantSwitcher
from boardcluster.cluster.lock import driver_lock
from boardcluster.errors import RunError, UsageError
from boardcluster.factors import FACTORS
from boardcluster.records import AttemptState, ClusterSpec
from boardcluster.services.declaration import read_spec
from boardcluster.services.profile import own_parts
from boardcluster.services.settings import by_file, merge_files
from boardcluster.store import Store, replacing
from boardcluster.telemetry.meters.registry import meter_facts
from boardcluster.tuning.profile_text import tuned_profile
from boardcluster.tuning.record import (
    BASE,
    Candidate,
    Objective,
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
    SearchField,
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

_BETTER_WORDS: Mapping[Objective, str] = {
    Objective.TIME: "was faster than",
    Objective.ENERGY: "took less energy than",
    Objective.BOTH: "took less energy x time than",
}
_GOING_ON = frozenset({Start.CONTINUE, Start.RESUME})
_OBJECTIVE_WORDS: Mapping[Objective, str] = {
    Objective.TIME: "time",
    Objective.ENERGY: "energy",
    Objective.BOTH: "energy x time",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneOutcome:
    """What a tuning came to."""

    request: TuningRequest
    """What was asked for."""
    summary: TuningSummary
    """What it found."""
    proof: MeasuredRatio | None
    """Best against base; None without a proof, where its runs gave no values, and of a tuning that
    was finished before, of which ``summary.result`` has the numbers."""
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
        BoardclusterError: as ``run_tuning`` before its first run, but for an unfinished tuning that
            is in the way of a new one.
    """
    require_optuna()
    declared = read_spec(home / "cluster.toml", meter_kinds=meter_facts())
    planned = plan_tuning(order, declared, tuning_id="dry-run", cache=cache, follow=follow)
    with Store.open(home, read_only=True) as store:
        took = _typical_seconds(store, planned, declared)
    request, spent_seconds = planned.request, 0.0
    latest = _latest_record(home, request) if order.start in _GOING_ON else None
    if latest is None and order.start is Start.RESUME:
        raise _nothing_to_resume()
    if latest is not None:
        _refuse_changes(latest, order, request)
        request = replace(latest.request, budget_seconds=_budget_seconds(order, latest))
        planned, spent_seconds = replace(planned, request=request), latest.spent_seconds
    finished = latest is not None and latest.end is not None  # which is only shown
    if not finished:
        _check_out(order.out)
    pairs = None if took is None else proof_seconds(took, request.pairs)
    left = 0.0
    if took is not None and pairs is not None and not finished:
        left = max(0.0, request.budget_seconds - spent_seconds - pairs - took)
        _refuse_small_budget(request, request.budget_seconds, took)
    return TunePreview(
        plan=planned,
        sizes_bytes=sizes_of(request.size_bytes),
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
    with driver_lock(home, doing="tune"):  # 1
        declared = read_declared(home)
        with Store.open(home) as store, follow.following():
            attach_recovered(home, cache=cache, store=store, follow=follow, as_it_is=False)
            planned = plan_tuning(
                order, declared, tuning_id=new_campaign_id(), cache=cache, follow=follow
            )
            took = _typical_seconds(store, planned, declared)
            record = _found_record(home, order, planned, took)  # 2
            if record.end is not None and not _can_be_judged(record, order):
                return _outcome(record, None)
            _check_out(order.out)
            budget_seconds = _budget_seconds(order, record)
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
                    clock=monotonic,
                )
                life = _Life(tools, planned, record, _runs(tools, record, order.arguments, cwd))
                with _telling_how_to_go_on():
                    reason = life.search(budget_seconds)  # 3, 4
                    return life.prove(reason, order)  # 5, 6


def _budget_seconds(order: TuneOrder, record: TuningRecord) -> float:
    """Return the time of a tuning that goes on: the order's own, else what the record says."""
    return record.budget_seconds if order.budget_seconds is None else order.budget_seconds


def _check_out(out: Path | None) -> None:
    """Refuse a profile that could not be written at the end, or not be used.

    Raises:
        UsageError: its folder is missing, its name does not end with .toml, or it exists.
    """
    if out is None:
        return
    if not out.absolute().parent.is_dir():
        raise UsageError(
            f"there is no folder {out.absolute().parent}", hint="create it, or choose another"
        )
    if out.suffix != ".toml":
        raise UsageError(
            f"--out {out}: a profile file must end in .toml",
            hint="give it a name that ends in .toml",
        )
    if out.exists():
        raise UsageError(f"--out {out} already exists", hint="move it away, or choose another name")


@contextlib.contextmanager
def _telling_how_to_go_on() -> Iterator[None]:
    """Say at Ctrl-C or SIGTERM how a tuning goes on."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit) as error:
        error.add_note("continue with the same command and --continue")
        raise


def _typical_seconds(store: Store, planned: TunePlan, declared: ClusterSpec) -> float | None:
    """Return what a good run of the base at the whole size took, on average; None without one.

    In seconds of this machine, as the budget is.
    """
    request = planned.request
    arguments: tuple[str, ...] = ()
    if request.is_program:
        arguments = stored_arguments(Path(request.target), request.main, request.arguments)
    base = {
        "workload": SUBMIT if request.is_program else request.target,
        "engine": request.engine,
        "profile": request.base,
        "size_bytes": request.size_bytes,
        "workers": planned.workers,
        "input": request.input,
        "parameters": request.parameters,
        "settings": declared.settings,
    }
    took = [
        row.measurement.duration_seconds * row.measurement.dilation
        for row in store.results()
        if row.measurement
        and row.attempt
        and row.attempt.state is AttemptState.OK
        and not row.trial.warm_up
        and row.trial.arguments == arguments
        and all(one.level(row.trial) == base.get(one.name, one.empty) for one in FACTORS)
    ]
    return math.fsum(took) / len(took) if took else None


def _refuse_small_budget(
    request: TuningRequest,
    budget_seconds: float,
    run_seconds: float,
    *,
    go_on: str = "",
    looks_seconds: float = 0.0,
    further_seconds: float = 0.0,
) -> None:
    """Refuse a budget that is too small for one proof.

    ``further_seconds`` are what was spent on nothing that counts, and what going on takes first.

    Raises:
        UsageError: with the arithmetic.
    """
    proof = proof_seconds(run_seconds, request.pairs)
    needed = run_seconds + looks_seconds + proof + run_seconds
    if budget_seconds >= needed:
        return
    looks = f", at smaller sizes {format_seconds(looks_seconds)}" if looks_seconds else ""
    raise UsageError(
        f"a budget of {format_seconds(budget_seconds)} is too small for one proof: the base takes"
        f" {format_seconds(run_seconds)}{looks}, {request.pairs} pairs of two such runs with a"
        f" tenth to spare {format_seconds(proof)}, and one run to try something; together"
        f" {format_seconds(needed)}",
        hint=f"allow --budget {_whole_minutes(needed + further_seconds)}min{go_on}"
        + (", or a smaller --size" if request.size_bytes else ""),
    )


def _whole_minutes(seconds: float) -> int:
    """Return a budget in minutes that is larger than that."""
    return int(seconds // 60) + 1


def _latest_record(home: Path, request: TuningRequest) -> TuningRecord | None:
    """Return the latest tuning of the same; None without one.

    One that was finished on another cluster, or of another version of the program, is of another.
    """
    same = [
        row
        for row in read_records(home)
        if row.request.key == request.key
        and (row.end is None or row.request.cluster_sha256 == request.cluster_sha256)
    ]
    return same[-1] if same else None


def _found_record(
    home: Path, order: TuneOrder, planned: TunePlan, typical_seconds: float | None
) -> TuningRecord:
    """Find the tuning to continue, or begin one.

    Raises:
        UsageError: an unfinished one is in the way, there is none to resume, the cluster has
            changed since, a seed or number of pairs is not the one it was begun with, a budget
            is too small by what runs took before, or the profile could not be written.
    """
    request = planned.request
    latest = _latest_record(home, request)
    unfinished = latest is not None and latest.end is None
    if order.start is Start.RESUME and latest is None:
        raise _nothing_to_resume()
    if (
        latest is None
        or order.start is Start.NEW
        or (order.start is Start.BEGIN and not unfinished)
    ):
        if typical_seconds is not None:
            _refuse_small_budget(request, request.budget_seconds, typical_seconds)
        _check_out(order.out)  # a record that nothing can come of would be in the next one's way
        return begin_record(home, request)
    if order.start is Start.BEGIN:
        raise UsageError(
            f"the same tuning, {latest.request.id}, is not finished: {len(latest.runs)} runs so "
            "far",
            hint="continue with --continue, or start a new one with --new",
        )
    _refuse_changes(latest, order, request)
    return latest


def _nothing_to_resume() -> UsageError:
    return UsageError("there is no such tuning to resume", hint="run it without --resume")


def _refuse_changes(latest: TuningRecord, order: TuneOrder, request: TuningRequest) -> None:
    """Refuse to go on with what was begun on another cluster, or with another seed or number."""
    if latest.end is None and latest.request.cluster_sha256 != request.cluster_sha256:
        program = ", the program, the folder it starts in" if request.is_program else ""
        raise UsageError(
            f"tuning {latest.request.id} cannot continue: the cluster, its profile{program} or the "
            "space of settings has changed",
            hint="start a new one with --new",
        )
    for name, given, begun in (
        ("seed", order.seed, latest.request.seed),
        ("pairs", order.pairs, latest.request.pairs),
    ):
        if given is not None and given != begun:
            raise UsageError(
                f"tuning {latest.request.id} was begun with --{name} {begun}, not {given}",
                hint=f"leave --{name} out to go on, or start a new one with --new",
            )


def _runs(
    tools: TuneTools, record: TuningRecord, arguments: tuple[str, ...], cwd: Path
) -> TuneRuns:
    request = record.request
    if request.is_program:
        return ProgramRuns(tools, request, arguments=arguments, cwd=cwd)
    runs = WorkloadRuns(tools, request)
    sizes = sizes_of(request.size_bytes)
    for row in record.runs:
        runs.count(row.candidate, sizes[row.rung])
    return runs


class _Life:
    """The search and the proof of one sitting."""

    def __init__(
        self, tools: TuneTools, planned: TunePlan, record: TuningRecord, runs: TuneRuns
    ) -> None:
        self._tools = tools
        self._plan = planned
        self._record = record
        self._runs = runs
        self._follow = tools.follow
        self._before_seconds = record.spent_seconds
        self._began = tools.clock()
        self._excluded: set[str] = {row.reason for row in record.ruled_out}
        self._up_seconds = 0.0
        """What it took to bring the cluster up, which going on takes again."""

    def _spent_seconds(self) -> float:
        return self._before_seconds + self._tools.clock() - self._began

    def search(self, budget_seconds: float) -> str:
        """Make the runs of the search; return why it ended.

        Raises:
            UsageError: the budget is too small for one proof, or the text was edited.
            RunError: one run after the other failed.
        """
        record, planned = self._record, self._plan
        if record.proof is None and BASE in record.candidates:
            self._runs.require_same_input(record.candidates[BASE])
        record.add(Sitting(started_utc=now_utc(), budget_seconds=budget_seconds))
        self._rule_out(planned.ruled_out)
        if BASE not in record.candidates:
            params = dict(planned.base_params)
            record.add(Candidate(id=BASE, origin=BASE, settings={}, params=params))
        self._follow.line(f"tuning {record.request.id}, seed {record.request.seed}")
        field = SearchField(
            space=planned.space,
            known=planned.known,
            refusal_of=planned.refusal_of,
            checked=checked_settings,
        )
        while record.proof is None:
            standing = Standing(record)
            if standing.rungs:
                _refuse_small_budget(
                    record.request,
                    budget_seconds,
                    standing.wall_seconds(0),
                    go_on=" --continue",
                    looks_seconds=standing.looks_seconds,
                    further_seconds=self._further_seconds(standing),
                )
            found = next_step(record, field, spent_seconds=self._spent_seconds())
            self._rule_out(found.ruled_out)
            if found.end is SearchEnd.FAILING:
                raise RunError(
                    f"the search stopped: {found.end}, the last because: {found.cause}",
                    hint="fix the cause, then run the same command with --continue",
                )
            if found.step is None:
                return str(found.end)
            self._run(found.step, standing)
        return record.proof.reason or str(SearchEnd.BUDGET)

    def _further_seconds(self, standing: Standing) -> float:
        """Return what was spent on no run of the base that counts, and what going on takes."""
        counted = standing.wall_seconds(0) + standing.looks_seconds
        return max(0.0, self._spent_seconds() - counted) + self._up_seconds

    def _rule_out(self, rows: Sequence[RuledOut]) -> None:
        """Note what is left out, each reason of the space once."""
        for row in rows:
            if row.what.startswith("draw ") or row.reason not in self._excluded:
                self._record.add(row)
                self._excluded.add(row.reason)

    def _run(self, step: Step, standing: Standing) -> None:
        record, candidate = self._record, step.candidate
        if candidate.id not in record.candidates:
            record.add(candidate)
        size_bytes = sizes_of(record.request.size_bytes)[step.rung]
        size = f" on {format_bytes(size_bytes)}" if size_bytes else ""
        name, times, _ = standing.incumbent
        left = record.budget_seconds - self._spent_seconds()
        best = "" if name == BASE else f"; best so far {times:.2f} times the base"
        self._follow.line(
            f"run {len(record.runs) + 1} ({step.purpose}){size}: {_named(candidate)}{best};"
            f" {format_seconds(max(0.0, left))} left"
        )
        began = self._tools.clock()
        ran = self._runs.run(candidate, size_bytes, step.limit_seconds)
        around = self._tools.clock() - began - ran.wall_seconds
        self._up_seconds = max(self._up_seconds, around)
        record.add(
            TrialRecord(
                candidate=candidate.id,
                rung=step.rung,
                purpose=step.purpose,
                spent_seconds=self._spent_seconds(),
                **dataclasses.asdict(ran),
            )
        )
        took = f", {ran.seconds:.1f} s" if ran.outcome is Outcome.OK else f": {ran.reason}"
        self._follow.line(f"run {len(record.runs)}: {ran.outcome}{took}")

    def prove(self, reason: str, order: TuneOrder) -> TuneOutcome:
        """Prove the best against the base, and write the profile if it takes less.

        Raises:
            UsageError: there was no room to try anything, or at the whole size, what looked better
                at another.
            RunError: runs of the pairs were lost.
        """
        record, standing = self._record, Standing(self._record)
        best = record.proof.candidate if record.proof else standing.best
        if best is None:
            if reason == SearchEnd.BUDGET:
                _refuse_no_room(record, standing, up_seconds=self._up_seconds)
            _refuse_untried(record, standing, up_seconds=self._up_seconds)
            words = (
                f"nothing {_BETTER_WORDS[record.request.objective]} {record.request.base}:"
                f" {reason}; no profile is written"
            )
            record.add(ProofResult(reason=reason, words=words))
            return _outcome(record, None)
        if record.proof is None:
            pairs = proof_pairs(record, self._spent_seconds())
            campaign = "" if record.request.is_program else new_campaign_id()
            record.add(ProofPlan(campaign=campaign, candidate=best, pairs=pairs, reason=reason))
            self._follow.line(f"proof: {pairs} pairs of the best and the base")
        candidate = record.candidates[best]
        made = self._runs.prove(candidate, record)
        own, base = _whole_pairs(made.runs, tainted=order.tainted)
        ratio = compare(own, base) if len(own) >= PAIRS_LEAST else None
        if ratio is None:
            result = ProofResult(reason=reason, words=_too_few(len(own), record.proof, made))
        else:
            result = _result(record, ratio, reason, tainted=order.tainted)
        if ratio is not None and ratio.verdict is EffectVerdict.LOWER:
            path = self._write(candidate, result, order.out)
            result = replace(
                result, profile=str(path), words=f"{result.words}; the profile is {path}"
            )
        record.add(result)
        return _outcome(record, ratio)

    def _write(self, candidate: Candidate, result: ProofResult, out: Path | None) -> Path:
        record, request = self._record, self._record.request
        name = Path(request.target).stem
        default = (
            record_folder(self._tools.home) / f"tuned-{name}-{request.engine}-{request.id}.toml"
        )
        path = (out or default).absolute()
        parts = own_parts(request.base)
        tables = merge_files(parts.tables, by_file(candidate.settings))
        text = tuned_profile(
            replace(parts, tables=tables),
            request,
            self._tools.declared,
            result,
            day=now_utc()[:10],
            campaign=record.proof.campaign if record.proof else "",
        )
        with replacing(path) as temporary:
            temporary.write_text(text)
        return path


def _named(candidate: Candidate) -> str:
    """Return what a candidate is called."""
    searched = candidate.origin == "search"
    return f"point {candidate.id}" if searched else f"the {candidate.origin}"


def _refuse_no_room(record: TuningRecord, standing: Standing, *, up_seconds: float) -> None:
    """Refuse to end where there was no room to try anything.

    Raises:
        UsageError: names a budget that has room.
    """
    if any(run.candidate != BASE for run in record.runs):
        return
    seconds, sizes = standing.wall_seconds(0), sizes_of(record.request.size_bytes)
    proof = proof_seconds(seconds, record.request.pairs)
    # Each of the looks at the base that are left takes less than that at the whole size.
    looks = 0 if standing.next_base is None else len(sizes) - standing.next_base
    small = standing.longest_seconds(standing.rungs[0]) if len(sizes) > 1 else 0.0
    needed = record.spent_seconds + up_seconds + looks * seconds + small + seconds + proof
    raise UsageError(
        f"nothing was tried: of the budget {format_seconds(record.spent_seconds)} are spent, and"
        f" the proof takes {format_seconds(proof)}",
        hint=f"allow --budget {_whole_minutes(needed)}min --continue",
    )


def _refuse_untried(record: TuningRecord, standing: Standing, *, up_seconds: float) -> None:
    """Refuse to end where what looked better could not be tried at the whole size.

    Raises:
        UsageError: names it, and a budget that has room for it.
    """
    name, _, rung = standing.incumbent
    if name == BASE or standing.ranking(0):
        return
    seconds = standing.wall_seconds(0)
    proof = proof_seconds(seconds, record.request.pairs)
    needed = record.spent_seconds + up_seconds + seconds + proof
    size = format_bytes(sizes_of(record.request.size_bytes)[rung])
    raise UsageError(
        f"{_named(record.candidates[name])} looked better at {size}, but the budget has no room for"
        f" a run of the whole, which takes {format_seconds(seconds)}, before the proof",
        hint=f"allow --budget {_whole_minutes(needed)}min --continue",
    )


def _can_be_judged(record: TuningRecord, order: TuneOrder) -> bool:
    """Whether pairs that were made, and did not count, shall count now."""
    without = record.end is not None and record.proof is not None and not record.end.verdict
    return without and order.tainted


def _whole_pairs(
    runs: Sequence[PairRun], *, tainted: bool
) -> tuple[Sequence[RunValue], Sequence[RunValue]]:
    """Return what the best and the base took in the pairs of which both runs count."""
    counted = [run for run in runs if tainted or not run.disturbed]
    own = {run.value.block: run.value for run in counted if run.of_best}
    base = {run.value.block: run.value for run in counted if not run.of_best}
    whole = sorted(own.keys() & base.keys())
    return [own[pair] for pair in whole], [base[pair] for pair in whole]


def _too_few(counted: int, proof: ProofPlan | None, made: ProofRuns) -> str:
    """Say that too few pairs count, and why."""
    planned = proof.pairs if proof else 0
    words = (
        f"only {counted} of {planned} pairs count, and {PAIRS_LEAST} are needed, so nothing was"
        " shown and no profile is written"
    )
    if made.failures:
        words += f"; a run failed: {made.failures[0]}. Tune again with --new"
    if causes := [run.disturbed for run in made.runs if run.disturbed]:
        words += (
            f"; disturbed by: {causes[0]}. Quiet the machine and tune again with --new, or count"
            " such pairs with --continue --tainted"
        )
    return words


def _result(
    record: TuningRecord, ratio: MeasuredRatio, reason: str, *, tainted: bool
) -> ProofResult:
    """Say what the pairs show."""
    request, what = record.request, _OBJECTIVE_WORDS[record.request.objective]
    low, high = (ratio.interval.low, ratio.interval.high) if ratio.interval else (0.0, 0.0)
    against = Path(request.base).name
    words = f"{ratio.value:.2f} times the {what} of {against}"
    if ratio.interval:
        also = ", disturbed ones included" if tainted else ""
        words += f" ({low:.2f} to {high:.2f}, 95 %, {ratio.pairs} pairs{also})"
    if ratio.verdict is not EffectVerdict.LOWER:
        little = f"they differ by less than {100 * ratio.smallest_effect:g} %"
        why = {
            EffectVerdict.HIGHER: "it takes more",
            EffectVerdict.NOT_WORTHWHILE: little,
            EffectVerdict.NOT_SHOWN: "not shown to be better",
        }[ratio.verdict]
        words += f": {why}, so no profile is written and {against} stays"
    return ProofResult(
        reason=reason,
        verdict=str(ratio.verdict),
        words=words,
        ratio=ratio.value,
        low=low,
        high=high,
        pairs=ratio.pairs,
    )


def _outcome(record: TuningRecord, ratio: MeasuredRatio | None) -> TuneOutcome:
    end = record.end
    return TuneOutcome(
        request=record.request,
        summary=summarise_tuning(record),
        proof=ratio,
        profile=Path(end.profile) if end and end.profile else None,
    )
