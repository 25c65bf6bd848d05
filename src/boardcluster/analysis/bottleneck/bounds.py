"""What bound a run, as frozen data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

__all__ = ["Bound", "Diagnosis", "PhaseDiagnosis"]


class Bound(StrEnum):
    """What a run can wait for.

    CPU: it was on a core, waited for one, or was held back by a hypervisor or its CPU limit.
    STORAGE, NETWORK: it waited for a disk, for a link. MEMORY: it waited for memory to be freed or
    read back from swap. HEAT: the part of the CPU time that a clock, lowered by heat or a weak
    supply, has added. START_UP: none of these: scheduling, heartbeats, locks, waiting for one
    another.
    """

    CPU = "cpu"
    STORAGE = "storage"
    NETWORK = "network"
    MEMORY = "memory"
    START_UP = "start-up"
    HEAT = "heat"


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseDiagnosis:
    """What bound one span of a run. Times are the run's own, on this machine: not undilated.

    Ratios (shares, gains, limits) are the same on the boards that slowed-down nodes stand for.
    """

    phase: str
    """Its name, as in ``Telemetry.phases``; empty for the whole run."""
    begin_seconds: float
    """From the start of the run."""
    duration_seconds: float
    """Of the span."""
    known_seconds: float = 0.0
    """For how much of it there are samples."""
    shares: Mapping[Bound, float] = field(default_factory=dict)
    """Of the known time, by what bound it; all bounds, their sum is 1; empty if nothing is
    known."""
    first: Bound | None = None
    """What, twice as fast, would save most of it; where nothing would, what bound most of it. None
    if nothing is known."""
    second: Bound | None = None
    """What would bound most of it, were the first infinitely fast; None if nothing else was
    seen."""
    gains: Mapping[Bound, float] = field(default_factory=dict)
    """How many times as fast the span would be were that resource twice as fast; at least 1. Memory
    counts as sufficient instead, heat as absent, waiting as half as long."""
    gain_bounds: Mapping[Bound, tuple[float, float]] = field(default_factory=dict)
    """Between what each gain must lie by all that is known of how work overlapped; the gain
    itself is the likeliest value between them."""
    limits: Mapping[Bound, float] = field(default_factory=dict)
    """The same were it infinitely fast; ``inf`` where nothing else was seen."""
    evidence: tuple[str, ...] = ()
    """Numbers from the samples behind first and second, one sentence each."""
    missing: tuple[str, ...] = ()
    """What is not known, one line each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What bound a run and its phases."""

    run: PhaseDiagnosis
    """The whole run."""
    phases: tuple[PhaseDiagnosis, ...] = ()
    """In the order of their beginnings; where two begin together, the longer first."""
