"""What a plan must keep to: time, price, power and energy, each with 90 % probability. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from boardcluster.plan.prediction import PREDICTION_COVERAGE
from boardcluster.units import format_seconds

__all__ = ["MET_PROBABILITY", "PlanLimits", "beyond_time", "likely_most", "shown_limit"]

_Floats = NDArray[np.float64]

MET_PROBABILITY = 0.9
"""How likely a choice must be to keep to each limit."""

_UNITS = {"budget": "", "watts": " W", "joules": " J"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanLimits:
    """The limits; None where there is none."""

    deadline_seconds: float | None = None
    """Longest time of a run."""
    budget: float | None = None
    """Highest price of what is bought, in the plan's currency."""
    watts: float | None = None
    """Highest mean power of the workers during a run."""
    joules: float | None = None
    """Highest energy of the workers in a run."""

    def given(self) -> dict[str, float]:
        """Return the limits there are, by the name of their option."""
        rows = {
            "deadline": self.deadline_seconds,
            "budget": self.budget,
            "watts": self.watts,
            "joules": self.joules,
        }
        return {name: value for name, value in rows.items() if value is not None}


def likely_most(median: _Floats, high: _Floats) -> _Floats:
    """Return what a predicted amount stays below with ``MET_PROBABILITY``.

    Predictions are lognormal, and ``high`` is the upper end of their interval, which holds
    ``PREDICTION_COVERAGE`` of runs; both tails hold the same.
    """
    upper = stats.norm.ppf((1 + PREDICTION_COVERAGE) / 2)
    share = stats.norm.ppf(MET_PROBABILITY) / upper
    return np.asarray(median * (high / median) ** share, dtype=np.float64)


def beyond_time(spread: _Floats, time_spread: _Floats) -> _Floats:
    """Return the spread of power alone, from that of energy and that of time; each high / median.

    Time and power vary independently, so the squares of their logarithms add up to energy's.
    """
    squares = np.log(spread) ** 2 - np.log(time_spread) ** 2
    return np.asarray(np.exp(np.sqrt(np.maximum(0.0, squares))), dtype=np.float64)


def shown_limit(name: str, value: float, currency: str) -> str:
    """Return an amount as a person reads it; ``name`` is that of its limit."""
    if math.isnan(value):
        return "unknown"
    if name == "deadline":
        return format_seconds(value)
    if name == "budget":
        return f"{currency} {value:,.0f}"
    if name == "joules" and value >= 10_000:
        return f"{value / 1000:,.1f} kJ"
    return f"{value:,.0f}{_UNITS[name]}"
