"""How a watch of the performance stands. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from boardcluster.analysis.control_chart import ControlChart

__all__ = ["WatchStanding", "WatchedCell"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedCell:
    """One cell of a watch."""

    name: str
    """What it is, in a few words."""
    chart: ControlChart
    """Its charts."""
    changed: tuple[str, ...]
    """What is different after its change, one line each; empty where nothing is, or without one."""
    baseline_drifts: bool
    """Whether the baseline itself changed while it was measured, so that its limits mean little."""
    words: str
    """How it stands, in a sentence."""
    silent: str
    """Since which round no run counts, and why; empty where one of the last round does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchStanding:
    """How a watch stands after its last round."""

    name: str
    """The name that its rounds have as campaigns."""
    file: str
    """The campaign file, an absolute path."""
    baseline: int
    """Rounds that make the limits."""
    rounds: tuple[str, ...]
    """Ids of the rounds of its baseline and since, in order."""
    cells: tuple[WatchedCell, ...]
    """Its cells."""

    @property
    def out(self) -> tuple[WatchedCell, ...]:
        """Those that are out of their limits now."""
        return tuple(row for row in self.cells if row.chart.is_out)

    @property
    def silent(self) -> tuple[WatchedCell, ...]:
        """Those of which no run of the last round counts."""
        return tuple(row for row in self.cells if row.silent)

    @property
    def notice(self) -> str:
        """What is to be told of it in one line: of cells out of their limits, or without runs."""
        return "; ".join(row.words for row in self.cells if row.chart.is_out or row.silent)
