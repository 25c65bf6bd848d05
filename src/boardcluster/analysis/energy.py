"""Energy of a run from the readings of power meters, or from a model. Pure.

Integration: the power between two readings is the straight line between them; at the ends of the
run it is read off that line, and beyond the first or last reading it is theirs. A meter's own count
of energy is taken instead where it is fine enough, because it has seen what lay between readings.

Levels: Energy Efficient HPC Working Group, "Energy Efficient High Performance Computing Power
Measurement Methodology", version 2.0: four aspects, and the lowest decides. What each asks for is
in docs/explanation/energy.md.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from boardcluster.analysis.telemetry import window_of
from boardcluster.analysis.trust.window import Window
from boardcluster.records import (
    Coverage,
    Energy,
    EnergyMethod,
    Power,
    PowerModel,
    Telemetry,
)

__all__ = [
    "GAP_INTERVALS",
    "GAP_SECONDS",
    "IDLE_SECONDS",
    "Instrument",
    "Integral",
    "Trace",
    "Trouble",
    "busy_cores",
    "core_span",
    "energy_of_run",
    "gap_limit_seconds",
    "idle_power",
    "integrate",
    "model_power",
    "sum_energy",
    "undilated_energy",
]

Array = npt.NDArray[np.float64]

GAP_SECONDS = 10.0
GAP_INTERVALS = 3.0
"""A hole in the readings is too long from 10 s or three intervals on, whichever is longer."""

_MODELLED_ACCURACY = "modelled from CPU utilisation; see docs/explanation/energy.md"

_FROZEN_SECONDS = 60.0
_FROZEN_READINGS = 10
_LOAD_CHANGE_SHARE = 0.25
_FINE_SHARE = 0.01
_MOVING_SHARE = 0.9
_HOLE_FACTOR = 3.0
_STEP_FACTOR = 10.0
_STEP_FACTOR_ALONE = 100.0
_DISAGREEMENT_SHARE = 0.1
_NEGATIVE_WATTS = -0.5
_RATE_HERTZ = 0.9
_MEASURED_COVERAGE_SHARE = 0.9
_OVER_SHARE = 0.01
"""CPU times come in ticks of 10 ms, so full cores may seem a little more than full for a moment."""
_OVER_SHARE_LIMITED = 0.05
"""A tick is more of a small quota, and a quota holds per period of the kernel, not per sample."""

_OF_THIS_MACHINE = "it measures this machine, not the boards that the nodes stand for"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """A question that a meter did not answer."""

    seconds: float
    """When, on the trace's clock."""
    text: str
    """Why, in one line."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trace:
    """What one meter was seen to say, in order."""

    seconds: Array
    """When; any clock, as long as the run's ends are given on the same."""
    watts: Array
    """Power; NaN where it was not given."""
    counted_joules: Array
    """The meter's own count; NaN where there is none."""
    interval_seconds: float
    """How often it was asked."""
    wraps_at_joules: float | None = None
    """Where the count begins again at zero; None if it does not."""
    troubles: tuple[Trouble, ...] = ()
    """Questions that were not answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Integral:
    """What a trace says of one run."""

    energy_joules: float | None
    """None where the reason says why."""
    mean_watts: float | None
    """None likewise."""
    most_watts: float | None
    """Highest reading; of a count, its fastest rise; None likewise."""
    readings: int
    """Within the run."""
    rate_hertz: float
    """Of those, as they were taken."""
    remarks: tuple[str, ...]
    """What was odd, one line each."""
    reason: str = ""
    """Why there is no energy."""
    lag_joules: float = 0.0
    """By how much the energy may be wrong at most because readings are late, see ``_lagging``."""
    counted: bool = False
    """Whether the energy is the meter's own count, not the sum of its readings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instrument:
    """What the level asks of a meter beyond what it recorded."""

    integrates: bool
    """Whether the device itself integrates power to energy."""
    accuracy_percent: float | None
    """As its maker states it; None where none is stated."""


def gap_limit_seconds(interval_seconds: float) -> float:
    """Return how long a meter may be silent before its energy is not known."""
    return max(GAP_SECONDS, GAP_INTERVALS * interval_seconds)


def busy_cores(telemetry: Telemetry, nodes: Collection[str]) -> tuple[Array, Array]:
    """Return how many cores of some nodes were busy, for finding frozen meters.

    Where one of them is a machine, what runs on it as an emulated node is in its figures already.

    Returns:
        Seconds from the start of the run, and busy cores as a share of all in the interval that
        ends then; empty if not known.
    """
    chosen = [window_of(row, telemetry) for row in telemetry.nodes if row.node in nodes]
    chosen = [row for row in chosen if row.scope == "machine"] or chosen
    known = [found for row in chosen if (found := _busy_sum(row)) is not None]
    if not known or len(known) < len(chosen):
        return np.empty(0), np.empty(0)
    first, last = max(at[0] for at, _ in known), min(at[-1] for at, _ in known)
    at = known[0][0]
    at = at[(at >= first) & (at <= last)]
    if len(at) < 2:
        return np.empty(0), np.empty(0)
    total = np.sum([np.interp(at, *row) for row in known], axis=0)
    return at[1:], np.diff(total) / np.diff(at) / sum(row.cores for row in chosen)


_BUSY = ("cpu_user_seconds", "cpu_system_seconds", "cpu_irq_seconds", "cpu_steal_seconds")
_BUSY_NEEDED = 2


def _busy_sum(window: Window) -> tuple[Array, Array] | None:
    """Moments of the span, and the CPU seconds until then that were not idle; None if not known.

    Waiting for storage counts as idle. Columns are read at different times, some rarely: an amount
    is spread evenly over the time since the value before it.
    """
    tracks = [window.track(name) for name in _BUSY]
    needed = [track for track in tracks[:_BUSY_NEEDED] if track is not None]
    if len(needed) < _BUSY_NEEDED:
        return None
    first = max(window.start_seconds, *(track.begins[0] for track in needed))
    last = min(window.end_seconds, *(track.ends[-1] for track in needed))
    if last <= first:
        return None
    at = np.unique(np.clip(np.concatenate([[first], needed[0].ends, [last]]), first, last))
    total = np.zeros(len(at))
    for track in tracks:
        if track is not None:
            total += np.interp(at, *track.sums())
    return at, total


# One meter over one run


def integrate(
    trace: Trace,
    *,
    started_seconds: float,
    ended_seconds: float,
    load: tuple[Array, Array] | None = None,
    feeds_nodes: bool = True,
) -> Integral:
    """Return the energy of a run from what one meter was seen to say.

    Args:
        trace: its readings, also from before and after the run.
        started_seconds: of the run, on the trace's clock.
        ended_seconds: likewise.
        load: from ``busy_cores``, on the trace's clock; None if not known.
        feeds_nodes: whether its power follows their load; that of a switch may stay the same.
    """
    remarks: list[str] = []
    use = _usable(trace, remarks, started_seconds, ended_seconds)
    within = (use.seconds >= started_seconds) & (use.seconds <= ended_seconds)
    inside = use.seconds[within]
    rate_hertz = (len(inside) - 1) / (inside[-1] - inside[0]) if len(inside) > 1 else 0.0
    reason, gap = _coverage(use, started_seconds, ended_seconds)
    about_count: list[str] = []
    counted, counted_reason = _counted(use, started_seconds, ended_seconds, about_count)
    # A counter in steps that are large for the run is of no use, not even across a hole.
    if counted is not None and (coarse := _too_coarse(use, started_seconds, ended_seconds)):
        counted, counted_reason = None, coarse
    energy: float | None = None
    watts = use.watts[np.isfinite(use.watts)]
    drawn = None if reason or not len(watts) else _drawn(use, started_seconds, ended_seconds)
    if counted is not None:
        energy = counted
        remarks += about_count
        if drawn is not None and abs(energy - drawn) > _DISAGREEMENT_SHARE * max(energy, drawn):
            remarks.append(
                f"its energy counter says {energy:.0f} J, its power adds up to {drawn:.0f} J"
            )
        if gap:
            remarks.append(f"{gap}; its own energy counter kept counting")
    elif drawn is not None:
        energy = drawn
    if energy is not None:
        remarks += _returns(use, started_seconds, ended_seconds)
        if feeds_nodes:
            remarks += _frozen(use, started_seconds, ended_seconds, load)
    return Integral(
        energy_joules=energy,
        mean_watts=None if energy is None else energy / (ended_seconds - started_seconds),
        most_watts=None if energy is None else _most(use, within),
        readings=len(inside),
        rate_hertz=float(rate_hertz),
        remarks=tuple(remarks),
        reason="" if energy is not None else reason or counted_reason or "it reported no power",
        lag_joules=0.0 if energy is None else _lagging(use, started_seconds, ended_seconds),
        counted=counted is not None,
    )


def _lagging(trace: Trace, started: float, ended: float) -> float:
    """Return by how much the energy may be wrong at most because readings are late, in J.

    A reading is taken to be up to one interval old. Then that long at the begin, and at the end,
    may have been counted with the power of before it: an error of at most the interval times the
    change of power around that end.
    """
    known = np.isfinite(trace.watts)
    seconds, watts = trace.seconds[known], trace.watts[known]
    interval = trace.interval_seconds
    total = 0.0
    for end in (started, ended):
        near = watts[np.abs(seconds - end) <= 2 * interval]
        if len(near):
            total += interval * float(np.max(near) - np.min(near))
    return total


IDLE_SECONDS = 10.0
"""So long before a run the meters are read with nothing to do."""

_IDLE_SHARE = 0.1
"""More of its cores' time in use, and a node is not idle: daemons alone take less."""

_IDLE_STEP_SHARE = 0.1
_IDLE_COVERED = 0.8
_IDLE_READINGS = 5


def idle_power(
    trace: Trace, *, load: tuple[Array, Array] | None = None, started_seconds: float = 0.0
) -> tuple[float | None, str]:
    """Return the mean power of the idle moments just before a run, or why it is not known.

    Args:
        trace: readings, also from before the run.
        load: from ``busy_cores``, on the trace's clock; None if not known.
        started_seconds: of the run, on the trace's clock.

    Returns:
        Watts, and in one line why there are none.
    """
    since = started_seconds - IDLE_SECONDS
    drawn = bool(np.any(np.isfinite(trace.watts)))
    values = trace.watts if drawn else trace.counted_joules
    within = (trace.seconds >= since - trace.interval_seconds) & (trace.seconds <= started_seconds)
    seconds, values = (
        trace.seconds[within & np.isfinite(values)],
        values[within & np.isfinite(values)],
    )
    # A meter that is read every few seconds has fewer.
    least = min(_IDLE_READINGS, max(2, int(IDLE_SECONDS / trace.interval_seconds)))
    if len(seconds) < least or seconds[-1] - seconds[0] < _IDLE_COVERED * IDLE_SECONDS:
        return None, f"it was not read for {IDLE_SECONDS:.0f} s before the run"
    at, busy = load if load is not None else (np.empty(0), np.empty(0))
    before = (at > since) & (at <= started_seconds)
    if not np.any(before):
        return None, "it is not known whether the nodes were idle before the run"
    if (share := float(np.mean(busy[before]))) > _IDLE_SHARE:
        return None, f"{share:.0%} of the cores were busy before the run"
    if not drawn and not _is_fine(np.diff(values), _IDLE_STEP_SHARE):
        return None, "its count of energy moves in steps that are too large for the time before"
    rise = float(np.trapezoid(values, seconds)) if drawn else float(values[-1] - values[0])
    watts = rise / float(seconds[-1] - seconds[0])
    return (watts, "") if watts >= 0 else (None, "its count of energy began again before the run")


def _usable(trace: Trace, remarks: list[str], started: float, ended: float) -> Trace:
    """Leave out readings that cannot be: negative power, no finite number."""
    order = np.argsort(trace.seconds, kind="stable")
    seconds, watts, counted = (
        column[order] for column in (trace.seconds, trace.watts, trace.counted_joules)
    )
    negative = watts < _NEGATIVE_WATTS
    within = (seconds >= started) & (seconds <= ended)
    if count := int(np.count_nonzero(negative & within)):
        least = float(np.min(watts[negative & within]))
        remarks.append(
            f"{count} of {int(np.count_nonzero(within))} readings were negative, down to "
            f"{least:.1f} W, and were left out: a reversed sensor reads like that"
        )
    watts = np.where(negative | ~np.isfinite(watts), np.nan, np.maximum(watts, 0.0))
    keep = np.isfinite(watts) | np.isfinite(counted)
    return replace(trace, seconds=seconds[keep], watts=watts[keep], counted_joules=counted[keep])


def _why(trace: Trace, since: float, until: float) -> str:
    """The last complaint of a span, as the end of a sentence."""
    told = [row.text for row in trace.troubles if since <= row.seconds <= until]
    return f": {told[-1]}" if told else ""


def _coverage(trace: Trace, started: float, ended: float) -> tuple[str, str]:
    """Return why the readings do not cover the run, and the hole in words; empty if they do."""
    limit = gap_limit_seconds(trace.interval_seconds)
    seconds = trace.seconds
    inner = seconds[(seconds > started) & (seconds < ended)]
    before, after = seconds[seconds <= started], seconds[seconds >= ended]
    if not len(seconds) or (not len(inner) and not (len(before) and len(after))):
        near = len(seconds) and min(abs(seconds - started).min(), abs(seconds - ended).min())
        if not len(seconds) or near > limit:
            return f"it gave no reading{_why(trace, started - limit, ended + limit)}", ""
    marks = np.concatenate([before[-1:], inner, after[:1]])
    marks = marks if len(before) else np.concatenate([[started], marks])
    marks = marks if len(after) else np.concatenate([marks, [ended]])
    holes = np.diff(marks)
    worst = int(np.argmax(holes)) if len(holes) else 0
    if not len(holes) or holes[worst] <= limit:
        return "", ""
    first, last = max(started, marks[worst]), min(ended, marks[worst + 1])
    words = f"it was silent from {first - started:.0f} s to {last - started:.0f} s of the run"
    return f"{words}{_why(trace, first, last)}", words


def _drawn(trace: Trace, started: float, ended: float) -> float:
    """Integrate power over the run by trapezia."""
    known = np.isfinite(trace.watts)
    seconds, watts = trace.seconds[known], trace.watts[known]
    inner = (seconds > started) & (seconds < ended)
    at = np.concatenate([[started], seconds[inner], [ended]])
    return float(np.trapezoid(np.interp(at, seconds, watts), at))


def _steps(trace: Trace) -> tuple[Array, Array]:
    """Return times and values of the count where it is known."""
    known = np.isfinite(trace.counted_joules)
    return trace.seconds[known], trace.counted_joules[known]


def _around(seconds: Array, started: float, ended: float) -> slice:
    """The readings of a run and the one before and after it."""
    first = max(0, int(np.searchsorted(seconds, started, side="right")) - 1)
    return slice(first, int(np.searchsorted(seconds, ended, side="left")) + 1)


def _too_coarse(trace: Trace, started: float, ended: float) -> str:
    """Say why the count tells nothing of the run; empty if it does.

    It does if it moves with nearly every reading, or in steps of 1 % of the run at most. Where
    power is known, too, a few moves are not enough.
    """
    seconds, counted = _steps(trace)
    rises = np.diff(counted[_around(seconds, started, ended)])
    if not np.any(rises > 0):
        return "its energy counter did not move during the run"
    least = _FROZEN_READINGS if np.isfinite(trace.watts).any() else 1
    if _is_fine(rises, _FINE_SHARE, least_moves=least):
        return ""
    return "its energy counter moves in steps that are too large for the run"


def _is_fine(rises: Array, step_share: float, *, least_moves: int = 0) -> bool:
    """Whether a count moves with nearly every reading, or in steps of that share of it all."""
    moves = int(np.count_nonzero(rises))
    if moves >= max(least_moves, _MOVING_SHARE * len(rises)):
        return True
    rising = rises[rises > 0]
    return bool(len(rising)) and float(np.min(rising)) <= step_share * float(np.sum(rising))


def _waits(seconds: Array, rises: Array) -> tuple[Array, npt.NDArray[np.intp]]:
    """Return for each rise how long the count had stood still, and the reading since when.

    What came into it during all that time shows at once. Of the first rise that is not known: it is
    taken to have waited as long as any. Times that are whole seconds may be the same twice.
    """
    moves = np.flatnonzero(rises)
    since = np.zeros(len(rises), dtype=np.intp)
    if not len(moves):
        return np.ones(len(rises)), since
    since[moves[1:]] = moves[:-1] + 1
    usual_seconds = float(seconds[-1] - seconds[0]) / len(rises)
    # A count that was not read for some time moved somewhere in it, not when it was read again.
    holes = np.diff(seconds) > _HOLE_FACTOR * usual_seconds
    earliest = since.copy()
    earliest[moves[1:]] -= holes[moves[:-1]]
    waits = np.maximum(seconds[1:] - seconds[earliest], max(1e-9, usual_seconds / 2))
    waits[moves[0]] = np.max(waits[moves])
    return waits, since


def _counted(
    trace: Trace, started: float, ended: float, remarks: list[str]
) -> tuple[float | None, str]:
    """Return the energy by the meter's own count, or why there is none.

    A wrap is undone; a reset and a jump are replaced by the power of that step, if that is known.
    """
    seconds, counted = _steps(trace)
    part = _around(seconds, started, ended)
    seconds, counted = seconds[part], counted[part]
    if len(seconds) < 2:
        return None, "it reported its energy counter fewer than twice"
    limit = gap_limit_seconds(trace.interval_seconds)
    if seconds[0] - started > limit or ended - seconds[-1] > limit:
        return None, f"its energy counter does not cover the run{_why(trace, started, ended)}"
    rises = np.diff(counted)
    waits, since = _waits(seconds, rises)
    usual_watts, factor = _usual_watts(trace, rises, waits)
    for index in range(len(rises)):
        at = f"{seconds[index + 1] - started:.0f} s"
        rise = float(rises[index])
        if rise < 0 and trace.wraps_at_joules is not None:
            rise += trace.wraps_at_joules
            if rise <= factor * usual_watts * waits[index]:
                remarks.append(f"its energy counter wrapped at {at} of the run; corrected")
                rises[index] = rise
                continue
        jumped = usual_watts > 0 and rise > factor * usual_watts * waits[index]
        if rise >= 0 and not jumped:
            continue
        what = f"jumped by {rises[index]:.0f} J" if rises[index] >= 0 else "was reset"
        if not np.isfinite(trace.watts).any():
            return None, f"its energy counter {what} at {at} of the run"
        rises[index] = _drawn(trace, float(seconds[since[index]]), float(seconds[index + 1]))
        remarks.append(
            f"its energy counter {what} at {at} of the run; its power is used for that step"
        )
    total = np.concatenate([[0.0], np.cumsum(rises)])
    ends = np.interp([started, ended], seconds, total)
    lead = max(0.0, seconds[0] - started) + max(0.0, ended - seconds[-1])
    mean_watts = total[-1] / max(1e-9, seconds[-1] - seconds[0])
    return float(ends[1] - ends[0] + lead * mean_watts), ""


def _usual_watts(trace: Trace, rises: Array, waits: Array) -> tuple[float, float]:
    """Return a power that is usual for the meter, and how far above it no load goes."""
    watts = trace.watts[np.isfinite(trace.watts)]
    if len(watts):
        return max(1.0, float(np.max(watts))), _STEP_FACTOR
    rates = (rises / waits)[rises > 0]
    return (max(1.0, float(np.median(rates))) if len(rates) else 1.0), _STEP_FACTOR_ALONE


def _most(trace: Trace, within: npt.NDArray[np.bool_]) -> float | None:
    watts = trace.watts[within]
    if np.isfinite(watts).any():
        return float(np.nanmax(watts))
    rises = np.diff(trace.counted_joules[within])
    waits, _ = _waits(trace.seconds[within], rises)
    rates = (rises / waits)[rises >= 0]
    return float(np.max(rates)) if len(rates) else None


def _returns(trace: Trace, started: float, ended: float) -> list[str]:
    """Say where the meter went away for a short while and came back."""
    told = [row for row in trace.troubles if started <= row.seconds <= ended]
    if not told:
        return []
    count = "once" if len(told) == 1 else f"{len(told)} times"
    first = f"{told[0].seconds - started:.0f} s of the run"
    back = ", and recovered" if (trace.seconds > told[-1].seconds).any() else ""
    return [f"it failed to answer {count}, first at {first}{back}: {told[0].text}"]


def _frozen(
    trace: Trace, started: float, ended: float, load: tuple[Array, Array] | None
) -> list[str]:
    """Find the longest span of one same value, and say so if it is long and the load changed."""
    known = np.isfinite(trace.watts) & (trace.seconds >= started) & (trace.seconds <= ended)
    seconds, watts = trace.seconds[known], trace.watts[known]
    if len(watts) < _FROZEN_READINGS:
        return []
    begins = np.concatenate([[0], np.flatnonzero(np.diff(watts)) + 1, [len(watts)]])
    spans = [
        (float(seconds[last - 1] - seconds[first]), int(first), int(last))
        for first, last in itertools.pairwise(begins)
    ]
    longest, first, last = max(spans)
    if longest < _FROZEN_SECONDS or last - first < _FROZEN_READINGS:
        return []
    words = f"it showed exactly {watts[first]:g} W for {longest:.0f} s"
    if load is None or not len(load[0]):
        return [f"{words}: it may be frozen"]
    inside = (load[0] >= seconds[first]) & (load[0] <= seconds[last - 1])
    shares = load[1][inside]
    if not len(shares) or float(np.ptp(shares)) < _LOAD_CHANGE_SHARE:
        return []
    range_words = f"{np.min(shares):.0%} to {np.max(shares):.0%}"
    return [f"{words} while {range_words} of the cores were busy: it is frozen"]


# Modelled


def model_power(
    models: Sequence[PowerModel],
    telemetry: Telemetry,
    *,
    capacity_cores: Mapping[str, float] | None = None,
    span_seconds: tuple[float, float] | None = None,
) -> tuple[Power, ...]:
    """Model each node's power from its CPU utilisation.

    Power is ``idle + (stress - idle) x utilisation``, linear in the share of CPU seconds that were
    not idle; the linear form of Fan, Weber and Barroso, "Power provisioning for a warehouse-sized
    computer", ISCA 2007.

    Args:
        models: what nodes draw.
        telemetry: of the run.
        capacity_cores: by emulated board, its CPU quota: the CPU time per second, in seconds of
            this machine's cores, at which all the board's cores are busy. Other nodes are busy
            when all the cores of their telemetry are.
        span_seconds: begin and end of what is modelled, from the start of the run; None is the
            whole run.

    Returns:
        One for each model; without energy where telemetry covers less than 90 % of the span.
    """
    quotas = capacity_cores or {}
    span = span_seconds or (0.0, telemetry.duration_seconds)
    return tuple(
        _modelled(row, telemetry, span, quota_cores=quotas.get(row.node)) for row in models
    )


def _modelled(
    model: PowerModel,
    telemetry: Telemetry,
    span: tuple[float, float],
    *,
    quota_cores: float | None,
) -> Power:
    duration_seconds = span[1] - span[0]
    samples = next((row for row in telemetry.nodes if row.node == model.node), None)
    power = Power(
        meter=f"model of {model.node}",
        kind="model",
        coverage=Coverage.WALL,
        nodes=(model.node,),
        switch=False,
        accuracy=_MODELLED_ACCURACY,
        rate_hertz=0.0,
        energy_joules=None,
        mean_watts=None,
        most_watts=None,
        readings=0,
        method=EnergyMethod.MODELLED,
    )
    if samples is None or not len(samples.seconds):
        return replace(power, reason=f"modelled, but there is no telemetry of {model.node}")
    window = Window.of(samples, start_seconds=span[0], end_seconds=span[1])
    at, total = _busy_sum(window) or (np.zeros(1), np.zeros(1))
    spans = np.diff(at)
    covered = float(np.sum(spans))
    if not duration_seconds > 0 or covered < _MEASURED_COVERAGE_SHARE * duration_seconds:
        return replace(
            power,
            reason=f"modelled, but CPU times of {model.node} cover only {covered:.0f} s of "
            f"{duration_seconds:.0f} s",
        )
    cores = quota_cores or float(window.cores)
    used = np.diff(total) / spans / cores
    share = np.minimum(used, 1.0)
    watts = model.idle_watts + (model.stress_watts - model.idle_watts) * share
    mean = float(np.sum(watts * spans) / covered)
    utilisation = float(np.sum(share * spans) / covered)
    range_words = f"{model.idle_watts:g} W idle, {model.stress_watts:g} W under stress"
    remarks = [f"modelled from {range_words} and {utilisation:.0%} utilisation"]
    over_seconds = float(np.sum((used - share) * spans)) * cores
    allowed = _OVER_SHARE_LIMITED if quota_cores else _OVER_SHARE
    if over_seconds > allowed * float(total[-1] - total[0]):
        what = f"quota of {cores:.3g} cores has" if quota_cores else f"{window.cores} cores have"
        remarks.append(
            f"it used {over_seconds:.1f} s more CPU time than its {what}; "
            "the model has no power for that and ignores it"
        )
    return replace(
        power,
        rate_hertz=len(spans) / covered,
        energy_joules=mean * duration_seconds,
        mean_watts=mean,
        most_watts=float(np.max(watts)),
        readings=len(spans),
        remarks=tuple(remarks),
    )


# The whole cluster

_BROADEST_FIRST = (Coverage.WALL, Coverage.PORT, Coverage.NODE, Coverage.BOARD, Coverage.PACKAGE)
_PARTS = {
    Coverage.BOARD: "the board without USB, HAT and NVMe",
    Coverage.PACKAGE: "the processor's package",
}


def sum_energy(
    powers: Sequence[Power],
    *,
    nodes: Sequence[str],
    instruments: Mapping[str, Instrument],
) -> Energy | None:
    """Sum what the meters recorded over one run.

    Of several meters on a node the one that sees more of it counts; a modelled node counts only
    where no meter is. Two that see the same are a mistake in ``cluster.toml``.

    Args:
        powers: of every meter, and of every modelled node.
        nodes: of the cluster in the variant that ran.
        instruments: by name of meter.

    Returns:
        The energy with its level; None if there is neither a meter nor a model.
    """
    if not powers:
        return None
    chosen, reason = _choose(powers, nodes)
    modelled = any(row.method is EnergyMethod.MODELLED for row in chosen)
    level, why = _level(chosen, instruments)
    found = replace(
        _no_energy(reason),
        method=EnergyMethod.MODELLED if modelled else EnergyMethod.METERED,
        powers=tuple(powers),
    )
    if reason:
        return found
    errors = [row.uncertainty_joules for row in chosen]
    idle = [row.idle_watts for row in chosen]
    return replace(
        found,
        energy_joules=math.fsum(row.energy_joules or 0.0 for row in chosen),
        level=level,
        level_reason=why,
        uncertainty_joules=_all_or_none(errors),
        idle_watts=_all_or_none(idle),
    )


def _all_or_none(values: Sequence[float | None]) -> float | None:
    """Sum what every part has; None where one has it not.

    Errors of meters are added up, too, not in quadrature: meters of one make are wrong alike.
    """
    known = [value for value in values if value is not None]
    return math.fsum(known) if len(known) == len(values) else None


CORE_PHASE = "core"
"""Name of the phase by which benchmarks are ranked: in HPL the solution."""


def core_span(telemetry: Telemetry) -> tuple[float, float] | None:
    """Return begin and end of a run's core phase, from its start; None if it has not exactly one.

    Phases of a program are named ``SUBMISSION/PHASE``.
    """
    found = [
        span for name, span in telemetry.phases.items() if name.rpartition("/")[2] == CORE_PHASE
    ]
    return found[0] if len(found) == 1 else None


def energy_of_run(
    powers: Sequence[Power],
    *,
    nodes: Sequence[str],
    instruments: Mapping[str, Instrument],
    models: Sequence[PowerModel] = (),
    telemetry: Telemetry | None = None,
    capacity_cores: Mapping[str, float] | None = None,
    span_seconds: tuple[float, float] | None = None,
) -> Energy | None:
    """Sum the meters, and model the nodes that no meter covers.

    What meters say of emulated boards is of the machine below them, so of those all that counts is
    the model; the meters are listed without their energy.

    Args:
        powers: of every meter.
        nodes: of the cluster in the variant that ran.
        instruments: by name of meter.
        models: what nodes draw, where that was declared.
        telemetry: of the run; without it nothing is modelled.
        capacity_cores: by emulated board, its CPU quota, see ``model_power``; None or empty where
            nodes are none.
        span_seconds: begin and end, from the start of the run, of what ``powers`` are of; None is
            the whole run.

    Returns:
        The energy with its level; None if there is neither a meter nor a model.
    """
    counted = () if capacity_cores else tuple(powers)
    metered = {name for power in counted for name in power.nodes}
    wanted = [row for row in models if row.node in nodes and row.node not in metered]
    modelled = (
        model_power(wanted, telemetry, capacity_cores=capacity_cores, span_seconds=span_seconds)
        if telemetry is not None
        else ()
    )
    found = sum_energy((*counted, *modelled), nodes=nodes, instruments=instruments)
    if not capacity_cores or not powers:
        return found
    found = found or _no_energy(_OF_THIS_MACHINE)
    return replace(
        found,
        powers=(*found.powers, *(_without_energy(power) for power in powers)),
    )


def _without_energy(power: Power) -> Power:
    """Return what a meter of this machine recorded without its numbers."""
    return replace(
        power, energy_joules=None, mean_watts=None, most_watts=None, reason=_OF_THIS_MACHINE
    )


def _no_energy(reason: str) -> Energy:
    return Energy(
        energy_joules=None,
        method=EnergyMethod.METERED,
        level=0,
        level_reason=f"there is no sum: {reason}",
        powers=(),
        reason=reason,
    )


def undilated_energy(energy: Energy, dilation: float) -> Energy:
    """Return the energy that the boards would have taken for a run that was slower by a factor.

    What was modelled is the boards' power over this machine's seconds, so it is divided. What was
    metered is not the boards' and is removed. Powers stay: they are the boards'. How often
    there were readings stays, too: that is how they were taken.

    Args:
        energy: of the run on this machine.
        dilation: by how much the nodes were slower than the boards they stand for.
    """
    powers = tuple(_undilated_power(power, dilation) for power in energy.powers)
    lost = any(
        before.energy_joules is not None and after.energy_joules is None
        for before, after in zip(energy.powers, powers, strict=True)
    )
    if lost:
        return replace(_no_energy(_OF_THIS_MACHINE), powers=powers)
    core = None if energy.core is None else undilated_energy(energy.core, dilation)
    total = energy.energy_joules
    return replace(
        energy, energy_joules=None if total is None else total / dilation, powers=powers, core=core
    )


def _undilated_power(power: Power, dilation: float) -> Power:
    if power.energy_joules is None:
        return power
    if power.method is EnergyMethod.METERED:
        return _without_energy(power)
    return replace(power, energy_joules=power.energy_joules / dilation)


def _choose(powers: Sequence[Power], nodes: Sequence[str]) -> tuple[tuple[Power, ...], str]:
    """Return the meters that make up the sum, and why there is none; empty if there is one."""
    by_breadth = sorted(
        powers,
        key=lambda row: (
            row.method is EnergyMethod.MODELLED,
            _BROADEST_FIRST.index(row.coverage),
        ),
    )
    chosen: list[Power] = []
    by_node: dict[str, Power] = {}
    for power in by_breadth:
        if power.switch and not power.nodes:
            chosen.append(power)
            continue
        taken = [by_node[name] for name in power.nodes if name in by_node]
        for other in taken:
            if (other.coverage, other.method) == (power.coverage, power.method):
                both = next(name for name in power.nodes if by_node.get(name) is other)
                return (), f"{both} is measured twice, by {other.meter} and {power.meter}"
        if len(taken) == len(power.nodes):
            continue
        if taken:
            return (), f"{power.meter} measures nodes that {taken[0].meter} also measures"
        chosen.append(power)
        by_node |= dict.fromkeys(power.nodes, power)
    return tuple(chosen), _switch_twice(chosen) or _no_sum(chosen, by_node, nodes)


def _switch_twice(chosen: Sequence[Power]) -> str:
    """Return why the switch, or what it feeds, is in the sum twice; empty if it is not."""
    with_switch = [power for power in chosen if power.switch]
    if len(with_switch) > 1:
        first, second = (power.meter for power in with_switch[:2])
        return f"the switch is measured twice, by {first} and {second}"
    ports = [power for power in chosen if power.coverage is Coverage.PORT]
    for power in with_switch:
        if ports and power.coverage is not Coverage.PORT:
            return (
                f"{power.meter} measures the switch, and its plug also feeds the boards that "
                f"{ports[0].meter} measures"
            )
    return ""


def _no_sum(chosen: Sequence[Power], by_node: Mapping[str, Power], nodes: Sequence[str]) -> str:
    for power in chosen:
        if strange := [name for name in power.nodes if name not in nodes]:
            return (
                f"{power.meter} also measures {', '.join(strange)}, which took no part in the run"
            )
        if power.energy_joules is None:
            return f"{power.meter}: {power.reason}"
    if missing := [name for name in nodes if name not in by_node]:
        return f"no meter covers {', '.join(missing)}"
    parts = {power.coverage for power in chosen} & set(_PARTS)
    if parts and len({power.coverage for power in chosen}) > 1:
        power = next(row for row in chosen if row.coverage in parts)
        return (
            f"{power.meter} sees only {_PARTS[power.coverage]}, other meters see whole nodes; they "
            "cannot be added up"
        )
    return ""


def _level(chosen: Sequence[Power], instruments: Mapping[str, Instrument]) -> tuple[int, str]:
    """Return the level that is reached and why it is not the next."""
    reached: list[tuple[int, str]] = []
    for power in chosen:
        reached += _levels_of(power, instruments.get(power.meter))
    if not any(power.switch for power in chosen):
        reached.append((0, "the network switch is not measured"))
    if any(power.idle_watts is None for power in chosen):
        words = dict.fromkeys(power.idle_reason for power in chosen if power.idle_reason)
        said = f": {'; '.join(words)}" if words else ""
        reached.append((1, f"idle power is not measured{said}"))
    level = min((row[0] for row in reached), default=3)
    if level == 3:
        return 3, "the highest"
    reasons = dict.fromkeys(text for limit, text in reached if limit == level)
    return level, "; ".join(reasons)


def _levels_of(power: Power, instrument: Instrument | None) -> list[tuple[int, str]]:
    """Return what limits one meter: the highest level it allows, and why."""
    if power.method is EnergyMethod.MODELLED:
        return [(0, f"the power of {', '.join(power.nodes)} is modelled, not measured")]
    limits = []
    if power.coverage in _PARTS:
        limits.append((0, f"{power.meter} sees only {_PARTS[power.coverage]}"))
    elif power.coverage is not Coverage.WALL:
        limits.append((0, f"{power.meter} is behind a power supply whose losses are not measured"))
    accuracy = instrument.accuracy_percent if instrument else None
    if accuracy is None:
        limits.append((0, f"no accuracy is stated for {power.meter}"))
    else:
        for most, level in ((5.0, 0), (2.0, 1), (1.0, 2)):
            if accuracy > most:
                limits.append(
                    (level, f"{power.meter} is accurate to {accuracy:g} %, not {most:g} %")
                )
                break
    if power.rate_hertz < _RATE_HERTZ:
        limits.append((0, f"{power.meter} gave {power.rate_hertz:.2f} readings a second, not 1"))
    if power.readings < 10:
        limits.append((1, f"{power.meter} gave {power.readings} readings in the run, not 10"))
    if instrument is None or not instrument.integrates:
        limits.append((2, f"{power.meter} does not integrate energy itself, or too coarsely"))
    return limits
