"""A store with made-up runs, for the commands that only read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from tests.builders import (
    make_board_fingerprint,
    make_campaign,
    make_measurement,
    make_proof,
    make_samples,
    make_telemetry,
    make_trial,
    store_run,
)

from boardcluster.records import (
    AttemptState,
    Campaign,
    Fingerprint,
    Security,
    Telemetry,
    Trial,
    Verdict,
)
from boardcluster.store import Store

FINGERPRINT = make_board_fingerprint(
    cpu="a CPU", java="17.0.1", node_memory_bytes=2**30, node_cores=1, security=Security.EMULATED
)


def samples() -> Telemetry:
    columns = {
        "cpu_user_seconds": [np.nan, 0.123456],
        "temperature_celsius/soc": [41.5, 42.25],
    }
    return make_telemetry(make_samples("wörker1", columns=columns))


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
        make_trial(
            **{
                "id": f"{campaign_id}-{fields.get('engine', 'spark')}-{place}",
                "campaign_id": campaign_id,
                "position": first_position + place,
                "workload": "terasort",
                "size_bytes": 500_000_000,
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
    return make_campaign(
        id=campaign_id,
        cluster=cluster,
        emulated=fingerprint.emulated,
        dataset="",
        dataset_sha256="",
        dataset_source="",
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
    proof = make_proof("counted", records=12)
    for trial, duration_seconds in zip(trials, seconds, strict=True):
        if duration_seconds is None:
            continue
        own = {"input_bytes": trial.size_bytes, "verification": proof, "verdict": verdict}
        measurement = make_measurement(duration_seconds, **(own | (measured or {})))
        store_run(
            store,
            trial,
            measurement if state is AttemptState.OK else None,
            fingerprint=replace(fingerprint, profile=trial.profile),
            state=state,
            reason="" if state is AttemptState.OK else "it broke",
            telemetry=samples() if verdict is not Verdict.UNJUDGED else None,
        )
