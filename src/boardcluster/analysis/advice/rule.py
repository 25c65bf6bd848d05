"""What a rule of advice is, and the arithmetic that rules share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from boardcluster.analysis.advice.compared import Pair, pairs_by
from boardcluster.analysis.advice.evidence import Advice, Certainty
from boardcluster.analysis.advice.settings import matrix_key
from boardcluster.analysis.advice.view import Group, RunView, View
from boardcluster.analysis.bottleneck import Bound
from boardcluster.analysis.inference import MeasuredRatio

__all__ = [
    "LEAST_GAIN",
    "Rule",
    "advice",
    "gain_words",
    "measured",
    "measured_advice",
    "percent",
    "predicted_words",
    "shrunk",
]

LEAST_GAIN = 1.03
"""Below this a change is not worth a person's time, and repetitions seldom tell it from noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One thing that is often wrong, and what to do; docs/reference/advice.md says when."""

    name: str
    """One or two words."""
    source: str
    """Where the rule, or the gain it promises, comes from."""
    find: Callable[[Rule, View], Iterable[Advice]]
    """Returns its advice; several for the same subject are thinned out later."""


def shrunk(share: float, factor: float) -> float:
    """How many times as fast a run is when a share of its time shrinks by a factor above 0.

    1 / ((1 - share) + share * factor), a ratio of times; source: Amdahl 1967.
    """
    return 1.0 / ((1.0 - share) + share * factor)


def percent(share: float) -> str:
    """A share in whole percent: ``41 %``."""
    return f"{100 * share:.0f} %"


def gain_words(gain: float, *, at_most: bool = True, emulated: str = "") -> str:
    """A computed gain for people: ``at most 1.4 times as fast (emulated nodes)``."""
    times = f"{'at most ' if at_most else ''}{gain:.3g} times as fast"
    return f"{times} ({emulated})" if emulated else times


def predicted_words(run: RunView, bound: Bound, *, emulated: str = "") -> str:
    """What a resource twice as fast brings, with the bounds that are known of it.

    ``about 1.63 times as fast (between 1.46 and 1.97; emulated nodes)``. Bounds that round to the
    same are left out.
    """
    low, high = run.twice_bounds(bound)
    between = f"between {low:.3g} and {high:.3g}" if f"{low:.3g}" != f"{high:.3g}" else ""
    notes = "; ".join(words for words in (between, emulated) if words)
    times = f"about {run.twice(bound):.3g} times as fast"
    return f"{times} ({notes})" if notes else times


def _ratio_words(ratio: MeasuredRatio, *, emulated: str = "") -> str:
    """A measured gain for people: ``1.42 times as fast (95 % interval 1.3 to 1.55)``."""
    interval = ratio.interval
    known = (
        f"95 % interval {interval.low:.3g} to {interval.high:.3g}"
        if interval is not None
        else ratio.reason
    )
    return f"{ratio.value:.3g} times as fast ({'; '.join(row for row in (known, emulated) if row)})"


def measured(view: View, factor: str) -> Iterator[tuple[Pair, Group]]:
    """Yield cells that differ in one factor alone and in their times, with the slower's runs.

    Where another level is the fastest for another size, the runs are said to be of their size.
    """
    found = [
        (pair, group)
        for pair in pairs_by(view.cells, factor, view.compared)
        if (group := view.group_of(pair.slower)) is not None
        if pair.counts and pair.ratio.value >= LEAST_GAIN
    ]
    fastest: dict[str, dict[int, object]] = {}
    for pair, group in sorted(found, key=lambda row: row[0].ratio.value):
        by_size = fastest.setdefault(group.subject, {})
        by_size[group.trial.size_bytes] = getattr(pair.faster.configuration, factor)
    for pair, group in found:
        yield pair, replace(group, of_size=len({*fastest[group.subject].values()}) > 1)


def measured_advice(
    rule: Rule,
    group: Group,
    pair: Pair,
    *,
    title: str,
    seen: str,
    level: str = "",
    setting: str = "",
    also: str = "",
) -> Advice:
    """Return advice on what was measured: to run with the level of the faster cell.

    Args:
        rule: whose advice it is.
        group: runs of the slower cell.
        pair: both cells.
        title: what to do.
        seen: both levels in words.
        level: the faster one as a key of the campaign's cells.
        setting: where it is set, if that is no such key.
        also: what else it brings or costs.
    """
    gain = _ratio_words(pair.ratio, emulated=group.emulated)
    return advice(
        rule,
        group,
        title=title,
        seen=f"{seen}: {pair.words} ({group.where})",
        setting=setting or matrix_key(level),
        brings=f"{gain}; {also}" if also else gain,
        gain=pair.ratio.value,
        certainty=Certainty.COMPARED,
    )


def advice(
    rule: Rule,
    group: Group,
    *,
    title: str,
    seen: str,
    setting: str,
    brings: str,
    gain: float | None,
    certainty: Certainty = Certainty.COMPUTED,
    subject: str = "",
    runs: Iterable[str] = (),
) -> Advice:
    """Return advice on a group of runs; what is not given is that of the group."""
    return Advice(
        rule=rule.name,
        title=title,
        subject=subject or group.subject,
        seen=seen,
        setting=setting,
        brings=brings,
        gain=gain,
        certainty=certainty,
        source=rule.source,
        workload=group.trial.workload,
        emulated=group.emulated,
        runs=tuple(runs) or group.names,
    )
