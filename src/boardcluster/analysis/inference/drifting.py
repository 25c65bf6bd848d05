"""Whether a campaign's times drifted, or jumped: one test of each for all of its cells together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from boardcluster.analysis.inference.families import holm
from boardcluster.analysis.inference.observations import RunValue, Start

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["CampaignDrift", "DriftKind", "find_drift"]

_SIGNIFICANCE = 0.05
_LEAST_FREEDOM = 4
_LEAST_SIDE = 3
"""Runs on either side of a change point; fewer are outliers."""
_CUTS_MOST = 200
"""At most so many places are tried; of more, evenly spaced ones, as neighbours say the same."""
_SEED = 20261123
_SHUFFLES = 999
_SHUFFLES_MOST = 9_999
_NUMBERS_AT_ONCE = 4_000_000
"""Of shuffled times in memory: those of a campaign of 10,000 runs would take gigabytes."""


class DriftKind(StrEnum):
    """How times changed: TREND, steadily with run order; CHANGE, from one run on."""

    TREND = "trend"
    CHANGE = "change"


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignDrift:
    """What run order did to the times of a campaign, over all of its cells."""

    campaign: str
    """Its id."""
    kind: DriftKind
    """The one that is shown; of two that are, the one that explains more."""
    share: float
    """By how much the last runs of a start of the cluster took longer than its first, as a share;
    below 0 less."""
    position: int
    """Of a change: the place in the campaign's order, from 0, of the first run after it; of a trend
    that of the first run."""
    runs: int
    """Runs that it was seen in."""
    starts: int = 1
    """Starts of the cluster that these are from; what a new start changes is no drift."""
    p_adjusted: float
    """Its p, by Holm's method over both tests of every campaign."""

    @property
    def is_shown(self) -> bool:
        """Whether it is worth a warning: the p of all campaigns together is below 0.05."""
        return self.p_adjusted < _SIGNIFICANCE


def find_drift(cells: Sequence[Sequence[RunValue]]) -> tuple[CampaignDrift, ...]:
    """Test every campaign for a trend and for a change point.

    The logarithm of each value, less the mean of its cell within its start, is set against its
    place in the campaign's order, less its own mean there, so that cells of any length count
    together and what tells cells or starts apart counts nowhere. Trend: Student's t of the slope.
    Change: the largest t over all places with three runs on either side, against shuffles of the
    runs of each cell within its start (999 or more, of a fixed seed), since a largest t has no
    table. These are two tests for each campaign, so p is corrected by Holm's method over all: a
    store without drift gets a warning with probability 0.05 at most.

    Args:
        cells: the runs of each cell.

    Returns:
        One for each campaign with at least four degrees of freedom, in the order of cells.
    """
    import numpy as np  # noqa: PLC0415  it takes long to load

    campaigns: dict[str, dict[tuple[int, Start], list[RunValue]]] = {}
    for number, rows in enumerate(cells):
        for row in rows:
            groups = campaigns.setdefault(row.start[0], {})
            groups.setdefault((number, row.started), []).append(row)
    tables = {}
    for name, groups in campaigns.items():
        several = [rows for rows in groups.values() if len(rows) > 1]
        if sum(len(rows) - 1 for rows in several) >= _LEAST_FREEDOM:
            tables[name] = _Table.of(several)
    shuffles = min(_SHUFFLES_MOST, max(_SHUFFLES, 80 * len(tables)))
    generator = np.random.RandomState(_SEED)  # its stream never changes between versions (NEP 19)
    found = [
        (name, table, table.trend(), table.change(generator, shuffles))
        for name, table in tables.items()
    ]
    adjusted = holm([value.p_value for row in found for value in row[2:]])
    return tuple(
        _drift(name, table, trend, change, (adjusted[2 * place], adjusted[2 * place + 1]))
        for place, (name, table, trend, change) in enumerate(found)
    )


def _drift(
    name: str, table: _Table, trend: _Slope, change: _Slope, adjusted: tuple[float, float]
) -> CampaignDrift:
    # Shuffles bound the p of a change, so of two that are shown the one counts that explains more.
    if max(adjusted) < _SIGNIFICANCE:
        is_change = abs(change.statistic) > abs(trend.statistic)
    else:
        is_change = adjusted[1] < adjusted[0]
    chosen = change if is_change else trend
    reach = 1.0 if is_change else max(table.spans)
    return CampaignDrift(
        campaign=name,
        kind=DriftKind.CHANGE if is_change else DriftKind.TREND,
        share=math.expm1(chosen.slope * reach),
        position=int(chosen.place),
        runs=len(table.places),
        starts=len(table.spans),
        p_adjusted=adjusted[is_change],
    )


@dataclass(frozen=True, slots=True)
class _Slope:
    slope: float
    statistic: float
    p_value: float
    place: float


@dataclass(frozen=True, slots=True)
class _Table:
    """The runs of a campaign that share a cell and a start with another one."""

    places: NDArray[np.float64]
    values: NDArray[np.float64]
    """Logarithms less their group's mean."""
    groups: tuple[slice, ...]
    spans: tuple[float, ...]
    """From the first to the last place of each start."""

    @classmethod
    def of(cls, rows: Sequence[Sequence[RunValue]]) -> _Table:
        import numpy as np  # noqa: PLC0415

        places, values, groups, begin = [], [], [], 0
        by_start: dict[Start, list[float]] = {}
        for group in rows:
            logs = [math.log(row.value) for row in group]
            middle = math.fsum(logs) / len(logs)
            own = [float(row.position) for row in group]
            places += own
            by_start.setdefault(group[0].started, []).extend(own)
            values += [value - middle for value in logs]
            groups.append(slice(begin, begin + len(group)))
            begin += len(group)
        spans = tuple(max(found) - min(found) for found in by_start.values())
        return cls(np.array(places), np.array(values), tuple(groups), spans)

    @property
    def freedom(self) -> int:
        """Degrees of freedom of a slope."""
        return len(self.values) - len(self.groups) - 1

    def trend(self) -> _Slope:
        from scipy.special import stdtr  # noqa: PLC0415

        slope, statistic = self._slopes(self._centred(self.places[:, None]), self.values[:, None])
        found = float(statistic[0, 0])
        return _Slope(
            float(slope[0, 0]),
            found,
            2 * float(stdtr(self.freedom, -abs(found))),
            self.places.min(),
        )

    def change(self, generator: np.random.RandomState, shuffles: int) -> _Slope:
        import numpy as np  # noqa: PLC0415

        cuts = np.unique(self.places)[_LEAST_SIDE : -_LEAST_SIDE + 1 or None]
        cuts = cuts[:: 1 + len(cuts) // _CUTS_MOST]
        after = (self.places[:, None] >= cuts[None, :]).astype(float)
        centred = self._centred(after)
        telling = (centred**2).sum(axis=0) > 1e-9
        if not telling.any():
            return _Slope(0.0, 0.0, 1.0, 0.0)
        centred, cuts = centred[:, telling], cuts[telling]
        slopes, statistics = self._slopes(centred, self.values[:, None])
        best = int(np.abs(statistics[:, 0]).argmax())
        seen = abs(float(statistics[best, 0]))
        at_once = max(1, _NUMBERS_AT_ONCE // len(self.values))
        as_large = 0
        for first in range(0, shuffles, at_once):
            count = min(at_once, shuffles - first)
            shuffled = np.empty((len(self.values), count))
            for group in self.groups:
                size = group.stop - group.start
                orders = generator.rand(size, count).argsort(axis=0)
                shuffled[group] = self.values[group][orders]
            largest = np.abs(self._slopes(centred, shuffled)[1]).max(axis=0)
            as_large += int((largest >= seen - 1e-9).sum())
        p_value = (1 + as_large) / (1 + shuffles)
        return _Slope(
            float(slopes[best, 0]), float(statistics[best, 0]), p_value, float(cuts[best])
        )

    def _centred(self, columns: NDArray[np.float64]) -> NDArray[np.float64]:
        found = columns.copy()
        for group in self.groups:
            found[group] -= columns[group].mean(axis=0)
        return found

    def _slopes(
        self, columns: NDArray[np.float64], values: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Slope and t of each column on each set of values, one row for each column."""
        import numpy as np  # noqa: PLC0415

        squares = (columns**2).sum(axis=0)[:, None]
        slopes = columns.T @ values / np.where(squares > 0, squares, 1.0)
        left = (values**2).sum(axis=0)[None, :] - slopes**2 * squares
        error = np.sqrt(
            np.maximum(left, 1e-18) / self.freedom / np.where(squares > 0, squares, 1.0)
        )
        return slopes, slopes / error
