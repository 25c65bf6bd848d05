"""Made-up records for the tests of the store."""

from __future__ import annotations

import hashlib
import math
from typing import Any

import pytest
from tests.builders import (
    DIGEST,
    make_campaign,
    make_energy,
    make_fingerprint,
    make_measurement,
    make_power,
    make_proof,
    make_samples,
    make_telemetry,
    make_trial,
)

from boardcluster.factors import FACTORS, Factor
from boardcluster.records import (
    Campaign,
    Checksum,
    DeclaredComparison,
    Disturbance,
    Engine,
    Fingerprint,
    MasterPlacement,
    Measurement,
    Trial,
    Verdict,
)

TELEMETRY = make_telemetry(
    make_samples(
        scope="node",
        cores=2,
        seconds=[-0.5, 0.5, 1.5],
        columns={"cpu_user_seconds": [math.nan, 0.25, 1.0]},
        notes=("1.25 make",),
    ),
    duration_seconds=24.125,
    phases={"sort": (0.0, 24.125)},
)


def _another(factor: Factor) -> Any:
    """Return a level that is not the default."""
    if factor.kind is dict:
        return {"dfs.blocksize": "33554432", "spark.app.ü": "2"}
    if factor.kind is int:
        return factor.default + 1
    return next(level for level in factor.kind if level != factor.default)


CAMPAIGN_FILE = b"[campaign]\nname = 'paper'  # a comment\n"
"""What the campaign was begun with."""

LATER = {factor.name: _another(factor) for factor in FACTORS if factor.migration}
"""A level of each factor that came after the first formats of the store."""


@pytest.fixture
def fingerprint() -> Fingerprint:
    return make_fingerprint()


@pytest.fixture
def campaign() -> Campaign:
    return make_campaign(
        id="20260801-120000",
        name="paper",
        spec_sha256=DIGEST,
        file_sha256=hashlib.sha256(CAMPAIGN_FILE).hexdigest(),
        starts=3,
        precision=0.03,
        repetitions_max=30,
        comparisons=(
            DeclaredComparison(
                factor="engine", levels=("mapreduce", "spark"), where={"workers": (2, 4)}
            ),
        ),
    )


@pytest.fixture
def trials(campaign: Campaign) -> tuple[Trial, ...]:
    return tuple(
        make_trial(
            "wordcount",
            id=f"{campaign.id}-{engine}-{repetition}",
            campaign_id=campaign.id,
            position=len(Engine) * repetition + offset,
            engine=engine,
            size_bytes=256_000_000,
            repetition=repetition + 1,
            start=2,
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
    power = make_power(412.5, rate_hertz=0.5, remarks=("a gap of 3 s",))
    return make_measurement(
        24.125,
        input_bytes=256_000_000,
        output_bytes=1_000,
        counters={"group/A": 2**62, "group/B": 0},
        verification=make_proof("independent count", records=12),
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
        energy=make_energy(412.5, powers=(power,)),
        disturbances=(
            Disturbance(cause="steal", node="worker2", share=0.03125, adjustable=True),
            Disturbance(cause="swap", node="worker1", share=0.015625, adjustable=False),
        ),
        tolerated_share=0.03125,
        clock_hertz={"worker1": 2.4e9},
    )
