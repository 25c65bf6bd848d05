"""Power: what a node draws at idle and with every core at work, by any meter.

The meter is the caller's: ``site.watts`` reads it. So this file knows no meter.

Source: Baun 2016, Table 2; Lee, Oh and Park 2021, Table 7; Lee and Park 2026, Table 3.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from boardcluster.errors import MeterError, UsageError
from boardcluster.probes.background import stressing
from boardcluster.probes.base import NodeTool, Probe, Site, figures_from
from boardcluster.records import ProbeFigure, ProbeMode
from boardcluster.units import DURATION_ALLOWED, parse_duration

__all__ = ["PROBE", "Watts", "measure", "summary_of"]

_INTERVAL_SECONDS = 1.0
_SETTLE_SECONDS = 3.0
"""Between a change of load and the first reading that counts: meters average over a while."""
_PHASES_SECONDS = {
    ProbeMode.QUICK: {"idle": 10.0, "stress": 15.0},
    ProbeMode.PAPER: {"idle": 3600.0, "stress": 3600.0},
}
_LEAST_READINGS = 3
_LEAST_FRACTION = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Watts:
    """What a meter showed over one phase."""

    mean_watts: float
    """Arithmetic mean of the readings."""
    most_watts: float
    """The highest one."""
    readings: int
    """How many there are."""


def summary_of(readings: Sequence[float | None], *, phase: str, lost: str = "") -> Watts:
    """Summarise the readings of a phase; None is one that the meter did not give.

    Args:
        readings: in watts.
        phase: its name, for messages.
        lost: why the last one that is missing is; empty if it is not known.

    Raises:
        MeterError: too many are missing, or one cannot be true.
    """
    found = [value for value in readings if value is not None]
    wrong = [value for value in found if not math.isfinite(value) or value < 0]
    if wrong:
        raise MeterError(
            f"the power meter showed {wrong[0]:g} W during {phase}",
            hint="check that it is wired the right way round and measures this node",
        )
    if len(found) < max(_LEAST_READINGS, _LEAST_FRACTION * len(readings)):
        raise MeterError(
            f"the power meter gave {len(found)} of {len(readings)} readings during {phase}, at "
            f"least {_LEAST_READINGS} and {_LEAST_FRACTION:.0%} are needed"
            + (f"; its last error was: {lost}" if lost else ""),
            hint="check the network to the meter",
        )
    return Watts(mean_watts=fmean(found), most_watts=max(found), readings=len(found))


def _read(watts: Callable[[], float | None], *, seconds: float, phase: str) -> Watts:
    """Read the meter once per second; what is missed because it is slow is left out.

    Raises:
        MeterError: see ``summary_of``.
    """
    lost = ""

    def ask() -> float | None:
        nonlocal lost
        try:
            return watts()
        except MeterError as error:  # one answer that is lost on the way ends no hour of readings
            lost = error.message.partition("\n")[0]
            return None

    ask()  # of a meter that counts, the first answer is of the time before the phase
    time.sleep(_INTERVAL_SECONDS)
    began = time.monotonic()
    readings: list[float | None] = []
    may_miss = (1 - _LEAST_FRACTION) * seconds / _INTERVAL_SECONDS
    while time.monotonic() - began < seconds and readings.count(None) <= may_miss:
        readings.append(ask())
        now = time.monotonic() - began
        due = (math.floor(now / _INTERVAL_SECONDS) + 1) * _INTERVAL_SECONDS
        time.sleep(max(0.0, due - (time.monotonic() - began)))
    return summary_of(readings, phase=phase, lost=lost)


def _phases(site: Site) -> dict[str, float]:
    """Return the seconds of each phase: the mode's, or those of the settings."""
    phases = dict(_PHASES_SECONDS[site.mode])
    for phase in phases:
        text = site.settings.get(f"power_{phase}_seconds")
        if text is None:
            continue
        try:
            phases[phase] = parse_duration(text)
        except ValueError as error:
            raise UsageError(
                f"power_{phase}_seconds: {error}", hint=f"write {DURATION_ALLOWED}"
            ) from error
    return phases


def measure(site: Site) -> tuple[ProbeFigure, ...]:
    """Read the meter at idle and with every core at work.

    Raises:
        MeterError: no meter is declared, or it does not give readings.
        UsageError: a setting is wrong.
    """
    if site.watts is None:
        raise MeterError(
            f"{site.node}: no power meter is declared for it",
            hint="add a [[meter]] with kind and nodes to cluster.toml",
        )
    phases = _phases(site)
    site.tell(f"idle for {phases['idle']:g} s")
    time.sleep(_SETTLE_SECONDS)
    found = {"idle": _read(site.watts, seconds=phases["idle"], phase="idle")}
    site.tell(f"{site.cores} cores at work for {phases['stress']:g} s")
    with stressing(site, seconds=_SETTLE_SECONDS + _INTERVAL_SECONDS + phases["stress"]):
        time.sleep(_SETTLE_SECONDS)
        found["stress"] = _read(site.watts, seconds=phases["stress"], phase="stress")
    if found["stress"].mean_watts <= found["idle"].mean_watts:
        raise MeterError(
            f"{site.node}: the power meter showed {found['stress'].mean_watts:.2f} W under full "
            f"load and {found['idle'].mean_watts:.2f} W at idle",
            hint="check that it measures this node and still updates; end other programs on the "
            "node",
        )
    figures: list[ProbeFigure] = []
    for phase, watts in found.items():
        values = {
            f"power_{phase}_mean_watts": watts.mean_watts,
            f"power_{phase}_most_watts": watts.most_watts,
            f"power_{phase}_readings": float(watts.readings),
        }
        figures += figures_from(values, {"cores": str(site.cores)})
    return tuple(figures)


PROBE = Probe(
    name="power",
    area="power",
    summary="watts at idle and under full load, by a declared meter",
    matches=(
        "Baun 2016, Table 2",
        "Lee, Oh and Park 2021, Table 7",
        "Lee and Park 2026, Table 3",
    ),
    tools=(NodeTool(program="stress-ng", package="stress-ng"),),
    measure=measure,
    quick_seconds=33.0,
    paper_seconds=7208.0,
    default=False,
)
