"""The runs of a tuning: ordinary verified runs of a workload, or of the user's own program."""

from __future__ import annotations

import contextlib
import datetime
import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from boardcluster.analysis.inference import RunValue, observe
from boardcluster.campaign.begin import (
    left_of,
    new_campaign,
    require_same_text,
    single_spec,
)
from boardcluster.campaign.driver import Watch, run_trials
from boardcluster.campaign.follow import Follower, each_run
from boardcluster.campaign.plan import plan, spec_digest
from boardcluster.campaign.submit import UserProgram, new_program_trial, submit_program
from boardcluster.campaign.texts import prepared_texts
from boardcluster.campaign.trial import Bench
from boardcluster.campaign.variants import VariantSwitcher
from boardcluster.errors import BoardclusterError, ClusterError, RemoteError, RunError
from boardcluster.records import (
    Attempt,
    AttemptState,
    CampaignSpec,
    ClusterSpec,
    Measurement,
    Policy,
    Result,
    Trial,
    in_cell,
)
from boardcluster.services.disk_space import require_space_for_run
from boardcluster.services.operation import LiveCluster
from boardcluster.services.webhdfs import WebHdfs
from boardcluster.store import Store
from boardcluster.tuning.record import (
    BASE,
    Candidate,
    Objective,
    Outcome,
    PairRecord,
    TuningRecord,
    TuningRequest,
)

__all__ = [
    "PairRun",
    "ProgramRuns",
    "ProofRuns",
    "TuneRun",
    "TuneRuns",
    "TuneTools",
    "WorkloadRuns",
    "value_of",
]

_LONGEST_SECONDS = 86_400.0
_RUN = "{run}"
"""In an argument of one's own program: another name in each run."""
_LOST = (ClusterError, RemoteError)
"""What the driver raises where a node or daemon was lost, or no node can be asked."""
_SCHEME = re.compile(r"(?P<name>[A-Za-z][\w+.-]*):(?://[^/]*)?")
"""Of an address, with the host (RFC 3986, section 3)."""
_PROOF_TRIES = 3
"""A proof goes on so often after a node was lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneTools:
    """What all runs of a tuning need."""

    home: Path
    """The cluster's state folder."""
    cache: Path
    """The driver's cache folder."""
    follow: Follower
    """Told what is done."""
    store: Store
    """The results."""
    declared: ClusterSpec
    """The cluster."""
    cluster: VariantSwitcher
    """Keeps it in the variant of the base."""
    clock: Callable[[], float]
    """Seconds, for the budget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneRun:
    """What one run came to."""

    outcome: Outcome
    """Its outcome."""
    seconds: float
    """How long the job took; 0 if that is not known."""
    value: float
    """The time or energy to make less of; 0 if that is not known."""
    wall_seconds: float
    """How long it took with all that is around it."""
    run: str
    """Its name in the store; empty if it never began."""
    reason: str
    """Why it is not ok."""
    dilation: float = 1.0
    """Seconds of this machine in one of the job's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairRun:
    """One run of a proof."""

    value: RunValue
    """What it took, with its place among the pairs."""
    of_best: bool
    """Whether it is the best's and not the base's."""
    disturbed: str
    """What disturbed it so much that it is out of its cell; empty if nothing did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofRuns:
    """What the runs of a proof came to."""

    runs: Sequence[PairRun]
    """Every verified one."""
    failures: Sequence[str]
    """Why others failed, in words."""


class TuneRuns(Protocol):
    """Makes runs of candidates."""

    def require_same_input(self, base: Candidate) -> None:
        """Refuse to go on with another input than the first runs of the base had."""

    def run(self, candidate: Candidate, size_bytes: int, limit_seconds: float | None) -> TuneRun:
        """Run a candidate once; a limit stops it."""

    def prove(self, candidate: Candidate, record: TuningRecord) -> ProofRuns:
        """Run the pairs that the record plans."""


def value_of(objective: Objective, found: Measurement) -> float | None:
    """Return what to make less of; None where a run has no energy."""
    if objective is Objective.TIME:
        return found.duration_seconds
    joules = found.energy.energy_joules if found.energy else None
    if joules is None:
        return None
    return joules if objective is Objective.ENERGY else joules * found.duration_seconds


def _as_run(
    request: TuningRequest,
    attempt: Attempt,
    found: Measurement | None,
    *,
    limit_seconds: float | None,
    wall_seconds: float,
) -> TuneRun:
    """Say what an attempt came to, as the search sees it."""
    seconds, value, reason = 0.0, 0.0, attempt.reason
    outcome = Outcome.INVALID
    if attempt.state is AttemptState.FAILED:
        outcome = Outcome.FAILED
    elif limit_seconds is not None and attempt.reason.startswith("stalled:"):
        outcome, seconds = Outcome.STOPPED, limit_seconds
        value = limit_seconds if request.objective is Objective.TIME else 0.0
        reason = f"after {limit_seconds:.0f} s, because it can no longer be the best"
    elif attempt.state is AttemptState.OK and found is not None:
        seconds, value = found.duration_seconds, value_of(request.objective, found) or 0.0
        outcome = Outcome.OK if value > 0 else Outcome.INVALID
        if not value > 0:
            reason = "no energy: " + (found.energy.reason if found.energy else "no meter said any")
    return TuneRun(
        outcome=outcome,
        seconds=seconds,
        value=value,
        wall_seconds=wall_seconds,
        run=attempt.name,
        reason=reason,
        dilation=found.dilation if found else 1.0,
    )


def _never_began(reason: str, wall_seconds: float) -> TuneRun:
    """Say of a run that the cluster was not there for it."""
    return TuneRun(
        outcome=Outcome.INVALID,
        seconds=0.0,
        value=0.0,
        wall_seconds=wall_seconds,
        run="",
        reason=reason,
    )


class WorkloadRuns:
    """Runs of a workload: trials of one campaign, and pairs of another.

    Args:
        tools: what runs need.
        request: what is tuned.
    """

    def __init__(self, tools: TuneTools, request: TuningRequest) -> None:
        self._tools = tools
        self._request = request
        self._texts = prepared_texts(tools.cache, tools.follow.progress)
        self._counts: dict[tuple[str, int], int] = {}

    def count(self, candidate: str, size_bytes: int) -> None:
        """Count a run of an earlier sitting."""
        key = (candidate, size_bytes)
        self._counts[key] = self._counts.get(key, 0) + 1

    def require_same_input(self, base: Candidate) -> None:
        """Refuse to go on with another text than the search began with.

        Raises:
            UsageError: it was edited.
        """
        store, request = self._tools.store, self._request
        for campaign in store.campaigns():
            if campaign.id == request.id:
                whole = self.trial(base, request.size_bytes)
                require_same_text(campaign, [whole], self._texts)

    def _spec(self, settings: Mapping[str, str], size_bytes: int, runs: int) -> CampaignSpec:
        request = self._request
        spec = single_spec(
            request.target,
            engines=[request.engine],
            size_bytes=size_bytes,
            repetitions=runs,
            seed=request.seed,
            policy=Policy(),
            text=request.input,
            parameters=request.parameters,
            settings=settings,
        )
        matrices = tuple(replace(row, profiles=(request.base,)) for row in spec.matrices)
        return replace(spec, name=f"tune-{request.target}-{request.engine}", matrices=matrices)

    def trial(self, candidate: Candidate, size_bytes: int) -> Trial:
        """Return a candidate's next trial at a size; its place is given when it is stored."""
        repetition = self._counts.get((candidate.id, size_bytes), 0) + 1
        planned = plan(
            self._spec(candidate.settings, size_bytes, repetition),
            self._tools.declared,
            campaign_id=self._request.id,
        )
        return next(row for row in planned if row.repetition == repetition)

    def run(self, candidate: Candidate, size_bytes: int, limit_seconds: float | None) -> TuneRun:
        """Run a candidate once; a limit stops it."""
        tools = self._tools
        done = self._stored(self.trial(candidate, size_bytes))
        trial = done.trial
        self.count(candidate.id, size_bytes)
        if done.attempt is not None and done.attempt.state is AttemptState.OK:
            # The driver was killed after the run and before it could be noted.
            return _as_run(
                self._request,
                done.attempt,
                done.measurement,
                limit_seconds=None,
                wall_seconds=_wall_seconds(done.attempt, done.measurement),
            )
        ends: list[tuple[Attempt, Measurement | None]] = []
        watch = Watch(
            began=lambda _: None, ended=lambda _, attempt, found: ends.append((attempt, found))
        )
        lost, began = "", tools.clock()
        try:
            tools.cluster(trial)
            began = tools.clock()  # to bring the cluster up is no part of a run
            self._run_trials(self._request.id, [trial], watch, limit_seconds)
        except _LOST as error:
            lost = error.message
            tools.cluster.look_again()
        took = tools.clock() - began
        if not ends:
            return _never_began(lost or "it never began", took)
        attempt, found = ends[-1]
        return _as_run(
            self._request, attempt, found, limit_seconds=limit_seconds, wall_seconds=took
        )

    def _stored(self, trial: Trial) -> Result:
        """Have a trial in the plan of the search's campaign, and return it as it is there.

        It comes behind all that was planned, also behind what was interrupted and is not due now.
        """
        store, campaign_id = self._tools.store, self._request.id
        if not any(row.id == campaign_id for row in store.campaigns()):
            spec = self._spec({}, trial.size_bytes, 1)
            self._begin(spec, [replace(trial, position=0)], campaign_id)
        else:
            planned = store.trials(campaign_id)
            if all(row.id != trial.id for row in planned):
                place = 1 + max((row.position for row in planned), default=-1)
                store.add_trials(campaign_id, [replace(trial, position=place)])
        return next(row for row in store.results(campaign_id) if row.trial.id == trial.id)

    def _begin(self, spec: CampaignSpec, trials: Sequence[Trial], campaign_id: str) -> None:
        campaign = new_campaign(
            spec,
            self._tools.declared,
            trials,
            campaign_id=campaign_id,
            texts=self._texts,
            spec_sha256=spec_digest(spec, self._tools.declared),
        )
        self._tools.store.add_campaign(campaign, trials)

    def _run_trials(
        self, campaign_id: str, trials: Sequence[Trial], watch: Watch, limit_seconds: float | None
    ) -> None:
        tools = self._tools
        policy = Policy(timeout_seconds=limit_seconds or _LONGEST_SECONDS)
        run_trials(
            tools.store,
            next(row for row in tools.store.campaigns() if row.id == campaign_id),
            trials,
            cluster=tools.cluster,
            bench=Bench(
                policy=policy,
                cache=tools.cache,
                progress=tools.follow.progress,
                text=self._texts,
            ),
            watch=watch,
        )

    def prove(self, candidate: Candidate, record: TuningRecord) -> ProofRuns:
        """Run the pairs: blocks of both cells, each in an order drawn from the seed."""
        store, proof = self._tools.store, record.proof
        if proof is None:
            raise ValueError("a proof must be planned before it runs")
        size_bytes = self._request.size_bytes
        both = [self._spec(row, size_bytes, proof.pairs) for row in ({}, candidate.settings)]
        spec = replace(both[0], matrices=tuple(row for each in both for row in each.matrices))
        trials = plan(spec, self._tools.declared, campaign_id=proof.campaign)
        if not any(row.id == proof.campaign for row in store.campaigns()):
            self._begin(spec, trials, proof.campaign)
        campaign = next(row for row in store.campaigns() if row.id == proof.campaign)
        lost = ""
        for _ in range(_PROOF_TRIES):
            left = left_of(store, campaign, Policy())
            if not left:
                break
            require_same_text(campaign, left, self._texts)
            watch = each_run(campaign, left, self._tools.follow)
            try:
                self._run_trials(campaign.id, left, watch, None)
            except _LOST as error:
                # Of a cluster's loss the attempts say more; what broke a connection is in none.
                lost = error.message if isinstance(error, RemoteError) else ""
                self._tools.cluster.look_again()
        if left_of(store, campaign, Policy()):
            reasons = [row.attempt.reason for row in store.results(campaign.id) if row.attempt]
            raise _proof_stopped(lost or next(filter(None, reasons), "it was never begun"))
        found: list[PairRun] = []
        results = store.results(campaign.id)
        for row in results:
            of_best = candidate.settings.items() <= row.trial.settings.items()
            found += _pair_runs(row, self._request, of_best=of_best)
        return ProofRuns(runs=found, failures=_failures(results))


def _proof_stopped(reason: str) -> RunError:
    """Return the error of a proof that cannot go on for now; its pairs so far are kept."""
    return RunError(
        f"the proof stopped, because a run was lost more than once: {reason}",
        hint="fix the cause, then run the same command with --continue",
    )


def _failures(results: Iterable[Result]) -> Sequence[str]:
    """Return why runs of a proof failed."""
    attempts = [row.attempt for row in results if row.attempt is not None]
    return [each.reason for each in attempts if each.state is AttemptState.FAILED]


def _pair_runs(row: Result, request: TuningRequest, *, of_best: bool) -> Sequence[PairRun]:
    """Return the one run of a proof that a result is; none if it has no verified value.

    A pair is one block, whichever start of the daemons an interrupted proof went on with.
    """
    if row.attempt is None or row.attempt.state is not AttemptState.OK or row.measurement is None:
        return []
    disturbed = "" if in_cell(row.measurement) else "; ".join(row.measurement.verdict_reasons)
    values = observe([row], lambda found: value_of(request.objective, found))
    return [
        PairRun(
            value=replace(value, start=(request.id, 1), daemons=""),
            of_best=of_best,
            disturbed=disturbed,
        )
        for value in values
    ]


def _wall_seconds(attempt: Attempt, found: Measurement | None) -> float:
    """Return how long an attempt took, to the second, with all that is around its job."""
    moments = (attempt.started_utc, attempt.ended_utc)
    first, last = (datetime.datetime.fromisoformat(text) for text in moments)
    return max((last - first).total_seconds(), found.duration_seconds if found else 0.0)


def _delete_outputs(live: LiveCluster, arguments: Iterable[str], run: str) -> None:
    """Delete what a run wrote to HDFS under its own name; a search of 100 runs would fill it.

    Best effort: what stays costs space, not correctness.
    """
    hdfs = WebHdfs(live.layout, live.master)
    for path in {_own_path(text, run) for text in arguments} - {""}:
        with contextlib.suppress(BoardclusterError):
            hdfs.delete(path if path.startswith("/") else f"/user/{live.layout.user}/{path}")


def _own_path(argument: str, run: str) -> str:
    """Return the path of HDFS in an argument, to the end of the part that has a run's own name.

    Returns:
        Empty where there is none, or where it is of another file system.
    """
    before, found, after = argument.partition(run)
    path = before.rpartition("=")[2] + found + after.partition("/")[0]
    if scheme := _SCHEME.match(path):
        if scheme["name"].lower() != "hdfs":
            return ""
        path = path[scheme.end() :]
    return path if run in path else ""


class ProgramRuns:
    """Runs of the user's own program: a record each, as ``submit`` makes them; none is verified.

    Args:
        tools: what runs need.
        request: what is tuned.
        arguments: of the program, secrets included, which the request does not have.
        cwd: folder to submit from.
    """

    def __init__(
        self, tools: TuneTools, request: TuningRequest, *, arguments: tuple[str, ...], cwd: Path
    ) -> None:
        self._tools = tools
        self._request = request
        self._arguments = arguments
        self._cwd = cwd

    def require_same_input(self, base: Candidate) -> None:
        """Accept it: nobody knows what a program reads, and the order's digest has the program."""

    def _submit(self, candidate: Candidate, limit_seconds: float | None) -> Attempt:
        request, tools = self._request, self._tools
        program = UserProgram(
            engine=request.engine,
            path=Path(request.target),
            arguments=self._arguments,
            main=request.main,
            settings={**candidate.settings},
        )
        campaign, trial = new_program_trial(tools.declared, program, profile=request.base)
        arguments = tuple(text.replace(_RUN, trial.id) for text in self._arguments)
        live = tools.cluster(trial)
        require_space_for_run(live.home, on_this_machine=live.spec.capabilities.on_this_machine)
        try:
            attempt, _ = submit_program(
                live,
                tools.store,
                campaign,
                trial,
                replace(program, arguments=arguments),
                timeout_seconds=limit_seconds or _LONGEST_SECONDS,
                cwd=self._cwd,
                told=tools.follow.line,
            )
        finally:
            _delete_outputs(live, arguments, trial.id)
        return attempt

    def run(self, candidate: Candidate, size_bytes: int, limit_seconds: float | None) -> TuneRun:
        """Run the program once; a limit stops it."""
        del size_bytes
        began = self._tools.clock()
        try:
            attempt = self._submit(candidate, limit_seconds)
        except _LOST as error:
            self._tools.cluster.look_again()
            return _never_began(error.message, self._tools.clock() - began)
        result = self._result(attempt.name)
        ran = _as_run(
            self._request,
            attempt,
            result.measurement if result else None,
            limit_seconds=limit_seconds,
            wall_seconds=self._tools.clock() - began,
        )
        if ran.outcome is Outcome.INVALID:
            self._tools.cluster.look_again()
        return ran

    def _result(self, run: str) -> Result | None:
        campaign = run.partition("/")[0].rpartition("-submit-")[0]
        return next(iter(self._tools.store.results(campaign)), None)

    def prove(self, candidate: Candidate, record: TuningRecord) -> ProofRuns:
        """Run the pairs, each in an order drawn from the seed."""
        if record.proof is None:
            raise ValueError("a proof must be planned before it runs")
        base = record.candidates[BASE]
        draw = random.Random(self._request.seed)  # noqa: S311  an order to repeat, not a secret
        done = {(row.pair, row.candidate) for row in record.pairs}
        for pair in range(1, record.proof.pairs + 1):
            both = [candidate, base]
            draw.shuffle(both)
            for one in both:
                if (pair, one.id) not in done:
                    self._tools.follow.line(f"proof: pair {pair}, {one.id}")
                    ran = self.run(one, 0, None)
                    if ran.outcome is Outcome.INVALID:
                        ran = self.run(one, 0, None)
                    if ran.outcome is Outcome.INVALID:
                        raise _proof_stopped(ran.reason)
                    record.add(PairRecord(pair=pair, candidate=one.id, run=ran.run))
        found: list[PairRun] = []
        results: list[Result] = []
        for place, row in enumerate(record.pairs):
            result = self._result(row.run) if row.run else None
            if result is None:
                continue
            results.append(result)
            for run in _pair_runs(result, self._request, of_best=row.candidate != BASE):
                value = replace(run.value, block=row.pair, position=place)
                found.append(replace(run, value=value))
        return ProofRuns(runs=found, failures=_failures(results))
