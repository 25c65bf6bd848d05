"""Records to what the model takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from boardcluster.factors import FACTORS, Acts
from boardcluster.records import Measurement, Result

__all__ = ["Block", "RunValue", "Start", "observe", "observe_values", "run_value"]

Start: TypeAlias = "tuple[str, int]"
"""A start of the cluster: campaign and number of the start, or identity of its daemons and 0."""
Block: TypeAlias = "tuple[str, int, int]"
"""A start and a repetition."""

_ON_CLUSTER = tuple(factor for factor in FACTORS if factor.acts is Acts.CLUSTER)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunValue:
    """One value of one run, and what the model must know of the run."""

    value: float
    """What was measured, above 0: a duration in seconds, a rate, an energy."""
    start: Start
    """The start of the cluster that it was planned in."""
    block: int = 0
    """The repetition within the start: runs of other cells in the same block saw the same state."""
    position: int = 0
    """Place in the campaign's order."""
    daemons: str = ""
    """Identity of the daemons it ran on, where it is known."""
    variant: str = ""
    """What the cluster was started with: another one is another start, whatever its number."""
    disturbed: Mapping[str, float] = field(default_factory=dict)
    """At most this share of the value is explained by each adjustable cause, 0 to 1; below 0 where
    it made the value smaller, as a rate."""

    @property
    def started(self) -> Start:
        """The start that it really ran in.

        Campaigns on the same daemons are of one start; where the daemons were started again in the
        middle of a planned one, as a resume may have to, there are two.
        """
        return (self.daemons, 0) if self.daemons else self.start


def observe(
    results: Iterable[Result],
    value: Callable[[Measurement], float | None] = lambda found: found.duration_seconds,
) -> tuple[RunValue, ...]:
    """Return the observations of measured runs, in their order; without the others.

    Args:
        results: the runs of one cell, one for each trial.
        value: what is compared; a run for which it is None, or not above 0, gives none.
    """
    given = ((row, value(row.measurement)) for row in results if row.measurement is not None)
    return tuple(
        run_value(row, found) for row, found in given if found is not None and 0 < found < math.inf
    )


def run_value(result: Result, value: float) -> RunValue:
    """Return a value of a run with what the model must know of the run."""
    shares: dict[str, float] = {}
    for each in result.measurement.disturbances if result.measurement else ():
        if each.adjustable:
            shares[each.cause] = max(each.share, shares.get(each.cause, 0.0))
    return RunValue(
        value=value,
        start=(result.trial.campaign_id, result.trial.start),
        daemons="" if result.attempt is None else result.attempt.start_id,
        block=result.trial.repetition,
        position=result.trial.position,
        variant=repr([factor.level(result.trial) for factor in _ON_CLUSTER]),
        disturbed=shares,
    )


def observe_values(values: Sequence[float], *, start: Start = ("", 1)) -> tuple[RunValue, ...]:
    """Return plain values as observations of one start that are not paired with any others.

    Raises:
        ValueError: a value is not above 0.
    """
    for value in values:
        if not 0 < value < math.inf:
            raise ValueError(f"{value:g} is not above 0, so that no ratio to it means anything")
    return tuple(RunValue(value=value, start=start) for value in values)
