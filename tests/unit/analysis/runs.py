"""Results to analyse, made up for tests."""

from __future__ import annotations

from typing import Any

from tests.builders import make_energy, make_power, make_result

from boardcluster.records import (
    Energy,
    EnergyMethod,
    Engine,
    Result,
)

__all__ = ["metered", "result"]


def metered(
    energy_joules: float | None,
    *,
    mean_watts: float | None = None,
    method: EnergyMethod = EnergyMethod.METERED,
    level: int = 1,
    reason: str = "",
) -> Energy:
    """Energy of a run from one plug that saw all of it."""
    power = make_power(
        energy_joules, mean_watts=mean_watts, most_watts=mean_watts, method=method, reason=""
    )
    return make_energy(energy_joules, method=method, level=level, powers=(power,), reason=reason)


def result(seconds: float, *, campaign: str = "c", **changes: Any) -> Result:
    """A verified run of WordCount over a GB; ``position`` is its place in the campaign."""
    return make_result(
        seconds,
        **{
            "id": f"{campaign}-{changes.get('position', 0)}",
            "campaign_id": campaign,
            "workload": "wordcount",
            "engine": Engine.MAPREDUCE,
            "size_bytes": 10**9,
            **changes,
        },
    )
