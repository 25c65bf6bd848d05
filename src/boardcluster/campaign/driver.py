"""Run trials, one after the other; the only place that decides what becomes a result."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from boardcluster.campaign.execution import Execution, Outcome, attempt_tag
from boardcluster.campaign.fingerprint import take_fingerprint
from boardcluster.errors import BoardclusterError, ClusterError, RunError, StalledError
from boardcluster.fetch.cache import Progress
from boardcluster.records import (
    Attempt,
    AttemptState,
    Campaign,
    Dataset,
    Measurement,
    Trial,
    Verification,
)
from boardcluster.services.operation import LiveCluster, dead_daemons
from boardcluster.services.webhdfs import WebHdfs
from boardcluster.store import Store
from boardcluster.workloads.base import Prepared, Submission, Workload

__all__ = ["Watch", "interruption", "now_utc", "run_campaign"]

_OUTPUT_FOLDER = "/boardcluster/output"


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """How a caller follows a campaign.

    Attributes:
        progress: told what is being prepared.
        began: told of each trial before it runs.
        ended: told of each attempt, with its measurement if there is one.
    """

    progress: Progress
    began: Callable[[Trial], None]
    ended: Callable[[Trial, Attempt, Measurement | None], None]


def now_utc() -> str:
    """Return the time as stored: ISO 8601, UTC, to the second."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def interruption(error: BaseException) -> str:
    """Return why an attempt has no end of its own, as stored."""
    if isinstance(error, KeyboardInterrupt | SystemExit):
        return "interrupted: Ctrl-C or SIGTERM"
    if isinstance(error, OSError) and error.strerror:
        return f"interrupted: {error.strerror}"
    return f"interrupted: {type(error).__name__}"


def run_campaign(
    live: LiveCluster,
    store: Store,
    campaign: Campaign,
    trials: Sequence[Trial],
    *,
    workload: Workload,
    dataset: Dataset,
    cache: Path,
    timeout_seconds: float,
    watch: Watch,
) -> None:
    """The whole life of a campaign.

    1. Store the plan: from here on, planned = ok + failed + invalid + pending, always.
    2. Prepare: put the input into HDFS and compute independently what the output must be.
    3. For each trial, in the planned order:
       a. begin an attempt (state ``running``) with the fingerprint of what it runs on;
       b. clear the place of its output;
       c. submit the job; the driver's monotonic clock runs around the engine's own submission;
       d. gather counters, logs and configuration;
       e. verify the output against the independent answer;
       f. look whether every daemon lived through it: a faulted run is no measurement;
       g. commit state and measurement in one transaction;
       h. delete the output.
    4. A trial that fails does not stop the campaign; a cluster that is no longer whole does.

    Raises:
        ClusterError: a daemon or node was lost; the trials left stay pending.
    """
    store.add_campaign(campaign, trials)
    prepared = workload.prepare(live, dataset, cache=cache, progress=watch.progress)
    fingerprint = take_fingerprint(live)
    for trial in trials:
        watch.began(trial)
        attempt = store.begin_attempt(trial.id, fingerprint, now_utc())
        try:
            state, reason, measurement = _attempt(
                live,
                trial,
                workload,
                prepared,
                folder=store.artefact_folder(attempt),
                timeout_seconds=timeout_seconds,
            )
        except BaseException as error:
            _finish(store, attempt, AttemptState.INVALID, interruption(error), None)
            raise
        attempt = _finish(store, attempt, state, reason, measurement)
        watch.ended(trial, attempt, measurement)
        if dead := dead_daemons(live):
            raise ClusterError(
                f"lost during the campaign: {', '.join(dead)}; the trials left stay pending",
                hint="see `boardcluster status`; start afresh with `boardcluster down` and `up`",
            )


def _finish(
    store: Store,
    attempt: Attempt,
    state: AttemptState,
    reason: str,
    measurement: Measurement | None,
) -> Attempt:
    return store.finish(
        attempt, state=state, reason=reason, ended_utc=now_utc(), measurement=measurement
    )


def _attempt(
    live: LiveCluster,
    trial: Trial,
    workload: Workload,
    prepared: Prepared,
    *,
    folder: Path,
    timeout_seconds: float,
) -> tuple[AttemptState, str, Measurement | None]:
    """Steps b to f and h of run_campaign; returns what g stores."""
    tag = attempt_tag(trial.id, int(folder.name))
    output = f"{_OUTPUT_FOLDER}/{tag}"
    hdfs = WebHdfs(live.layout, live.master)
    execution: Execution | None = None
    try:
        execution = Execution(live, folder=folder, engine=trial.engine, tag=tag)
        job = Submission(engine=trial.engine, conf=execution.conf, tag=tag, output_path=output)
        hdfs.delete(output)
        command = workload.command(live, prepared, job)
        outcome = execution.run(command, timeout_seconds=timeout_seconds)
        if outcome.failure:
            raise RunError(outcome.failure)
        if not outcome.application_id:
            raise RunError(
                "the job ended well, but YARN never saw it: it did not run on the cluster"
            )
        verification = workload.verify(live, prepared, job, work=folder / "work")
        measurement = _measurement(
            outcome, verification, prepared, output_bytes=hdfs.size_bytes(output)
        )
    except BoardclusterError as error:
        if dead := dead_daemons(live):
            return AttemptState.INVALID, f"node_lost: {', '.join(dead)}; {_line(error)}", None
        stalled = isinstance(error, StalledError)
        return AttemptState.INVALID if stalled else AttemptState.FAILED, _line(error), None
    finally:
        if execution is not None:
            execution.discard()
        with contextlib.suppress(BoardclusterError):  # what is left costs space, not correctness
            hdfs.delete(output)
    if dead := dead_daemons(live):
        words = f"node_lost: {', '.join(dead)} ended during the run; the output was right"
        return AttemptState.INVALID, words, measurement
    return AttemptState.OK, "", measurement


def _line(error: BoardclusterError) -> str:
    return " ".join(error.message.split())[:1000]


def _measurement(
    outcome: Outcome, verification: Verification, prepared: Prepared, *, output_bytes: int
) -> Measurement:
    return Measurement(
        duration_seconds=outcome.duration_seconds,
        input_bytes=prepared.dataset.size_bytes,
        output_bytes=output_bytes,
        counters=outcome.counters,
        verification=verification,
        exit_status=outcome.exit_status,
        application_id=outcome.application_id,
    )
