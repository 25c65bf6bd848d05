"""Whether the clocks that a run is measured by went on together from before it to after it.

A driver that sleeps sees less time pass than its boards, and a machine that is stopped as a whole
sees none pass at all. Samples show neither: they are put on the driver's clock.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from boardcluster.records import NodeSamples
from boardcluster.remote.node_clock import CLOCK_ERROR_MOST_SECONDS, slept_seconds
from boardcluster.telemetry.samples import Alignment
from boardcluster.units import format_seconds

__all__ = ["ClockWatch", "clock_steps"]

_SLEPT_SECONDS = 0.2
_APART_SECONDS = 0.5
_SLEW_SHARE = 1e-3
"""Time services slow down or speed up a clock by at most 500 ppm (adjtimex(2)), two clocks by twice
that against each other."""

_STEP_SECONDS = 1.0
"""Tokens and leases of the engines live by wall clocks; smaller steps they forgive."""


@dataclass(slots=True, kw_only=True)
class ClockWatch:
    """Holds the driver's clocks and those of nodes against each other; made before a run."""

    _slept_seconds: float = field(default_factory=slept_seconds)
    _began_seconds: float = field(default_factory=time.monotonic)
    _began: dict[str, tuple[str, Alignment]] = field(default_factory=dict)
    _ended: dict[str, tuple[str, Alignment]] = field(default_factory=dict)

    def begin(self, name: str, boot: str, alignment: Alignment) -> None:
        """Note the clocks of a node before the run, and which boot they count from."""
        self._began[name] = boot, alignment

    def end(self, name: str, boot: str, alignment: Alignment) -> None:
        """Note the clocks of a node after the run; one that was restarted is a lost node."""
        self._ended[name] = boot, alignment

    def faults(self) -> tuple[str, ...]:
        """Return why no duration since this was made can be trusted, in one line each."""
        slept = slept_seconds() - self._slept_seconds
        driver = f"this machine slept for {format_seconds(slept)}" if slept > _SLEPT_SECONDS else ""
        nodes = [
            *(_unknown(name, row) for name, (_, row) in self._began.items()),
            *(
                self._apart(name, before, after)
                for name, (boot, before) in self._began.items()
                for same, after in [self._ended.get(name, ("", before))]
                if same == boot
            ),
        ]
        return tuple(words for words in (driver, *sorted(nodes)) if words)

    def _apart(self, name: str, began: Alignment, ended: Alignment) -> str:
        passed_seconds = time.monotonic() - self._began_seconds
        most_seconds = (
            _APART_SECONDS
            + _SLEW_SHARE * passed_seconds
            + began.error_seconds
            + ended.error_seconds
        )
        apart = ended.monotonic_offset_seconds - began.monotonic_offset_seconds
        if abs(apart) <= most_seconds:
            return ""
        which = "more" if apart > 0 else "less"
        return f"{name}: {format_seconds(abs(apart))} {which} passed there than on this machine"


def _unknown(name: str, alignment: Alignment) -> str:
    if alignment.error_seconds <= CLOCK_ERROR_MOST_SECONDS:
        return ""
    return (
        f"{name}: its clock is known only to within {format_seconds(alignment.error_seconds)}, by "
        "the shortest of several round trips"
    )


def clock_steps(samples: Mapping[str, NodeSamples]) -> tuple[str, ...]:
    """Name the nodes whose wall clock was set while they were watched, in one line each."""
    found = []
    for name, node in samples.items():
        steps = node.columns.get("clock_step_seconds", np.empty(0))
        sizes = np.nan_to_num(steps)
        if len(sizes) and abs(size := float(sizes[np.abs(sizes).argmax()])) > _STEP_SECONDS:
            way = "forward" if size > 0 else "back"
            found.append(f"{name}: its wall clock was set {way} by {format_seconds(abs(size))}")
    return tuple(found)
