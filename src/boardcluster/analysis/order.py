"""Whether it mattered what ran just before a run. Pure.

Drift over a campaign is in ``inference.find_drift``. What a run leaves
behind (heat, a full page cache, dirty blocks of a card) may also carry over to the next one.
Campaigns draw their order at random, so that such effects even out, and so that they can be seen.

Source: the estimate is that of least squares with one mean for each cell and one effect, after
R. Frisch and F. V. Waugh, "Partial time regressions as compared with individual trends",
*Econometrica* 1(4), 1933.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from boardcluster.analysis.cells import Cell
from boardcluster.analysis.inference.families import holm
from boardcluster.analysis.statistics import LEAST_RUNS, Interval, mean, t_quantile
from boardcluster.records import Engine, Result

__all__ = ["CarryOver", "carry_over"]

_SIGNIFICANCE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class CarryOver:
    """What it did to the runs of a workload to run just after something else."""

    workload: str
    """Name of the workload."""
    engine: Engine
    """Its engine."""
    before: str
    """What ran just before: workload and engine, e.g. ``terasort on spark``."""
    runs: int
    """Runs right after it."""
    others: int
    """Runs of the same cells after anything else."""
    difference_share: float
    """How much longer runs after it took than others of the same cell, as a share of the cell's
    mean; below 0 they were shorter."""
    interval: Interval
    """Its 95 % interval by Student's t, of this effect alone."""
    p_value: float
    """Two-sided p of no effect, corrected by Holm's method for all effects that were looked for."""

    @property
    def is_shown(self) -> bool:
        """Whether the runs show an effect: p below 0.05."""
        return self.p_value < _SIGNIFICANCE


def carry_over(cells: Iterable[Cell], results: Iterable[Result]) -> tuple[CarryOver, ...]:
    """Estimate what carries over from the run before, by workload, engine and what that was.

    With y a duration over the mean of its cell and x whether the run came right after the other
    thing, both without their mean over the cell, the effect is sum(x y) / sum(x^2). So a cell
    counts only where some of its runs came after it and some did not, and what makes whole cells
    slow counts nowhere. The first run of a campaign is one after nothing. Cells hold the runs that
    count; results are every attempt of their campaigns, also tainted and failed ones and warm-ups,
    which ran before as well.

    Returns:
        One for each pair that has at least five runs on either side, in the order of cells.
    """
    before = _predecessors(list(results))
    groups: dict[tuple[str, Engine], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.workload, cell.engine), []).append(cell)
    found = []
    for (workload, engine), group in groups.items():
        names = {before.get(_key(run), "") for cell in group for run in cell.results}
        for name in sorted(names - {""}):
            marked = [
                (cell, [before.get(_key(run), "") == name for run in cell.results])
                for cell in group
            ]
            effect = _effect(workload, engine, name, marked)
            if effect is not None:
                found.append(effect)
    adjusted = holm([row.p_value for row in found])
    return tuple(
        replace(row, p_value=p_value) for row, p_value in zip(found, adjusted, strict=True)
    )


def _key(result: Result) -> tuple[str, int]:
    return (result.trial.id, result.attempt.number if result.attempt else 0)


def _predecessors(results: Sequence[Result]) -> dict[tuple[str, int], str]:
    """Return what ran just before each run of the same campaign; empty before the first."""
    ran = sorted(
        (row for row in results if row.attempt is not None),
        key=lambda row: (
            row.trial.campaign_id,
            row.attempt.started_utc if row.attempt else "",
            row.trial.position,
            *_key(row),
        ),
    )
    found: dict[tuple[str, int], str] = {}
    last: Result | None = None
    for row in ran:
        same = last is not None and last.trial.campaign_id == row.trial.campaign_id
        found[_key(row)] = f"{last.trial.workload} on {last.trial.engine}" if last and same else ""
        last = row
    return found


def _effect(
    workload: str, engine: Engine, name: str, marked: Sequence[tuple[Cell, Sequence[bool]]]
) -> CarryOver | None:
    telling = [(cell, after) for cell, after in marked if any(after) and not all(after)]
    runs = sum(sum(after) for _, after in telling)
    total = sum(len(after) for _, after in telling)
    degrees = total - len(telling) - 1
    if runs < LEAST_RUNS or total - runs < LEAST_RUNS or degrees < 1:
        return None
    xs: list[float] = []
    ys: list[float] = []
    for cell, after in telling:
        part = mean([float(value) for value in after])
        xs += [value - part for value in after]
        ys += [seconds / cell.mean_seconds - 1 for seconds in cell.durations_seconds]
    squares = math.fsum(x * x for x in xs)
    share = math.fsum(x * y for x, y in zip(xs, ys, strict=True)) / squares
    left = math.fsum((y - share * x) ** 2 for x, y in zip(xs, ys, strict=True))
    error = math.sqrt(left / degrees / squares)
    half = t_quantile(degrees) * error
    from scipy.special import stdtr  # noqa: PLC0415  most commands test nothing

    p_value = 2 * float(stdtr(degrees, -abs(share) / error)) if error else float(share == 0)
    return CarryOver(
        workload=workload,
        engine=engine,
        before=name,
        runs=runs,
        others=total - runs,
        difference_share=share,
        interval=Interval(low=share - half, high=share + half),
        p_value=p_value,
    )
