"""A run's telemetry, condensed to what the rules of advice look at."""

from __future__ import annotations

from boardcluster.analysis.advice.case import RunFacts
from boardcluster.records import Result, Telemetry

__all__ = ["run_facts"]


def run_facts(result: Result, telemetry: Telemetry | None) -> RunFacts | None:
    """Condense a run's telemetry to what the rules of advice look at.

    Amounts are summed over the run, states are the highest or lowest within it; see ``NodeUse``
    for the units.

    Args:
        result: the run.
        telemetry: of the run; None if there is none.

    Returns:
        None without telemetry, without a measurement, or where the run has no duration.
    """
    if telemetry is None or result.measurement is None or not telemetry.duration_seconds > 0:
        return None
    # numpy takes longer to load than a command that reads no telemetry.
    from boardcluster.analysis.advice.condense import node_use  # noqa: PLC0415

    return RunFacts(
        duration_seconds=telemetry.duration_seconds,
        nodes=tuple(node_use(node, telemetry) for node in telemetry.nodes),
    )
