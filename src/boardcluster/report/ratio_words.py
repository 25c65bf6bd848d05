"""What a comparison shows, in the same words wherever it is stated."""

from __future__ import annotations

from collections.abc import Sequence

from boardcluster.analysis.inference import (
    ASSUMED_START_DEVIATION,
    CampaignDrift,
    Correction,
    DriftKind,
    EffectVerdict,
    MeasuredRatio,
)
from boardcluster.analysis.scaling import NodeScaling
from boardcluster.report import words
from boardcluster.units import format_bytes

__all__ = [
    "basis",
    "drift_words",
    "family_words",
    "interval",
    "needed",
    "outcome",
    "setup_words",
    "span",
    "work_size",
]

_MOST = "over a thousand more"
_DIFFERENCES = 3


def span(ratio: MeasuredRatio) -> str:
    """The 95 % interval of a ratio, or a dash."""
    found = ratio.interval
    return f"{found.low:.3g} to {found.high:.3g}" if found else words.NONE


def outcome(ratio: MeasuredRatio, *, shown: str = "shown") -> str:
    """What it shows: ``shown``, that there is nothing worth while, or how much is missing.

    Args:
        ratio: the comparison.
        shown: what is said of a difference that is shown, such as which side is faster.
    """
    if ratio.interval is None:
        return ratio.reason
    if ratio.is_shown:
        return shown
    if ratio.verdict is EffectVerdict.NOT_WORTHWHILE:
        return f"no worthwhile difference (under {words.percent(ratio.smallest_effect)})"
    return f"not shown: {needed(ratio)} needed"


def needed(ratio: MeasuredRatio) -> str:
    """How many more blocks, or starts of the cluster, would tell a smallest effect of interest."""
    more = ratio.more_needed
    if more is None:
        return f"{_MOST} {'starts of the cluster' if ratio.needs_starts else 'blocks'}"
    if ratio.needs_starts:
        return words.count(more, "more start of the cluster", "more starts of the cluster")
    return words.count(more, "more block")


def interval(ratio: MeasuredRatio) -> str:
    """Where the interval is from: pairs or runs, starts, adjustment; or why there is none."""
    if ratio.interval is None:
        return ratio.reason
    if ratio.pairs:
        left = sum(ratio.counts) - 2 * ratio.pairs
        from_what = words.count(ratio.pairs, "pair")
        from_what += f" ({words.count(left, 'unpaired run')} left out)" if left else ""
    else:
        from_what = f"{ratio.counts[0]} and {ratio.counts[1]} unpaired runs"
    if ratio.starts > 1:
        from_what += f" in {ratio.starts} starts of the cluster"
    elif ratio.allows_for_starts:
        allowed = words.percent(ASSUMED_START_DEVIATION)
        one, other = ratio.starts_of_each
        if one == other:
            from_what += f" in one start of the cluster each ({allowed} allowed between starts)"
        else:
            from_what += f" in {one} and {other} starts of the cluster"
            from_what += f" ({allowed} allowed between starts for the one)"
    else:
        from_what += " in one start of the cluster"
    if ratio.adjusted_for:
        from_what += (
            f", adjusted for {words.listed(ratio.adjusted_for)} ({ratio.unadjusted:.3g} without)"
        )
    return from_what


def family_words(ratio: MeasuredRatio) -> str:
    """What its p is corrected for, and how."""
    declared = "declared " if ratio.correction == Correction.CONFIRMATORY else ""
    return f"{ratio.family_size} {declared}comparisons by the method of {ratio.correction}"


def basis(ratio: MeasuredRatio) -> str:
    """Interval of a ratio, what it is from, and of how many comparisons it is one: a sentence."""
    if ratio.interval is None:
        return f"{ratio.reason[:1].upper()}{ratio.reason[1:]}."
    holds = ratio.interval.low <= 1 <= ratio.interval.high
    includes = ", which includes 1" if holds else ""
    sentence = f"95 % interval of the ratio {span(ratio)}{includes}, from {interval(ratio)}"
    if ratio.family_size > 1 and ratio.p_adjusted is not None:
        sentence += f"; p {words.p_value(ratio.p_adjusted)}, corrected for {family_words(ratio)}"
    if not ratio.agrees and ratio.p_adjusted is not None and ratio.p_adjusted < 0.05:
        sentence += "; the arithmetic means and the model differ on which is less"
    if ratio.verdict is EffectVerdict.NOT_SHOWN:
        sentence += (
            f". {needed(ratio)[0].upper()}{needed(ratio)[1:]} would show a difference of"
            f" {words.percent(ratio.smallest_effect)}"
        )
    return f"{sentence}."


def setup_words(differences: Sequence[str]) -> str:
    """Say that setups differ, and in what; empty if they do not."""
    if not differences:
        return ""
    named = list(dict.fromkeys(line.partition(":")[0] for line in differences))
    more = f" and {len(named) - _DIFFERENCES} more" if len(named) > _DIFFERENCES else ""
    listed = ", ".join(named[:_DIFFERENCES])
    return f" The runs are from different setups ({listed}{more}); see below."


def work_size(scaling: NodeScaling) -> str:
    """The size of the same work, or of growing work that of each worker; empty without an input."""
    size_bytes = scaling.points[0].size_bytes
    if not size_bytes:
        return ""
    if scaling.scaled:
        return f"{format_bytes(size_bytes / scaling.base_workers)} per worker"
    return format_bytes(size_bytes)


def drift_words(found: CampaignDrift) -> str:
    """What run order did to the times of a campaign."""
    longer = "longer" if found.share > 0 else "shorter"
    by = f"{words.percent(abs(found.share))} {longer}"
    several = found.starts > 1
    if found.kind is DriftKind.CHANGE:
        within = " within that start of the cluster" if several else ""
        what = f"from run {found.position + 1} on{within}, times of campaign {found.campaign}"
        what += f" are {by}"
    else:
        of = "each start of the cluster in campaign" if several else "campaign"
        what = f"the last runs of {of} {found.campaign} took {by} than its first"
    return (
        f"Times drift: {what}, over all of its configurations ({found.runs} runs, p"
        f" {words.p_value(found.p_adjusted)}). Heat, a disk that fills up or another load on the"
        " machine may be the cause."
    )
