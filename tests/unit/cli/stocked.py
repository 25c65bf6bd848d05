"""A store with made-up runs, for the commands that only read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from boardcluster.records import (
    AttemptState,
    Campaign,
    CampaignKind,
    Energy,
    EnergyMethod,
    Engine,
    Fingerprint,
    Measurement,
    NodeSamples,
    Telemetry,
    Trial,
    Verdict,
    Verification,
)
from boardcluster.store import Store

DIGEST = "ab" * 32
FINGERPRINT = Fingerprint(
    kernel="6.1 aarch64",
    os="Debian 12",
    cpu="a CPU",
    cpu_cores=4,
    memory_bytes=8 * 2**30,
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
    emulated=False,
)
PROOF = Verification(method="counted", expected_sha256=DIGEST, actual_sha256=DIGEST, records=12)


def samples() -> Telemetry:
    return Telemetry(
        duration_seconds=2.0,
        nodes=(
            NodeSamples(
                node="wörker1",
                scope="machine",
                interval_seconds=1.0,
                cores=4,
                seconds=np.array([0.5, 1.5]),
                columns={
                    "cpu_user_seconds": np.array([np.nan, 0.123456]),
                    "temperature_celsius/soc": np.array([41.5, 42.25]),
                },
            ),
        ),
    )


def energy(joules: float | None, *, method: EnergyMethod = EnergyMethod.METERED) -> Energy:
    return Energy(
        energy_joules=joules,
        method=method,
        level=1,
        level_reason="no idle power",
        powers=(),
        reason="" if joules is not None else "the meter was silent",
    )


def stock(
    home: Path,
    campaign_id: str,
    seconds: Sequence[float | None],
    *,
    name: str = "",
    cluster: str = "boards",
    fingerprint: Fingerprint = FINGERPRINT,
    verdict: Verdict = Verdict.UNJUDGED,
    state: AttemptState = AttemptState.OK,
    measured: dict[str, Any] | None = None,
    first_position: int = 0,
    add: bool = True,
    **fields: Any,
) -> list[Trial]:
    """Add a campaign of one cell; None among the seconds is a trial that never began."""
    trials = [
        Trial(
            **{
                "id": f"{campaign_id}-{fields.get('engine', 'spark')}-{place}",
                "campaign_id": campaign_id,
                "position": first_position + place,
                "workload": "terasort",
                "engine": Engine.SPARK,
                "profile": "default",
                "size_bytes": 500_000_000,
                "workers": 4,
                "repetition": place + 1,
                **fields,
            }
        )
        for place in range(len(seconds))
    ]
    if add:
        with Store.open(home) as store:
            store.add_campaign(campaign(campaign_id, name, cluster, fingerprint), trials)
            run(
                store,
                trials,
                seconds,
                fingerprint=fingerprint,
                verdict=verdict,
                state=state,
                measured=measured,
            )
    return trials


def campaign(campaign_id: str, name: str, cluster: str, fingerprint: Fingerprint) -> Campaign:
    return Campaign(
        id=campaign_id,
        kind=CampaignKind.RUN,
        created_utc="2026-08-01T12:00:00+00:00",
        seed=7,
        cluster=cluster,
        emulated=fingerprint.emulated,
        name=name,
    )


def run(
    store: Store,
    trials: Sequence[Trial],
    seconds: Sequence[float | None],
    *,
    fingerprint: Fingerprint = FINGERPRINT,
    verdict: Verdict = Verdict.UNJUDGED,
    state: AttemptState = AttemptState.OK,
    measured: dict[str, Any] | None = None,
) -> None:
    for trial, duration_seconds in zip(trials, seconds, strict=True):
        if duration_seconds is None:
            continue
        attempt = store.begin_attempt(
            trial.id, replace(fingerprint, profile=trial.profile), "2026-08-01T12:00:00+00:00"
        )
        measurement = Measurement(
            **{
                "duration_seconds": duration_seconds,
                "input_bytes": trial.size_bytes,
                "output_bytes": 1,
                "verification": PROOF,
                "exit_status": 0,
                "verdict": verdict,
                **(measured or {}),
            }
        )
        store.finish(
            attempt,
            state=state,
            reason="" if state is AttemptState.OK else "it broke",
            ended_utc="2026-08-01T13:00:00+00:00",
            measurement=measurement if state is AttemptState.OK else None,
            telemetry=samples() if verdict is not Verdict.UNJUDGED else None,
        )
