"""From telemetry to a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from boardcluster.analysis.trust.expectations import Expectations
from boardcluster.records import NodeFacts, Telemetry, Verdict

__all__ = ["Baseline", "Judgement", "judge", "judge_before"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What telemetry says of a run."""

    verdict: Verdict
    """VALID, TAINTED or INVALID."""
    reasons: tuple[str, ...]
    """Why it is not valid, in one line each, the gravest first; empty if it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """What the samples before a run say."""

    taints: tuple[str, ...]
    """What spoils the run that follows, in one line each."""
    remarks: tuple[str, ...]
    """What is worth knowing with its result, in one line each."""


def judge(telemetry: Telemetry, *, expectations: Expectations) -> Judgement:
    """Judge a run by its telemetry, which may have samples before its start and after its end."""
    # Its arrays need numpy, which takes longer to load than a command that judges nothing.
    from boardcluster.analysis.trust.rules import RULES, RunTelemetry  # noqa: PLC0415

    run = RunTelemetry.of(telemetry, expectations)
    found: dict[Verdict, list[str]] = {Verdict.INVALID: [], Verdict.TAINTED: []}
    for rule in RULES:
        found[rule.verdict] += rule.find(run)
    reasons = tuple(dict.fromkeys([*found[Verdict.INVALID], *found[Verdict.TAINTED]]))
    worst = next((verdict for verdict, lines in found.items() if lines), Verdict.VALID)
    return Judgement(verdict=worst, reasons=reasons)


def judge_before(
    samples: Telemetry,
    *,
    facts: Mapping[str, NodeFacts],
    free_bytes: Mapping[str, int],
    expectations: Expectations,
) -> Baseline:
    """Judge what nodes were like before a run.

    Args:
        samples: telemetry of the quiet moments before it; all of it is looked at, whatever its
            times are.
        facts: what discovery found on each node; empty for an emulated cluster.
        free_bytes: by node, what is free in its folder; nodes without an entry are not judged.
        expectations: what nodes are judged against.
    """
    from boardcluster.analysis.trust.baseline import judge_baseline  # noqa: PLC0415

    taints, remarks = judge_baseline(
        samples, facts=facts, free_bytes=free_bytes, expectations=expectations
    )
    return Baseline(taints=taints, remarks=remarks)
