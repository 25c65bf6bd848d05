"""One row for each cell: the statistics over the runs of one configuration on one engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial

from boardcluster.analysis.cells import Cell, Configuration, Untrusted, security_of
from boardcluster.analysis.efficiency import Efficiency, core_watts_of, efficiency_of, watts_of
from boardcluster.analysis.inference import run_value
from boardcluster.analysis.statistics import mean
from boardcluster.analysis.twins import dilation_of, twin_words
from boardcluster.records import Result, Verdict
from boardcluster.report.export.frames import (
    FieldGetter,
    Frame,
    Value,
    at,
    boolean,
    fields_of,
    integer,
    number,
    text,
    values_of,
)
from boardcluster.report.export.runs import EMULATED, TWIN
from boardcluster.report.export.settings import SETTINGS, TEXT_SETTINGS

__all__ = ["CELLS", "cell_frame", "core_power_watts", "mean_power_watts"]

_INTERVAL = "95 % interval of the mean by Student's t"
_OF_ENERGY = f"{_INTERVAL}, widened by the possible error of the meters"


class _CellRow:
    """A cell, or a configuration of which no run counts, as the columns read it."""

    def __init__(self, cell: Cell | Untrusted) -> None:
        self.cell = cell
        self.results = cell.results
        self.result = cell.results[0]

    @property
    def dilation(self) -> float | None:
        found = {dilation_of(row) for row in self.results}
        return found.pop() if len(found) == 1 else None

    @property
    def emulated(self) -> bool:
        return any(row.attempt and row.attempt.fingerprint.emulated for row in self.results)

    @cached_property
    def efficiency(self) -> Efficiency | None:
        return efficiency_of(self.cell) if isinstance(self.cell, Cell) else None


def _setup(at: Configuration) -> str:
    return ", ".join(said for _, said in at.setup)


def _len(path: str) -> Callable[[_CellRow], int]:
    return lambda row: len(at(path)(row))


_CONFIGURATION = (
    *SETTINGS,
    text("security", "who could reach the cluster", lambda row: security_of(row.result)),
    *TEXT_SETTINGS,
    boolean(*EMULATED),
    text(*TWIN, lambda row: twin_words(row.results)),
    number("dilation", "by how much nodes were slower; nothing if runs differ in it"),
)
_STATISTICS = (
    text(
        "setup",
        "what distinguishes its setup from others of the same configuration",
        lambda row: _setup(row.cell.configuration),
    ),
    integer("starts", "starts of the cluster that its runs are from", "cell.starts"),
    integer("runs", "runs that count", "cell.count"),
    integer(
        "runs_tainted",
        "how many of them are tainted",
        lambda row: row.cell.counted(Verdict.TAINTED),
    ),
    integer(
        "runs_left_out",
        "verified runs that do not count, because they are tainted",
        _len("cell.left_out"),
    ),
    number("duration_mean_seconds", "arithmetic mean", "cell.mean_seconds"),
    number("duration_low_seconds", _INTERVAL, "cell.interval_seconds.low"),
    number("duration_high_seconds", _INTERVAL, "cell.interval_seconds.high"),
    number("duration_median_seconds", "median", "cell.median_seconds"),
    number("duration_least_seconds", "shortest", "cell.minimum_seconds"),
    number("duration_most_seconds", "longest", "cell.maximum_seconds"),
    number("duration_deviation_seconds", "sample standard deviation", "cell.deviation_seconds"),
    number("variation_share", "deviation over mean", "cell.variation"),
    number("variation_within_share", "the same within a start of the cluster", "cell.within_share"),
    number(
        "variation_between_share",
        "deviation between starts beyond what runs within them explain, over the mean",
        "cell.between_share",
    ),
    integer(
        "outliers",
        "runs beyond Tukey's fences; they count all the same",
        _len("cell.outliers"),
    ),
    number(
        "throughput_bytes_per_second",
        "input of all runs over their time",
        "cell.throughput_bytes_per_second",
    ),
    number(
        "intermediate_mean_bytes",
        "mean of what was written to local storage, final output not included",
        "cell.mean_intermediate_bytes",
    ),
    integer("energy_runs", "runs whose energy is known", "efficiency.energy_joules.count"),
    text(
        "energy_method",
        "metered, or modelled if any of it is; empty without any",
        "efficiency.method",
    ),
    number(
        "energy_mean_joules",
        "mean over the runs whose energy is known",
        "efficiency.energy_joules.value",
    ),
    number("energy_low_joules", _OF_ENERGY, "efficiency.energy_joules.interval.low"),
    number("energy_high_joules", _OF_ENERGY, "efficiency.energy_joules.interval.high"),
    number(
        "power_mean_watts",
        "mean over the runs of their mean power",
        "efficiency.mean_watts.value",
    ),
    text("remark", "why there is no mean; empty if there is one", lambda _: ""),
)


def _figures(names: Iterable[str]) -> Iterator[FieldGetter]:
    """Three columns for each figure of a workload."""
    for name in names:

        def part(row: _CellRow, edge: str, name: str = name) -> float | None:
            figure = row.cell.figures.get(name) if isinstance(row.cell, Cell) else None
            if figure is None or edge == "mean":
                return None if figure is None else figure.mean
            return getattr(figure.interval, edge, None)

        for edge, meaning in (
            ("mean", "mean of what the workload measured itself"),
            ("low", "95 % interval of that mean"),
            ("high", "95 % interval of that mean"),
        ):
            yield number(f"figure_{edge}_{name}", meaning, partial(part, edge=edge))


CELLS = (*_CONFIGURATION, *_STATISTICS, *_figures(["NAME"]))
"""The columns of the table of cells, with three for all figures."""


def cell_frame(cells: Sequence[Cell], untrusted: Sequence[Untrusted] = ()) -> Frame:
    """Return one row for each cell, and one for each configuration of which no run counts.

    What workloads measure themselves is in ``figure_mean_NAME``, ``figure_low_NAME`` and
    ``figure_high_NAME``: mean and 95 % interval. Where a cell has one run, intervals are empty.

    Args:
        cells: the cells.
        untrusted: configurations without a run that counts; they have no statistics.
    """
    names = dict.fromkeys(name for cell in cells for name in cell.figures)
    statistics = (*_STATISTICS, *_figures(names))

    def rows() -> Iterator[Sequence[Value]]:
        for cell in cells:
            yield values_of((*_CONFIGURATION, *statistics), _CellRow(cell))
        for row in untrusted:
            yield (*values_of(_CONFIGURATION, _CellRow(row)), *_no_statistics(row, statistics))

    return Frame(name="cells", fields=fields_of((*_CONFIGURATION, *statistics)), rows=rows())


def _no_statistics(row: Untrusted, columns: Iterable[FieldGetter]) -> Iterator[Value]:
    known: dict[str, Value] = {
        "setup": _setup(row.configuration),
        "starts": len({run_value(item, 1.0).started for item in row.results}),
        "runs": 0,
        "runs_tainted": 0,
        "runs_left_out": len(row.results),
        "energy_runs": 0,
        "energy_method": "",
        "remark": "no valid run: --tainted lets these count",
    }
    return (known.get(column.field.name) for column in columns)


def core_power_watts(results: Sequence[Result]) -> float | None:
    """Mean over runs of the power of their core phase; None where one of them has no energy.

    A run without a core phase counts with the power of all of it.
    """
    found = [row.measurement for row in results if row.measurement is not None]
    energies = [(row.energy, row.duration_seconds) for row in found if row.energy is not None]
    watts = [core_watts_of(energy, seconds) for energy, seconds in energies]
    known = [each for each in watts if each is not None]
    return mean(known) if known and len(known) == len(found) else None


def mean_power_watts(results: Sequence[Result]) -> float | None:
    """Mean over runs of their mean power; None where one of them has no energy."""
    found = [row.measurement for row in results if row.measurement is not None]
    watts = [watts_of(row.energy, row.duration_seconds) for row in found if row.energy is not None]
    known = [each for each in watts if each is not None]
    return mean(known) if known and len(known) == len(found) else None
