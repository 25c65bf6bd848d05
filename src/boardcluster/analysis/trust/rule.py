"""What a rule is, and what it looks at."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self

from boardcluster.analysis.trust.effects import TimeLost
from boardcluster.analysis.trust.expectations import Expectations, Thresholds
from boardcluster.analysis.trust.window import Window
from boardcluster.records import NodeSamples, Telemetry, Verdict

__all__ = ["FoundDisturbance", "RunTelemetry", "TrustRule"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunTelemetry:
    """The telemetry of a run as rules look at it."""

    duration_seconds: float
    """Of the run, at least 0."""
    samples: tuple[NodeSamples, ...]
    """Of each node as they came."""
    windows: tuple[Window, ...]
    """The same cut to the run."""
    expectations: Expectations
    """What they are judged against."""
    phases: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Its phases, see ``Telemetry``."""

    @classmethod
    def of(cls, telemetry: Telemetry, expectations: Expectations) -> Self:
        """Cut telemetry to its run."""
        known = math.isfinite(telemetry.duration_seconds) and telemetry.duration_seconds > 0
        duration_seconds = telemetry.duration_seconds if known else 0.0
        return cls(
            duration_seconds=duration_seconds,
            samples=telemetry.nodes,
            windows=tuple(
                Window.of(node, start_seconds=0.0, end_seconds=duration_seconds)
                for node in telemetry.nodes
            ),
            expectations=expectations,
            phases=telemetry.phases,
        )

    @property
    def thresholds(self) -> Thresholds:
        """From where on something counts."""
        return self.expectations.thresholds


@dataclass(frozen=True, slots=True, eq=False)
class FoundDisturbance:
    """What a rule found on one node."""

    node: str
    """Its name; empty if it is no node's."""
    words: str
    """What was found, in one line."""
    lost: TimeLost | None = None
    """At most how much time it cost; None where the rule makes a run invalid."""


@dataclass(frozen=True, slots=True)
class TrustRule:
    """One way in which a run can be disturbed; its source is in docs/reference/verdicts.md."""

    name: str
    """One or two words."""
    verdict: Verdict
    """INVALID if whatever it finds is the end of a run; TAINTED if that depends on how much of the
    run's time it explains."""
    find: Callable[[RunTelemetry], Iterable[FoundDisturbance]]
    """Returns what it finds."""
    adjustable: bool = False
    """Whether a model of several runs can adjust for it."""
