"""The runs of a case as rules look at them: grouped, with what is known of each."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import Self

from boardcluster.analysis.advice.compared import Compared
from boardcluster.analysis.advice.evidence import AdviceEvidence, NodeUse, RunFacts
from boardcluster.analysis.bottleneck import Bound, Diagnosis, PhaseDiagnosis
from boardcluster.analysis.cells import Cell, settings, summarise
from boardcluster.analysis.inference import CampaignDrift, find_drift, observe
from boardcluster.analysis.phases import submission_of
from boardcluster.analysis.scaling import setup_of
from boardcluster.analysis.twins import is_twin, node_words
from boardcluster.factors import levels
from boardcluster.records import (
    HOST,
    Attempt,
    AttemptState,
    ClusterSpec,
    Fingerprint,
    Measurement,
    NodeSpec,
    Result,
    Trial,
)
from boardcluster.units import format_bytes, format_count

__all__ = ["JOB", "TASK", "Group", "RunView", "View"]

JOB = "org.apache.hadoop.mapreduce.JobCounter/"
TASK = "org.apache.hadoop.mapreduce.TaskCounter/"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """One verified run, or one of the user's own program, with what is known of it."""

    trial: Trial
    """What was asked for."""
    attempt: Attempt
    """The try that gave it."""
    measurement: Measurement
    """What it gave."""
    diagnosis: Diagnosis | None
    """What bound it; None where there is no diagnosis."""
    facts: RunFacts | None
    """Its telemetry; None without any."""

    @property
    def name(self) -> str:
        """``TRIAL/NUMBER``."""
        return f"{self.trial.id}/{self.attempt.number}"

    @property
    def fingerprint(self) -> Fingerprint:
        """What it ran on."""
        return self.attempt.fingerprint

    @property
    def whole(self) -> PhaseDiagnosis | None:
        """The diagnosis of the whole run."""
        return None if self.diagnosis is None else self.diagnosis.run

    @property
    def first(self) -> Bound | None:
        """What bound most of it; None where that is not known."""
        return None if self.whole is None else self.whole.first

    def share(self, bound: Bound) -> float:
        """Share of its time that a resource bound; 0 where that is not known."""
        return 0.0 if self.whole is None else self.whole.shares.get(bound, 0.0)

    @property
    def bound_words(self) -> str:
        """What bound most of it, with the samples that show it; empty where that is not known.

        ``storage bound 80 % of the run (pi2 waited for its disk 83 % of the time ...)``.
        """
        if self.whole is None or self.first is None:
            return ""
        what = {Bound.CPU: "the CPU", Bound.NETWORK: "the network"}.get(self.first, self.first)
        shown = self.whole.evidence[0] if self.whole.evidence else ""
        if shown:
            dilation = self.measurement.dilation
            if dilation != 1.0 and "/s" in shown:
                shown += (
                    f"; rates are those on this machine, where it took {dilation:.3g} times as long"
                )
            shown = f" ({shown})"
        return f"{what} bound {100 * self.share(self.first):.0f} % of the run{shown}"

    def twice(self, bound: Bound) -> float:
        """How many times as fast it would be were a resource twice as fast; 1 if not known."""
        return 1.0 if self.whole is None else self.whole.gains.get(bound, 1.0)

    def twice_bounds(self, bound: Bound) -> tuple[float, float]:
        """Between what ``twice`` must lie by all that is known; itself where nothing more is."""
        gain = self.twice(bound)
        return (
            (gain, gain) if self.whole is None else self.whole.gain_bounds.get(bound, (gain, gain))
        )

    def counter(self, name: str) -> int:
        """One of the engine's own counters; 0 where it was not given."""
        return self.measurement.counters.get(name, 0)

    def counted_seconds(self, milliseconds: float) -> float:
        """A time of the engine's counters, in the seconds of the run's duration.

        Counters are kept as the engine wrote them, durations are divided by the dilation.
        """
        return milliseconds / 1000 / self.measurement.dilation

    def phase_seconds(self, ending: str) -> float:
        """Sum of the engine's phases whose name ends so: ``map`` of ``sort/map``, in seconds."""
        return sum(
            seconds
            for name, seconds in self.measurement.phases_seconds.items()
            if _engine_phase(name, self.measurement.phases_seconds) == ending
        )

    def phase_names(self) -> tuple[str, ...]:
        """The engine's phases by their own names: ``map``, ``stage 0: count at WordCount``."""
        names = self.measurement.phases_seconds
        return tuple(part for name in names if (part := _engine_phase(name, names)))

    def phase(self, ending: str) -> PhaseDiagnosis | None:
        """The diagnosis of an engine's phase, by the end of its name."""
        rows = () if self.diagnosis is None else self.diagnosis.phases
        names = {row.phase for row in rows}
        return next((row for row in rows if _engine_phase(row.phase, names) == ending), None)

    @property
    def jobs(self) -> int:
        """MapReduce jobs in it: counters of several are sums that say little of each."""
        return self.phase_names().count("map")

    @property
    def cores(self) -> int:
        """Cores that its tasks can use at once.

        Nodes that are neither boards nor held to what boards can do share this machine's cores.
        """
        declared = self.trial.workers * self.fingerprint.node_cores
        if self.fingerprint.emulated and not self.fingerprint.twin:
            return min(declared, self.fingerprint.cpu_cores)
        return declared

    @property
    def nodes(self) -> tuple[NodeUse, ...]:
        """What nodes did, without the machine below emulated ones; empty without telemetry."""
        rows = () if self.facts is None else self.facts.nodes
        return tuple(row for row in rows if row.node != HOST or not self.fingerprint.emulated)


def _engine_phase(name: str, names: Container[str]) -> str:
    """The engine's own name of a phase; empty for our own submissions, which lie in no other.

    Several applications of one submission have ``job 2: `` before it.
    """
    submission = submission_of(name, names)
    found = name.removeprefix(f"{submission}/") if submission else ""
    return (found.partition(": ")[2] or found) if found.startswith("job ") else found


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Runs of the same settings on the same engine and hardware, in run order; at least one."""

    runs: tuple[RunView, ...]
    """The runs."""
    hardware: str = ""
    """Their boards and media; empty where all groups have the same, and where they are emulated."""
    of_size: bool = False
    """Whether what is said of them holds for their size alone: for another, something else does."""

    @property
    def typical(self) -> RunView:
        """The run whose duration is nearest to the middle one; of equal ones the first."""
        ordered = sorted(self.runs, key=lambda run: run.measurement.duration_seconds)
        return ordered[(len(ordered) - 1) // 2]

    @property
    def trial(self) -> Trial:
        """What was asked for; the same but for the repetition in all of them."""
        return self.runs[0].trial

    @property
    def names(self) -> tuple[str, ...]:
        """Every run as ``TRIAL/NUMBER``."""
        return tuple(run.name for run in self.runs)

    @property
    def subject(self) -> str:
        """``terasort on mapreduce``, or ``terasort on mapreduce over 1 GB``."""
        size = self.trial.size_bytes if self.of_size else 0
        return self._job + (f" over {format_bytes(size)}" if size else "")

    @property
    def _job(self) -> str:
        return f"{self.trial.workload} on {self.trial.engine}"

    @property
    def emulated(self) -> str:
        """Words that must be shown with its numbers; empty for boards."""
        results = [_result(run) for run in self.runs]
        words = node_words(results)
        plain = any(run.fingerprint.emulated for run in self.runs)
        return words or ("emulated nodes" if plain else "")

    @property
    def is_twin(self) -> bool:
        """Whether its nodes stand for boards."""
        return any(is_twin(_result(run)) for run in self.runs)

    @property
    def is_boards(self) -> bool:
        """Whether its nodes are boards, so that what helps boards may help them."""
        return not any(run.fingerprint.mark for run in self.runs)

    @property
    def where(self) -> str:
        """Its settings for people: ``terasort on mapreduce, 1 GB, 4 workers, 3 runs``.

        With boards and media, where those of other groups are others.
        """
        trial = self.trial
        size = format_bytes(trial.size_bytes) if trial.size_bytes else ""
        own = settings(trial, security=self.typical.fingerprint.security)
        workers = format_count(trial.workers, "worker")
        count = f"{len(self.runs)} runs" if len(self.runs) > 1 else "one run"
        on = f"on {self.hardware}" if self.hardware else ""
        parts = [self._job, size, workers, f"profile {trial.profile}", own, count, on]
        parts.append(self.emulated)
        return ", ".join(part for part in parts if part)


def _result(run: RunView) -> Result:
    return Result(trial=run.trial, attempt=run.attempt, measurement=run.measurement)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What rules look at."""

    groups: tuple[Group, ...]
    """Every run that was verified or is the user's own, warm-ups left out; also tainted ones, since
    what disturbed a run is what some rules speak of."""
    cells: tuple[Cell, ...]
    """The same as the report's cells: only runs that can be trusted, for comparisons."""
    cluster: ClusterSpec | None
    """What is declared of the cluster; None where it is not known."""
    compared: Compared
    """Ratios of cells that are shown elsewhere."""
    drifts: tuple[CampaignDrift, ...] | None
    """Drifts of campaigns that are shown elsewhere; None where nobody looked."""

    @classmethod
    def of(cls, evidence: AdviceEvidence) -> Self:
        """Look up what is known of each run, and group them."""
        kept: dict[tuple[object, ...], list[RunView]] = {}
        for run in _runs(evidence):
            kept.setdefault(_settings(run), []).append(run)
        groups = [sorted(runs, key=lambda run: run.attempt.started_utc) for runs in kept.values()]
        # Which boards take part follows from the number of workers.
        boards: dict[tuple[object, ...], set[str]] = {}
        for runs in groups:
            trial = runs[0].trial
            boards.setdefault((trial.workers, trial.master), set()).add(_hardware(runs[0]))
        several = any(len(names) > 1 for names in boards.values())
        return cls(
            groups=tuple(
                Group(runs=tuple(runs), hardware=_hardware(runs[0]) if several else "")
                for runs in groups
            ),
            cells=summarise(evidence.results) if evidence.cells is None else evidence.cells,
            cluster=evidence.cluster,
            compared=evidence.compared,
            drifts=evidence.drifts,
        )

    def shown_drifts(self) -> tuple[CampaignDrift, ...]:
        """Return the campaigns whose times drift or jump, over all of their cells."""
        known = self.drifts
        if known is None:
            known = find_drift([observe(cell.results) for cell in self.cells])
        return tuple(row for row in known if row.is_shown)

    def group_of(self, cell: Cell) -> Group | None:
        """Return the group that holds the runs of a cell."""
        wanted = cell.results[0].trial.id
        return next(
            (group for group in self.groups if any(run.trial.id == wanted for run in group.runs)),
            None,
        )

    def node(self, name: str) -> NodeSpec | None:
        """Return what is declared of a node; None where that is not known."""
        nodes = () if self.cluster is None else self.cluster.nodes
        return next((row for row in nodes if row.name == name), None)

    def workers(self, run: RunView) -> tuple[NodeUse, ...]:
        """Return what the workers of a run did; empty where it is not known which nodes they are.

        The master of a run counts only if it is declared to be a worker, too: what submits a job
        runs there, and is no task.
        """
        if self.cluster is None:
            return run.nodes if len(run.nodes) == run.trial.workers else ()
        there = self.cluster.workers_beside(run.trial.master)
        names = [node.name for node in there[: run.trial.workers]]
        return tuple(row for row in run.nodes if row.node in names)


def _runs(evidence: AdviceEvidence) -> Iterator[RunView]:
    for result in evidence.results:
        trial, attempt, measurement = result.trial, result.attempt, result.measurement
        if attempt is None or measurement is None or trial.warm_up:
            continue
        if attempt.state is AttemptState.OK and measurement.duration_seconds > 0:
            key = (trial.id, attempt.number)
            yield RunView(
                trial=trial,
                attempt=attempt,
                measurement=measurement,
                diagnosis=evidence.diagnoses.get(key),
                facts=evidence.facts.get(key),
            )


def _settings(run: RunView) -> tuple[object, ...]:
    trial = run.trial
    return (
        *levels(trial),
        trial.arguments,
        *(run.fingerprint.emulated, run.fingerprint.twin),
        _hardware(run),
    )


def _hardware(run: RunView) -> str:
    """Boards and media of a run; empty for emulated nodes, whose twin says what they stand for."""
    return "" if run.fingerprint.emulated else setup_of(_result(run))
