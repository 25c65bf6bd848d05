"""Made-up records for the tests of the store."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from boardcluster.factors import FACTORS, Factor
from boardcluster.records import (
    Campaign,
    CampaignKind,
    Checksum,
    Coverage,
    Energy,
    EnergyMethod,
    Engine,
    Fingerprint,
    MasterPlacement,
    Measurement,
    NodeSamples,
    Power,
    Telemetry,
    Trial,
    Verdict,
    Verification,
)

DIGEST = "ab" * 32
TELEMETRY = Telemetry(
    duration_seconds=24.125,
    phases={"sort": (0.0, 24.125)},
    nodes=(
        NodeSamples(
            node="worker1",
            scope="node",
            interval_seconds=1.0,
            cores=2,
            seconds=np.array([-0.5, 0.5, 1.5]),
            columns={"cpu_user_seconds": np.array([math.nan, 0.25, 1.0])},
            notes=("1.25 make",),
        ),
    ),
)


def _another(factor: Factor) -> Any:
    """Return a level that is not the default."""
    if factor.kind is dict:
        return {"dfs.blocksize": "33554432", "spark.app.ü": "2"}
    if factor.kind is int:
        return factor.default + 1
    return next(level for level in factor.kind if level != factor.default)


LATER = {factor.name: _another(factor) for factor in FACTORS if factor.migration}
"""A level of each factor that came after the first formats of the store."""


@pytest.fixture
def fingerprint() -> Fingerprint:
    return Fingerprint(
        kernel="6.1.0 x86_64",
        os="Debian",
        cpu="A CPU",
        cpu_cores=2,
        memory_bytes=24 * 2**30,
        java="17.0.1",
        hadoop="3.4.2",
        spark="4.1.4",
        boardcluster="0.1.0",
        profile="default",
        config_sha256=DIGEST,
        nodes=5,
        node_memory_bytes=2**30,
        node_cores=1,
        link_bits_per_second=10**9,
        emulated=True,
    )


@pytest.fixture
def campaign() -> Campaign:
    return Campaign(
        id="20260801-120000",
        kind=CampaignKind.RUN,
        created_utc="2026-08-01T12:00:00+00:00",
        seed=7,
        cluster="demo",
        emulated=True,
        dataset="airline",
        dataset_sha256=DIGEST,
        dataset_source="made up",
        name="paper",
        spec_sha256=DIGEST,
    )


@pytest.fixture
def trials(campaign: Campaign) -> tuple[Trial, ...]:
    return tuple(
        Trial(
            id=f"{campaign.id}-{engine}-{repetition}",
            campaign_id=campaign.id,
            position=len(Engine) * repetition + offset,
            workload="wordcount",
            engine=engine,
            profile="default",
            size_bytes=256_000_000,
            workers=4,
            repetition=repetition + 1,
            concurrency=2,
            replication=1,
            checksum=Checksum.NULL,
            master=MasterPlacement.COMBINED,
            warm_up=repetition == 0,
            input="/data/text",
            parameters={"wordcount.b": "1", "wordcount.a": "ü"},
            **LATER,
        )
        for repetition in range(3)
        for offset, engine in enumerate(Engine)
    )


@pytest.fixture
def measurement() -> Measurement:
    return Measurement(
        duration_seconds=24.125,
        input_bytes=256_000_000,
        output_bytes=1_000,
        counters={"group/A": 2**62, "group/B": 0},
        verification=Verification(
            method="independent count", expected_sha256=DIGEST, actual_sha256=DIGEST, records=12
        ),
        exit_status=0,
        application_id="application_1_0001",
        figures={"b_gigaflops": 2.5, "a_seconds": -1.0},
        phases_seconds={"sort": 24.125, "sort/map": 10.0, "check": 0.0},
        intermediate_bytes=512_000_000,
        node_written_bytes={"worker2": 5, "worker1": 2**40},
        node_read_bytes={"worker1": 0, "master": 7},
        remarks=("waited 600 s, still 61 °C",),
        verdict=Verdict.VALID,
        verdict_reasons=("worker2 was hot before the run: 71 °C",),
        dilation=2.5,
        energy=Energy(
            energy_joules=412.5,
            method=EnergyMethod.METERED,
            level=1,
            level_reason="less than one reading a second",
            powers=(
                Power(
                    meter="plug",
                    kind="shelly",
                    coverage=Coverage.WALL,
                    nodes=("master", "worker1", "worker2"),
                    switch=True,
                    accuracy="1 %",
                    rate_hertz=0.5,
                    energy_joules=412.5,
                    mean_watts=17.1,
                    most_watts=20.25,
                    readings=12,
                    remarks=("a gap of 3 s",),
                ),
            ),
        ),
    )
