"""Made-up records for the tests of the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from tests.builders import make_campaign, make_fingerprint, make_proof, make_result

from boardcluster.records import (
    Campaign,
    Engine,
    Fingerprint,
    Result,
    Verdict,
)

DIGEST = "3f2a9c1b" * 8

Make = Callable[..., Result]


@pytest.fixture
def fingerprint() -> Fingerprint:
    return make_fingerprint()


@pytest.fixture
def campaign() -> Campaign:
    return make_campaign(
        id="20260801-a",
        created_utc="2026-08-01T10:15:00+00:00",
        seed=4711,
        dataset_sha256="c0ffee12" * 8,
    )


@pytest.fixture
def make(fingerprint: Fingerprint, campaign: Campaign) -> Make:
    """Make a result; what is not given is an ok run of WordCount over 256 MB."""
    proof = make_proof("compared with an independent count", digest=DIGEST, records=2_712_345)

    def result(
        position: int,
        engine: Engine,
        seconds: float | None,
        *,
        setup: Fingerprint = fingerprint,
        measured: Mapping[str, Any] | None = None,
        **changes: Any,
    ) -> Result:
        own: dict[str, Any] = {"workload": "wordcount", "campaign_id": campaign.id, **changes}
        minute = f"2026-08-01T1{position // 45}:{15 + position % 45:02d}"
        number = own.get("number", 1)
        return make_result(
            seconds,
            setup=setup,
            **{
                "id": f"{own['campaign_id']}-{position}",
                "position": position,
                "engine": engine,
                "size_bytes": 256_000_000,
                "repetition": position // 2 + 1,
                "started_utc": f"{minute}:0{number}+00:00",
                "ended_utc": f"{minute}:3{number}+00:00",
                "output_bytes": 41_234_567,
                "verification": proof if own["workload"] != "submit" else None,
                "application_id": f"application_1_{position:04d}",
                "verdict": Verdict.UNJUDGED,
                **own,
                **(measured or {}),
            },
        )

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
