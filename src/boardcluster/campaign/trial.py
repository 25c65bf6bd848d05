"""One attempt at a trial: conditions, jobs, accounting, proof, and what it came to."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from boardcluster.analysis.trust import count_failed_tasks
from boardcluster.campaign.accounting import (
    NO_STORAGE,
    intermediate_bytes,
    left_out_between,
    read_between,
    storage_totals,
    written_between,
)
from boardcluster.campaign.conditions import (
    await_copies,
    cool_down_seconds,
    prepare_conditions,
)
from boardcluster.campaign.dilation_correction import correct_for_dilation
from boardcluster.campaign.execution import NO_ROOM, SAFE_MODE, SAFE_MODE_WORDS, end_submission
from boardcluster.campaign.heartbeat import Heartbeat
from boardcluster.campaign.job import JobRun, RunPaths
from boardcluster.campaign.observation import NO_RUNS, EarlierRuns, Observed, observing
from boardcluster.campaign.trial_jobs import jobs_of, settings_of
from boardcluster.errors import (
    BoardclusterError,
    CapacityError,
    DriverSpaceError,
    HostError,
    InstallError,
    MeasuringLimitError,
    NotThereError,
    RemoteError,
    SpecError,
    StalledError,
    UnreachableError,
    UnwatchedError,
)
from boardcluster.fetch.cache import Progress
from boardcluster.records import (
    AttemptState,
    Dataset,
    Engine,
    Measurement,
    PlannedFault,
    Policy,
    Telemetry,
    Trial,
    Verification,
    in_cell,
)
from boardcluster.services.disk_space import no_block_words, sick_disks
from boardcluster.services.lifecycle import health
from boardcluster.services.operation import LiveCluster, dead_daemons
from boardcluster.services.yarn import unhealthy_nodes
from boardcluster.telemetry.standstill import STILL_SECONDS
from boardcluster.twin.heat import heat_models
from boardcluster.units import format_bytes
from boardcluster.workloads.base import InputKind, Proof

__all__ = ["Bench", "TrialEnd", "run_trial"]

_T = TypeVar("_T")

_FULL_SPEED = "a warm-up at this machine's full speed: its time says nothing about the boards"

_OOM_WORDS = re.compile(r"(^|: )oom \(")
"""How a failure for lack of memory is told; a node that swaps stands still, too."""

_NOT_THE_TRIALS: tuple[tuple[tuple[type[BoardclusterError], ...], str], ...] = (
    ((StalledError, MeasuringLimitError), ""),
    ((CapacityError,), "storage: "),
    ((UnreachableError,), "node_lost: "),  # of an outage that is over; else the board is lost
    ((HostError, SpecError, InstallError, RemoteError), "host: "),
)
"""Errors that say nothing about the trial, and how the reason begins; the first that fits.

What a job itself does wrong is a RunError, or that something is not there which it should have
written; what else fails on a node, or does not answer in time, is not the job's doing.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What all trials of a campaign share."""

    policy: Policy
    """How every run is treated."""
    cache: Path
    """The driver's cache folder."""
    progress: Progress
    """Told what is being done."""
    text: Callable[[Trial], Dataset]
    """Returns the prepared text of a trial."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attempt:
    live: LiveCluster
    trial: Trial
    bench: Bench
    folder: Path
    tag: str
    earlier: EarlierRuns
    stop: threading.Event = field(default_factory=threading.Event)
    losses: list[str] = field(default_factory=list)
    """What the heartbeat lost."""
    sick: list[str] = field(default_factory=list)
    """Those of them that are disks; they may be well again when the attempt is judged."""
    clock_faults: list[str] = field(default_factory=list)
    """What clocks did while it ran."""
    standstills: dict[str, str] = field(default_factory=dict)
    """Which nodes or disks stood still while it ran."""
    remarks: list[str] = field(default_factory=list)
    """What is worth knowing of the moment in which it began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialEnd:
    """What one attempt came to."""

    state: AttemptState
    """How it ended."""
    reason: str
    """Why it is not ok, in one line; empty if it is."""
    measurement: Measurement | None
    """What it yielded, if it did."""
    lost: str = ""
    """The daemon or node that was lost, in words; empty if none was."""
    telemetry: Telemetry | None = None
    """The samples, if there are any."""
    passing: bool = False
    """Whether it is invalid for what passes by itself, as a disk that stood still: try again."""

    @property
    def excluded(self) -> bool:
        """Whether the run is verified, but so disturbed that it is out of its cell: try again."""
        if self.state is not AttemptState.OK or self.measurement is None:
            return False
        return not in_cell(self.measurement)


def run_trial(
    live: LiveCluster,
    trial: Trial,
    bench: Bench,
    *,
    folder: Path,
    attempt: str,
    earlier: EarlierRuns = NO_RUNS,
) -> TrialEnd:
    """Run the jobs of a trial once; what earlier runs say is what it is judged against.

    Whatever goes wrong is the end of the attempt, but for one error.

    On emulated boards a warm-up runs at this machine's full speed: it warms daemons and caches as
    one at the boards' speed does, in a fraction of the time. It has no fault then, which would last
    as long as at the boards' speed, so that the load would be over first. Where heat is modelled it
    runs like any other, since it also has to warm the boards.

    Raises:
        DriverSpaceError: this machine's disk is too full to fetch or to prove what was run.
    """
    if not trial.warm_up or live.limiter is None or heat_models(live.spec.nodes):
        return _run_once(live, trial, bench, folder=folder, attempt=attempt, earlier=earlier)
    with live.unlimited():
        fast = replace(live, limiter=None, state=replace(live.state, dilation=1.0))
        faultless = replace(trial, fault=PlannedFault.NONE)
        end = _run_once(fast, faultless, bench, folder=folder, attempt=attempt, earlier=earlier)
    if end.measurement is None:
        return end
    spared = () if faultless == trial else (f"this warm-up had no fault {trial.fault}",)
    remarks = (*end.measurement.remarks, _FULL_SPEED, *spared)
    return replace(end, measurement=replace(end.measurement, remarks=remarks))


def _run_once(
    live: LiveCluster,
    trial: Trial,
    bench: Bench,
    *,
    folder: Path,
    attempt: str,
    earlier: EarlierRuns,
) -> TrialEnd:
    this = _Attempt(
        live=live, trial=trial, bench=bench, folder=folder, tag=attempt, earlier=earlier
    )
    jobs: list[JobRun] = []
    begun = False
    try:
        jobs += _jobs(this)
        with live.unlimited():
            with _watched(this) if trial.engine is Engine.MPI else contextlib.nullcontext():
                for job in jobs:
                    job.prepare()
            this.remarks.extend(await_copies(live, bench.policy, progress=bench.progress))
        _require_room(live, jobs)
        begun = True
        measurement, observed = _measured(this, jobs)
    except BoardclusterError as error:
        if begun and isinstance(error, DriverSpaceError):
            raise  # every further run of that size would only be found too large at its end
        if isinstance(error, RemoteError) and not this.losses:  # else it was given up before
            _give_up(this)  # what was submitted may run on, beside the next
        return _judged(this, error)
    finally:
        with live.unlimited():
            for job in jobs:
                job.clean()
    if lost := this.losses or dead_daemons(live):
        kind = "storage" if this.sick else "node_lost"
        words = f"{kind}: {', '.join(lost)} during the run; the output was right"
        return TrialEnd(
            state=AttemptState.INVALID,
            reason=words,
            measurement=measurement,
            lost=", ".join(lost),
            telemetry=observed.telemetry,
        )
    return TrialEnd(
        state=AttemptState.INVALID if observed.refusal else AttemptState.OK,
        reason=observed.refusal,
        measurement=measurement,
        telemetry=observed.telemetry,
        passing=bool(observed.refusal),
    )


def _jobs(this: _Attempt) -> list[JobRun]:
    live, trial, bench = this.live, this.trial, this.bench
    wanted = jobs_of(trial, live.spec, live.layout.profile)
    paths = RunPaths(
        folder=this.folder,
        attempt=this.tag,
        cache=bench.cache,
        timeout_seconds=bench.policy.timeout_seconds,
        progress=bench.progress,
        stop=this.stop,
    )
    return [
        JobRun(
            live,
            job,
            paths,
            dataset=bench.text(trial) if job.workload.input_kind is InputKind.TEXT else None,
            settings=settings_of(trial),
            in_mix=len(wanted) > 1,
        )
        for job in wanted
    ]


def _require_room(live: LiveCluster, jobs: Sequence[JobRun]) -> None:
    """Refuse a run whose output and intermediate data the nodes cannot hold.

    Raises:
        CapacityError: with the arithmetic.
    """
    needed = sum(job.run_bytes for job in jobs)
    if not needed:
        return
    free = health(live.layout, live.master).hdfs_free_bytes
    if live.spec.capabilities.emulated:  # DataNodes on one disk each count it as their own
        with contextlib.suppress(OSError):
            seen = os.statvfs(live.home)
            free = min(free, seen.f_bavail * seen.f_frsize)
    if needed > free:
        parts = " + ".join(f"{format_bytes(job.run_bytes)} ({job.label})" for job in jobs)
        raise CapacityError(
            f"output and intermediate data take {parts} = {format_bytes(needed)}, but the nodes "
            f"have {format_bytes(free)} left",
            hint="use a smaller size, or free space on the nodes' disks",
        )


def _measured(this: _Attempt, jobs: Sequence[JobRun]) -> tuple[Measurement, Observed]:
    """Bring about the conditions, run, prove, and put together what was measured."""
    live, trial, bench = this.live, this.trial, this.bench
    policy, dilation = bench.policy, live.layout.dilation
    longest_seconds = policy.timeout_seconds * len(jobs) * dilation
    waits_seconds = cool_down_seconds(live, policy) + policy.cool_wait_seconds
    with (
        contextlib.ExitStack() as watched,
        observing(
            live,
            this.folder,
            this.tag,
            hertz=policy.telemetry_hertz,
            lasting_seconds=waits_seconds + longest_seconds,
        ) as observation,
    ):
        watched.callback(lambda: this.clock_faults.extend(observation.clock_faults()))
        still_seconds = STILL_SECONDS * dilation
        watched.callback(lambda: this.standstills.update(observation.standstills(still_seconds)))

        remarks = prepare_conditions(live, policy, drop=False, progress=bench.progress)
        accounted = not trial.engine.is_service
        before = storage_totals(live) if accounted else {}
        observation.settle()
        with _watched(this, hurry=observation.hurry):
            duration_seconds = _run_all(this, jobs)
        after = storage_totals(live) if accounted else {}
        observed = observation.outcome(
            started_seconds=min(job.started_seconds for job in jobs),
            ended_seconds=max(job.ended_seconds for job in jobs),
            phases=_by_submission(jobs, [job.spans_seconds for job in jobs]),
            engine=_by_submission(jobs, [job.engine_spans for job in jobs]),
            earlier=this.earlier,
        )
    remarks += (*this.remarks, *observed.remarks, *left_out_between(before, after))
    remarks += () if accounted else (NO_STORAGE,)
    remarks += tuple(remark for job in jobs for remark in job.remarks)
    with live.unlimited():
        proofs = [job.prove() for job in jobs]
    remarks += tuple(remark for proof in proofs for remark in proof.remarks)
    counted = [intermediate_bytes(trial.engine, job.counters) for job in jobs]
    known = [value for value in counted if value is not None]
    measurement = Measurement(
        duration_seconds=duration_seconds,
        input_bytes=sum(job.input_bytes for job in jobs),
        output_bytes=sum(proof.output_bytes for proof in proofs),
        counters=_merged_counters(jobs),
        verification=_together(proofs),
        exit_status=0,
        application_id=jobs[-1].application_id,
        figures=_labelled(
            [(job.label, dict(p.figures)) for job, p in zip(jobs, proofs, strict=True)]
        ),
        phases_seconds=_phases(jobs),
        intermediate_bytes=sum(known) if len(known) == len(counted) else None,
        node_written_bytes=written_between(before, after),
        node_read_bytes=read_between(before, after),
        remarks=tuple(dict.fromkeys(remarks)),
        energy=observed.energy,
        **observed.judged,
    )
    measurement = count_failed_tasks(measurement)
    return correct_for_dilation(measurement, live.state.dilation), observed


@contextlib.contextmanager
def _watched(this: _Attempt, *, hurry: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Give the attempt up as soon as a node, a daemon or a disk is lost.

    Around what prepares a job only where MPI does: it waits for a lost worker for ever, and Hadoop
    does its work elsewhere.

    Args:
        this: the attempt.
        hurry: called first when something is lost.
    """

    def lose(what: str) -> None:
        this.losses.append(what)
        hurry()
        _give_up(this)

    beats = Heartbeat(this.live, on_loss=lose)
    try:
        with beats:
            yield
    finally:
        this.sick.extend([beats.lost] if beats.is_storage else [])


def _give_up(this: _Attempt) -> None:
    """End what was submitted; a second time for what was starting at that very moment."""
    this.stop.set()
    for _ in range(2):
        with contextlib.suppress(BoardclusterError):
            end_submission(this.live, this.tag)


def _run_all(this: _Attempt, jobs: Sequence[JobRun]) -> float:
    """Run the jobs, so many at once; return the duration of the whole.

    One after the other that is the sum of their phases, without what lies between them: gathering
    logs, dropping caches. At once it is the time from the first start to the last end.
    """
    if this.trial.concurrency == 1 or len(jobs) == 1:
        for job in jobs:
            job.run()
        return sum(job.duration_seconds for job in jobs)

    def one(job: JobRun) -> None:
        try:
            job.run()
        except BaseException:
            this.stop.set()
            raise

    pool = ThreadPoolExecutor(this.trial.concurrency)
    try:
        futures = [pool.submit(one, job) for job in jobs]
        done, _ = wait(futures, return_when=FIRST_EXCEPTION)
        for future in [each for each in futures if each in done]:
            future.result()
    except BaseException:
        _give_up(this)
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    return max(job.ended_seconds for job in jobs) - min(job.started_seconds for job in jobs)


def _judged(this: _Attempt, error: BoardclusterError) -> TrialEnd:
    """Say whether a failure is the trial's own, or says nothing about it.

    Clocks come first: with this machine asleep nodes seem lost, and a clock that is set ends tokens
    and leases. Then a sick disk: its DataNode ends soon after, and would be called a lost node. A
    disk that stood still and works again is known by the samples alone.
    """
    live = this.live
    words = " ".join(error.message.split())[:1000]
    if this.clock_faults:
        return TrialEnd(
            state=AttemptState.INVALID,
            reason=f"clock: {'; '.join(this.clock_faults)}; {words}"[:1000],
            measurement=None,
            lost=", ".join(dead_daemons(live)),
            passing=True,
        )
    lost = list(this.losses) or dead_daemons(live)
    ill = sick_disks(live.layout, live.remotes, live.as_root)
    sick = [f"{name}: {what}" for name, what in ill.items()] or list(this.sick)
    with contextlib.suppress(BoardclusterError):
        sick += unhealthy_nodes(live.layout, live.master)
    if SAFE_MODE.search(error.message):
        sick.append(SAFE_MODE_WORDS)
    if not sick and not lost and not _OOM_WORDS.search(words):
        sick = [f"{name}: {what}" for name, what in this.standstills.items()]
    if not sick and not lost and NO_ROOM.search(error.message):
        sick = [no_block_words(live.layout, live.remotes)]
    if sick or lost:
        kind, named = ("storage", "; ".join(sick)) if sick else ("node_lost", ", ".join(lost))
        return TrialEnd(
            state=AttemptState.INVALID,
            reason=f"{kind}: {named}; {words}"[:1000],
            measurement=None,
            lost=named,
        )
    start = next((start for errors, start in _NOT_THE_TRIALS if isinstance(error, errors)), None)
    if start is None or isinstance(error, NotThereError):
        return TrialEnd(state=AttemptState.FAILED, reason=words, measurement=None)
    return TrialEnd(
        state=AttemptState.INVALID,
        reason=f"{start}{words}",
        measurement=None,
        passing=isinstance(error, RemoteError | UnwatchedError),
    )


def _merged_counters(jobs: Sequence[JobRun]) -> dict[str, int]:
    counters: dict[str, int] = {}
    for job in jobs:
        for name, value in job.counters.items():
            counters[name] = counters.get(name, 0) + value
    return counters


def _labelled(parts: Sequence[tuple[str, dict[str, float]]]) -> dict[str, float]:
    if len(parts) == 1:
        return parts[0][1]
    return {f"{label}/{name}": value for label, part in parts for name, value in part.items()}


def _phases(jobs: Sequence[JobRun]) -> dict[str, float]:
    if len(jobs) == 1:
        return jobs[0].phases_seconds
    phases = {job.label: job.duration_seconds for job in jobs}
    return phases | _labelled([(job.label, job.phases_seconds) for job in jobs])


def _by_submission(jobs: Sequence[JobRun], spans: Sequence[Mapping[str, _T]]) -> dict[str, _T]:
    """Return what each job has by submission under names that only one of a mix has."""
    return {
        name if len(jobs) == 1 else f"{job.label}/{name}": span
        for job, row in zip(jobs, spans, strict=True)
        for name, span in row.items()
    }


def _together(proofs: Sequence[Proof]) -> Verification:
    """Join the proofs of a mix: each must hold, so the digests are over all of them."""
    rows = [proof.verification for proof in proofs]
    if len(rows) == 1:
        return rows[0]
    expected, actual = hashlib.sha256(), hashlib.sha256()
    for row in rows:
        expected.update(row.expected_sha256.encode())
        actual.update(row.actual_sha256.encode())
    return Verification(
        method="; ".join(dict.fromkeys(row.method for row in rows)),
        expected_sha256=expected.hexdigest(),
        actual_sha256=actual.hexdigest(),
        records=sum(row.records for row in rows),
    )
