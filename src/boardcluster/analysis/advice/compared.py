"""Two cells that differ in one setting only: what it brought, measured."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from boardcluster.analysis.cells import Cell
from boardcluster.analysis.inference import MeasuredRatio, family
from boardcluster.analysis.ratios import ratio_of_cells
from boardcluster.analysis.scaling import other_differences
from boardcluster.units import format_seconds

__all__ = ["Compared", "Pair", "pair_key", "pairs_by"]

_ALONE_GAIN = 1.10
"""Where one of the two ran once, a smaller ratio is as likely to be chance."""

_FOLLOWS = ("generated configuration",)
"""What differs because the setting does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """The same work with two values of one setting."""

    slower: Cell
    """The cell with the larger mean."""
    faster: Cell
    """The other one."""
    ratio: MeasuredRatio
    """``slower`` over ``faster``, with its interval."""
    differences: tuple[str, ...]
    """What else differs between the machines, one line each."""

    @property
    def counts(self) -> bool:
        """Whether it may be advised on: shown; or one run of either, and a large difference."""
        alone = min(self.slower.count, self.faster.count) == 1
        return self.ratio.is_shown or (alone and self.ratio.value >= _ALONE_GAIN)

    @property
    def words(self) -> str:
        """Both means, over how many runs, and what else differs."""
        counts = f"{self.faster.count} and {self.slower.count} runs"
        alone = f", {self.ratio.reason}" if self.ratio.reason else ""
        also = f"; also different: {'; '.join(self.differences)}" if self.differences else ""
        return (
            f"{format_seconds(self.faster.mean_seconds)} against"
            f" {format_seconds(self.slower.mean_seconds)}, means of {counts}{alone}{also}"
        )


Compared: TypeAlias = "Mapping[tuple[object, ...], MeasuredRatio]"
"""By ``pair_key``, the ratios of cells that somebody has compared already."""


def pair_key(slower: Cell, faster: Cell) -> tuple[object, ...]:
    """Return by what a comparison of two cells is found."""
    return (slower.configuration, slower.engine, faster.configuration, faster.engine)


def pairs_by(cells: Sequence[Cell], field: str, compared: Compared) -> Iterator[Pair]:
    """Yield every two cells that differ in one field of their configuration and nothing else.

    Args:
        cells: cells of runs that can be trusted.
        field: a field of ``Configuration``.
        compared: ratios that are shown elsewhere, corrected for their number; pairs that are not
            among them, such as those of several settings at once, are a family by themselves.
    """
    groups: dict[Any, list[Cell]] = {}
    for cell in cells:
        own = dataclasses.asdict(cell.configuration)
        del own[field]
        groups.setdefault((cell.engine, *(str(value) for value in own.values())), []).append(cell)
    pairs = [
        sorted(two, key=lambda cell: cell.mean_seconds)
        for group in groups.values()
        for two in itertools.combinations(group, 2)
    ]
    known = [compared.get(pair_key(slower, faster)) for faster, slower in pairs]
    # The largest of them is advised on: of many, one is large by chance.
    apart = iter(
        family(
            [
                ratio_of_cells(slower, faster)
                for (faster, slower), ratio in zip(pairs, known, strict=True)
                if ratio is None
            ]
        )
    )
    for (faster, slower), ratio in zip(pairs, known, strict=True):
        found = other_differences((faster, slower), apart_from=field)
        yield Pair(
            slower=slower,
            faster=faster,
            ratio=next(apart) if ratio is None else ratio,
            differences=tuple(row for row in found if row not in _FOLLOWS),
        )
