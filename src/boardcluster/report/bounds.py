"""What held runs back: the diagnoses of a cell's runs put together, as a table and as a figure."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from boardcluster.analysis.bottleneck import Bound, Diagnosis, PhaseDiagnosis
from boardcluster.analysis.cells import Cell
from boardcluster.analysis.statistics import mean
from boardcluster.analysis.twins import is_twin, node_words
from boardcluster.report import words
from boardcluster.report.evidence import Evidence, by_distance, key_of
from boardcluster.report.parts import Part, named, present
from boardcluster.report.plots import bottlenecks
from boardcluster.report.source import Source, configuration
from boardcluster.report.tables import Display, Getter, Getters, tabulate

__all__ = ["CellBound", "bound_of", "bound_words", "bounds_of", "bounds_part", "gain_words"]

_WORDS = {
    Bound.CPU: "CPU",
    Bound.STORAGE: "storage",
    Bound.NETWORK: "network",
    Bound.MEMORY: "memory",
    Bound.START_UP: "start-up and waiting",
    Bound.HEAT: "heat",
}
_BETTER = {
    Bound.CPU: "a CPU twice as fast",
    Bound.STORAGE: "storage twice as fast",
    Bound.NETWORK: "a network twice as fast",
    Bound.MEMORY: "enough memory",
    Bound.START_UP: "half the waiting",
    Bound.HEAT: "cooling that holds the clock",
}
_TITLE = "What held it back"
_WHOLE = 0.99
"""A phase that takes so much of the run is the run, and has no row of its own."""
_PHASES_MOST = 12
_METHOD = (
    "A share is the part of the time that tasks spent using a resource or waiting for it, as a "
    "mean over the runs; where no task ran, it is what the busiest node did. The first bound is "
    "the resource that would save most if it were twice as fast. What a change would bring is "
    "predicted, not measured: the most likely value, as a mean over the runs, and the bounds "
    "within which it lies in all runs, given what is known of how work overlapped."
)
_OWN_TIME = "Seconds are this machine's time, as in the telemetry."


@dataclass(frozen=True, slots=True, kw_only=True)
class CellBound:
    """What held the runs of a cell back, in the whole run or in one phase."""

    cell: Cell
    """The cell."""
    phase: str
    """Name of the phase; empty for the whole run."""
    runs: int
    """How many of its runs have a diagnosis."""
    seconds: float
    """Mean duration of the phase, in the time of the runs' telemetry."""
    shares: Mapping[Bound, float]
    """Share of the time that each bound held it back, mean over the runs."""
    first: Bound | None
    """What would save most, twice as fast; None where nothing is known."""
    second: Bound | None
    """What would bind it next."""
    gains: Mapping[Bound, tuple[float, float, float]]
    """Times as fast with that resource twice as fast: mean of the runs, lowest and highest bound
    of any of them."""
    evidence: tuple[str, ...]
    """Numbers from the samples of the run nearest the median."""
    missing: tuple[str, ...]
    """What could not be seen, over all runs."""

    def percent(self, bound: Bound) -> str:
        """The share of the time of a bound, in per cent."""
        return f"{100 * self.shares[bound]:.0f} %"


def bounds_of(cell: Cell, evidence: Evidence) -> tuple[CellBound, ...]:
    """What bound a cell: the whole run first, then each phase in its order; empty if unknown."""
    found = [
        (key_of(item), evidence.diagnoses[key_of(item)])
        for item in cell.results
        if key_of(item) in evidence.diagnoses
    ]
    known = [(key, row) for key, row in found if row.run.first is not None]
    if not known:
        return ()
    by_key = dict(known)
    shown = next(by_key[key] for item in by_distance(cell) if (key := key_of(item)) in by_key)
    whole = _together(cell, [row.run for _, row in known], shown.run)
    phases = [
        _together(cell, rows, phase)
        for phase in shown.phases
        if phase.duration_seconds < _WHOLE * shown.run.duration_seconds
        and (rows := [row for _, one in known for row in _phases(one, phase.phase)])
    ]
    return (whole, *(row for row in phases if row.first is not None))


def bound_of(cell: Cell, evidence: Evidence) -> CellBound | None:
    """What bound a cell's whole runs; None if unknown."""
    return next(iter(bounds_of(cell, evidence)), None)


def _phases(diagnosis: Diagnosis, name: str) -> list[PhaseDiagnosis]:
    return [row for row in diagnosis.phases if row.phase == name]


def bound_words(bound: Bound) -> str:
    """A bound as people say it."""
    return _WORDS[bound]


def gain_words(row: CellBound, bound: Bound, link: str = ":") -> str:
    """What less of a bound would bring: ``a CPU twice as fast: 1.62 times as fast``.

    Args:
        row: what held the runs back.
        bound: the bound.
        link: what joins the change and its effect.
    """
    middle, low, high = row.gains[bound]
    span = f" ({low:.2f} to {high:.2f})" if f"{low:.2f}" != f"{high:.2f}" else ""
    return f"{_BETTER[bound]}{link} {middle:.2f} times as fast{span}"


def _together(cell: Cell, rows: Sequence[PhaseDiagnosis], shown: PhaseDiagnosis) -> CellBound:
    known = [row for row in rows if row.first is not None]
    shares: dict[Bound, float] = {}
    gains: dict[Bound, tuple[float, float, float]] = {}
    for bound in Bound if known else ():
        shares[bound] = mean([row.shares.get(bound, 0.0) for row in known])
        values = [row.gains[bound] for row in known if bound in row.gains]
        if values:
            ends = [row.gain_bounds[bound] for row in known if bound in row.gain_bounds]
            gains[bound] = (
                mean(values),
                min([*values, *(low for low, _ in ends)]),
                max([*values, *(high for _, high in ends)]),
            )
    behind = Tally(row.second for row in known if row.second is not None)
    ahead = Tally(row.first for row in known if row.first is not None).most_common(1)
    first = ahead[0][0] if ahead else None
    return CellBound(
        cell=cell,
        phase=shown.phase,
        runs=len(known),
        seconds=mean([row.duration_seconds for row in rows]),
        shares=shares,
        first=first,
        second=next((bound for bound, _ in behind.most_common() if bound is not first), None),
        gains=gains,
        evidence=shown.evidence,
        missing=tuple(dict.fromkeys(line for row in rows for line in row.missing)),
    )


def bounds_part(source: Source, cells: Sequence[Cell], evidence: Evidence, *, name: str) -> Part:
    """What held a workload back; empty where nothing is known of any of its runs."""
    found = [row for cell in cells for row in bounds_of(cell, evidence)[: _PHASES_MOST + 1]]
    if not found:
        return Part(title=_TITLE, name=name)
    results = [item for cell in cells for item in cell.results]
    emulated = source.is_emulated(results)
    figures = bottlenecks(_shares(found, cells), emulated=emulated, twins=node_words(results))
    missing = tuple(dict.fromkeys(line for row in found for line in row.missing))
    workload = words.workload_name(cells[0].workload)
    cell_getters: Getters[CellBound] = (
        Getter("Engine", lambda row: words.engine_name(row.cell.engine), Display.ENGINE),
        Getter("Configuration", lambda row: configuration(row.cell, cells)),
    )
    held = tabulate(
        found,
        (*cell_getters, *_GETTERS),
        caption=f"{workload}: what held it back",
        emulated=emulated,
        note=_OWN_TIME if any(is_twin(item) for item in results) else "",
        hide=("Configuration",),
    )
    samples = tabulate(
        [row for row in found if not row.phase and row.evidence],
        (*cell_getters, _EVIDENCE),
        caption=f"{workload}: what the samples of the run nearest the median show",
        emulated=emulated,
        hide=("Configuration",),
    )
    return Part(
        title=_TITLE,
        name=name,
        text=(_METHOD,),
        figures=named(figures, name),
        tables=present(held, samples),
        paper=True,
        notes=(f"Gaps in the samples: {'; '.join(missing)}.",) if missing else (),
    )


def _shares(found: Sequence[CellBound], cells: Sequence[Cell]) -> dict[str, dict[str, float]]:
    """Rows of the figure: the name of each cell to the share of each bound in its whole runs."""
    rows = {}
    for row in found:
        if not row.phase:
            which = configuration(row.cell, cells)
            engine = words.engine_name(row.cell.engine)
            rows[f"{engine}, {which}" if which else engine] = {
                _WORDS[bound]: share for bound, share in row.shares.items()
            }
    return rows


def _first(row: CellBound) -> str:
    return words.NONE if row.first is None else f"{_WORDS[row.first]}, {row.percent(row.first)}"


def _gain(row: CellBound) -> str:
    return gain_words(row, row.first) if row.first in row.gains and row.first else words.NONE


def _runs(row: CellBound) -> str:
    return str(row.runs) if row.runs == row.cell.count else f"{row.runs} of {row.cell.count}"


_GETTERS: Getters[CellBound] = (
    Getter("Phase", lambda row: row.phase or "whole run"),
    Getter("Seconds", lambda row: words.seconds(row.seconds), Display.NUMBER),
    Getter("First bound", _first),
    Getter("Second bound", lambda row: words.NONE if row.second is None else _WORDS[row.second]),
    Getter("What a change would bring", _gain),
    Getter("Runs", _runs, Display.NUMBER),
)
_EVIDENCE: Getter[CellBound] = Getter(
    "Evidence", lambda row: "; ".join(line.rstrip(".") for line in row.evidence)
)
