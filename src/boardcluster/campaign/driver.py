"""Run trials, one after the other; the only place that decides what becomes a result."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from boardcluster.analysis.trust import precision_reached
from boardcluster.campaign.awake import kept_awake
from boardcluster.campaign.execution import attempt_tag, clear_leftovers, end_submission
from boardcluster.campaign.fingerprint import take_fingerprint
from boardcluster.campaign.observation import EarlierRuns
from boardcluster.campaign.recovery import TRIES_MOST, Recovery, cause_of
from boardcluster.campaign.trial import Bench, TrialEnd, run_trial
from boardcluster.campaign.trial_jobs import jobs_of
from boardcluster.errors import (
    BoardclusterError,
    ClusterError,
    DriverSpaceError,
    HostError,
    LockedError,
    RemoteError,
)
from boardcluster.factors import levels
from boardcluster.records import (
    Attempt,
    AttemptState,
    Campaign,
    Fingerprint,
    Measurement,
    OnLoss,
    Result,
    Trial,
    in_cell,
)
from boardcluster.services.declaration import own_part_digests
from boardcluster.services.disk_space import (
    full_disk,
    require_space_for_run,
)
from boardcluster.services.operation import LiveCluster
from boardcluster.store import Store
from boardcluster.workloads.base import InstallContext

__all__ = ["Watch", "interruption", "now_utc", "run_trials"]

_SAME_CAUSES = 3
"""So many trials in a row without a result, for one cause, stop a campaign: the next has it, too.
Not of one cell alone: what cannot run there says nothing of other cells."""

_SETTLE_SECONDS = 10.0
"""Least pause before a disturbed run is repeated: what disturbs often comes in short bursts."""

_WITHOUT_RESULT = 2
"""Repeats that any run may have that has no result because of what passes by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """How a caller follows a campaign."""

    began: Callable[[Trial], None]
    """Told of each trial before it runs."""
    ended: Callable[[Trial, Attempt, Measurement | None], None]
    """Told of each attempt, with its measurement if there is one."""


def now_utc() -> str:
    """Return the time as stored: ISO 8601, UTC, to the second."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def interruption(error: BaseException) -> str:
    """Return why an attempt has no end of its own, as stored."""
    if isinstance(error, KeyboardInterrupt | SystemExit):
        return "interrupted: Ctrl-C or SIGTERM"
    if isinstance(error, DriverSpaceError):
        return f"storage: {' '.join(error.message.split())}"[:1000]
    if isinstance(error, OSError) and error.strerror:
        return f"interrupted: {error.strerror}"
    return f"interrupted: {type(error).__name__}"


def run_trials(
    store: Store,
    campaign: Campaign,
    trials: Sequence[Trial],
    *,
    cluster: Callable[[Trial], LiveCluster],
    bench: Bench,
    watch: Watch,
    recovery: Recovery | None = None,
) -> None:
    """Run trials of a campaign whose plan is stored: step 7 of ``campaign.life.run_campaign``.

    From the moment the plan is stored, planned = ok + failed + invalid + pending, always.

    1. For each trial to run, in the planned order:
       a. have the cluster in the trial's form: its workers, its profile, its master; where the
          daemons were started since the warm-ups of the trial's cell, run those again first;
       b. refuse to continue where the driver's disk is full, here and wherever it cannot hold
          what a proof reads: results must not be lost; have on the nodes the programs that come
          in no package;
       c. begin an attempt (state ``running``) with the fingerprint of what it runs on;
       d. put the input in place and find out, independently, what the output must be;
       e. bring about the conditions: cool down, trim, drop page caches;
       f. run the trial's jobs; the driver's monotonic clock runs around the engine's own
          submission, a heartbeat watches every node, an agent samples it, the kernel counts
          every byte;
       g. gather counters, logs, history and configuration;
       h. verify the output against the independent answer;
       i. look whether every daemon lived through it: a faulted run is no measurement;
       j. judge by the telemetry of every node, and by its clocks and the driver's, whether the
          number can be trusted;
       k. delete the output, and commit state, measurement and samples in one transaction;
       l. repeat, after a cool-down, what is too disturbed for its cell, as often as the policy
          says, and up to twice in any case what has no result because of what passes by itself;
       m. after a loss of a node, a daemon or a disk: have it back as the policy says, and try the
          trial again; see ``Recovery``.
    2. A trial that fails does not stop the campaign; a cluster that does not come back does, and
       so do three trials in a row, of several cells, without a result for one cause. Without a
       ``recovery`` any loss stops it.

    Raises:
        ClusterError: a daemon or node was lost, the cluster does not take a variant, or one cause
            ended three trials in a row; the trials left stay pending.
        CapacityError: the driver's disk is full, or too full to prove what was run; the trials
            left stay pending.
    """
    with kept_awake():
        each = _Trials(
            store, campaign, cluster=cluster, bench=bench, watch=watch, recovery=recovery
        )
        for trial in trials:
            each.run(trial)


class _Trials:
    """Runs trials one after the other, each until an attempt at it was not lost."""

    def __init__(
        self,
        store: Store,
        campaign: Campaign,
        *,
        cluster: Callable[[Trial], LiveCluster],
        bench: Bench,
        watch: Watch,
        recovery: Recovery | None,
    ) -> None:
        self._store = store
        self._campaign = campaign
        self._cluster = cluster
        self._bench = bench
        self._watch = watch
        self._recovery = recovery
        self._was_up = recovery is not None and recovery.is_up  # of a further round it is
        self._known: tuple[LiveCluster, dict[str, str], Fingerprint] | None = None
        self._without: list[tuple[str, object]] = []
        """Cause and cell of the latest trials that have no result."""
        self._begun: list[str] = []
        """Tags of the attempts at the trial that is being run."""
        self._lost: list[str] = []
        """Tags of attempts that were lost: nodes that were out of reach may still run them."""
        rows = store.results(campaign.id)  # once, at the first run: every run asks
        self._durations = _Durations(rows)
        self._warm_ups = _WarmUps(rows)

    def run(self, trial: Trial) -> None:
        """Run a trial, again after each loss that the recovery mends."""
        recovery = self._recovery
        for tries in range(1, TRIES_MOST + 1):
            if recovery is not None and recovery.skips(trial):
                return
            try:
                end = self._tried(trial)
            except (ClusterError, RemoteError) as error:
                # What never came up was not lost: a person who has just begun is told at once.
                if recovery is None or isinstance(error, LockedError):
                    raise
                if not self._was_up and not recovery.is_of_before(error):
                    raise
                lost, way_out = error.message, error.hint
            except DriverSpaceError as error:
                hint = f"{error.hint}, then {self._how_to_go_on()}"
                raise DriverSpaceError(error.message, hint=hint) from error
            else:
                if not end.lost:
                    self._stop_at_one_cause(trial, end)
                    return
                lost, way_out = end.lost, ""
            self._lost += self._begun
            self._recover(trial, lost, tries, way_out)

    def _recover(self, trial: Trial, lost: str, tries: int, way_out: str) -> None:
        """Have the cluster back; ``way_out`` is what helps against the loss, if that is known.

        Raises:
            ClusterError: it does not come back, or the policy is to stop.
        """
        still = lost
        if self._recovery is not None:
            still = self._recovery.after(trial, lost, tries=tries)
        if still:
            helps = (
                way_out or "see `boardcluster status`; restart with `boardcluster down` and `up`"
            )
            if " full" in still:
                helps = "free space on the node"
            raise ClusterError(
                f"lost during campaign {self._campaign.id}: {still}; the other trials stay pending",
                hint=f"{helps}, then {self._how_to_go_on()}",
            )

    def _how_to_go_on(self, further: str = "") -> str:
        """Say how the trials left are run; only what `run FILE` began can be resumed."""
        if not self._campaign.is_resumable:
            return "run the command again"
        return f"continue with `boardcluster run FILE --resume{further}`"

    def _tried(self, trial: Trial) -> TrialEnd:
        """Make attempts at a trial, and before at the warm-ups that its cell lacks in this start.

        With a full disk of the master it is lost before it begins.

        Raises:
            ClusterError: the cluster does not take the trial's variant.
            CapacityError: the driver's disk is full.
        """
        bench = self._bench
        self._begun = []
        live = self._cluster(trial)
        self._was_up = True
        if self._lost:
            for tag in self._lost:
                end_submission(live, tag)
            clear_leftovers(live)
            self._lost = []
        require_space_for_run(live.home, on_this_machine=live.spec.capabilities.on_this_machine)
        if full := full_disk(live.layout, live.master, live.spec.master):
            lost = f"{live.spec.master.name}: {full}"
            reason = f"storage: {lost}"
            return TrialEnd(state=AttemptState.INVALID, reason=reason, measurement=None, lost=lost)
        for warm_up in self._warm_ups.due(trial, live.state.identity):
            bench.progress("the daemons were started since the warm-up: it runs again", 0, 0)
            end = self._attempted(live, warm_up)
            if end.lost:
                return end
        return self._attempted(live, trial)

    def _attempted(self, live: LiveCluster, trial: Trial) -> TrialEnd:
        """Make an attempt at a trial on a cluster, and more where it was only disturbed."""
        bench = self._bench
        parts = own_part_digests(live.spec.nodes)  # read at each run, so they count as they are now
        if self._known is None or self._known[0] is not live or self._known[1] != parts:
            self._known = (live, parts, take_fingerprint(live))
        fingerprint = self._known[2]
        run = partial(
            _run,
            self._store,
            live,
            fingerprint,
            trial,
            bench=bench,
            watch=self._watch,
            earlier_seconds=self._durations.of(trial),
            begun=self._begun.append,
        )
        end = run()
        repeats = 0
        while not end.lost and repeats < self._repeats_most(end):
            repeats += 1
            bench.progress("disturbed: cooling down before repeating it", 0, 0)
            time.sleep(max(_SETTLE_SECONDS, bench.policy.cool_down_seconds))
            end = run(
                before="was verified, but too disturbed" if end.excluded else "was invalid, too"
            )
        if end.state is AttemptState.INVALID:
            self._known = None  # what made it so may have changed the setup
        self._durations.note(trial, end.state, end.measurement)
        if not end.lost:
            self._warm_ups.note(trial, live.state.identity)
        return end

    def _repeats_most(self, end: TrialEnd) -> int:
        """Return how often a trial may be repeated after an attempt that came to this.

        Without a result up to twice in any case where losses are mended: a medium or a node that
        stood still for a while and is well again was a loss, too, which only the samples have seen.
        """
        policy = self._bench.policy
        if end.passing:
            mended = self._recovery is not None and policy.on_loss is not OnLoss.STOP
            return max(policy.repeat_tainted, _WITHOUT_RESULT if mended else 0)
        return policy.repeat_tainted if end.excluded else 0

    def _stop_at_one_cause(self, trial: Trial, end: TrialEnd) -> None:
        """Stop where one cause leaves trial after trial without a result.

        Raises:
            ClusterError: names it.
        """
        row = [(_cause(end), levels(trial))] if _cause(end) else []
        self._without = [*self._without, *row] if row else []
        latest = self._without[-_SAME_CAUSES:]
        causes, cells = zip(*latest, strict=True) if latest else ((), ())
        if len(causes) == _SAME_CAUSES and len(set(causes)) == 1 and len(set(cells)) > 1:
            raise ClusterError(
                f"{_SAME_CAUSES} trials in a row of campaign {self._campaign.id} ended for one "
                f"cause: {end.reason}; the other trials stay pending",
                hint=f"remove the cause, then {self._how_to_go_on(' --retry-failed')}",
            )


class _Durations:
    """What runs of each cell took so far, which the next run of the cell is judged against.

    Args:
        rows: the results of the campaign so far.
    """

    def __init__(self, rows: Sequence[Result]) -> None:
        self._by_cell: dict[object, dict[str, float]] = {}
        for row in rows:
            if row.attempt is not None:
                self.note(row.trial, row.attempt.state, row.measurement)

    def of(self, trial: Trial) -> list[float]:
        """Return the seconds of the other runs that are in a trial's cell."""
        cell = self._by_cell.get(self._cell(trial), {})
        return [seconds for name, seconds in cell.items() if name != trial.id]

    def note(self, trial: Trial, state: AttemptState, found: Measurement | None) -> None:
        """Take note of the latest attempt at a trial."""
        cell = self._by_cell.setdefault(self._cell(trial), {})
        if state is AttemptState.OK and found is not None and in_cell(found):
            cell[trial.id] = found.duration_seconds
        else:
            cell.pop(trial.id, None)

    @staticmethod
    def _cell(trial: Trial) -> object:
        return levels(trial), trial.warm_up


class _WarmUps:
    """In which start of the daemons each warm-up ran last: those of another one warm nothing.

    Args:
        rows: the results of the campaign so far.
    """

    def __init__(self, rows: Sequence[Result]) -> None:
        self._of_cell: dict[object, list[Trial]] = {}
        self._ran_in: dict[str, str] = {}
        for row in rows:
            if row.trial.warm_up:
                self._of_cell.setdefault(self._cell(row.trial), []).append(row.trial)
                self.note(row.trial, row.attempt.start_id if row.attempt is not None else "")

    def due(self, trial: Trial, start_id: str) -> list[Trial]:
        """Return the warm-ups that a measured run lacks in a start of the daemons, in order."""
        own = [] if trial.warm_up else self._of_cell.get(self._cell(trial), [])
        return [warm_up for warm_up in own if self._ran_in[warm_up.id] != start_id]

    def note(self, trial: Trial, start_id: str) -> None:
        """Note in which start of the daemons an attempt ran, whatever its verdict."""
        self._ran_in[trial.id] = start_id

    @staticmethod
    def _cell(trial: Trial) -> object:
        return levels(trial), trial.start


def _cause(end: TrialEnd) -> str:
    """Return why a trial has no result, without what differs each time; empty if it has one."""
    if end.state is AttemptState.OK:
        return ""
    return cause_of(end.reason)


def _installed(
    live: LiveCluster, fingerprint: Fingerprint, trial: Trial, bench: Bench
) -> tuple[Fingerprint, str]:
    """Have what a trial's workloads run.

    Returns:
        The fingerprint with the BLAS that came with it, and why it cannot be had; empty if it can.
    """
    context = InstallContext(live=live, cache=bench.cache, progress=bench.progress)
    try:
        jobs = jobs_of(trial, live.spec, live.layout.profile)
        found = [job.workload.install(context, job.spec) for job in jobs]
    except HostError as error:
        return fingerprint, " ".join(f"host: {error.message}; {error.hint}".split())[:1000]
    except BoardclusterError:  # the attempt meets it again and says whether the trial failed by it
        return fingerprint, ""
    blas = ", ".join(dict.fromkeys(words for words in found if words))
    return (replace(fingerprint, blas=blas) if blas else fingerprint), ""


def _run(
    store: Store,
    live: LiveCluster,
    fingerprint: Fingerprint,
    trial: Trial,
    *,
    bench: Bench,
    watch: Watch,
    earlier_seconds: Sequence[float],
    begun: Callable[[str], object],
    before: str = "",
) -> TrialEnd:
    """Make one attempt at a trial; its end is stored whatever it is.

    Of one that repeats another one, ``before`` says what that came to; ``earlier_seconds`` are what
    other runs of its cell took; ``begun`` is told its tag.
    """
    watch.began(trial)
    fingerprint, refusal = _installed(live, fingerprint, trial, bench)
    start_id = live.state.identity
    attempt = store.begin_attempt(trial.id, fingerprint, now_utc(), start_id=start_id)
    tag = attempt_tag(trial.id, attempt.number)
    begun(tag)
    try:
        if refusal:
            end = TrialEnd(state=AttemptState.INVALID, reason=refusal, measurement=None)
        else:
            end = run_trial(
                live,
                trial,
                bench,
                folder=store.artefact_folder(attempt),
                attempt=tag,
                earlier=EarlierRuns(
                    tolerated_share=precision_reached(earlier_seconds),
                    clock_hertz=store.best_clocks(fingerprint),
                ),
            )
    except BaseException as error:
        lost = TrialEnd(state=AttemptState.INVALID, reason=interruption(error), measurement=None)
        _finish(store, attempt, lost)
        raise
    if before and end.state is not AttemptState.OK:
        words = f"{end.reason}; attempt {attempt.number - 1} {before}"
        end = replace(end, reason=words)
    watch.ended(trial, _finish(store, attempt, end), end.measurement)
    return end


def _finish(store: Store, attempt: Attempt, end: TrialEnd) -> Attempt:
    return store.finish(
        attempt,
        state=end.state,
        reason=end.reason,
        ended_utc=now_utc(),
        measurement=end.measurement,
        telemetry=end.telemetry,
    )
