"""How often control charts err, and how soon they see a slowdown: simulated rounds, no cluster."""

from __future__ import annotations

import math
import statistics

import numpy as np
from numpy.typing import NDArray

from boardcluster.analysis.control_chart import ControlChart, RoundValue, control_chart
from boardcluster.records import BASELINE_LEAST

_SERIES = 1000
_AFTER = 60
"""Rounds after the baseline."""
_STEADY = 3
"""Of them before the slowdown."""
_SLOWDOWN = 1.1
_SEED = 20261123


def main() -> None:
    """Print one row for each baseline and scatter of rounds."""
    print(
        "| baseline | scatter of rounds | false alarms per round | rounds to see + 10 % |", end=""
    )
    print(" not seen in 57 | change point held |\n|--:|--:|--:|--:|--:|--:|")
    generator = np.random.default_rng(_SEED)
    for baseline in (BASELINE_LEAST, 10, 20):
        for deviation in (0.01, 0.02, 0.03, 0.05):
            _row(generator, baseline, deviation)


def _row(generator: np.random.Generator, baseline: int, deviation: float) -> None:
    alarms = judged = held = 0
    waits: list[float] = []
    for _ in range(_SERIES):
        logs = generator.normal(0.0, deviation, baseline + _AFTER)
        steady = _chart(logs, baseline)
        judged += _AFTER
        alarms += len(_out(steady))
        change = baseline + _STEADY
        logs[change:] += math.log(_SLOWDOWN)
        seen = [place for place in _out(_chart(logs, baseline)) if place > change]
        waits.append(seen[0] - change if seen else math.inf)
        if seen:
            found = _chart(logs[: seen[0]], baseline).change
            held += found is not None and found.earliest <= change <= found.latest
    missed = sum(wait == math.inf for wait in waits)
    middle = statistics.median(waits)
    said = "-" if middle == math.inf else f"{middle:.0f}"
    lost, place = missed / _SERIES, held / max(1, _SERIES - missed)
    rate = alarms / judged
    print(f"| {baseline} | {deviation:.0%} | {rate:.2%} | {said} | {lost:.1%} | {place:.0%} |")


def _chart(logs: NDArray[np.float64], baseline: int) -> ControlChart:
    values = [
        RoundValue(round=str(place), started_utc="", seconds=20 * math.exp(value), runs=1)
        for place, value in enumerate(logs)
    ]
    return control_chart(values, baseline=baseline)


def _out(chart: ControlChart) -> list[int]:
    return [point.number for point in chart.points if point.out]


if __name__ == "__main__":
    main()
