"""From runs to advice, and from their telemetry to what advice needs of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from boardcluster.analysis.advice.evidence import Advice, AdviceEvidence, RunFacts
from boardcluster.records import Result, Telemetry

__all__ = ["advise", "run_facts"]


def advise(evidence: AdviceEvidence) -> tuple[Advice, ...]:
    """Return what to change: first profiles and settings that were measured to be faster.

    Then the largest gain comes first, then the surest; unknown gains are last.

    A gain is a ratio of times: how many times as fast a run would be. Each rule speaks once of each
    subject, with the numbers of the runs that would gain most; ``runs`` names all in which it was
    seen. Without evidence there is no advice.
    """
    # Its arrays need numpy, which takes longer to load than a command that advises nothing.
    from boardcluster.analysis.advice.faster import FASTER_RULES  # noqa: PLC0415
    from boardcluster.analysis.advice.rules import RULES  # noqa: PLC0415
    from boardcluster.analysis.advice.view import View  # noqa: PLC0415

    measured_first = {rule.name for rule in FASTER_RULES}
    view = View.of(evidence)
    found = _thinned(row for rule in RULES for row in rule.find(rule, view))
    return tuple(
        sorted(
            found,
            key=lambda row: (
                row.rule not in measured_first,
                row.gain is None,
                -(row.gain or 0.0),
                -row.certainty,
            ),
        )
    )


def _thinned(rows: Iterable[Advice]) -> tuple[Advice, ...]:
    """Keep of each rule and subject the one with the surest and largest gain, with all its runs."""
    kept: dict[tuple[str, str], list[Advice]] = {}
    for row in rows:
        kept.setdefault((row.rule, row.subject), []).append(row)
    return tuple(
        replace(
            max(same, key=lambda row: (row.certainty, row.gain or 0.0)),
            runs=tuple(dict.fromkeys(name for row in same for name in row.runs)),
        )
        for same in kept.values()
    )


def run_facts(result: Result, telemetry: Telemetry | None) -> RunFacts | None:
    """Condense a run's telemetry to what the rules of advice look at.

    Amounts are summed over the run, states are the highest or lowest within it; see ``NodeUse``
    for the units. None without telemetry, without a measurement, or where the run has no duration.
    """
    if telemetry is None or result.measurement is None or not telemetry.duration_seconds > 0:
        return None
    # numpy takes longer to load than a command that reads no telemetry.
    from boardcluster.analysis.advice.condense import node_use  # noqa: PLC0415

    return RunFacts(
        duration_seconds=telemetry.duration_seconds,
        nodes=tuple(node_use(node, telemetry) for node in telemetry.nodes),
    )
