"""A figure as a person reads it: its name without the unit, and the value in a handy one."""

from __future__ import annotations

from collections.abc import Mapping

from boardcluster.records import ProbeFigure

__all__ = ["ShownFigure", "conditions_text", "is_curve_point", "show_figure", "unit_of"]

_MILLISECONDS_BELOW_SECONDS = 0.1

ShownFigure = tuple[str, str, str]
"""What was measured, the value, its unit."""

_UNITS: Mapping[str, tuple[str, float]] = {
    "megabytes_per_second": ("MB/s", 1.0),
    "bytes_per_second": ("MB/s", 1e6),
    "megabits_per_second": ("Mbit/s", 1.0),
    "bits_per_second": ("Mbit/s", 1e6),
    "events_per_second": ("events/s", 1.0),
    "signatures_per_second": ("sign/s", 1.0),
    "verifications_per_second": ("verify/s", 1.0),
    "operations_per_second": ("operations/s", 1.0),
    "gflops_per_second": ("Gflop/s", 1.0),
    "times_real_time": ("times real time", 1.0),
    "milliseconds": ("ms", 1.0),
    "microseconds": ("µs", 1.0),
    "seconds": ("s", 1.0),
    "celsius": ("°C", 1.0),
    "gigahertz": ("GHz", 1.0),
    "megahertz": ("MHz", 1.0),
    "hertz": ("MHz", 1e6),
    "watts": ("W", 1.0),
    "joules": ("J", 1.0),
    "percent": ("%", 1.0),
    "bytes": ("MB", 1e6),
    "mips": ("MIPS", 1.0),
    "iops": ("IOPS", 1.0),
    "retransmits": ("retransmits", 1.0),
    "us_dollars": ("US$", 1.0),
    "amperes": ("A", 1.0),
    "volts": ("V", 1.0),
    "kelvin_per_watt": ("K/W", 1.0),
    "joules_per_kelvin": ("J/K", 1.0),
    "cubic_feet_per_minute": ("ft³/min", 1.0),
}
"""Ending of a name to the unit that is shown, and how much of the name's own unit that is. Longer
endings stand before those that they end with."""


def unit_of(name: str) -> str:
    """Return the unit of a figure's value as it is stored, in words: what its name ends with."""
    for ending in _UNITS:
        if name == ending or name.endswith(f"_{ending}"):
            return ending.replace("_", " ")
    return name.rpartition("_")[2]


def is_curve_point(figure: ProbeFigure) -> bool:
    """Whether a figure is one of many over time, and so for a curve and not for a table."""
    return "second" in figure.conditions


def conditions_text(conditions: Mapping[str, str]) -> str:
    """Return conditions in one line."""
    return ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in conditions.items())


def show_figure(figure: ProbeFigure) -> ShownFigure:
    """Return a figure as a person reads it; one with an unknown unit keeps its whole name."""
    for ending, (unit, scale) in _UNITS.items():
        if figure.name.endswith(f"_{ending}"):
            plain = figure.name.removesuffix(f"_{ending}").replace("_", " ")
            if unit == "s" and abs(figure.value) < _MILLISECONDS_BELOW_SECONDS:
                return plain, _digits(figure.value * 1000), "ms"
            return plain, _digits(figure.value / scale), unit
    return figure.name.replace("_", " "), _digits(figure.value), ""


def _digits(value: float) -> str:
    """Return a number with at least four digits that say something."""
    size = abs(value)
    if size >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}" if size < 100 else f"{value:.1f}"
