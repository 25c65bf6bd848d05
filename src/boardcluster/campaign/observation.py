"""What is watched during a run: every node and every power meter; and what they say of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from boardcluster.analysis.energy import core_span, energy_of_run
from boardcluster.analysis.trust import Judgement, expect, judge, judge_before
from boardcluster.campaign.execution import ATTEMPT_VARIABLE
from boardcluster.campaign.limit_monitor import LimitMonitor
from boardcluster.campaign.spans import EngineSpans, engine_tasks, with_engine_phases
from boardcluster.errors import UnwatchedError
from boardcluster.records import (
    SMALLEST_EFFECT_SHARE,
    Energy,
    NodeSamples,
    Policy,
    PowerSamples,
    Telemetry,
    Verdict,
)
from boardcluster.services.operation import LiveCluster
from boardcluster.store.power import write_power
from boardcluster.telemetry.clock_watch import clock_steps
from boardcluster.telemetry.collector import Recording, recording, unseen_programs
from boardcluster.telemetry.metering import Metering, metering
from boardcluster.telemetry.standstill import standstills

__all__ = [
    "NO_RUNS",
    "EarlierRuns",
    "Observation",
    "Observed",
    "keep_readings",
    "observing",
]

_BEFORE_SECONDS = 12.0
"""So long before a run its nodes are looked at: twice what agents read rarely, and a little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What was seen of a run."""

    telemetry: Telemetry
    """The samples."""
    judgement: Judgement
    """Whether the run can be trusted, and what disturbed it."""
    remarks: tuple[str, ...]
    """What is worth knowing with the result, in one line each."""
    energy: Energy | None
    """Over the run; None where nothing measures or models it."""

    @property
    def refusal(self) -> str:
        """Why the run is invalid, in one line; empty if it is not."""
        if self.verdict is not Verdict.INVALID:
            return ""
        return f"telemetry: {'; '.join(self.reasons)}"[:1000]

    @property
    def verdict(self) -> Verdict:
        """Whether the run can be trusted."""
        return self.judgement.verdict

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is not valid, in one line each."""
        return self.judgement.reasons

    @property
    def judged(self) -> dict[str, Any]:
        """The same as fields of ``Measurement``."""
        return {
            "verdict": self.verdict,
            "verdict_reasons": self.reasons,
            "disturbances": self.judgement.disturbances,
            "tolerated_share": self.judgement.tolerated_share,
            "clock_hertz": dict(self.judgement.clock_hertz),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierRuns:
    """What earlier runs say of what a run is judged against."""

    tolerated_share: float = SMALLEST_EFFECT_SHARE
    """Share of its duration above which disturbances taint it, see ``precision_reached``."""
    clock_hertz: Mapping[str, float] = field(default_factory=dict)
    """By node, the best clock that the same board had under load."""


NO_RUNS = EarlierRuns()
"""There are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """A run that is being watched."""

    live: LiveCluster
    """The cluster."""
    recorded: Recording
    """Its telemetry."""
    meters: Metering
    """Its power meters."""
    monitor: LimitMonitor
    """Watches over the limits of emulated boards."""
    folder: Path
    """The attempt's folder of artefacts."""

    def settle(self) -> None:
        """Wait until there is something to compare the run with; call it just before the run.

        Raises:
            UnwatchedError: a node is not watched, so that the run would be invalid.
        """
        if self.recorded.remarks:
            raise UnwatchedError(
                "; ".join(self.recorded.remarks),
                hint="a run is only ok with samples of every node; see `boardcluster doctor`",
            )
        if unknown := self.recorded.clocks.faults():
            raise UnwatchedError(
                "; ".join(unknown), hint="keep this machine awake, and check the network to it"
            )
        self.recorded.settle()
        self.meters.idle()

    def clock_faults(self) -> tuple[str, ...]:
        """Say what clocks did that can end a job, or make it look so; once watching has ended."""
        return (*self.recorded.clocks.faults(), *clock_steps(self.recorded.samples))

    def standstills(self, still_seconds: float) -> dict[str, str]:
        """Say which nodes stood still for so long, and how; once watching has ended."""
        nodes = {node.name for node in self.live.spec.nodes}
        own = {name: row for name, row in self.recorded.samples.items() if name in nodes}
        return standstills(own, still_seconds=still_seconds)

    def hurry(self) -> None:
        """Do not wait for nodes that do not answer: something was lost."""
        self.recorded.tries = 1

    def outcome(
        self,
        *,
        started_seconds: float,
        ended_seconds: float,
        phases: Mapping[str, tuple[float, float]],
        engine: Mapping[str, EngineSpans] = MappingProxyType({}),
        earlier: EarlierRuns = NO_RUNS,
    ) -> Observed:
        """Stop watching, and judge the run; within the block, since meters are still to be read.

        Args:
            started_seconds: its start by the driver's monotonic clock.
            ended_seconds: its end by the same clock.
            phases: name to start and end of each submission, by the same clock.
            engine: name of a submission to the engine's phases and tasks in it.
            earlier: what earlier runs say.
        """
        self.recorded.end()
        broken = self.monitor.end()
        ahead_seconds = {
            name: samples.clock_offset_seconds for name, samples in self.recorded.samples.items()
        }
        telemetry = self.recorded.telemetry(
            started_seconds=started_seconds,
            duration_seconds=ended_seconds - started_seconds,
            phases=with_engine_phases(phases, engine, ahead_seconds=ahead_seconds),
            tasks=engine_tasks(phases, engine, ahead_seconds=ahead_seconds),
        )
        limits = self.monitor.limits
        expectations = expect(
            self.recorded.targets,
            self.live.facts,
            best_hertz=earlier.clock_hertz,
            limits=limits,
            steered=self.monitor.steered,
        )
        found = judge(telemetry, expectations=expectations, tolerated_share=earlier.tolerated_share)
        before = judge_before(
            replace(telemetry, nodes=tuple(map(_before, telemetry.nodes))),
            facts=self.live.facts,
            free_bytes=self.recorded.free_bytes,
            expectations=expectations,
        )
        lines = (
            *(f"limits were changed from outside: {line}" for line in broken),
            *self.recorded.clocks.faults(),
        )
        if lines:
            reasons = (*lines, *found.reasons)
            found = replace(found, verdict=Verdict.INVALID, reasons=reasons)
        energy = self._energy(started_seconds, ended_seconds, telemetry)
        modelled = self.monitor.remarks(started_seconds, ended_seconds)
        lost = keep_readings(self.meters.samples(started_seconds, ended_seconds), self.folder)
        unseen = unseen_programs(self.recorded.targets)
        return Observed(
            telemetry=telemetry,
            judgement=found,
            remarks=(*self.recorded.remarks, *before, *modelled, *lost, *filter(None, [unseen])),
            energy=energy,
        )

    def _energy(
        self, started_seconds: float, ended_seconds: float, telemetry: Telemetry
    ) -> Energy | None:
        """Return the energy of the run, with that of its core phase where it has one."""

        def over(span: tuple[float, float] | None) -> Energy | None:
            return energy_of_run(
                self.meters.powers(
                    started_seconds, ended_seconds, telemetry=telemetry, span_seconds=span
                ),
                nodes=[node.name for node in self.live.spec.nodes],
                instruments=self.meters.instruments,
                models=self.live.spec.power_models or self.monitor.power_models,
                telemetry=telemetry,
                capacity_cores={node.node: node.cpu_cores for node in self.monitor.limits},
                span_seconds=span,
            )

        whole, core = over(None), core_span(telemetry)
        return whole if whole is None or core is None else replace(whole, core=over(core))


@contextlib.contextmanager
def observing(
    live: LiveCluster,
    folder: Path,
    attempt: str,
    *,
    hertz: float = Policy().telemetry_hertz,
    lasting_seconds: float = Policy().timeout_seconds,
) -> Iterator[Observation]:
    """Watch a cluster while the block runs.

    Args:
        live: the cluster.
        folder: folder of the attempt's artefacts.
        attempt: tag of the attempt, by which what watches is found and ended.
        hertz: samples of each node per second.
        lasting_seconds: longest duration of the block that is still watched to its end.
    """
    mark = {ATTEMPT_VARIABLE: attempt}
    with (
        metering(live.spec.meters, live.metered) as meters,
        recording(
            live, folder, mark, interval_seconds=1 / hertz, lasting_seconds=lasting_seconds
        ) as recorded,
        LimitMonitor(live, folder) as monitor,
    ):
        yield Observation(
            live=live, recorded=recorded, meters=meters, monitor=monitor, folder=folder
        )


def keep_readings(samples: Sequence[PowerSamples], folder: Path) -> tuple[str, ...]:
    """Keep what meters said over a run, for its power curve; return a remark if that failed.

    Energy is summed up already, so that a full disk costs the curve and not the run.
    """
    if not samples:
        return ()
    try:
        write_power(folder, samples)
    except OSError as error:
        return (f"the readings of the meters were not kept: {error.strerror or error}",)
    return ()


def _before(node: NodeSamples) -> NodeSamples:
    """Return the samples of the quiet moment just before; what came earlier is cooled away."""
    span_seconds = max(_BEFORE_SECONDS, 2 * node.interval_seconds)
    kept = (node.seconds <= 0) & (node.seconds > -span_seconds)
    return replace(
        node,
        seconds=node.seconds[kept],
        columns={name: values[kept] for name, values in node.columns.items()},
    )
