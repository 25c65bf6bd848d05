"""How a watched cell stands, in the same words wherever it is stated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from boardcluster.analysis.control_chart import ChangePoint, ControlChart
from boardcluster.report import words

__all__ = ["between_words", "cell_words", "silent_words"]

_CHANGED_MOST = 4
"""So many differences are named in a sentence; the others are in the table and in the report."""


def cell_words(name: str, chart: ControlChart, changed: Sequence[str]) -> str:
    """Say how a cell stands: within its limits, out of them and why, or not judged yet."""
    latest = chart.latest
    if latest is None or latest.value.seconds is None:
        return f"{name}: no round has a run that counts yet"
    took = f"{words.seconds(latest.value.seconds)} s in round {latest.number}"
    if chart.centre_seconds is None or chart.limits_seconds is None:
        left = words.count(chart.wanted - chart.have, "round")
        return f"{name}: {took}; no limits yet, the baseline needs {left} more"
    limits = chart.limits_seconds
    span = f"{words.seconds(limits.low)} to {words.seconds(limits.high)} s"
    if not latest.out:
        return f"{name}: {took}, within its limits ({span})"
    if latest.out == "level" and latest.level_seconds and latest.level_limits_seconds:
        limits = latest.level_limits_seconds
        level = words.seconds(latest.level_seconds)
        span = f"moving average {level} s, {words.seconds(limits.low)} to"
        span += f" {words.seconds(limits.high)} s allowed"
    said = f"{name} left its limits: {took} ({span})"
    if chart.change is None:
        return said
    share = chart.change.ratio.value - 1
    more = "more" if share > 0 else "less"
    return (
        f"{said}; it takes {words.percent(abs(share))} {more} since a change"
        f" {between_words(chart.change)}; {_changed_words(changed)}"
    )


def silent_words(chart: ControlChart, reasons: Sequence[str]) -> str:
    """Say since which round no run counts, and the most frequent reason; empty where one does."""
    if chart.silent_since is None:
        return ""
    said = f"no run counts since round {chart.silent_since}"
    return f"{said}: {Counter(reasons).most_common(1)[0][0]}" if reasons else said


def between_words(change: ChangePoint) -> str:
    """Say between which two rounds the change lies, and how sure that is."""
    said = f"between rounds {change.before} and {change.after}"
    if change.earliest == change.latest:
        return said
    return f"{said} (it may lie from round {change.earliest} to {change.latest + 1})"


def _changed_words(changed: Sequence[str]) -> str:
    if not changed:
        return "nothing that is recorded changed there"
    more = len(changed) - _CHANGED_MOST
    also = f" and {more} more" if more > 0 else ""
    return f"what changed there: {'; '.join(changed[:_CHANGED_MOST])}{also}"
