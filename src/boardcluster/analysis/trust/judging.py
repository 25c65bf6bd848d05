"""From telemetry to a verdict."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from boardcluster.analysis.trust.expectations import Expectations
from boardcluster.records import (
    SMALLEST_EFFECT_SHARE,
    Disturbance,
    NodeFacts,
    Telemetry,
    Verdict,
)

if TYPE_CHECKING:
    from boardcluster.analysis.trust.rule import FoundDisturbance, RunTelemetry, TrustRule

__all__ = ["TOGETHER", "Judgement", "judge", "judge_before"]

TOGETHER = "together this explains at most"
"""How the line begins that adds up the others."""

_LEAST_SHARE = 1e-4
"""What explains less is nothing: a hundredth of a per cent."""

_NAMED = 0.25
"""Of what a run tolerates: a disturbance that explains at least so much of it is named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What telemetry says of a run."""

    verdict: Verdict
    """VALID, TAINTED or INVALID."""
    reasons: tuple[str, ...]
    """Why it is not valid, in one line each, the gravest first; empty if it is."""
    disturbances: tuple[Disturbance, ...] = ()
    """What disturbed it, the largest share first; also what is too small to taint."""
    tolerated_share: float = SMALLEST_EFFECT_SHARE
    """Share of its duration above which they taint it."""
    clock_hertz: Mapping[str, float] = field(default_factory=dict)
    """By node, the clock that it reached under load; only where that is known."""


def judge(
    telemetry: Telemetry,
    *,
    expectations: Expectations,
    tolerated_share: float = SMALLEST_EFFECT_SHARE,
    without: Collection[str] = (),
) -> Judgement:
    """Judge a run by its telemetry, which may have samples before its start and after its end.

    A run is tainted if what disturbed it explains, all together, more of its duration than it
    tolerates.

    Args:
        telemetry: of the run.
        expectations: what its nodes are judged against.
        tolerated_share: the precision that its cell has reached, see ``precision_reached``.
        without: names of rules that are left out.
    """
    # Its arrays need numpy, which takes longer to load than a command that judges nothing.
    from boardcluster.analysis.trust.clocks import clock_under_load  # noqa: PLC0415
    from boardcluster.analysis.trust.rules import RULES, RunTelemetry  # noqa: PLC0415

    run = RunTelemetry.of(telemetry, expectations)
    refusals: list[str] = []
    bounds: list[_Bound] = []
    for rule in RULES:
        findings = () if rule.name in without else tuple(rule.find(run))
        if rule.verdict is Verdict.INVALID:
            refusals += [row.words for row in findings]
        elif findings:
            bounds.append(_bound(run, rule, findings))
    bounds = sorted((row for row in bounds if row.found.share >= _LEAST_SHARE), key=_by_share)
    whole = min(1.0, sum(row.found.share for row in bounds))
    tainted = whole > tolerated_share
    lines = [*refusals, *(_lines(bounds, whole, tolerated_share) if tainted else ())]
    clocks = {row.node: clock_under_load(row, run.thresholds.busy_share) for row in run.windows}
    return Judgement(
        verdict=Verdict.INVALID if refusals else Verdict.TAINTED if tainted else Verdict.VALID,
        reasons=tuple(dict.fromkeys(lines)),
        disturbances=tuple(row.found for row in bounds),
        tolerated_share=tolerated_share,
        clock_hertz={node: hertz for node, hertz in clocks.items() if hertz},
    )


@dataclass(frozen=True, slots=True)
class _Bound:
    """What a rule found, and how much of the run it explains."""

    found: Disturbance
    lines: tuple[tuple[float, str], ...]
    """Share and words of what it found on each node."""


def _by_share(row: _Bound) -> float:
    return -row.found.share


def _bound(run: RunTelemetry, rule: TrustRule, findings: Sequence[FoundDisturbance]) -> _Bound:
    from boardcluster.analysis.trust.effects import share_of_time  # noqa: PLC0415

    def share(rows: Sequence[FoundDisturbance]) -> float:
        return share_of_time(
            [row.lost for row in rows if row.lost],
            duration_seconds=run.duration_seconds,
            phases=run.phases,
        )

    alone = [(share([row]), row) for row in findings]
    _, worst = max(alone, key=lambda pair: pair[0])
    found = Disturbance(
        cause=rule.name, node=worst.node, share=share(findings), adjustable=rule.adjustable
    )
    return _Bound(found, tuple((part, row.words) for part, row in alone))


def _lines(bounds: Sequence[_Bound], whole: float, tolerated_share: float) -> list[str]:
    """Name what matters, the largest share first, and say what it comes to."""
    from boardcluster.analysis.trust.foreign_load import percent_text  # noqa: PLC0415

    known = sorted(
        ((share, bound.found.cause, words) for bound in bounds for share, words in bound.lines),
        key=lambda row: -row[0],
    )
    named = [row for row in known if row[0] >= _NAMED * tolerated_share] or known[:1]
    lines = [
        f"{words}; explains at most {percent_text(share)} of the time" for share, _, words in named
    ]
    # Where no line by itself is too much, it is the sum, with what is too small for a line.
    if len({cause for _, cause, _ in named}) > 1 or named[0][0] <= tolerated_share:
        lines.append(f"{TOGETHER} {percent_text(whole)} of the time")
    return lines


def judge_before(
    samples: Telemetry,
    *,
    facts: Mapping[str, NodeFacts],
    free_bytes: Mapping[str, int],
    expectations: Expectations,
) -> tuple[str, ...]:
    """Return what is worth knowing of the nodes before a run, in one line each.

    These are remarks only: what lasts into the run is judged by the run's own samples.

    Args:
        samples: telemetry of the quiet moments before it; all of it is looked at, whatever its
            times are.
        facts: what discovery found on each node; empty for an emulated cluster.
        free_bytes: by node, what is free in its folder; nodes without an entry are not judged.
        expectations: what nodes are judged against.
    """
    from boardcluster.analysis.trust.baseline import baseline_remarks  # noqa: PLC0415

    return baseline_remarks(samples, facts=facts, free_bytes=free_bytes, expectations=expectations)
