"""One job of a trial: prepare its input, run its phases, prove its output."""

from __future__ import annotations

import contextlib
import json
import math
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from boardcluster.campaign.conditions import drop_node_caches
from boardcluster.campaign.execution import (
    ATTEMPT_VARIABLE,
    OUTPUT_FOLDER,
    Execution,
    SubmissionOutcome,
    scratch_of,
    write_configuration,
)
from boardcluster.campaign.spans import EngineSpans, printed_spans
from boardcluster.campaign.trial_jobs import TrialJob
from boardcluster.errors import BoardclusterError, HostError, RunError, StalledError
from boardcluster.fetch.cache import Progress
from boardcluster.foreign import start_of
from boardcluster.records import Dataset, Engine
from boardcluster.remote.base import Remote
from boardcluster.remote.netns import become
from boardcluster.remote.node_rpc import end_processes
from boardcluster.services.mpi import serving
from boardcluster.services.operation import LiveCluster
from boardcluster.services.settings import merge_files
from boardcluster.services.webhdfs import WebHdfs
from boardcluster.store import to_json
from boardcluster.waiting import DATA_SECONDS_MOST
from boardcluster.workloads.base import Context, Job, Phase, PhaseOutcome, Proof, StagedInput

__all__ = ["JobRun", "RunPaths"]

_SERVER_GRACE_SECONDS = 1.0
_LOGGED = 'exec "$@" >> "$0" 2>&1'


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPaths:
    """Where a job leaves things."""

    folder: Path
    """The attempt's folder of artefacts."""
    attempt: str
    """Tag of the attempt."""
    cache: Path
    """The driver's cache folder."""
    timeout_seconds: float
    """Longest duration of the job, in seconds of the boards: nodes that are slower by a dilation
    may take so many times longer."""
    progress: Progress
    """Told what is being done."""
    stop: threading.Event = field(default_factory=threading.Event)
    """Set when something was lost or another job failed: no further phase begins."""


class JobRun:
    """One job of one attempt.

    Args:
        live: the cluster.
        job: what to do.
        paths: where things go.
        dataset: its text, if it takes text.
        settings: properties per configuration file that the trial sets.
        in_mix: whether it is one of several jobs, so that it needs a folder and a tag of its own.
    """

    def __init__(
        self,
        live: LiveCluster,
        job: TrialJob,
        paths: RunPaths,
        *,
        dataset: Dataset | None,
        settings: Mapping[str, Mapping[str, str]],
        in_mix: bool,
    ) -> None:
        self._live = live
        self._paths = paths
        self.label = job.label
        self._planned = job
        self._workload = job.workload
        self._folder = paths.folder / job.label if in_mix else paths.folder
        self._tag = f"{paths.attempt}-{job.label}" if in_mix else paths.attempt
        tags = f"{paths.attempt},{self._tag}" if in_mix else self._tag
        self._conf = write_configuration(
            live,
            self._folder / "conf",
            tag=self._tag,
            tags=tags,
            extra=merge_files(job.sizing.properties if job.sizing else {}, settings),
            brief=job.sizing is not None and job.sizing.brief,
        )
        self._job = Job(
            spec=job.spec,
            conf=self._conf,
            tag=tags,
            output_path=f"{OUTPUT_FOLDER}/{self._tag}",
        )
        self._context = Context(
            live=live,
            hdfs=WebHdfs(live.layout, live.master),
            cache=paths.cache,
            progress=paths.progress,
            dataset=dataset,
            run_job=self._run_preparing,
            work=self._folder / "work",
            mark={ATTEMPT_VARIABLE: paths.attempt},
        )
        self._staged = StagedInput()
        self._preparations = 0
        self._outcomes: dict[str, PhaseOutcome] = {}
        master = live.spec.master
        self._scratch = {master.name: scratch_of(live.layout, master, self._tag)}
        self._roots_own: dict[str, str] = {}
        self.duration_seconds = 0.0
        self.started_seconds = math.inf
        self.ended_seconds = 0.0
        self.counters: dict[str, int] = {}
        self.phases_seconds: dict[str, float] = {}
        self.spans_seconds: dict[str, tuple[float, float]] = {}
        self.engine_spans: dict[str, EngineSpans] = {}
        self.remarks: tuple[str, ...] = ()
        self.application_id = ""
        self._context.work.mkdir(parents=True, exist_ok=True)
        record = {"case": job.spec, "dataset": dataset, "workload": job.workload.name}
        (self._folder / "case.json").write_text(
            json.dumps({name: to_json(value) for name, value in record.items()}, indent=1)
        )

    @property
    def input_bytes(self) -> int:
        """Size of its input; 0 where there is none."""
        return self._staged.input_bytes

    @property
    def run_bytes(self) -> int:
        """Most that the run adds to HDFS and the nodes' disks."""
        return self._planned.need.run_bytes

    def prepare(self) -> None:
        """Put the input in place and clear the place of the output."""
        self._context.hdfs.delete(self._job.output_path)
        self._staged = self._workload.prepare(self._context, self._job.spec)

    def run(self) -> None:
        """Run the phases, one after the other.

        Raises:
            RunError: a phase failed.
            HostError: a JVM crashed with a class-data archive, which later jobs do without.
            StalledError: time ran out.
        """
        with self._workload.serving(self._context, self._staged, self._job):
            for phase in self._workload.phases(self._context, self._staged, self._job):
                self._run_next(phase)

    def _run_next(self, phase: Phase) -> None:
        if self._paths.stop.is_set():
            raise RunError(f"{phase.name}: not started, because the trial was abandoned")
        if phase.drops_caches:
            self.remarks += drop_node_caches(self._live)
        used_seconds = self.duration_seconds / self._live.layout.dilation
        left_seconds = self._paths.timeout_seconds - used_seconds
        if left_seconds <= 0:
            raise StalledError(f"stalled: no time left for the phase {phase.name}")
        with self._aside() if phase.aside else contextlib.nullcontext():
            outcome = self._run_phase(phase, phase.name, self._job.spec.engine, left_seconds)
        if not phase.aside:
            self.duration_seconds += outcome.duration_seconds

    def _run_preparing(self, engine: Engine, maker: Callable[[str], Phase]) -> PhaseOutcome:
        self._preparations += 1
        phase = maker(self._job.conf)
        self._paths.progress(f"preparing input: {phase.name}", 0, 0)
        name = f"prepare-{self._preparations}-{phase.name}"
        outcomes, self._outcomes = self._outcomes, {}
        # Copying takes as long as the input is large, whatever a run may take.
        computes = phase.yarn or bool(phase.mpi_hosts)
        least_seconds = 0.0 if computes else DATA_SECONDS_MOST
        try:
            with self._aside():
                timeout_seconds = max(self._paths.timeout_seconds, least_seconds)
                return self._run_phase(phase, name, engine, timeout_seconds)
        except StalledError as error:
            what = f"the {phase.name} before the run" if phase.mpi_hosts else "preparing the input"
            had = "the time of a run" if computes else "at least a day"
            raise StalledError(
                f"{error.message}\nThis was {what}, which has {had}; "
                "allow more with `timeout` in [campaign], or --timeout",
                hint=error.hint,
            ) from error
        finally:
            self._outcomes = outcomes

    @contextlib.contextmanager
    def _aside(self) -> Iterator[None]:
        """Run what is no part of the measurement."""
        kept = (self.counters, self.phases_seconds, self.application_id)
        times = (self.started_seconds, self.ended_seconds)
        spans = (self.spans_seconds, self.engine_spans)
        self.spans_seconds, self.engine_spans = {}, {}
        self.counters, self.phases_seconds = {}, {}
        try:
            yield
        finally:
            self.counters, self.phases_seconds, self.application_id = kept
            self.started_seconds, self.ended_seconds = times
            self.spans_seconds, self.engine_spans = spans

    def _run_phase(
        self, phase: Phase, name: str, engine: Engine, timeout_seconds: float
    ) -> PhaseOutcome:
        folder = self._folder / name.replace(" ", "-")
        execution = Execution(
            self._live,
            folder=folder,
            conf=self._conf,
            engine=engine if phase.yarn else Engine.MPI,
            tag=self._tag,
            attempt=self._paths.attempt,
            node=phase.node,
            outside=phase.outside,
            as_root=phase.as_root,
        )
        ways = self._live.as_root if phase.as_root else self._live.remotes
        remote = ways[phase.node or self._live.spec.master.name]
        cwd = self._working_folder(remote, phase, folder)
        with contextlib.ExitStack() as stack:
            self._serve(stack, phase, execution, cwd)
            outcome = execution.run(phase.command, timeout_seconds=timeout_seconds, cwd=cwd)
        self._check(phase, outcome)
        if phase.dated:
            outcome = _dated(outcome, remote.name, execution.stdout)
        results = {}
        for result in phase.results:
            remote.get(f"{cwd}/{result}", folder / result)
            results[result] = folder / result
        self._note(name, outcome)
        self._outcomes[phase.name] = PhaseOutcome(
            name=phase.name,
            duration_seconds=outcome.duration_seconds,
            stdout=execution.stdout,
            stderr=execution.stderr,
            counters=outcome.counters,
            results=results,
        )
        return self._outcomes[phase.name]

    def _working_folder(self, remote: Remote, phase: Phase, folder: Path) -> str:
        node = phase.node or self._live.spec.master.name
        spec = next(row for row in self._live.spec.nodes if row.name == node)
        if phase.as_root:
            own = self._live.layout.folder(spec, f"root-{self._tag}")
            self._roots_own[node] = own
            # Beside what is root's, so that no job exchanges it; with a job's own in its place,
            # the second command fails.
            remote.run(["rm", "-rf", own])
            remote.run(["mkdir", "-m", "700", own])
        else:
            own = self._scratch[node] = scratch_of(self._live.layout, spec, self._tag)
        cwd = f"{own}/{folder.name}"
        remote.run(["mkdir", "-p", cwd])
        for name, text in phase.files.items():
            (folder / name).write_text(text)
            remote.put(folder / name, f"{cwd}/{name}")
        return cwd

    def _serve(
        self, stack: contextlib.ExitStack, phase: Phase, execution: Execution, cwd: str
    ) -> None:
        """Start what the phase needs beside it; the stack ends it."""
        mark = {ATTEMPT_VARIABLE: self._paths.attempt}
        ways = self._live.as_root if phase.servers_as_root else self._live.remotes
        for node, command in phase.servers:
            remote = ways[node]
            spec = next(row for row in self._live.spec.nodes if row.name == node)
            log = self._live.layout.folder(spec, "logs", f"{self._tag}-{phase.name}.log")
            log = log.replace(" ", "-")
            if remote is self._live.remotes[node]:
                process = remote.start(command, log=log, env=mark)
            else:
                argv = _setting_links(self._live.remotes[node], command, log)
                process = remote.start(argv, log="/dev/null", env=mark)
            grace_seconds = _SERVER_GRACE_SECONDS * self._live.layout.dilation
            stack.callback(end_processes, remote, [process], grace_seconds=grace_seconds)

        if phase.mpi_hosts:
            variables = stack.enter_context(
                serving(
                    self._live.layout,
                    self._live.remotes,
                    hosts=phase.mpi_hosts,
                    folder=cwd,
                    environment=mark,
                )
            )
            execution.environment.update(variables)

    def _check(self, phase: Phase, outcome: SubmissionOutcome) -> None:
        if outcome.lost_archive:
            raise HostError(
                f"{phase.name}: {outcome.failure}",
                hint="run it again with `boardcluster run FILE --resume`",
            )
        if outcome.failure:
            raise RunError(f"{phase.name}: {outcome.failure}")
        if phase.yarn and not outcome.application_id:
            raise RunError(
                f"{phase.name}: the job succeeded, but YARN never saw it: it did not run on the "
                "cluster"
            )

    def _note(self, name: str, outcome: SubmissionOutcome) -> None:
        """Note what a submission counted, and when it and the engine's phases in it ran."""
        self.started_seconds = min(self.started_seconds, outcome.started_seconds)
        self.ended_seconds = outcome.started_seconds + outcome.duration_seconds
        self.spans_seconds[name] = (outcome.started_seconds, self.ended_seconds)
        self.engine_spans[name] = outcome.engine
        for counter, value in outcome.counters.items():
            self.counters[counter] = self.counters.get(counter, 0) + value
        self.phases_seconds[name] = outcome.duration_seconds
        for part, took in outcome.phases_seconds.items():
            self.phases_seconds[f"{name}/{part}"] = took
        self.application_id = outcome.application_id or self.application_id

    def prove(self) -> Proof:
        """Prove that the output is right.

        Raises:
            VerificationError: it is not.
        """
        return self._workload.verify(self._context, self._staged, self._job, self._outcomes)

    def clean(self) -> None:
        """Delete the output and what was only needed to prove it; what is left costs only space."""
        shutil.rmtree(self._context.work, ignore_errors=True)
        for node, folder in self._scratch.items():
            with contextlib.suppress(BoardclusterError):
                self._live.remotes[node].run(["rm", "-rf", folder])
        for node, folder in self._roots_own.items():
            with contextlib.suppress(BoardclusterError):
                self._live.as_root[node].run(["rm", "-rf", folder])
        with contextlib.suppress(BoardclusterError):
            self._context.hdfs.delete(self._job.output_path)


def _setting_links(user_way: Remote, command: Sequence[str], log: str) -> tuple[str, ...]:
    """Return a command for root that runs another as a node's user, who may set links, too.

    Log and records are that user's: where a job's links lead, root must not write. In a user's own
    namespaces there is nobody else to become: the kernel lets nobody drop groups there.
    """
    user = int(user_way.run(["id", "-u"]).text)
    prefix = become(user, keeping="net_admin") if user else ()
    return (*prefix, "sh", "-c", _LOGGED, log, *command)


def _dated(outcome: SubmissionOutcome, node: str, stdout: Path) -> SubmissionOutcome:
    """Add to an outcome the phases that the program dated itself, by the clock of its node."""
    spans = printed_spans(start_of(stdout))
    return replace(
        outcome,
        dated_seconds={name: end - begin for name, (begin, end) in spans.items()},
        engine=replace(outcome.engine, parts={node: spans}),
    )
