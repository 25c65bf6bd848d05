"""Control charts: whether a cell still takes what it took in its first rounds. Pure.

Two charts of the logarithm of each round's time share one set of limits, because they miss
different things: that of single rounds sees a large change at once (NIST/SEMATECH, *e-Handbook of
Statistical Methods*, 6.3.2.2), that of their exponentially weighted moving average (EWMA) sees a
small one that lasts (6.3.2.4). The level of the moving average begins at the baseline's mean.

The handbook's limits take mean and deviation for known. Here they come from few rounds, so limits
are those of a prediction for one more value (G. J. Hahn and W. Q. Meeker, *Statistical Intervals*,
Wiley 1991, chapter 4): mean ± t(n - 1) · s · √(1 + 1/n), and for the average its own variance with
that of the baseline's mean in place of the root. In control, either is wrong with exactly the
probability asked for, however few the rounds of the baseline are; few make the limits wide.

A change point is the round after which a step explains the values best (T. R. Samuel, J. J.
Pignatiello and J. A. Calvin, "Identifying the time of a step change with X-bar control charts",
*Quality Engineering* 10(3), 1998). It is looked for only where a chart is out of its limits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from boardcluster.analysis.inference import SMALLEST_EFFECT, MeasuredRatio, compare_values
from boardcluster.analysis.statistics import Interval, mean, standard_deviation
from boardcluster.records import BASELINE_LEAST

__all__ = [
    "BASELINE_DEFAULT",
    "FALSE_ALARM",
    "ChangePoint",
    "ControlChart",
    "ControlPoint",
    "RoundValue",
    "control_chart",
]

BASELINE_DEFAULT = 10
"""Rounds of a baseline: limits of 4.3 standard deviations. With 20, twice the wait, they are 3.5;
known mean and deviation would give 3.0."""

FALSE_ALARM = 0.005
"""At most so often a round in which nothing changed is out of the limits, over all cells of a watch
and both charts: once in 200 rounds."""

_WEIGHT = 0.2
"""Of the newest round in the moving average; 0.2 to 0.3 is the handbook's choice."""

_CHARTS = 2
_LIKELY = 6.0
"""Places whose log-likelihood ratio is less than this below the best one's (a likelihood of a
twentieth) may be the change point."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundValue:
    """What a cell took in one round."""

    round: str
    """Id of the round."""
    started_utc: str
    """When it began; ISO 8601."""
    seconds: float | None
    """Geometric mean of its runs that count; None without any."""
    runs: int
    """How many there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPoint:
    """One round on the charts of a cell."""

    number: int
    """Number of the round, from 1."""
    value: RoundValue
    """What the cell took."""
    in_baseline: bool
    """Whether the limits are made of it."""
    level_seconds: float | None = None
    """The moving average after it; None in the baseline and without a value."""
    level_limits_seconds: Interval | None = None
    """Limits of that average."""
    out: str = ""
    """Which chart it is out of the limits of: ``round``, ``level`` or empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePoint:
    """Between which two rounds the times changed, and by how much."""

    before: int
    """Number of the last round before the change."""
    after: int
    """Number of the first round after it."""
    earliest: int
    """The change may already have come after this round."""
    latest: int
    """Or only after this one."""
    ratio: MeasuredRatio
    """Times after the change against times before it. It is measured where it is largest, so it
    is rather too large than too small."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlChart:
    """The charts of one cell."""

    points: tuple[ControlPoint, ...]
    """Its rounds, in order."""
    wanted: int
    """Rounds with a value that make the baseline."""
    centre_seconds: float | None = None
    """Geometric mean of the baseline; None while it is not whole."""
    limits_seconds: Interval | None = None
    """Limits for one round; None likewise."""
    change: ChangePoint | None = None
    """What happened, if it is out of its limits now."""

    @property
    def have(self) -> int:
        """Rounds of the baseline so far."""
        return sum(point.in_baseline for point in self.points)

    @property
    def latest(self) -> ControlPoint | None:
        """The last round with a value; None without any."""
        return next((row for row in reversed(self.points) if row.value.seconds is not None), None)

    @property
    def silent_since(self) -> int | None:
        """Number of the first of the last rounds without a value; None where the last has one."""
        if not self.points or self.points[-1].value.seconds is not None:
            return None
        return 1 + (self.latest.number if self.latest else 0)

    @property
    def silent_in(self) -> str:
        """Id of that round; empty where the last one has a value."""
        since = self.silent_since
        return "" if since is None else self.points[since - 1].value.round

    @property
    def is_out(self) -> bool:
        """Whether the last round with a value is out of its limits."""
        return self.latest is not None and bool(self.latest.out)

    @property
    def left_in(self) -> str:
        """Id of the round since which it is out of its limits; empty while it is within them."""
        found = ""
        for point in self.points:
            if point.value.seconds is not None:
                found = (found or point.value.round) if point.out else ""
        return found


@dataclass(frozen=True, slots=True)
class _Baseline:
    middle: float
    deviation: float
    count: int
    quantile: float

    def half(self, variance: float) -> float:
        """Half-width of the limits of a value with so many times the variance of a round.

        Never less than the smallest effect of interest: what nobody would act on is no alarm.
        """
        return max(self.quantile * self.deviation * math.sqrt(variance), _SMALLEST)

    def limits(self, half: float) -> Interval:
        return Interval(low=math.exp(self.middle - half), high=math.exp(self.middle + half))


_SMALLEST = math.log1p(SMALLEST_EFFECT)


def control_chart(values: Sequence[RoundValue], *, baseline: int, cells: int = 1) -> ControlChart:
    """Draw the charts of one cell.

    After a round that was out of its limits, one within them starts the average afresh: what was
    repaired is no alarm any more.

    Args:
        values: its rounds, in order.
        baseline: how many rounds with a value, the first ones, make the limits.
        cells: how many cells are watched together; all share ``FALSE_ALARM``.

    Raises:
        ValueError: the baseline is too small.
    """
    if baseline < BASELINE_LEAST:
        raise ValueError(f"a baseline needs at least {BASELINE_LEAST} rounds, not {baseline}")
    known = [place for place, row in enumerate(values) if row.seconds is not None]
    first = set(known[:baseline])
    points = [
        ControlPoint(number=place + 1, value=row, in_baseline=place in first)
        for place, row in enumerate(values)
    ]
    if len(first) < baseline:
        return ControlChart(points=tuple(points), wanted=baseline)
    logs = [_log(values[place]) for place in known]
    base = _baseline(logs[:baseline], cells)
    points = _judged(points, base)
    found = ControlChart(
        points=tuple(points),
        wanted=baseline,
        centre_seconds=math.exp(base.middle),
        limits_seconds=base.limits(base.half(1 + 1 / base.count)),
    )
    if not found.is_out:
        return found
    return replace(found, change=_change([points[place] for place in known], logs, base))


def _log(value: RoundValue) -> float:
    if value.seconds is None:
        raise ValueError("a round without a value has no place on a chart")
    return math.log(value.seconds)


def _baseline(logs: Sequence[float], cells: int) -> _Baseline:
    from scipy.special import stdtrit  # noqa: PLC0415  most commands draw no chart

    count = len(logs)
    tail = FALSE_ALARM / _CHARTS / cells / 2
    return _Baseline(
        middle=mean(logs),
        deviation=standard_deviation(logs) or 0.0,
        count=count,
        quantile=float(stdtrit(count - 1, 1 - tail)),
    )


def _judged(points: Sequence[ControlPoint], base: _Baseline) -> list[ControlPoint]:
    """Set each round after the baseline against both limits."""
    half = base.half(1 + 1 / base.count)
    judged = []
    level, steps, was_out = base.middle, 0, False
    for point in points:
        if point.in_baseline or point.value.seconds is None:
            judged.append(point)
            continue
        value = _log(point.value)
        is_out = abs(value - base.middle) > half
        if was_out and not is_out:
            level, steps = base.middle, 0
        was_out = is_out
        level, steps = _WEIGHT * value + (1 - _WEIGHT) * level, steps + 1
        left = (1 - _WEIGHT) ** steps
        own = _WEIGHT / (2 - _WEIGHT) * (1 - left**2)
        reach = base.half(own + (1 - left) ** 2 / base.count)
        beyond = abs(level - base.middle) > reach
        judged.append(
            replace(
                point,
                level_seconds=math.exp(level),
                level_limits_seconds=base.limits(reach),
                out="round" if is_out else "level" if beyond else "",
            )
        )
    return judged


def _change(
    points: Sequence[ControlPoint], logs: Sequence[float], base: _Baseline
) -> ChangePoint | None:
    """Find the step that explains the values best, and where else it may be.

    What was out and then repaired is neither before the change nor after it: only rounds since the
    last repair are searched, which halved the distance from the baseline at least.
    """
    count, end = base.count, len(logs)
    away = [abs(value - base.middle) for value in logs]
    begin = max(
        (
            place
            for place in range(count + 1, end)
            if points[place - 1].out == "round" != points[place].out
            # A slow machine also has a round within the limits now and then, if only just.
            and away[place] < away[place - 1] / 2
        ),
        default=count,
    )
    scores = {
        last: (end - last) * (math.fsum(logs[last:]) / (end - last) - base.middle) ** 2
        for last in range(begin, end)
    }
    best = max(scores, key=lambda last: (scores[last], last))
    reach = _LIKELY * max(base.deviation, _SMALLEST / base.quantile) ** 2
    likely = [last for last, score in scores.items() if scores[best] - score < reach]
    seconds = [math.exp(value) for value in logs]
    return ChangePoint(
        before=points[best - 1].number,
        after=points[best].number,
        earliest=points[min(likely) - 1].number,
        latest=points[max(likely) - 1].number,
        ratio=compare_values(seconds[best:], [*seconds[:count], *seconds[begin:best]]),
    )
