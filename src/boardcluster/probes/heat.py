"""Heat: temperature, reported clock and throttling of a node that idles, works and cools.

The four phases of Stressberry: wait until the temperature is stable, idle, keep every core at work,
idle. Each second the hottest sensor, the clock that the kernel reports and, on a Raspberry Pi, the
firmware's throttle bits are noted.

Source: Gamess and Hernandez 2022, section IV.A, Figs. 2 to 6 (Stressberry 0.3.3); Lee and Park
2026, Fig. 15; "stable" is Stressberry's own rule, two readings 60 s apart that differ by less than
0.2 degrees.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import fmean, median
from typing import Any

from boardcluster.errors import ProbeOutputError, RemoteError
from boardcluster.probes.background import stressing
from boardcluster.probes.base import NodeTool, Probe, Site, figures_from
from boardcluster.probes.node import ask_program
from boardcluster.records import ProbeFigure, ProbeMode

__all__ = ["PROBE", "HeatSamples", "Sample", "figures_of", "measure", "parse_samples"]

NO_SENSOR = "no temperature sensor"
_PROGRAM = "heat"
_PHASES_SECONDS = {
    ProbeMode.QUICK: {"idle": 5, "stress": 20, "cool": 10},
    ProbeMode.PAPER: {"idle": 150, "stress": 300, "cool": 150},
}
_INTERVAL_SECONDS = 1.0
_STABLE_PAUSE_SECONDS = 60.0
_STABLE_CELSIUS = 0.2
_STABLE_READINGS_MOST = 30
_PATIENCE_SECONDS = 30.0
_HEAT_BITS = 0b1110
"""Clock capped, throttled, soft temperature limit; bit 0 is under-voltage, 16 to 19 are history."""
_THROTTLED_FRACTION = 0.97
_THROTTLED_SAMPLES = 3
_STEADY_FRACTION = 0.2
_COOLED_FRACTION = 0.9
_LEAST_RISE_CELSIUS = 2.0
_CURVE_POINTS = 120
_PLAUSIBLE_CELSIUS = (-40.0, 150.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One look at a node."""

    seconds: float
    """Since the start of its phase."""
    celsius: float | None
    """The hottest sensor; None where there is none."""
    sensor: str
    """Its name; empty where there is none."""
    clock_hertz: float | None
    """What the kernel reports, mean over the cores; None if nothing."""
    clock_source: str
    """``cpufreq``, or ``cpuinfo``, which in a virtual machine never changes."""
    throttle_bits: int | None
    """Of the firmware; None where there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatSamples:
    """Samples of each phase."""

    idle: tuple[Sample, ...]
    """Before the stress."""
    stress: tuple[Sample, ...]
    """During it."""
    cool: tuple[Sample, ...]
    """After it."""


def parse_samples(answer: Any, *, seconds: float) -> tuple[Sample, ...]:
    """Read the answer of the program on the node for one phase.

    Raises:
        ProbeOutputError: it is no such answer, a value cannot be true, or most samples are missing.
    """
    if not isinstance(answer, list):
        raise ProbeOutputError(f"heat.py answered {str(answer)[:80]!r}")
    samples = tuple(_sample(row) for row in answer)
    planned = math.floor(seconds / _INTERVAL_SECONDS) + 1
    if len(samples) < max(2, planned // 2):
        raise ProbeOutputError(
            f"heat.py took {len(samples)} samples in {seconds:g} s, expected {planned}"
        )
    times = [sample.seconds for sample in samples]
    if times != sorted(times):
        raise ProbeOutputError("heat.py's samples are not in the order of time")
    return samples


def _sample(row: Any) -> Sample:
    if not isinstance(row, list) or len(row) != 6:
        raise ProbeOutputError(f"not a sample of heat.py: {str(row)[:80]!r}")
    seconds, celsius, sensor, clock_hertz, source, bits = row
    if not isinstance(sensor, str) or not isinstance(source, str):
        raise ProbeOutputError(f"not a sample of heat.py: {str(row)[:80]!r}")
    for value in (seconds, celsius, clock_hertz, bits):
        if isinstance(value, bool) or not isinstance(value, int | float | None):
            raise ProbeOutputError(f"not a sample of heat.py: {str(row)[:80]!r}")
    if seconds is None or seconds < 0 or (clock_hertz is not None and not clock_hertz > 0):
        raise ProbeOutputError(f"a sample of heat.py is impossible: {row!r}")
    low, high = _PLAUSIBLE_CELSIUS
    if celsius is not None and not low <= celsius <= high:
        raise ProbeOutputError(
            f"the sensor {sensor!r} reads {celsius!r} degrees Celsius, which is impossible",
            hint="look at /sys/class/thermal on the node",
        )
    return Sample(
        seconds=float(seconds),
        celsius=celsius,
        sensor=sensor,
        clock_hertz=clock_hertz,
        clock_source=source,
        throttle_bits=None if bits is None else int(bits),
    )


def figures_of(curves: HeatSamples) -> list[ProbeFigure]:
    """Return what the curves say, and the curves themselves.

    Raises:
        RemoteError: the node reports neither a temperature nor a clock.
    """
    everything = (*curves.idle, *curves.stress, *curves.cool)
    clocks = [row.clock_hertz for row in everything if row.clock_hertz is not None]
    hottest = max(
        ((row.celsius, row.sensor) for row in everything if row.celsius is not None), default=None
    )
    if hottest is None and not clocks:
        raise RemoteError(
            f"{NO_SENSOR}, and no clock is reported",
            hint="run this probe on a board; a virtual machine shows neither",
        )
    sources = {row.clock_source for row in everything if row.clock_hertz is not None}
    conditions = {
        "sensor": hottest[1] if hottest else NO_SENSOR,
        "clock": " and ".join(sorted(sources)) or "none",
    }
    figures: dict[str, float] = {}
    if hottest:
        figures |= _temperatures(curves)
    if clocks:
        figures |= _clocks(curves)
    rows = figures_from(figures, conditions)
    return [*rows, *_throttling(curves.stress), *_curve(curves)]


def _temperatures(curves: HeatSamples) -> dict[str, float]:
    """Return idle and highest temperature, and how long it took to cool."""
    idle, stress, cool = (
        [(row.seconds, row.celsius) for row in part if row.celsius is not None]
        for part in (curves.idle, curves.stress, curves.cool)
    )
    if not idle or not stress or not cool:
        raise ProbeOutputError("the temperature sensor disappeared during the test")
    base = median(value for _, value in idle)
    most = max(value for _, value in (*stress, *cool))
    figures = {"heat_idle_celsius": base, "heat_most_celsius": most}
    rise = most - base
    if rise >= _LEAST_RISE_CELSIUS:
        figures["heat_cooled_fraction"] = (most - cool[-1][1]) / rise
        limit = most - _COOLED_FRACTION * rise
        cooled = next((seconds for seconds, value in cool if value <= limit), None)
        if cooled is not None:
            figures["heat_time_to_cool_seconds"] = cooled
    return figures


def _clocks(curves: HeatSamples) -> dict[str, float]:
    """Return the highest clock under stress, and the steady one at its end."""
    found = [row.clock_hertz for row in curves.stress if row.clock_hertz is not None]
    if not found:
        raise ProbeOutputError("no clock was reported during the stress")
    last = found[-max(3, math.ceil(len(found) * _STEADY_FRACTION)) :]
    return {"heat_peak_clock_hertz": max(found), "heat_steady_clock_hertz": median(last)}


def _throttling(stress: Sequence[Sample]) -> list[ProbeFigure]:
    """Return how much of the stress was throttled and when that began; nothing if nothing tells.

    The firmware's bits decide where there are any, else a clock clearly below the highest one
    since the stress began, which a governor that had not caught up yet does not make. A clock that
    never changes tells nothing.
    """
    if all(row.throttle_bits is not None for row in stress):
        told_by = "throttle bits"
        throttled = [bool((row.throttle_bits or 0) & _HEAT_BITS) for row in stress]
    else:
        told_by = "clock"
        clocks = [
            row.clock_hertz
            for row in stress
            if row.clock_hertz is not None and row.clock_source == "cpufreq"
        ]
        if len(clocks) < len(stress):
            return []
        highest = accumulate(clocks, max)
        throttled = [
            clock < _THROTTLED_FRACTION * most for clock, most in zip(clocks, highest, strict=True)
        ]
    figures = {"heat_throttled_fraction": fmean(throttled)}
    began = _first_run(throttled)
    if began is not None:
        figures["heat_time_to_throttle_seconds"] = stress[began].seconds
    return figures_from(figures, {"told_by": told_by})


def _first_run(throttled: Sequence[bool]) -> int | None:
    """Return where the first run of throttled samples begins that is not a mere flicker."""
    for index in range(len(throttled) - _THROTTLED_SAMPLES + 1):
        if all(throttled[index : index + _THROTTLED_SAMPLES]):
            return index
    return None


def _curve(curves: HeatSamples) -> list[ProbeFigure]:
    """Return at most about 120 points of the temperature and of the clock, by phase."""
    parts = {"idle": curves.idle, "stress": curves.stress, "cool": curves.cool}
    step = math.ceil(sum(len(part) for part in parts.values()) / _CURVE_POINTS)
    figures: list[ProbeFigure] = []
    for phase, samples in parts.items():
        # Of two samples in one second, which a node that was slow to answer makes, the first.
        by_second = {int(row.seconds): row for row in reversed(samples)}
        for second in sorted(by_second)[::step]:
            row = by_second[second]
            conditions = {"phase": phase, "second": str(second)}
            values = {"heat_celsius": row.celsius, "heat_clock_hertz": row.clock_hertz}
            known = {name: value for name, value in values.items() if value is not None}
            figures += figures_from(known, conditions)
    return figures


def _look(site: Site, *, seconds: float) -> tuple[Sample, ...]:
    """Sample the node for a while; as root, since not every user may ask the firmware."""
    request = {"do": "sample", "seconds": seconds, "interval_seconds": _INTERVAL_SECONDS}
    answer = ask_program(site.admin, _PROGRAM, request, timeout_seconds=seconds + _PATIENCE_SECONDS)
    return parse_samples(answer, seconds=seconds)


def _now(site: Site) -> float | None:
    return _look(site, seconds=_INTERVAL_SECONDS)[-1].celsius


def _settle(site: Site) -> None:
    """Wait until the temperature is stable.

    Raises:
        RemoteError: it is not within half an hour.
    """
    before = _now(site)
    if before is None:
        return
    for _ in range(_STABLE_READINGS_MOST):
        site.tell(f"{before:.1f} degrees; waiting until it is stable")
        time.sleep(_STABLE_PAUSE_SECONDS)
        now = _now(site)
        if now is not None and abs(now - before) < _STABLE_CELSIUS:
            return
        before = before if now is None else now
    raise RemoteError(
        f"{site.node}: after {_STABLE_READINGS_MOST * _STABLE_PAUSE_SECONDS / 60:.0f} min the idle "
        f"temperature is not stable; the last one was {before:.1f} degrees",
        hint="end other programs on the node, and keep it out of draughts and the sun",
    )


def measure(site: Site) -> tuple[ProbeFigure, ...]:
    """Sample the node idle, at work and cooling; quick mode does not wait until it is stable."""
    phases = _PHASES_SECONDS[site.mode]
    if site.mode is ProbeMode.PAPER:
        _settle(site)
    site.tell(f"idle for {phases['idle']} s")
    idle = _look(site, seconds=phases["idle"])
    if all(row.celsius is None for row in idle):
        site.tell(f"{NO_SENSOR}: only the clock is recorded")
    site.tell(f"{site.cores} cores at work for {phases['stress']} s")
    with stressing(site, seconds=phases["stress"]):
        stress = _look(site, seconds=phases["stress"])
    site.tell(f"cooling for {phases['cool']} s")
    cool = _look(site, seconds=phases["cool"])
    return tuple(figures_of(HeatSamples(idle=idle, stress=stress, cool=cool)))


PROBE = Probe(
    name="heat",
    area="heat",
    summary="temperature and clock at idle, under full load and after it; time to throttle",
    matches=("Gamess and Hernandez 2022, Figs. 3 to 6", "Lee and Park 2026, Fig. 15"),
    tools=(
        NodeTool(program="stress-ng", package="stress-ng"),
        NodeTool(program="python3", package="python3"),
    ),
    measure=measure,
    quick_seconds=37.0,
    paper_seconds=660.0,
    # Its load runs as root, and telemetry as a user cannot tell whose that is.
    shows=frozenset({"throttled", "slow clock", "fast clock", "foreign load"}),
)
