"""What is watched during a run: every node and every power meter; and what they say of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from boardcluster.analysis.energy import core_span, energy_of_run
from boardcluster.analysis.trust import Baseline, Judgement, expect, judge, judge_before
from boardcluster.campaign.execution import ATTEMPT_VARIABLE
from boardcluster.campaign.limit_monitor import LimitMonitor
from boardcluster.campaign.spans import EngineSpans, with_engine_phases
from boardcluster.errors import HostError
from boardcluster.records import (
    Energy,
    NodeSamples,
    Policy,
    PowerSamples,
    Telemetry,
    Verdict,
)
from boardcluster.services.operation import LiveCluster
from boardcluster.store.power import write_power
from boardcluster.telemetry.collector import Recording, recording
from boardcluster.telemetry.metering import Metering, metering

__all__ = ["Observation", "Observed", "keep_readings", "observing"]

_BEFORE_SECONDS = 12.0
"""So long before a run its nodes are looked at: twice what agents read rarely, and a little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What was seen of a run."""

    telemetry: Telemetry
    """The samples."""
    verdict: Verdict
    """Whether the run can be trusted."""
    reasons: tuple[str, ...]
    """Why it is not valid, in one line each."""
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
            HostError: a node is not watched, so that the run would be invalid.
        """
        if self.recorded.remarks:
            raise HostError(
                "; ".join(self.recorded.remarks),
                hint="a run is only ok with samples of every node; see `boardcluster doctor`",
            )
        self.recorded.settle()
        self.meters.idle()

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
    ) -> Observed:
        """Stop watching, and judge the run; within the block, since meters are still to be read.

        Args:
            started_seconds: its start by the driver's monotonic clock.
            ended_seconds: its end by the same clock.
            phases: name to start and end of each submission, by the same clock.
            engine: name of a submission to the engine's phases in it.
        """
        self.recorded.end()
        broken = self.monitor.end()
        telemetry = self.recorded.telemetry(
            started_seconds=started_seconds,
            duration_seconds=ended_seconds - started_seconds,
            phases=with_engine_phases(
                phases,
                engine,
                ahead_seconds={
                    name: samples.clock_offset_seconds
                    for name, samples in self.recorded.samples.items()
                },
            ),
        )
        limits = self.monitor.limits
        expectations = expect(
            self.recorded.targets,
            self.live.facts,
            limits=limits,
            steered=self.monitor.steered,
        )
        found = judge(telemetry, expectations=expectations)
        before = judge_before(
            replace(telemetry, nodes=tuple(map(_before, telemetry.nodes))),
            facts=self.live.facts,
            free_bytes=self.recorded.free_bytes,
            expectations=expectations,
        )
        found = _joined(found, broken, before)
        energy = self._energy(started_seconds, ended_seconds, telemetry)
        lost = keep_readings(self.meters.samples(started_seconds, ended_seconds), self.folder)
        return Observed(
            telemetry=telemetry,
            verdict=found.verdict,
            reasons=found.reasons,
            remarks=(*self.recorded.remarks, *before.remarks, *self.monitor.remarks, *lost),
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
    cpu_share: float = 1.0,
) -> Iterator[Observation]:
    """Watch a cluster while the block runs, with so many samples of each node per second.

    By the tag of the attempt what watches is found and ended. ``cpu_share`` is what the run's class
    of workload gets of the CPU limit of emulated boards.
    """
    mark = {ATTEMPT_VARIABLE: attempt}
    with (
        metering(live.spec.meters, live.metered) as meters,
        recording(live, folder, mark, interval_seconds=1 / hertz) as recorded,
        LimitMonitor(live, folder, cpu_share=cpu_share) as monitor,
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


def _joined(found: Judgement, broken: tuple[str, ...], before: Baseline) -> Judgement:
    """Let changed limits make a run invalid, and what disturbed it before it began taint it."""
    reasons = tuple(f"limits were changed from outside: {line}" for line in broken)
    verdict = Verdict.INVALID if broken else found.verdict
    if before.taints and verdict is Verdict.VALID:
        verdict = Verdict.TAINTED
    return Judgement(verdict=verdict, reasons=(*reasons, *found.reasons, *before.taints))
