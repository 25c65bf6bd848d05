"""Results to analyse, made up for tests."""

from __future__ import annotations

from typing import Any

from boardcluster.records import (
    Attempt,
    AttemptState,
    Coverage,
    Energy,
    EnergyMethod,
    Engine,
    Fingerprint,
    Measurement,
    Power,
    Result,
    Trial,
    Verdict,
)

__all__ = ["metered", "result", "setup"]


def setup() -> Fingerprint:
    """What a run was on; tests replace what they need."""
    return Fingerprint(
        kernel="k",
        os="o",
        cpu="c",
        cpu_cores=2,
        memory_bytes=1,
        java="j",
        hadoop="h",
        spark="s",
        boardcluster="b",
        profile="default",
        config_sha256="0",
        nodes=5,
        node_memory_bytes=1,
        node_cores=1,
        link_bits_per_second=1,
        emulated=True,
    )


def metered(
    energy_joules: float | None,
    *,
    mean_watts: float | None = None,
    method: EnergyMethod = EnergyMethod.METERED,
    level: int = 1,
    reason: str = "",
) -> Energy:
    """Energy of a run from one plug that saw all of it."""
    power = Power(
        meter="plug",
        kind="shelly",
        coverage=Coverage.WALL,
        nodes=("worker1",),
        switch=True,
        accuracy="1 %",
        rate_hertz=1.0,
        energy_joules=energy_joules,
        mean_watts=mean_watts,
        most_watts=mean_watts,
        readings=100,
        method=method,
    )
    return Energy(
        energy_joules=energy_joules,
        method=method,
        level=level,
        level_reason="a test",
        powers=(power,),
        reason=reason,
    )


def result(
    seconds: float,
    *,
    position: int = 0,
    engine: Engine = Engine.MAPREDUCE,
    workload: str = "wordcount",
    size_bytes: int = 10**9,
    workers: int = 4,
    repetition: int = 1,
    campaign: str = "c",
    profile: str = "default",
    setup: Fingerprint = setup(),  # noqa: B008  frozen
    state: AttemptState = AttemptState.OK,
    verdict: Verdict = Verdict.VALID,
    number: int = 1,
    figures: dict[str, float] | None = None,
    intermediate_bytes: int | None = None,
    energy: Energy | None = None,
    **more: Any,
) -> Result:
    """A verified run; ``position`` is its place in the campaign and its time of day."""
    trial = Trial(
        id=f"{campaign}-{position}",
        campaign_id=campaign,
        position=position,
        workload=workload,
        engine=engine,
        profile=profile,
        size_bytes=size_bytes,
        workers=workers,
        repetition=repetition,
        **more,
    )
    attempt = Attempt(
        trial_id=trial.id,
        number=number,
        state=state,
        reason="",
        started_utc=f"2026-08-01T12:{position // 60:02d}:{position % 60:02d}+00:00",
        ended_utc="2026-08-01T18:00:00+00:00",
        artefacts="",
        fingerprint=setup,
    )
    measurement = Measurement(
        duration_seconds=seconds,
        input_bytes=size_bytes,
        output_bytes=1,
        verification=None,
        exit_status=0,
        figures=figures or {},
        intermediate_bytes=intermediate_bytes,
        verdict=verdict,
        energy=energy,
    )
    return Result(trial=trial, attempt=attempt, measurement=measurement)
