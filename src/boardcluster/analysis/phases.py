"""Which phases of a run's telemetry are submissions, and which the engine's own within one. Pure.

A submission is named by the workload (``sort``; in a mix ``1-grep/search``), the engine's phase
after it: ``sort/map``, ``1-grep/search/stage 0: collect``. The engine's may overlap.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

__all__ = ["engine_phases", "submission_of", "submissions"]

Spans = Mapping[str, tuple[float, float]]
"""Phases of ``Telemetry``: name to begin and end in seconds."""


def submissions(phases: Spans) -> dict[str, tuple[float, float]]:
    """Return the submissions among a run's phases: those that lie in no other by their names."""
    return {name: span for name, span in phases.items() if not submission_of(name, phases)}


def engine_phases(phases: Spans, submission: str) -> dict[str, tuple[float, float]]:
    """Return the engine's phases within a submission by their own names, e.g. ``map``."""
    return {
        name.removeprefix(f"{submission}/"): span
        for name, span in phases.items()
        if submission_of(name, phases) == submission
    }


def submission_of(name: str, phases: Container[str]) -> str:
    """Return the submission that a phase lies in; empty for a submission."""
    for place, letter in enumerate(name):
        if letter == "/" and name[:place] in phases:
            return name[:place]
    return ""
