"""How precise a cell is, which says how large a disturbance has to be to matter in it."""

from __future__ import annotations

from collections.abc import Sequence

from boardcluster.analysis.inference import observe_values, precision_of
from boardcluster.records import EXCLUDING_SHARE, SMALLEST_EFFECT_SHARE

__all__ = ["precision_reached"]

_LEAST_RUNS = 3
_LEAST_SHARE = 0.01
"""Starting a job and reading a clock vary by about so much; nothing less is worth a verdict."""


def precision_reached(durations_seconds: Sequence[float]) -> float:
    """Return what share of its duration the next run of a cell tolerates.

    It is half the width of the 95 % interval of the mean over the mean, by Student's t: what the
    runs so far cannot tell from noise. Of fewer than three runs that says nothing, and the smallest
    effect of interest counts. It is at least 1 %, and at most what excludes a run in any case.

    Args:
        durations_seconds: of the runs that are in the cell before it.

    Returns:
        A share, 0.01 to ``EXCLUDING_SHARE``.
    """
    if len(durations_seconds) < _LEAST_RUNS:
        return SMALLEST_EFFECT_SHARE
    half = precision_of(observe_values(durations_seconds)).half_width()
    return min(EXCLUDING_SHARE, max(_LEAST_SHARE, half))
